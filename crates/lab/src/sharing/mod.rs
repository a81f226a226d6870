//! Experiments on the allocators alone: a tree, senders of datagrams, and a queue behind that the
//! link drains. No frames and no hosts: at 10 Gbit/s only the shares matter, and an allocator
//! sees of a packet nothing but its leaf and its length.

mod churn;
mod fair;
mod join;
mod latency;
mod limits;
mod queue;
mod read;
mod steps;
mod traffic;

use weir_share::{Allocator, Law, Node, Places, ahab, hsdba};
use weir_units::{Instant, Rate, Span};

pub(crate) use read::{law, read};
pub(crate) use traffic::{Gaps, Load};

/// What is asked of the allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Who has how much, against the exact answer.
    Fair,
    /// How soon shares are right after somebody begins or ends.
    Steps,
    /// How well a peak is kept.
    Limits,
    /// How long packets wait.
    Latency,
    /// How shares follow senders that come and go.
    Churn,
    /// How a node joins, changes and goes.
    Join,
    /// Newton's method by hand.
    Example,
}

/// An experiment on allocators.
#[derive(Clone, Debug)]
pub struct Sharing {
    pub(crate) ask: Ask,
    pub(crate) nodes: Vec<Node>,
    pub(crate) loads: Vec<Load>,
    /// How long the load stays the same; what counts begins after two fifths of it.
    pub(crate) unit: Span,
    pub(crate) run: Span,
    pub(crate) bytes: u32,
}

impl Sharing {
    /// How many leaves send.
    pub(crate) fn leaves(&self) -> usize {
        self.loads.len()
    }
}

/// What a profile does with packets.
#[derive(Clone, Copy, Debug)]
pub enum Enforce {
    /// An allocator.
    Law(Law),
    /// A queue for all, of so many frames.
    Fifo(u32),
    /// A queue for each leaf, of so many frames, served in turns by weight.
    Dwrr(u32),
    /// Nothing: packets do not meet.
    Open,
}

/// The figures of one run, by name.
pub(crate) type Shown = Vec<(String, f64)>;

/// Runs one profile once.
#[must_use]
pub(crate) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Shown {
    match sharing.ask {
        Ask::Fair => fair::run(sharing, enforce, seed),
        Ask::Steps => steps::run(sharing, enforce, seed),
        Ask::Limits => limits::run(sharing, enforce, seed),
        Ask::Latency => latency::run(sharing, enforce, seed),
        Ask::Churn => churn::run(sharing, enforce, seed),
        Ask::Join => join::run(sharing, enforce, seed),
        Ask::Example => join::example(),
    }
}

/// An allocator or a rival, behind one door.
pub(crate) enum Gate {
    Law(Box<Allocator>, Places),
    Queue(queue::Queues, Places),
}

impl Gate {
    pub(crate) fn new(nodes: &[Node], enforce: Enforce, seed: u64) -> Option<Gate> {
        let seeded = match enforce {
            Enforce::Law(Law::Hsdba(options)) => {
                Enforce::Law(Law::Hsdba(hsdba::Options { seed, ..options }))
            }
            Enforce::Law(Law::Hcsfq(constant, _)) => Enforce::Law(Law::Hcsfq(constant, seed)),
            Enforce::Law(Law::Ahab(options)) => {
                Enforce::Law(Law::Ahab(ahab::Options { seed, ..options }))
            }
            other => other,
        };
        let probe = Law::Weir(weir_share::Options::SHORT);
        let law = if let Enforce::Law(law) = seeded { law } else { probe };
        let (allocator, places) = Allocator::new(nodes, law).ok()?;
        let queue = |depth, is_shared| {
            let rate = if matches!(enforce, Enforce::Open) { Rate::MAX } else { nodes[0].peak };
            queue::Queues::new(nodes, &places, rate, depth, is_shared)
        };
        Some(match enforce {
            Enforce::Law(_) => Gate::Law(Box::new(allocator), places),
            Enforce::Fifo(frames) => Gate::Queue(queue(frames, true), places),
            Enforce::Dwrr(frames) => Gate::Queue(queue(frames, false), places),
            Enforce::Open => Gate::Queue(queue(u32::MAX, true), places),
        })
    }

    /// A packet of a node of the list; whether it passes.
    pub(crate) fn packet(&mut self, now: u64, node: u32, len: u32) -> bool {
        match self {
            Gate::Law(allocator, places) => {
                let Some(leaf) = places.leaf(node) else { return false };
                allocator.packet(Instant::from_ns(now), leaf, len).passes()
            }
            Gate::Queue(queues, places) => {
                let Some(leaf) = places.leaf(node) else { return false };
                queues.arrive(now, leaf, len)
            }
        }
    }

    /// What a node of the list may send; none where nobody computes that.
    pub(crate) fn share(&self, node: u32) -> Option<f64> {
        match self {
            Gate::Law(allocator, places) => Some(bits(allocator.share(places.leaf(node)?))),
            Gate::Queue(..) => None,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
pub(crate) fn bits(rate: Rate) -> f64 {
    rate.bps() as f64
}

#[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
pub(crate) fn whole(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a positive number of ns or bit/s"
)]
pub(crate) fn number(figure: f64) -> u64 {
    figure.max(0.0) as u64
}
