//! The one clock of the live tests: every thread and every namespace reads the same, so that
//! delays in one direction are differences. Beside every figure stands how late the machine itself
//! was.

use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time;

use weir_units::{Instant, Span};

use super::traffic::Delays;

static BEGINNING: LazyLock<time::Instant> = LazyLock::new(beginning);

/// How often the machine's lateness is looked at.
const BEAT: Span = Span::from_ms(1);

#[expect(clippy::disallowed_methods, reason = "live traffic runs in real time")]
fn beginning() -> time::Instant {
    time::Instant::now()
}

/// Time since the first call.
pub(crate) fn now() -> Instant {
    Instant::from_ns(u64::try_from(BEGINNING.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

#[expect(clippy::disallowed_methods, reason = "live traffic runs in real time")]
pub(crate) fn sleep(span: Span) {
    std::thread::sleep(time::Duration::from_nanos(span.ns()));
}

/// Returns at once when the moment has passed.
pub(crate) fn sleep_until(moment: Instant) {
    sleep(moment.since(now()));
}

pub(crate) fn duration(span: Span) -> time::Duration {
    time::Duration::from_nanos(span.ns())
}

/// A thread that does nothing but sleep a millisecond, and notes how much longer it took: what it
/// saw late, a sender or a receiver may have seen late too.
pub(crate) struct Lateness {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Late>,
}

/// What it saw.
#[derive(Clone, Debug, Default)]
pub(crate) struct Late {
    pub(crate) delays: Delays,
    /// The moments it woke so late that it may matter, and how late that was.
    moments: Vec<(Instant, Span)>,
}

/// What is noted with its moment, and how often at most.
const MATTERS: Span = Span::from_ms(3);
const MOMENTS: usize = 100_000;

impl Lateness {
    pub(crate) fn watch() -> Lateness {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut late = Late::default();
            while !seen.load(Ordering::Relaxed) {
                let due = now() + BEAT;
                sleep_until(due);
                late.see(due, now());
            }
            late
        });
        Lateness { stop, thread }
    }

    pub(crate) fn stop(self) -> Delays {
        self.stop_with_moments().delays
    }

    pub(crate) fn stop_with_moments(self) -> Late {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Late {
    fn see(&mut self, due: Instant, woke: Instant) {
        let late = woke.since(due);
        self.delays.see(late);
        if late >= MATTERS && self.moments.len() < MOMENTS {
            self.moments.push((woke, late));
        }
    }

    /// How late the machine was at most between two moments; no less than what is not noted.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Span {
        let within = self.moments.iter().filter(|(woke, late)| *woke > from && *woke - *late < to);
        within.map(|(_, late)| *late).max().unwrap_or(MATTERS.min(self.delays.longest()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_is_known_by_its_moment() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let mut late = Late::default();
        late.see(at(10), at(11));
        late.see(at(100), at(140));
        late.see(at(200), at(205));
        assert_eq!(late.between(at(0), at(50)), MATTERS);
        assert_eq!(late.between(at(130), at(150)), Span::from_ms(40));
        assert_eq!(late.between(at(141), at(300)), Span::from_ms(5));
        assert_eq!(late.delays.longest(), Span::from_ms(40));
    }
}
