//! Connections that move to another engine: of the daemon that comes after this one, or of another
//! box. A connection moves whole: its place in the flow table, what is known of its TCP, what its
//! leaves were found to carry, and the leaves that were made for its host. What it was told by
//! another engine holds whatever numbers and clock this one has, and under whatever policy: its
//! leaves are found by the names of their classes, its rules are asked again with its next frame.
//!
//! # Order
//!
//! No frame moves, so frames that wait leave where they wait. A caller keeps the order of a
//! connection, and loses nothing, in these steps:
//!
//! 1. Frames that come are kept elsewhere from now on (in the ring of the port that the next engine
//!    will read): [`Engine::receive`] of the old engine is not called any more.
//! 2. The old engine exports. Acknowledgements that waited for their moment join their queues.
//! 3. The old engine sends what it has: [`Engine::transmit`] until [`Engine::next_wakeup`] names no
//!    moment. Nothing in the export changes by that.
//! 4. The new engine imports and takes the frames that were kept.
//!
//! Where waiting for all queues takes too long, single connections can move: those of which nothing
//! waits ([`FlowRecord::is_waiting`], and later [`Engine::holds_frames_of`]) at once, the others
//! when they have drained. Their new frames have to be kept back meanwhile, and the old engine
//! forgets who has moved ([`Engine::release`]).
//!
//! Not told: meters of policed classes, pieces of packets whose first piece has come and the others
//! have not, addresses counted per MAC, and the turns of hosts in queues. All begin anew. What was
//! found of the line is told apart: [`Engine::found_rates`].

mod codec;

use weir_classify::{Arrival, FlowState, MadeLeaf};
use weir_condition::{ConnectionState, LaneState};
use weir_packet::{Flow, Side};
use weir_units::limits::EXPORTED_AT_ONCE;
use weir_units::{ByWay, Instant, Way};

use crate::{Engine, LINK, WatchState};

pub use codec::Unreadable;

/// A batch of what moves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Tells whether hosts are told by the same secret hash in both engines.
    pub seed_mark: u64,
    /// Leaves, which come before all connections.
    pub leaves: Vec<LeafRecord>,
    /// Connections.
    pub flows: Vec<FlowRecord>,
}

/// Where the next batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor(Next);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Leaf(u32),
    Place(u32),
}

/// What was found of a leaf, or that it was made for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafRecord {
    /// Which leaf it is.
    pub name: LeafName,
    /// What it carries of TCP, by the way of the data.
    pub lanes: ByWay<Option<LaneState>>,
}

/// All that an engine knows of a connection, as plain data without numbers of leaves and without
/// absolute times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// Whether frames of it waited in the exporting engine.
    pub is_waiting: bool,
    /// Its place in the flow table.
    pub flow: FlowState,
    /// What is known of its TCP, where a policy asked for that.
    pub tcp: Option<TcpRecord>,
    /// What TCP's numbers told, where they are watched.
    pub watch: Option<WatchState>,
}

/// What is known of a connection's TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpRecord {
    /// Both halves of it.
    pub state: ConnectionState,
    /// The leaves that the data travel through.
    pub leaves: ByWay<Option<LeafName>>,
}

/// A leaf as every engine finds it that has the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafName {
    /// A hash of the path of its class.
    pub class: u64,
    /// For whom the class has made it, if it has.
    pub made: Option<MadeLeaf>,
}

/// What became of connections that were imported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Those that were given a free place in the flow table.
    pub placed: u32,
    /// Those that were given the place of a connection that was over or that nobody had answered:
    /// perhaps one that was imported before.
    pub instead: u32,
    /// Those that were known, and of which the exporting engine had seen the last frame.
    pub renewed: u32,
    /// Those that were known, and of which this engine has seen the last frame: it keeps its own.
    pub known: u32,
    /// Those that found no place: their next frame is classified as that of a new connection.
    pub no_room: u32,
    /// Those that only an engine with the same seed can take: of hosts that write the addresses of
    /// others.
    pub foreign: u32,
}

