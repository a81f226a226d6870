//! Experiments on shares: a tree, senders of datagrams, and either an allocator alone with a queue
//! behind it that the link drains, or the whole engine. An allocator sees of a packet nothing but
//! its leaf and its length, so it needs no frames, and 10 Gbit/s take it seconds. The engine gets
//! real frames, and what leaves it counts.

mod attacks;
mod churn;
mod engine;
mod fair;
mod field;
mod join;
mod latency;
mod limits;
mod queue;
mod random;
mod read;
mod steps;
mod traffic;
mod words;

use weir_share::{Allocator, Law, Node, Places, ahab, hsdba};
use weir_units::{Instant, Rate, Span};

use crate::Series;
use engine::{Boxed, Sent};

pub(crate) use engine::Word;
pub use field::{Field, Passage, Sender};
pub(crate) use read::{law, read, scale};
pub(crate) use traffic::{Gaps, Load};
pub(crate) use words::{ASKS, ENGINES, LAWS, Row};

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
    /// Who has how much in a tree that is drawn from the seed.
    Random,
    /// What a host has while another attacks it.
    Attacks,
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
    /// How many times as long all takes as is said.
    pub(crate) slower: u64,
    /// What the allocator or the engine is told amiss.
    pub(crate) told: Told,
}

/// What an allocator or the engine is told amiss, to see whether a claim notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// All rates of the tree, in millionths of what they are.
    pub(crate) rates: u64,
    /// The weight of the first child of each node, in millionths of what it is.
    pub(crate) first: u64,
}

impl Told {
    /// Nothing.
    pub(crate) const RIGHT: Told = Told { rates: MILLION, first: MILLION };

    fn of(self, nodes: &[Node]) -> Vec<Node> {
        let part = |rate: Rate| match rate {
            Rate::MAX => rate,
            rate => Rate::from_bps(
                rate.bps() / MILLION * self.rates + rate.bps() % MILLION * self.rates / MILLION,
            ),
        };
        let heavy = |weight: u32, millionths: u64| {
            let fine = u64::from(weight) * FINE * millionths / MILLION;
            u32::try_from(fine).unwrap_or(u32::MAX)
        };
        let weight = |at: usize, node: &Node| match (self.first, at) {
            (MILLION, _) | (_, 0) => node.weight,
            // siblings stand together
            (first, at) if nodes[at - 1].parent != node.parent || at == 1 => {
                heavy(node.weight, first)
            }
            _ => heavy(node.weight, MILLION),
        };
        let nodes = nodes.iter().enumerate().map(|(at, node)| Node {
            peak: part(node.peak),
            floor: part(node.floor),
            weight: weight(at, node),
            ..*node
        });
        nodes.collect()
    }
}

const MILLION: u64 = 1_000_000;
/// Weights are so many times as large where one of them is told amiss.
const FINE: u64 = 100;

/// The link and the pace of a profile, where these are not those of all.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// What the link carries; loads, guarantees and peaks are scaled with it.
    pub(crate) rate: Option<Rate>,
    /// All times are so many times as long.
    pub(crate) slower: u64,
    /// What it is told amiss.
    pub(crate) told: Told,
}

impl Default for Scale {
    fn default() -> Scale {
        Scale { rate: None, slower: 1, told: Told::RIGHT }
    }
}

impl Sharing {
    /// The same for a link of another rate, at another pace.
    pub(crate) fn at(&self, Scale { rate, slower, told }: Scale) -> Sharing {
        let link = self.nodes.first().map_or(Rate::ZERO, |link| link.peak);
        let part = rate.map_or(1.0, |rate| bits(rate) / bits(link));
        let scaled = |rate: Rate| match rate {
            Rate::MAX => rate,
            _ if part == 1.0 => rate,
            _ => Rate::from_bps(number(bits(rate) * part)),
        };
        let slower = slower.max(1);
        let longer = |span: Span| Span::from_ns(span.ns().saturating_mul(slower));
        let node = |n: &Node| Node { peak: scaled(n.peak), floor: scaled(n.floor), ..*n };
        let load = |load: &Load| Load {
            rate: load.rate * part,
            times: (load.times.0.saturating_mul(slower), load.times.1.saturating_mul(slower)),
            ..load.clone()
        };
        Sharing {
            nodes: self.nodes.iter().map(node).collect(),
            loads: self.loads.iter().map(load).collect(),
            unit: longer(self.unit),
            run: longer(self.run),
            slower: self.slower * slower,
            told,
            ..*self
        }
    }

