//! What the stage is told: what is done to the TCP connections of which leaf, as plain data, and
//! the difference of two such.

use weir_units::limits::HELD_ACKS;
use weir_units::{ByWay, Rate, Way};

use crate::connection::Connection;
use crate::holds::Holds;
use crate::lane::{CHUNK, Lane};

/// What is done to the connections whose data travel through a leaf.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// The advertised window is set to what the connection's rate and round trip ask for.
    pub window: bool,
    /// Acknowledgements are let through evenly, at the connection's rate.
    pub pace_acks: bool,
    /// Segments that a window lets out at least.
    pub least: u8,
    /// What a loss changes.
    pub loss: Loss,
    /// How well the round trip is known.
    pub round_trip: RoundTrip,
    /// The largest segment that two hosts may agree on over IPv4 (20 bytes less over IPv6); 0:
    /// whatever they like.
    pub mss: u16,
}

/// What a loss changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// Nothing: windows are sized through it.
    #[default]
    Hold,
    /// Windows are let go for two seconds at the third duplicate acknowledgement.
    Release,
}

/// How well the round trip of a connection is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoundTrip {
    /// The shortest that was seen, by the microsecond.
    #[default]
    Fine,
    /// The last that was seen, by a clock of 500 ms.
    Coarse,
}

/// What is done in all leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// Each different treatment once; the first is that of leaves that ask for none.
    pub told: Vec<Told>,
    /// By the way that data travel, sorted by number: leaf, treatment, and the rate that
    /// the leaf may have.
    pub leaves: ByWay<Vec<Leaf>>,
}

/// A leaf whose connections are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its number.
    pub number: u32,
    /// Its place in [`Spec::told`].
    pub told: u16,
    /// What it may have at most.
    pub rate: Rate,
    /// Whether windows are sized for this rate whatever the leaf really gets.
    pub fixed: bool,
}

/// What makes a running stage do as a new [`Spec`] says, made ready off the packet thread.
#[derive(Debug, Default)]
pub struct Edit {
    pub(crate) told: Box<[Told]>,
    pub(crate) leaves: ByWay<Vec<Leaf>>,
    /// Pieces that there must be, and those that may be missing.
    pub(crate) chunks: ByWay<usize>,
    pub(crate) lanes: ByWay<Vec<Box<[Lane]>>>,
    pub(crate) memory: Option<Box<Memory>>,
}

/// What connections need, allocated when a policy asks for it first.
#[derive(Debug)]
pub struct Memory {
    pub(crate) connections: Box<[Connection]>,
    pub(crate) holds: Holds,
}

impl Spec {
    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.leaves.iter().all(|(_, leaves)| leaves.is_empty())
    }
}

impl Edit {
    /// From `old`, which is in effect, to `new`, where so many connections are remembered.
    #[must_use]
    pub fn between(old: &Spec, new: &Spec, flows: usize) -> Edit {
        let chunks = |spec: &Spec, way: Way| match spec.leaves[way].last() {
            Some(last) => last.number as usize / CHUNK + 1,
            None => 0,
        };
        let [had, needs] = [old, new].map(|spec| ByWay::WAYS.map(|way| chunks(spec, way)));
        // an engine that once had more still has them, and leaves the rest in the edit
        let missing = |way: Way| {
            (had[way]..needs[way]).map(|_| vec![Lane::default(); CHUNK].into()).collect()
        };
        let fresh = old.is_idle() && !new.is_idle();
        Edit {
            told: new.told.clone().into(),
            leaves: ByWay::WAYS.map(|way| differing(&old.leaves[way], &new.leaves[way])),
            chunks: needs,
            lanes: ByWay::WAYS.map(missing),
            memory: fresh.then(|| {
                Box::new(Memory {
                    connections: vec![Connection::default(); flows].into(),
                    holds: Holds::new(HELD_ACKS),
                })
            }),
        }
    }
}

/// Leaves that are new or other than they were, and those that are treated no more.
fn differing(old: &[Leaf], new: &[Leaf]) -> Vec<Leaf> {
    let was = |leaf: &Leaf| {
        let at = old.binary_search_by_key(&leaf.number, |l| l.number);
        at.is_ok_and(|at| old[at] == *leaf)
    };
    let stays = |leaf: &Leaf| new.binary_search_by_key(&leaf.number, |l| l.number).is_ok();
    let gone = old.iter().filter(|leaf| !stays(leaf)).map(|leaf| Leaf { told: 0, ..*leaf });
    new.iter().filter(|leaf| !was(leaf)).copied().chain(gone).collect()
}
