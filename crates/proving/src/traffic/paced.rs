//! When each packet of a steady stream is due.

use weir_units::{Instant, Span};

use super::LOOK;
use crate::clock;

/// A packet after the other, so long apart.
#[derive(Debug)]
pub(crate) struct Paced {
    due: Instant,
    gap: Span,
    /// No sleep is shorter: a stream of small packets would do nothing but wake up.
    least: Span,
}

/// What a sender catches up on at most: what the machine made late comes late, but not all at once.
const CAUGHT_UP: Span = Span::from_ms(5);

impl Paced {
    pub(crate) fn new(from: Instant, gap: Span, least: Span) -> Paced {
        Paced { due: from, gap, least }
    }

    /// Now, if a packet is due; else sleeps, until it is or for a tenth of a second.
    pub(crate) fn next(&mut self) -> Option<Instant> {
        let now = clock::now();
        if now < self.due {
            clock::sleep(self.due.since(now).max(self.least).min(LOOK));
            return None;
        }
        self.due = self.due.max(now - CAUGHT_UP.max(self.gap)) + self.gap;
        Some(now)
    }
}
