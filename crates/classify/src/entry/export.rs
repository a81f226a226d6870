//! What a connection has done so far, as another flow table takes it over.

use weir_units::Instant;

use super::{Entry, SETTLED, TURN, turn};
use crate::parts::UNKNOWN;

impl Entry {
    /// How many frames it had, and its state, with the turn in which the LAN was seen last counted
    /// back from `now`: turns of another clock begin at other moments.
    pub(crate) fn history(&self, now: Instant) -> (u8, u8) {
        let ago = turn(now).wrapping_sub(self.state >> TURN) & 3;
        (self.frames, self.state & !(3 << TURN) | ago << TURN)
    }

    /// Goes on from a history that was told at `at`, with the last frame at `seen`.
    pub(crate) fn go_on(&mut self, (frames, state): (u8, u8), seen: Instant, at: Instant) {
        (self.frames, self.seen) = (frames, seen);
        // whether an unknown host has settled, nobody can say
        let known = if self.cell & UNKNOWN == 0 { state } else { state & !SETTLED };
        self.state = known & !(3 << TURN) | (turn(at).wrapping_sub(state >> TURN) & 3) << TURN;
    }
}
