//! What becomes of a packet.

use crate::Place;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It may go on.
    Pass,
    /// It may go on, and should tell its receiver that there is too much.
    Mark,
    /// There is no room for it.
    Drop {
        /// Who limited it: the node that is full, or the one that has reached its own peak.
        by: Place,
    },
}

impl Fate {
    /// Whether it goes on.
    #[must_use]
    pub const fn passes(self) -> bool {
        matches!(self, Fate::Pass | Fate::Mark)
    }
}
