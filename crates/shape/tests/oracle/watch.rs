//! What must never happen, looked for at each frame: a node above its ceiling in any window, or a
//! line that stands still while somebody may send. All in whole numbers, bits x 10^9.

use proptest::prelude::*;
use weir_units::{Instant, Rate};

use crate::world::{Sent, World};

const G: i128 = 1_000_000_000;

/// Nanoseconds that the clocks of ceilings may be off: they count in whole ones, and their rates
/// are right to 10^-9.
const OFF_NS: u64 = 12;

/// One rate that must not be passed.
#[derive(Clone, Copy, Debug)]
struct Under {
    rate: i128,
    burst: i128,
    at: Instant,
    /// The most that was sent in a window which ends now, less what the rate allows in it.
    excess: i128,
    worst: i128,
    /// What was sent and is not yet paid for; below zero what may be sent at once.
    debt: i128,
}

impl Under {
    fn new(rate: Rate, burst: i128) -> Under {
        let rate = i128::from(rate.bps());
        Under { rate, burst, at: Instant::ZERO, excess: 0, worst: 0, debt: -burst }
    }

    fn send(&mut self, now: Instant, bits: u64) {
        let gone = i128::from(now.since(self.at).ns()) * self.rate;
        let bits = i128::from(bits) * G;
        self.at = now;
        self.excess = (self.excess - gone).max(0) + bits;
        self.worst = self.worst.max(self.excess);
        self.debt = (self.debt - gone).max(-self.burst) + bits;
    }

    /// When the next may go.
    fn free_at(&self) -> u64 {
        let wait = (self.debt.max(0) + self.rate - 1) / self.rate;
        self.at.ns() + u64::try_from(wait).unwrap_or(u64::MAX)
    }
}

pub(crate) struct Watch {
    /// By number; 0 is the line.
    under: Vec<Under>,
    /// Frames that had to wait for a ceiling while the line stood still.
    pub(crate) gaps: u64,
}

impl Watch {
    pub(crate) fn new(world: &World) -> Watch {
        let mut under = vec![Under::new(world.spec.rate, 0)];
        for node in &world.spec.nodes {
            // what the operator's words say of a ceiling without a burst
            let default = (2 * 1_538).max(node.ceil.bps() / 8_000) * 8;
            let burst = node.burst.map_or(default, |bytes| bytes.get() * 8);
            under.push(Under::new(node.ceil, i128::from(burst) * G));
        }
        Watch { under, gaps: 0 }
    }

    /// A frame has left.
    pub(crate) fn saw(&mut self, world: &World, sent: Sent) -> Result<(), TestCaseError> {
        let free_at = self.under[0].free_at();
        let now = world.now;
        if now.ns() > free_at + 1 {
            let could = self.could_send(world, sent).max(free_at);
            self.gaps += 1;
            prop_assert!(
                now.ns() <= could + OFF_NS,
                "the line stood still from {could} to {} ns, then leaf {} sent",
                now.ns(),
                sent.leaf
            );
        }
        let mut number = sent.leaf;
        loop {
            self.under[number].send(now, sent.bytes * 8);
            if number == 0 {
                return Ok(());
            }
            number = world.parent(number);
        }
    }

    /// When the first of all leaves could have sent if the line had been free.
    fn could_send(&self, world: &World, sent: Sent) -> u64 {
        let mut first = u64::MAX;
        for node in world.spec.nodes.iter().filter(|node| node.is_leaf) {
            let number = node.number as usize;
            let since = match number == sent.leaf {
                true => sent.since,
                false if world.waiting[number].0 == 0 => continue,
                false => world.busy_since[number],
            };
            let (mut could, mut at) = (since.ns(), number);
            while at != 0 {
                could = could.max(self.under[at].free_at());
                at = world.parent(at);
            }
            first = first.min(could);
        }
        first
    }

    /// No node was above its ceiling by more than its burst and a frame, in any window at all.
    pub(crate) fn nobody_was_above(&self, world: &World) -> Result<(), TestCaseError> {
        for ((number, under), largest) in self.under.iter().enumerate().zip(world.largest()) {
            // what a clock in whole nanoseconds, and a rate right to 10^-9, let pass
            let off = 2 * under.rate + i128::from(world.sent[number]) + 8 * G;
            let most = under.burst + i128::from(largest) * G + off;
            prop_assert!(
                under.worst <= most,
                "node {number}: {} bits above its ceiling of {} bit/s, burst {}, frame {largest}",
                under.worst / G,
                under.rate,
                under.burst / G
            );
        }
        Ok(())
    }
}
