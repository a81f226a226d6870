//! The frames that wait. A plain leaf is one chain; a leaf with care (care.rs) has a queue per
//! connection, which take turns (ring.rs), or a single queue with queue management. Which leaf
//! sends is decided elsewhere; here is decided which of its frames.
//!
//! Queues are numbered like the flow table; behind those are queues for frames of no known
//! connection, of one host each where hosts take turns; and behind these each leaf has one of its
//! own: for its single queue, and for frames of no known connection that have no other.

use weir_packet::{Frame, Label};
use weir_units::{Instant, Rate};

mod calm;
mod coming;
mod leaving;
mod lists;
mod moving;
mod paying;

use super::care::{Care, Queueing};
use super::ceiling::{Ceiling, Clock};
use super::heap::Heap;
use super::hosts::Hosts;
use super::longest::{Links, Longest};
use super::node::{NONE, Node};
use super::ring::{List, Member, Ring, Turn};
use super::split::Split;
use super::store::{Chain, Store};
use crate::FrameCost;
use crate::aqm::{AqmState, Depth, Random};
pub(crate) use paying::Fattest;

/// Hosts that may wait at a time; hosts whose last frame has gone stay for a round.
const HOSTS: usize = 1 << 18;

/// Queues for frames of no known connection, of all leaves where hosts take turns. A host has the
/// one that its number says; where another host's frames wait in it, that of the leaf.
const STRAYS: u32 = 1_024;

/// One queue of a leaf with care. What every frame needs comes first and lies in two cache lines,
/// wherever the queue begins.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Queue {
    pub(super) chain: Chain,
    pub(super) turn: Turn,
    aqm: AqmState,
    /// The leaf that it is in, if it is anywhere.
    pub(super) leaf: u32,
    /// It has an entry in the timer.
    pub(super) timed: bool,
    /// It is a session that has a place.
    pub(super) admitted: bool,
    /// Its host counts it as a session, and takes no turns.
    pub(super) counted: bool,
    standing: Standing,
    /// When it may send again, where each has a ceiling.
    pub(super) clock: Clock,
    /// Its host, where hosts take turns or have only so many sessions.
    pub(super) host: u32,
    /// The sessions that spoke before and after it.
    pub(super) older: u32,
    pub(super) younger: u32,
    /// With sessions: when it spoke last, in 2^20 nanoseconds. Without: up to when its small
    /// frames have been spared, in microseconds.
    pub(super) moment: u32,
}

/// How a queue stands to the host of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It takes turns with it, if hosts take turns.
    #[default]
    Own,
    /// It takes turns with the hosts that may be inventions.
    WithNewHosts,
    /// Frames of its connection went to another queue, as another host's were in this one.
    Elsewhere,
}

const _: () = assert!(size_of::<Queue>() <= 112);

const _: () = assert!(size_of::<Crowd>() == 64);

impl Member for Queue {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

impl Queue {
    /// Its host, if hosts take turns.
    #[inline]
    fn turns_of(&self) -> u32 {
        if self.counted { NONE } else { self.host }
    }
}

/// What a leaf with care knows of its queues, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Crowd {
    /// Whose turn it is: queues, or hosts.
    ring: Ring,
    by_host: bool,
    /// Bytes that small frames at a low rate may still go before the others.
    calm: i16,
    /// Queues that have reached what they may have.
    held: List,
    /// Sessions that wait for a place.
    pub(super) waiting: List,
    /// Frames in these two, which may not leave now.
    away: u32,
    /// The host with the most bytes, or the queue.
    pub(super) fattest: Fattest,
    /// Sessions that have a place.
    pub(super) admitted: u32,
    /// The one of them that has been silent for longest, and the one that spoke last.
    pub(super) oldest: u32,
    pub(super) youngest: u32,
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd {
            ring: Ring::default(),
            by_host: false,
            held: List::default(),
            waiting: List::default(),
            away: 0,
            fattest: Fattest::default(),
            calm: calm::MOST,
            admitted: 0,
            oldest: NONE,
            youngest: NONE,
        }
    }
}

