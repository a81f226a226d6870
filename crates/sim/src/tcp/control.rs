//! Who says how much may be under way.

use weir_units::{Instant, Span};

use super::Control;
use super::bbr::{Bbr, gap};
use super::cubic::Cubic;

#[derive(Clone, Debug)]
pub(crate) enum Congestion {
    Reno,
    Cubic(Cubic),
    Bbr(Box<Bbr>),
}

impl Congestion {
    pub(crate) fn new(control: Control, initial_window: u32, luck: u32) -> Congestion {
        match control {
            Control::Reno => Congestion::Reno,
            Control::Cubic => Congestion::Cubic(Cubic::default()),
            Control::Bbr => Congestion::Bbr(Box::new(Bbr::new(initial_window, luck))),
        }
    }

    /// The threshold of slow start after a loss at this window.
    pub(crate) fn after_loss(&mut self, window: u32, before: u32) -> u32 {
        match self {
            Congestion::Reno => (window / 2).max(2),
            Congestion::Cubic(cubic) => cubic.after_loss(window),
            Congestion::Bbr(bbr) => {
                bbr.save(window);
                before
            }
        }
    }

    pub(crate) fn timed_out(&mut self) {
        match self {
            Congestion::Reno => {}
            Congestion::Cubic(cubic) => cubic.forget(),
            Congestion::Bbr(bbr) => bbr.timed_out(),
        }
    }

    /// How many acknowledged segments raise the window by one, past slow start.
    pub(crate) fn step(&mut self, now: Instant, window: u32, acked: u32) -> u32 {
        match self {
            Congestion::Cubic(cubic) => cubic.step(now, window, acked),
            Congestion::Reno | Congestion::Bbr(_) => window,
        }
    }

    pub(crate) fn undone(&mut self) {
        if let Congestion::Bbr(bbr) = self {
            bbr.undone();
        }
    }

    pub(crate) fn is_bbr(&self) -> bool {
        matches!(self, Congestion::Bbr(_))
    }

    /// How long to wait after a segment.
    pub(crate) fn gap(&self) -> Option<Span> {
        match self {
            Congestion::Bbr(bbr) => Some(gap(bbr.pace)),
            Congestion::Reno | Congestion::Cubic(_) => None,
        }
    }
}
