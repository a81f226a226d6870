//! What was found of a line, for an engine that comes after this one.

use weir_units::{ByWay, Instant, Rate, Way};

use super::{LEAST, Margin};
use crate::Engine;

/// What one engine has found of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundRate {
    /// What the operator says that the line carries.
    pub told: Rate,
    /// What a small and a full frame cost there, in bytes, as the operator says too.
    pub costs: [u64; 2],
    /// The rate in use.
    pub rate: Rate,
    /// What the line carried when it was last seen to be the limit.
    pub line: Option<Rate>,
}

/// Bytes of a small and of a full Ethernet frame, whose costs tell one kind of line from another.
const SIZES: [usize; 2] = [54, 1_514];

impl Margin {
    fn found_rate(&self) -> FoundRate {
        FoundRate { told: self.told, costs: self.costs(), rate: self.rate, line: self.line }
    }

    fn costs(&self) -> [u64; 2] {
        SIZES.map(|bytes| self.link.cost(bytes, 0).get())
    }

    /// Goes on from there, if the other engine was told the same of the line.
    fn goes_on_from(&mut self, found: &FoundRate) {
        if (found.told, found.costs) == (self.told, self.costs()) {
            self.rate = found.rate.clamp(self.told.part(LEAST), self.told);
            self.line = found.line.map(|line| line.min(self.told));
        }
    }
}

impl Engine {
    /// The rates that were found, where the policy leaves that to weir.
    #[must_use]
    pub fn found_rates(&self) -> ByWay<Option<FoundRate>> {
        ByWay::WAYS.map(|way| self.margins[way].as_ref().map(Margin::found_rate))
    }

    /// Begins with rates that another engine has found. One for a way whose rate the policy fixes,
    /// or of a line that was configured otherwise, changes nothing.
    pub fn begin_with_rates(&mut self, now: Instant, found: &ByWay<Option<FoundRate>>) {
        for way in Way::ALL {
            let (Some(margin), Some(found)) = (&mut self.margins[way], &found[way]) else {
                continue;
            };
            margin.goes_on_from(found);
            let rate = margin.rate();
            if !self.observes {
                self.set_rate(now, way, rate);
            }
        }
    }
}
