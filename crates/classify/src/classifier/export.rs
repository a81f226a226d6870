//! Connections that leave for the flow table of another classifier, or come from one. Which leaf a
//! connection belongs to is not told: the first frame of each direction asks the rules again, so
//! the connection obeys the rules in force there, whatever they are. Leaves that were made for
//! hosts are told apart ([`MadeLeaf`]), because strangers cannot make them.

use weir_packet::{Flow, Side};
use weir_units::{Instant, Span};

use super::Classifier;
use crate::entry::Entry;
use crate::flows::{Newcomer, Placed};
use crate::hosts::{Event, MadeLeaf};
use crate::key::Key;
use crate::parts::{CELLS, Parts, UNKNOWN};

/// A connection of the flow table, as plain data without absolute times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowState {
    /// Address of the LAN host; an IPv4 address stands in the low 32 bits.
    pub lan: u128,
    /// Address of the other host.
    pub wan: u128,
    /// Ports and the index of ESP, AH or an ICMP echo.
    pub ends: u64,
    /// VLAN, protocol and family; which host, if it writes another's addresses.
    pub kind: u64,
    /// How long ago its last frame came.
    pub silence: Span,
    /// How many frames came, up to 255.
    pub frames: u8,
    /// Who has sent and what has ended, as bits.
    pub state: u8,
    /// What stands for its host where connections are counted.
    pub cell: u16,
    /// Its place in the table, which is free for it in another one of the same seed and size.
    pub place: u32,
}

/// How a connection fared that came from another table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It has a place now.
    Placed(Flow),
    /// It has the place of one that was over, or that nobody has answered.
    Instead(Flow),
    /// It was known here, but its last frame came elsewhere: it goes on from what came.
    Renewed(Flow),
    /// It is known here, and as much or more has come of it: nothing has changed.
    Known,
    /// Every place that it could have is taken by a connection that keeps it.
    NoRoom,
    /// Its host is told by a hash with another seed, so that no frame could find it.
    Foreign,
}

impl FlowState {
    /// Whether the numbers are within their bounds, wherever they come from.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.cell & !UNKNOWN < CELLS
    }

    const fn key(&self) -> Key {
        Key::from_words(self.lan, self.wan, self.ends, self.kind)
    }
}

impl Classifier {
    /// Tells one secret hash from another, so that what is told by it is understood.
    #[must_use]
    pub fn seed_mark(&self) -> u64 {
        self.seed.mark()
    }

    /// The connection at a place of the table, if there is one.
    #[must_use]
    pub fn flow_state(&self, place: u32, now: Instant) -> Option<(Flow, FlowState)> {
        let entry = self.flows.at(place)?;
        let (lan, wan, ends, kind) = entry.key.words();
        let silence = now.since(entry.seen);
        let ((frames, state), cell) = (entry.history(now), entry.cell);
        let flow = Flow { index: place, generation: entry.generation };
        Some((flow, FlowState { lan, wan, ends, kind, silence, frames, state, cell, place }))
    }

    /// Whom a leaf was made for, to find or make it in another classifier.
    #[must_use]
    pub fn made_leaf(&self, leaf: u32, now: Instant) -> Option<MadeLeaf> {
        self.index.hosts.get(self.index.maker_of(leaf)?)?.made(leaf, now)
    }

    /// The leaf of a host in the class whose first leaf is `first`, made if need be.
    pub fn bring_leaf(&mut self, at: Instant, first: u32, made: &MadeLeaf) -> Option<u32> {
        let maker = self.index.maker_of(first)?;
        let hosts = self.index.hosts.get_mut(maker)?;
        if hosts.each().first_leaf != first {
            return None;
        }
        let class = hosts.class();
        let (leaf, is_new) = hosts.find_or_make(self.seed, at, made)?;
        if is_new && let Some(owner) = self.owner(leaf) {
            self.counters.hosts_made += 1;
            self.note(Event::Made { class, leaf, owner });
        }
        Some(leaf)
    }

    /// The place of a connection that another classifier told of, if it is known here.
    #[must_use]
    pub fn find_flow(&self, state: &FlowState) -> Option<Flow> {
        let key = state.key();
        let place = self.flows.find(self.flows.spot(key.hash(self.seed)), &key)?;
        self.flows.at(place).map(|entry| Flow { index: place, generation: entry.generation })
    }

    /// Takes a connection over that another classifier told of at `at`, by the clock of this one.
    /// `seed_mark` is that of the other one: where it has another seed, the host that sends is not
    /// known, and the first one that sends is taken for it. No connection that may still be needed
    /// gives its place away: it could be one that came just before.
    pub fn bring_flow(&mut self, at: Instant, seed_mark: u64, state: &FlowState) -> Arrival {
        let key = state.key();
        let is_ours = seed_mark == self.seed_mark();
        if !state.is_sound() || !is_ours && key.is_of_other() {
            return Arrival::Foreign;
        }
        let cell = match is_ours {
            true => state.cell,
            false => UNKNOWN | Parts::cell(self.seed.host(key.lan_address())),
        };
        let seen = at - state.silence;
        let spot = self.flows.spot(key.hash(self.seed));
        let go_on = |entry: &mut Entry| entry.go_on((state.frames, state.state), seen, at);
        if let Some(place) = self.flows.find(spot, &key) {
            if self.flows.entry(place).seen >= seen {
                return Arrival::Known;
            }
            self.flows.count_for(place, cell);
            let entry = self.flows.entry(place);
            go_on(entry);
            return Arrival::Renewed(Flow { index: place, generation: entry.generation });
        }
        let mut told = Entry::default();
        told.begin(key, cell, at);
        go_on(&mut told);
        let new = Newcomer::brought(&told, at);
        let placed = self.flows.place_at(state.place, spot, key, new, at);
        let (place, is_instead) =
            match placed.unwrap_or_else(|| self.flows.place(spot, key, new, at)) {
                Placed::Free(place) => (place, false),
                Placed::Instead(place) => (place, true),
                Placed::Refused => return Arrival::NoRoom,
            };
        let entry = self.flows.entry(place);
        go_on(entry);
        let flow = Flow { index: place, generation: entry.generation };
        if is_instead {
            self.counters.evicted += 1;
            return Arrival::Instead(flow);
        }
        Arrival::Placed(flow)
    }

    /// Forgets a connection. Returns whether it was known.
    pub fn forget_flow(&mut self, flow: Flow) -> bool {
        let place = self.flows.place_of(flow);
        place.inspect(|&place| self.flows.remove(place)).is_some()
    }

    /// The leaf that the rules give frames of a connection from one side, as far as addresses,
    /// ports, protocol and VLAN say; `None`: one that is not made yet.
    #[must_use]
    pub fn leaf_by_rules(&self, side: Side, state: &FlowState) -> Option<u32> {
        self.explain(side, &state.key().headers(side), &[]).leaf
    }
}
