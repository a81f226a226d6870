//! How frames wait in a leaf: one queue or one per connection, who is told to slow down, and how
//! many connections are promised a place.

use weir_units::Rate;

use crate::aqm::Aqm;

/// What a leaf is told about its frames; shared by many leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Care {
    /// One queue, or several.
    pub queue: Queueing,
    /// Who is told to slow down, and when.
    pub aqm: Aqm,
    /// Whether frames that understand it are marked instead of dropped.
    pub ecn: bool,
    /// What each connection may have, and how many may come.
    pub sessions: Option<Sessions>,
}

/// One queue, or several that take turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Queueing {
    /// One queue, first in, first out.
    #[default]
    Fifo,
    /// One for each connection; those that send little go first.
    Fair,
    /// Each host has its turn, and its connections share that.
    FairHost,
}

/// Connections as sessions. What each is guaranteed follows from turns: a leaf of rate R that lets
/// n sessions in gives each R / n.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sessions {
    /// What one may have at most.
    pub max: Rate,
    /// How many are promised a place.
    pub count: u32,
    /// How many of these places one host may have.
    pub host: u32,
    /// How many of them are only for hosts that have none.
    pub first: u32,
    /// What one more gets.
    pub next: Next,
}

/// What the session gets that is one too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Its turn, like all others.
    Share,
    /// A place as soon as one becomes free; its frames wait until then.
    Wait,
    /// Nothing.
    Reject,
}

impl Sessions {
    /// Whether a session needs a place.
    pub(crate) fn has_places(&self) -> bool {
        self.next != Next::Share
    }
}

impl Care {
    /// Whether frames just wait in one queue: nothing has to be asked.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Care { ecn: self.ecn, ..Care::default() }
    }

    /// Whether hosts take turns. Sessions are connections, whoever's they are.
    pub(crate) fn is_by_host(&self) -> bool {
        self.queue == Queueing::FairHost && self.sessions.is_none()
    }
}
