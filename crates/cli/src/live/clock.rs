//! The one clock of the proving ground: every thread and every namespace reads the same, so that
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
    thread: JoinHandle<Delays>,
}

impl Lateness {
    pub(crate) fn watch() -> Lateness {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut late = Delays::default();
            while !seen.load(Ordering::Relaxed) {
                let due = now() + BEAT;
                sleep_until(due);
                late.see(now().since(due));
            }
            late
        });
        Lateness { stop, thread }
    }

    pub(crate) fn stop(self) -> Delays {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}
