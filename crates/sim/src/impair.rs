//! What a path does to packets: one pure object. It is asked about each packet in the order in
//! which they come and answers at once what becomes of it and when it arrives; whoever drives it
//! (the virtual world, or a process between two live namespaces) only keeps the packets until
//! then. Same seed, same packets: same fates.
//!
//! A packet meets, in this order: an outage, loss, the rate with its queue, the delay with its
//! jitter, and then the accidents: out of order, twice, with a wrong bit.

mod delay;
mod loss;
mod outage;
mod rate;

use weir_units::{Instant, Span};

pub use delay::{Jitter, Shape, Table};
pub use loss::Loss;
pub use outage::Outage;
pub use rate::{Limit, Service, Trace};

use crate::random::{Chance, Random};
use delay::Delays;
use loss::Losses;
use outage::Outages;
use rate::Server;

/// Everything that a path may do, as plain data. The default does nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// When nothing passes at all.
    pub outage: Outage,
    /// Which packets are lost.
    pub loss: Loss,
    /// A packet that would be lost is marked instead if it says that it can be (ECN).
    pub mark: bool,
    /// How fast packets pass, and how many may wait for it.
    pub service: Service,
    /// How long every packet takes.
    pub delay: Span,
    /// How much longer or shorter some take.
    pub jitter: Option<Jitter>,
    /// Whether jitter may let a packet overtake another.
    pub overtake: bool,
    /// Packets that come out of order on purpose.
    pub reorder: Option<Reorder>,
    /// Packets that come twice.
    pub duplicate: Chance,
    /// Packets that come with one wrong bit.
    pub corrupt: Chance,
}

/// Packets that come out of order on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reorder {
    /// Only every so manieth packet may be chosen; 0 and 1: each.
    pub gap: u64,
    /// How often one of these is.
    pub chance: Chance,
    /// What happens to it.
    pub by: Shift,
}

/// How a packet loses its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// It skips the delay, and comes before those on their way.
    Early,
    /// It takes so much longer, and comes after some that were sent later.
    Late(Span),
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It does not arrive.
    Lost(Cause),
    /// It arrives.
    Arrives(Arrival),
}

/// Why a packet does not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// By the rule of loss.
    Loss,
    /// Nothing passed at that time.
    Outage,
    /// Too many were waiting for the rate.
    Full,
}

/// How a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// When it arrives once more.
    pub again: Option<Instant>,
    /// It was chosen to be lost; if it cannot be marked, it is.
    pub mark: bool,
    /// Which bit of it is wrong, counted from the first bit of the first byte.
    pub wrong_bit: Option<u32>,
}

/// A path with its memory.
#[derive(Clone, Debug)]
pub struct Impair {
    outages: Outages,
    losses: Losses,
    mark: bool,
    server: Server,
    delays: Delays,
    reorder: Option<Reorder>,
    duplicate: Chance,
    corrupt: Chance,
    random: Random,
    packets: u64,
    /// Nothing of all this is asked for: every packet arrives at once.
    idle: bool,
}

impl Impair {
    /// A path that does what `what` says, with the luck of `seed` and `stream`.
    #[must_use]
    pub fn new(what: &Impairments, seed: u64, stream: u64) -> Impair {
        let mut random = Random::new(seed, stream);
        let plain = Impairments { delay: what.delay, ..Impairments::default() };
        Impair {
            outages: Outages::new(&what.outage, &mut random),
            losses: Losses::new(&what.loss),
            mark: what.mark,
            server: Server::new(&what.service),
            delays: Delays::new(what.delay, what.jitter.clone(), what.overtake),
            reorder: what.reorder,
            duplicate: what.duplicate,
            corrupt: what.corrupt,
            random,
            packets: 0,
            idle: *what == plain,
        }
    }

    /// What becomes of the packet of `bytes` (with its Ethernet header) that comes at `now`, which
    /// is not before the one asked about before.
    pub fn on_packet(&mut self, now: Instant, bytes: usize) -> Delivery {
        self.packets += 1;
        if self.idle {
            let at = now + self.delays.fixed();
            return Delivery::Arrives(Arrival { at, again: None, mark: false, wrong_bit: None });
        }
        if !self.outages.is_up(now, &mut self.random) {
            return Delivery::Lost(Cause::Outage);
        }
        let chosen = self.losses.hits(self.packets, &mut self.random);
        if chosen && !self.mark {
            return Delivery::Lost(Cause::Loss);
        }
        let Some(out) = self.server.leaves(now, bytes) else { return Delivery::Lost(Cause::Full) };
        let at = match self.shifted() {
            None => self.delays.arrives(out, &mut self.random),
            Some(Shift::Early) => out,
            Some(Shift::Late(by)) => out + self.delays.fixed() + by,
        };
        let again = self.random.happens(self.duplicate).then_some(at);
        let wrong_bit = self.random.happens(self.corrupt).then(|| {
            let bits = self.random.below(8 * bytes as u64);
            u32::try_from(bits).unwrap_or(0)
        });
        Delivery::Arrives(Arrival { at, again, mark: chosen, wrong_bit })
    }

    /// How many packets came.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Whether this packet loses its place.
    fn shifted(&mut self) -> Option<Shift> {
        let reorder = self.reorder?;
        let turn = self.packets.is_multiple_of(reorder.gap.max(1));
        (turn && self.random.happens(reorder.chance)).then_some(reorder.by)
    }
}