impl Exported {
    /// One that never needs to grow: the packet thread that fills it allocates nothing.
    #[must_use]
    pub fn with_room() -> Exported {
        Exported {
            seed_mark: 0,
            leaves: Vec::with_capacity(EXPORTED_AT_ONCE),
            flows: Vec::with_capacity(EXPORTED_AT_ONCE),
        }
    }
}

impl Cursor {
    /// The first batch.
    pub const START: Cursor = Cursor(Next::Leaf(0));
}

impl Imported {
    /// All of them.
    #[must_use]
    pub const fn in_all(&self) -> u32 {
        self.placed + self.instead + self.renewed + self.known + self.no_room + self.foreign
    }

    /// Adds up two batches.
    pub const fn join(&mut self, other: Imported) {
        self.placed += other.placed;
        self.instead += other.instead;
        self.renewed += other.renewed;
        self.known += other.known;
        self.no_room += other.no_room;
        self.foreign += other.foreign;
    }
}

impl Engine {
    /// Copies what is known of the next 256 leaves, or of the connections at the next 256 places of
    /// the flow table, into `into`, which is emptied before. Returns where the next batch begins;
    /// `None` at the end.
    ///
    /// The engine keeps the connections. Of those that are told, acknowledgements that waited for
    /// their moment join their queues now, so that they leave before whatever comes next. Nothing
    /// allocates if `into` has room ([`Exported::with_room`]). How to keep the order of frames is
    /// said at the top of this module: export, drain, import.
    pub fn export(&mut self, now: Instant, from: Cursor, into: &mut Exported) -> Option<Cursor> {
        into.leaves.clear();
        into.flows.clear();
        into.seed_mark = self.classifier.seed_mark();
        let slice = u32::try_from(EXPORTED_AT_ONCE).unwrap_or(u32::MAX);
        match from.0 {
            Next::Leaf(first) => {
                let end = self.ledger.leaves().min(first.saturating_add(slice));
                into.leaves.extend((first..end).filter_map(|leaf| self.leaf_record(now, leaf)));
                let is_last = end == self.ledger.leaves();
                Some(Cursor(if is_last { Next::Place(0) } else { Next::Leaf(end) }))
            }
            Next::Place(first) => {
                let places = u32::try_from(self.classifier.flow_capacity()).unwrap_or(u32::MAX);
                let end = places.min(first.saturating_add(slice));
                into.flows.extend((first..end).filter_map(|place| self.record(now, place)));
                (end < places).then_some(Cursor(Next::Place(end)))
            }
        }
    }

    fn leaf_record(&self, now: Instant, leaf: u32) -> Option<LeafRecord> {
        let lanes = ByWay::WAYS.map(|way| self.conditioner.export_lane(now, way, leaf));
        let name = self.name_of(now, leaf)?;
        let is_known = name.made.is_some() || lanes != ByWay::default();
        is_known.then_some(LeafRecord { name, lanes })
    }

    fn record(&mut self, now: Instant, place: u32) -> Option<FlowRecord> {
        let (flow, state) = self.classifier.flow_state(place, now)?;
        if self.conditioner.flush(flow) {
            self.let_go(now, now);
        }
        let name = |leaf: u32| self.name_of(now, leaf);
        let tcp = self.conditioner.export(now, flow);
        Some(FlowRecord {
            is_waiting: self.waits(flow),
            flow: state,
            tcp: tcp.map(|(state, leaves)| TcpRecord { state, leaves: leaves.map(name) }),
            watch: self.watch.export(flow),
        })
    }

