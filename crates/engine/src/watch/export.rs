//! What is remembered of a connection, on its way to another engine. There are no moments in it.

use weir_packet::Flow;
use weir_units::{ByWay, Way};

use super::{FAR, Seen, Stream, UNSEEN, Watch};

/// What TCP's numbers have told of a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WatchState {
    /// The shortest round trips to the WAN side, in microseconds.
    pub shortest_us: [u32; 2],
    /// By the way of the data: the number behind the highest byte, where the hole begins, and its
    /// bytes.
    pub streams: ByWay<[u32; 3]>,
    /// What has arrived: the acknowledgement, the selective one, the bytes that were counted, the
    /// number behind what has left, the bytes under way.
    pub arrived: [u32; 5],
    /// What of that is known, as bits.
    pub marks: u8,
}

impl WatchState {
    /// Whether the numbers are within their bounds, wherever they come from.
    pub(crate) fn is_sound(&self) -> bool {
        let stream = |[_, _, gap]: [u32; 3]| gap <= FAR || gap == UNSEEN;
        let [.., under_way] = self.arrived;
        stream(self.streams.down) && stream(self.streams.up) && under_way <= FAR
    }
}

impl Watch {
    /// What is remembered of a connection, if anything is.
    pub(crate) fn export(&self, flow: Flow) -> Option<WatchState> {
        let seen = self.seen.get(flow.index as usize)?;
        if seen.generation != flow.generation {
            return None;
        }
        let stream = |way: Way| {
            let Stream { highest, hole, gap } = seen.streams[way];
            [highest, hole, gap]
        };
        let a = &seen.arrived;
        let marks = [a.is_known, a.has_left, a.is_answered, a.lies];
        Some(WatchState {
            shortest_us: seen.shortest_us,
            streams: ByWay::WAYS.map(stream),
            arrived: [a.ack, a.edge, a.counted, a.left, a.under_way],
            marks: marks.iter().rev().fold(0, |bits, &mark| bits << 1 | u8::from(mark)),
        })
    }

    /// A connection goes on here from what was remembered elsewhere.
    pub(crate) fn import(&mut self, flow: Flow, told: &WatchState) {
        let Some(seen) = self.seen.get_mut(flow.index as usize) else { return };
        *seen = Seen::new(flow.generation);
        seen.shortest_us = told.shortest_us;
        for way in Way::ALL {
            let [highest, hole, gap] = told.streams[way];
            seen.streams[way] = Stream { highest, hole, gap };
        }
        let a = &mut seen.arrived;
        [a.ack, a.edge, a.counted, a.left, a.under_way] = told.arrived;
        let mark = |bit: u8| told.marks >> bit & 1 != 0;
        (a.is_known, a.has_left, a.is_answered, a.lies) = (mark(0), mark(1), mark(2), mark(3));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_wrongly_of_a_hole_is_within_its_bounds_when_it_is_told_again() {
        let mut stream = Stream { highest: 100, hole: 1_000, gap: 10 };
        stream.data(500, 100);
        assert!(stream.gap <= FAR, "{stream:?}");
    }
}