    /// The gate of a profile for these nodes, which it may be told amiss.
    pub(crate) fn gate(&self, nodes: &[Node], enforce: Enforce, seed: u64) -> Option<Gate> {
        match self.told {
            Told::RIGHT => Gate::new(nodes, enforce, seed),
            told => Gate::new(&told.of(nodes), enforce, seed),
        }
    }

    /// How many nodes the tree has, with the link.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

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
    /// The engine, with real frames.
    Engine(Word),
    /// A queue for all, of so many frames.
    Fifo(u32),
    /// A queue for each leaf, of so many frames, served in turns by weight.
    Dwrr(u32),
    /// Nothing: packets do not meet.
    Open,
}

/// What one run has shown.
#[derive(Default)]
pub(crate) struct Shown {
    /// By name.
    pub(crate) numbers: Numbers,
    /// To be drawn.
    pub(crate) series: Vec<(String, Series)>,
}

/// The figures of one run, by name.
pub(crate) type Numbers = Vec<(String, f64)>;

impl From<Numbers> for Shown {
    fn from(numbers: Numbers) -> Shown {
        Shown { numbers, series: Vec::new() }
    }
}

/// Runs one profile once.
#[must_use]
pub(crate) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Shown {
    match sharing.ask {
        Ask::Fair => fair::run(sharing, enforce, seed),
        Ask::Steps => steps::run(sharing, enforce, seed).into(),
        Ask::Limits => limits::run(sharing, enforce, seed).into(),
        Ask::Latency => latency::run(sharing, enforce, seed).into(),
        Ask::Churn => churn::run(sharing, enforce, seed).into(),
        Ask::Join => join::run(sharing, enforce, seed).into(),
        Ask::Random => random::run(sharing, enforce, seed).into(),
        Ask::Attacks => attacks::run(sharing.told, enforce, seed).into(),
        Ask::Example => join::example(sharing, enforce, seed).into(),
    }
}

/// An allocator or a rival, behind one door.
pub(crate) enum Gate {
    Law(Box<Allocator>, Places),
    Engine(Box<Boxed>),
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
        if let Enforce::Engine(word) = enforce {
            return Some(Gate::Engine(Box::new(Boxed::new(nodes, word, seed)?)));
        }
        let probe = Law::Weir(weir_share::Options::SHORT);
        let law = if let Enforce::Law(law) = seeded { law } else { probe };
        let (allocator, places) = Allocator::new(nodes, law).ok()?;
        let queue = |depth, is_shared| {
            let rate = if matches!(enforce, Enforce::Open) { Rate::MAX } else { nodes[0].peak };
            queue::Queues::new(nodes, &places, rate, depth, is_shared)
        };
        Some(match enforce {
            Enforce::Law(_) | Enforce::Engine(_) => Gate::Law(Box::new(allocator), places),
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
            Gate::Engine(boxed) => boxed.receive(now, node, len),
            Gate::Queue(queues, places) => {
                let Some(leaf) = places.leaf(node) else { return false };
                queues.arrive(now, leaf, len)
            }
        }
    }

    /// What has left since this was asked last; only of the engine is that known.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        if let Gate::Engine(boxed) = self { boxed.sent() } else { Vec::new() }
    }

    /// What a node of the list may send; none where nobody computes that.
    pub(crate) fn share(&self, node: u32) -> Option<f64> {
        match self {
            Gate::Law(allocator, places) => Some(bits(allocator.share(places.leaf(node)?))),
            Gate::Engine(boxed) => boxed.share(node),
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