    /// Takes over leaves and connections that another engine exported, batch by batch in the order
    /// of the export. `at` is the moment of that export by
    /// the clock of this engine: now less the time that the way here took, or simply now. Import
    /// before the first frame of a connection comes here, and not before its last one has left
    /// there.
    ///
    /// A connection that is known here already keeps what the engine has seen that saw its last
    /// frame. One that finds no place in the flow table is counted, and begins anew with its next
    /// frame. Work is O(log n of the classes) for each record; nothing allocates.
    ///
    /// What was found of a leaf is taken over if none of its data have come here yet. A leaf for a
    /// host is made if the host has none and the policy allows it.
    pub fn import(&mut self, at: Instant, batch: &Exported) -> Imported {
        let mut imported = Imported::default();
        for record in &batch.leaves {
            let Some(leaf) = self.find_leaf(at, &record.name) else { continue };
            for (way, told) in record.lanes.iter() {
                if let Some(told) = told {
                    self.conditioner.import_lane(at, way, leaf, told);
                }
            }
        }
        for record in &batch.flows {
            let (count, flow) = match self.classifier.bring_flow(at, batch.seed_mark, &record.flow)
            {
                Arrival::Placed(flow) => (&mut imported.placed, Some(flow)),
                Arrival::Instead(flow) => (&mut imported.instead, Some(flow)),
                Arrival::Renewed(flow) => (&mut imported.renewed, Some(flow)),
                Arrival::Known => (&mut imported.known, None),
                Arrival::NoRoom => (&mut imported.no_room, None),
                Arrival::Foreign => (&mut imported.foreign, None),
            };
            *count += 1;
            if let Some(flow) = flow {
                self.goes_on(at, flow, record);
            }
        }
        imported
    }

    fn goes_on(&mut self, at: Instant, flow: Flow, record: &FlowRecord) {
        if let Some(tcp) = &record.tcp {
            let leaves = ByWay::WAYS.map(|way: Way| {
                let named = tcp.leaves[way].and_then(|name| self.find_leaf(at, &name));
                named.unwrap_or_else(|| {
                    // the policy is another one
                    let side = if way == Way::Up { Side::Lan } else { Side::Wan };
                    self.classifier.leaf_by_rules(side, &record.flow).unwrap_or(LINK)
                })
            });
            self.conditioner.import(at, flow, &tcp.state, leaves);
        }
        if let Some(watch) = &record.watch {
            self.watch.import(flow, watch);
        }
    }

    /// Forgets connections that another engine has taken over, so that their places and their
    /// parts of leaves are free. `at` is the moment at which they were exported. Those of which
    /// frames wait, or have come since, are kept. Returns how many of these there are: they are to
    /// be exported again.
    pub fn release(&mut self, at: Instant, batch: &Exported) -> usize {
        let mut kept = 0;
        for record in &batch.flows {
            let Some(flow) = self.classifier.find_flow(&record.flow) else { continue };
            // counted back from the end of time, so that no moment is cut off
            let last = self.classifier.flow_state(flow.index, Instant::MAX);
            let told = Instant::MAX.since(at - record.flow.silence);
            if last.is_none_or(|(_, state)| state.silence != told) || self.waits(flow) {
                kept += 1;
                continue;
            }
            self.conditioner.forget(flow);
            self.classifier.forget_flow(flow);
        }
        kept
    }

    /// Whether frames wait of a connection that was exported: those that have to leave before the
    /// first one leaves the engine that has imported it.
    #[must_use]
    pub fn holds_frames_of(&self, record: &FlowRecord) -> bool {
        self.classifier.find_flow(&record.flow).is_some_and(|flow| self.waits(flow))
    }

    fn waits(&self, flow: Flow) -> bool {
        self.trees.iter().any(|(_, tree)| tree.has_frames_of(flow))
    }

    /// What a leaf is called in every engine.
    fn name_of(&self, now: Instant, leaf: u32) -> Option<LeafName> {
        let (class, is_made) = self.layout().names.of_number(leaf)?;
        let made = if is_made { Some(self.classifier.made_leaf(leaf, now)?) } else { None };
        Some(LeafName { class: class.name, made })
    }

    /// The leaf of a name here; one for a host is made if it has none.
    fn find_leaf(&mut self, at: Instant, name: &LeafName) -> Option<u32> {
        let class = self.layout().names.find(name.class)?;
        match &name.made {
            None => Some(class.number),
            Some(made) => self.classifier.bring_leaf(at, class.first, made),
        }
    }
}