impl Crowd {
    /// Any session that has a place.
    fn session(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

/// A care as it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) care: Care,
    /// What one connection may have.
    pub(crate) max: Option<Ceiling>,
    /// What its frames cost.
    link: FrameCost,
    /// Connections have queues of their own.
    by_flow: bool,
    /// Hosts take turns.
    by_host: bool,
    /// Sessions need a place.
    has_places: bool,
}

impl Kept {
    pub(crate) fn new(care: Care, link: FrameCost) -> Kept {
        let max = care.sessions.filter(|s| s.max < Rate::MAX);
        Kept {
            care,
            link,
            max: max.map(|s| Ceiling::new(s.max, None)),
            by_flow: care.queue != Queueing::Fifo || care.sessions.is_some(),
            by_host: care.is_by_host(),
            has_places: care.sessions.is_some_and(|s| s.has_places()),
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.care.is_plain()
    }
}

/// All frames that wait for one port.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(super) store: Store,
    pub(super) longest: Longest,
    pub(super) queues: Split<Queue>,
    /// Queues of connections: those of frames without one lie behind them.
    strays: u32,
    /// All these: those of leaves lie behind them.
    pub(super) flows: u32,
    pub(super) crowds: Vec<Crowd>,
    pub(super) hosts: Hosts,
    /// Queues that wait for a moment, by when it comes.
    pub(super) timer: Heap,
    random: Random,
    /// Frames that queue management dropped at the head.
    dropped: Chain,
}

/// Room for the queues of so many leaves.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    queues: Vec<Queue>,
    crowds: Vec<Crowd>,
    longest: Vec<Links>,
}

impl Tables {
    pub(crate) fn with_capacity(numbers: usize) -> Tables {
        Tables {
            queues: vec![Queue::default(); numbers],
            crowds: vec![Crowd::default(); numbers],
            longest: vec![Links::default(); numbers],
        }
    }
}
impl Queues {
    /// Tables for the leaves come with the edit that makes them.
    pub(crate) fn new(buffers: usize, flows: usize) -> Queues {
        let strays = u32::try_from(flows).unwrap_or(u32::MAX >> 1).min(u32::MAX >> 1);
        let flows = strays + STRAYS;
        Queues {
            store: Store::new(buffers),
            longest: Longest::default(),
            queues: Split::new(flows as usize),
            strays,
            flows,
            crowds: Vec::new(),
            hosts: Hosts::new(4 * buffers.min(HOSTS / 4)),
            timer: Heap::with_capacity(buffers),
            random: Random::new(0),
            dropped: Chain::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.queues.bytes() + self.longest.bytes() + self.crowds.len() * size_of::<Crowd>()
    }

    pub(crate) fn bytes_of_flows(&self) -> usize {
        self.queues.bytes_of_flows()
    }

    /// The larger tables take over; the smaller ones are left in their place.
    pub(crate) fn move_into(&mut self, tables: &mut Tables) {
        self.queues.move_into(&mut tables.queues);
        self.longest.move_into(&mut tables.longest);
        tables.crowds[..self.crowds.len()].copy_from_slice(&self.crowds);
        std::mem::swap(&mut self.crowds, &mut tables.crowds);
    }

    /// Lets the processor fetch what a frame of this label will need.
    #[inline]
    pub(crate) fn expect(&self, label: &Label) {
        if let Some(queue) = self.queues.get(label.flow.index) {
            self.store.look_at_last(&queue.chain);
            std::hint::black_box(queue.leaf);
        }
        if let Some(crowd) = self.crowds.get(label.leaf as usize) {
            std::hint::black_box(crowd.fattest.bytes);
        }
    }

    /// Lets the processor fetch what a leaf with care will need next, after what was fetched.
    #[inline]
    pub(crate) fn look_ahead(&self, number: u32, fetched: Fetched) {
        let Some(crowd) = self.crowds.get(number as usize) else { return };
        let first = crowd.ring.any();
        if fetched == Fetched::Leaf {
            std::hint::black_box(first);
        } else if let Some(queue) = first.and_then(|id| self.queues.get(id)) {
            match fetched {
                Fetched::Queue => self.store.look_at(&queue.chain),
                _ => _ = std::hint::black_box((queue.chain.frames(), queue.leaf)),
            }
        }
    }

    /// A frame joins a plain leaf.
    #[inline]
    pub(crate) fn push(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        frame: Frame,
        label: &Label,
    ) {
        self.store.push(&mut node.chain, now, frame, label, false);
        self.longest.grew(number, node);
    }

    /// Frames of a leaf that may leave now.
    #[inline]
    pub(crate) fn ready(&self, number: u32, node: &Node) -> u32 {
        node.chain.frames() - self.crowds[number as usize].away
    }
}

/// How far on the way from a leaf to its frame all has been fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    Leaf,
    Crowd,
    Queue,
}

/// Why a queue may not send.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Away {
    /// It has reached what it may have.
    Held,
    /// It waits for a place.
    Waiting,
}

/// How a frame joins a leaf with care.
#[derive(Debug)]
pub(crate) struct Joins {
    /// Its queue.
    id: u32,
    /// It is to be marked.
    mark: bool,
    /// The place of a frame that has to go instead.
    pub(crate) lost: Option<u32>,
}

#[inline]
fn depth(chain: &Chain) -> Depth {
    Depth { frames: chain.frames(), bytes: u64::from(chain.bytes()) }
}
