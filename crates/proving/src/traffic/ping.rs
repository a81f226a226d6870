//! A numbered datagram every five milliseconds that comes back: for how long was nobody heard?

use std::thread::JoinHandle;

use weir_units::{Instant, Span};

use super::tally::{STAMP, stamp, stamped};
use super::{Delays, End, SILENCE, Stop, joined};
use crate::clock;

const EVERY: Span = Span::from_ms(5);

/// Under way.
pub(crate) struct Ping {
    stop: Stop,
    sender: JoinHandle<u64>,
    echo: JoinHandle<()>,
    listener: JoinHandle<(Vec<Instant>, Delays)>,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Echoes {
    pub(crate) sent: u64,
    /// When each came back.
    pub(crate) back: Vec<Instant>,
    /// Round trips.
    pub(crate) delays: Delays,
}

impl Ping {
    pub(crate) fn start(from: &End, to: &End) -> Result<Ping, String> {
        let (near, far) = (from.socket()?, to.socket()?);
        let failed = |e| format!("ping {} to {}: {e}", from.at, to.at);
        near.connect(to.at).map_err(failed)?;
        let sending = near.try_clone().map_err(failed)?;
        let stop = Stop::default();
        let (stopped, stopped_echo, stopped_listener) = (stop.clone(), stop.clone(), stop.clone());
        let sender = std::thread::spawn(move || {
            let mut number = 0;
            let mut due = clock::now();
            while !stopped.is_said() {
                let mut datagram = [0; STAMP];
                stamp(&mut datagram, number, clock::now());
                // nowhere to go is a silence like any other
                let _ = sending.send(&datagram);
                number += 1;
                due = due.max(clock::now() - EVERY) + EVERY;
                clock::sleep_until(due);
            }
            number
        });
        let echo = std::thread::spawn(move || {
            let mut datagram = [0; STAMP];
            let mut heard = clock::now();
            while !stopped_echo.is_said() || clock::now().since(heard) < SILENCE {
                if let Ok((length, from)) = far.recv_from(&mut datagram) {
                    heard = clock::now();
                    let _ = far.send_to(&datagram[..length], from);
                }
            }
        });
        let listener = std::thread::spawn(move || {
            let (mut back, mut delays) = (Vec::new(), Delays::default());
            let mut datagram = [0; STAMP];
            while !stopped_listener.is_said() {
                let length = near.recv(&mut datagram).ok();
                let now = clock::now();
                if let Some((_, sent)) = length.and_then(|l| stamped(&datagram[..l])) {
                    back.push(now);
                    delays.see(now.since(sent));
                }
            }
            (back, delays)
        });
        Ok(Ping { stop, sender, echo, listener })
    }

    pub(crate) fn stop(self) -> Result<Echoes, String> {
        self.stop.now();
        let (sent, (back, delays)) = (joined(self.sender)?, joined(self.listener)?);
        joined(self.echo)?;
        Ok(Echoes { sent, back, delays })
    }
}

impl Echoes {
    /// The longest time within a window without an echo; one that began before it counts from where
    /// it began.
    pub(crate) fn silence(&self, from: Instant, to: Instant) -> Span {
        let before = self.back.iter().rfind(|at| **at <= from).copied().unwrap_or(from);
        self.longest(before, from, to)
    }

    /// The same, but what was silent before does not count.
    pub(crate) fn silence_after(&self, from: Instant, to: Instant) -> Span {
        self.longest(from, from, to)
    }

    fn longest(&self, before: Instant, from: Instant, to: Instant) -> Span {
        let within = self.back.iter().copied().filter(|at| *at > from && *at < to);
        let mut last = before;
        let mut longest = Span::ZERO;
        for at in within.chain([to]) {
            longest = longest.max(at.since(last));
            last = at;
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_counted_from_where_it_began_to_where_it_ended() {
        let at = |ms| Instant::ZERO + Span::from_ms(ms);
        let back = vec![at(0), at(5), at(105), at(110)];
        let echoes = Echoes { sent: 23, back, delays: Delays::default() };
        assert_eq!(echoes.silence(at(50), at(112)), Span::from_ms(100));
        assert_eq!(echoes.silence(at(107), at(200)), Span::from_ms(90));
        assert_eq!(echoes.silence(at(0), at(5)), Span::from_ms(5));
        assert_eq!(echoes.silence_after(at(50), at(112)), Span::from_ms(55));
    }
}
