//! A connection on its way to another conditioner, as plain data. Moments are told as microseconds
//! before the moment of export, because the other one may have another clock; they come around
//! every 71 minutes as those of the connection do, and one that lies ahead is told as such.

use weir_units::{ByWay, Way};

use super::{Claim, Connection, Half, LONGEST, NO_SCALE, State};

/// What is known of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionState {
    /// How much of it was seen: 0 not its beginning, 1 its first SYN, 2 both, 3 left alone.
    pub state: u8,
    /// What one side said and the other has yet to confirm.
    pub claim: ClaimState,
    /// By the way that the data travel.
    pub halves: ByWay<HalfState>,
}

/// What one side said that does not fit what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClaimState {
    /// A sequence number.
    pub number: u32,
    /// A segment size.
    pub mss: u16,
    /// How far windows are shifted.
    pub scale: u8,
    /// What it is about.
    pub kind: u8,
}

/// What is known of the data in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HalfState {
    /// The number behind the last byte that came.
    pub next: u32,
    /// The number that the receiver expects.
    pub acked: u32,
    /// The number behind the last byte that the sender may send.
    pub edge: u32,
    /// The number and the clock that end a measurement, and how long ago it began.
    pub timed: u32,
    /// See `timed`.
    pub stamp: u32,
    /// See `timed`.
    pub timed_ago: u32,
    /// The shortest round trip, in microseconds.
    pub shortest: u32,
    /// The last one.
    pub last: u32,
    /// How long ago the last acknowledgement was let go.
    pub paced_ago: u32,
    /// How long ago its window was let go until.
    pub released_ago: u32,
    /// Bytes of a segment.
    pub mss: u16,
    /// The last window.
    pub window: u16,
    /// How far windows are shifted; 255: not known.
    pub scale: u8,
    /// Duplicate acknowledgements in a row.
    pub duplicates: u8,
    /// What is known and under way, as bits.
    pub flags: u8,
    /// Whether its leaf counts it among its connections now.
    pub is_counted: bool,
}

impl ConnectionState {
    /// Whether the numbers are within their bounds, wherever they come from.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let scale = |scale: u8| scale <= 14 || scale == NO_SCALE;
        let half = |half: &HalfState| {
            scale(half.scale) && half.shortest <= LONGEST && half.last <= LONGEST
        };
        state(self.state).is_some()
            && scale(self.claim.scale)
            && self.halves.iter().all(|(_, h)| half(h))
    }
}

impl Connection {
    /// What is known of it at `at`, but for its leaves.
    pub(crate) fn export(&self, at: u32) -> ConnectionState {
        let Claim { number, mss, scale, kind } = self.claim;
        ConnectionState {
            state: self.state as u8,
            claim: ClaimState { number, mss, scale, kind },
            halves: ByWay::WAYS.map(|way| self.halves[way].export(at)),
        }
    }

    /// Goes on from what was told at `at`, by the clock here.
    pub(crate) fn go_on(&mut self, at: u32, told: &ConnectionState, leaves: ByWay<u32>) {
        self.begins_anew(state(told.state).unwrap_or_default());
        let ClaimState { number, mss, scale, kind } = told.claim;
        self.claim = Claim { number, mss, scale, kind };
        for way in Way::ALL {
            self.halves[way] = Half::brought(at, &told.halves[way], leaves[way]);
        }
    }
}

impl Half {
    fn export(&self, at: u32) -> HalfState {
        HalfState {
            next: self.next,
            acked: self.acked,
            edge: self.edge,
            timed: self.timed,
            stamp: self.stamp,
            timed_ago: at.wrapping_sub(self.timed_at),
            shortest: self.shortest,
            last: self.last,
            paced_ago: at.wrapping_sub(self.paced),
            released_ago: at.wrapping_sub(self.released_until),
            mss: self.mss,
            window: self.window,
            scale: self.scale,
            duplicates: self.duplicates,
            flags: self.flags,
            is_counted: false,
        }
    }

    fn brought(at: u32, told: &HalfState, leaf: u32) -> Half {
        Half {
            leaf,
            next: told.next,
            acked: told.acked,
            edge: told.edge,
            timed: told.timed,
            stamp: told.stamp,
            timed_at: at.wrapping_sub(told.timed_ago),
            shortest: told.shortest,
            last: told.last,
            paced: at.wrapping_sub(told.paced_ago),
            released_until: at.wrapping_sub(told.released_ago),
            mss: told.mss,
            window: told.window,
            // those that wait are not told: they have left
            first_held: 0,
            last_held: 0,
            counted: 0,
            scale: told.scale,
            duplicates: told.duplicates,
            flags: told.flags,
        }
    }
}

const fn state(number: u8) -> Option<State> {
    match number {
        0 => Some(State::Unknown),
        1 => Some(State::Opening),
        2 => Some(State::Open),
        3 => Some(State::LeftAlone),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_told_by_its_number() {
        for known in [State::Unknown, State::Opening, State::Open, State::LeftAlone] {
            assert_eq!(state(known as u8), Some(known));
        }
        assert_eq!(state(4), None);
    }

    #[test]
    fn what_cannot_be_is_not_sound() {
        let sound = ConnectionState::default();
        let with = |change: fn(&mut ConnectionState)| {
            let mut state = sound;
            change(&mut state);
            state.is_sound()
        };
        assert!(sound.is_sound() && with(|s| s.halves.up.scale = 14) && with(|s| s.state = 3));
        assert!(!with(|s| s.state = 4));
        assert!(!with(|s| s.halves.up.scale = 15) && !with(|s| s.claim.scale = 15));
        assert!(!with(|s| s.halves.down.shortest = LONGEST + 1));
        assert!(!with(|s| s.halves.down.last = LONGEST + 1));
    }
}
