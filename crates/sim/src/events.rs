//! What happens next: a heap by time, and by order of arrival where the time is the same, so that a
//! run is the same every time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use weir_units::Instant;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// The frame on the line of this link has left it.
    Sent(u32),
    /// A frame comes out at the far end of this link.
    Arrives(u32),
    /// This box has something to do.
    Box(u32),
    /// This flow has.
    Flow(u32),
}

#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    count: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.heap.push(Reverse((at.ns(), self.count, event)));
    }

    /// When the next event is.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse((at, ..))| Instant::from_ns(*at))
    }

    /// The next event that is not after `until`.
    pub(crate) fn pop(&mut self, until: Instant) -> Option<(Instant, Event)> {
        let Reverse((at, ..)) = self.heap.peek()?;
        if *at > until.ns() {
            return None;
        }
        let Reverse((at, _, event)) = self.heap.pop()?;
        Some((Instant::from_ns(at), event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_first_and_then_in_order() {
        let mut events = Events::default();
        let at = Instant::from_ns;
        events.push(at(2), Event::Sent(1));
        events.push(at(1), Event::Box(9));
        events.push(at(1), Event::Arrives(3));
        assert_eq!(events.pop(at(1)), Some((at(1), Event::Box(9))));
        assert_eq!(events.pop(at(1)), Some((at(1), Event::Arrives(3))));
        assert_eq!(events.pop(at(1)), None);
    }
}
