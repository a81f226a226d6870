//! Connections as bytes, for another process or another box. Numbers are big-endian; what is not
//! there takes no bytes. A batch begins with a mark and a version, so that a reader never takes
//! one for another. Whatever bytes come, reading them ends with connections whose numbers are
//! within their bounds, or with the reason why not.

use std::fmt;

use weir_classify::{FlowState, MadeLeaf};
use weir_condition::{ClaimState, ConnectionState, HalfState, LaneState};
use weir_units::limits::EXPORTED_AT_ONCE;
use weir_units::{By, ByWay, Span};

use super::{Exported, FlowRecord, LeafName, LeafRecord, TcpRecord};
use crate::WatchState;

const MARK: [u8; 6] = *b"weirfl";
const VERSION: u8 = 2;

/// Why bytes are no connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// They do not begin as connections do.
    NotFlows,
    /// They are of another version.
    Version(u8),
    /// They tell of more leaves or connections than one batch may.
    TooMany(u16),
    /// They end too early.
    CutOff,
    /// More bytes follow.
    LeftOver(usize),
    /// A record, counted from 0, leaves first, says what cannot be.
    Unsound(usize),
}

impl Exported {
    /// Appends the connections as bytes.
    ///
    /// # Panics
    /// There are more of them than one export makes.
    pub fn write(&self, into: &mut Vec<u8>) {
        let most = self.flows.len().max(self.leaves.len());
        assert!(most <= EXPORTED_AT_ONCE, "one export makes no more");
        let count = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes();
        let mut to = Writer(into);
        to.bytes(MARK);
        to.bytes([VERSION]);
        to.bytes(self.seed_mark.to_be_bytes());
        to.bytes(count(self.leaves.len()));
        to.bytes(count(self.flows.len()));
        self.leaves.iter().for_each(|record| to.leaf(record));
        self.flows.iter().for_each(|record| to.record(record));
    }

    /// Reads connections in place of those that are here; nothing allocates if there is room.
    ///
    /// # Errors
    /// The bytes are not those of a batch; there are no connections here then.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        self.leaves.clear();
        self.flows.clear();
        let read = self.fill(bytes);
        if read.is_err() {
            self.leaves.clear();
            self.flows.clear();
        }
        read
    }

    fn fill(&mut self, bytes: &[u8]) -> Result<(), Unreadable> {
        let mut from = Reader(bytes);
        if !bytes.starts_with(&MARK) {
            return Err(Unreadable::NotFlows);
        }
        let [_, _, _, _, _, _, version] = from.bytes()?;
        if version != VERSION {
            return Err(Unreadable::Version(version));
        }
        self.seed_mark = u64::from_be_bytes(from.bytes()?);
        let [leaves, flows] = [from.half_word()?, from.half_word()?];
        let most = leaves.max(flows);
        if usize::from(most) > EXPORTED_AT_ONCE {
            return Err(Unreadable::TooMany(most));
        }
        let leaves = usize::from(leaves);
        for at in 0..leaves {
            self.leaves.push(from.leaf()?.ok_or(Unreadable::Unsound(at))?);
        }
        for at in 0..usize::from(flows) {
            let record = from.record()?.filter(FlowRecord::is_sound);
            self.flows.push(record.ok_or(Unreadable::Unsound(leaves + at))?);
        }
        if from.0.is_empty() { Ok(()) } else { Err(Unreadable::LeftOver(from.0.len())) }
    }
}

impl FlowRecord {
    fn is_sound(&self) -> bool {
        self.flow.is_sound()
            && self.tcp.is_none_or(|tcp| tcp.state.is_sound())
            && self.watch.is_none_or(|watch| watch.is_sound())
    }
}

// bits of the first byte of a connection
const WAITING: u8 = 1;
const TCP: u8 = 2;
const WATCHED: u8 = 4;
/// Both addresses have four bytes.
const SHORT: u8 = 8;

// what a name is
const NO_NAME: u8 = 0;
const AS_BEFORE: u8 = 1;
const CLASS: u8 = 2;
const MADE: u8 = 3;

// bits behind the name of a leaf
const DOWN: u8 = 1;
const UP: u8 = 2;

struct Writer<'v>(&'v mut Vec<u8>);

impl Writer<'_> {
    fn bytes<const N: usize>(&mut self, bytes: [u8; N]) {
        self.0.extend_from_slice(&bytes);
    }

    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.bytes(word.to_be_bytes()));
    }

    fn leaf(&mut self, record: &LeafRecord) {
        self.name(Some(record.name), None);
        let ByWay { down, up } = &record.lanes;
        let bit = |is_there: bool, bit: u8| if is_there { bit } else { 0 };
        self.bytes([bit(down.is_some(), DOWN) | bit(up.is_some(), UP)]);
        down.iter().chain(up).for_each(|lane| self.lane(lane));
    }

    fn record(&mut self, record: &FlowRecord) {
        let flow = &record.flow;
        let short = u32::try_from(flow.lan).ok().zip(u32::try_from(flow.wan).ok());
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        self.bytes([bit(record.is_waiting, WAITING)
            | bit(record.tcp.is_some(), TCP)
            | bit(record.watch.is_some(), WATCHED)
            | bit(short.is_some(), SHORT)]);
        match short {
            Some((lan, wan)) => self.words(&[lan, wan]),
            None => [flow.lan, flow.wan].iter().for_each(|a| self.bytes(a.to_be_bytes())),
        }
        self.bytes(flow.ends.to_be_bytes());
        self.bytes(flow.kind.to_be_bytes());
        self.bytes(flow.silence.ns().to_be_bytes());
        self.bytes([flow.frames, flow.state]);
        self.bytes(flow.cell.to_be_bytes());
        self.words(&[flow.place]);
        if let Some(TcpRecord { state, leaves }) = &record.tcp {
            self.name(leaves.down, None);
            self.name(leaves.up, leaves.down);
            self.tcp(state);
        }
        if let Some(watch) = &record.watch {
            self.words(&watch.shortest_us);
            self.words(&watch.streams.down);
            self.words(&watch.streams.up);
            self.words(&watch.arrived);
            self.bytes([watch.marks]);
        }
    }

    fn name(&mut self, name: Option<LeafName>, before: Option<LeafName>) {
        let Some(LeafName { class, made }) = name else { return self.bytes([NO_NAME]) };
        if name == before {
            return self.bytes([AS_BEFORE]);
        }
        self.bytes([if made.is_some() { MADE } else { CLASS }]);
        self.bytes(class.to_be_bytes());
        let Some(MadeLeaf { by, host, first, silence }) = made else { return };
        self.bytes(match by {
            By::LanHost => [0, 0, 0],
            By::WanHost => [1, 0, 0],
            By::LanPrefix { v4, v6 } => [2, v4, v6],
            By::WanPrefix { v4, v6 } => [3, v4, v6],
            By::LanMac => [4, 0, 0],
            By::Vlan => [5, 0, 0],
        });
        self.bytes([u8::from(host.1) | u8::from(first.1) << 1]);
        self.bytes(host.0.to_be_bytes());
        self.bytes(first.0.to_be_bytes());
        self.bytes(silence.ns().to_be_bytes());
    }

    fn tcp(&mut self, state: &ConnectionState) {
        let ClaimState { number, mss, scale, kind } = state.claim;
        self.bytes([state.state, scale, kind]);
        self.words(&[number]);
        self.bytes(mss.to_be_bytes());
        for (_, half) in state.halves.iter() {
            self.half(half);
        }
    }

    fn half(&mut self, half: &HalfState) {
        self.bytes([u8::from(half.is_counted), half.scale, half.duplicates, half.flags]);
        self.words(&[half.next, half.acked, half.edge, half.timed, half.stamp, half.timed_ago]);
        self.words(&[half.shortest, half.last, half.paced_ago, half.released_ago]);
        self.bytes(half.mss.to_be_bytes());
        self.bytes(half.window.to_be_bytes());
    }

    fn lane(&mut self, lane: &LaneState) {
        self.bytes([u8::from(lane.fixed)]);
        self.bytes(lane.base.to_be_bytes());
        self.bytes(lane.rate.to_be_bytes());
        self.words(&[lane.since_ago, lane.came, lane.waited, lane.least, lane.counted_ago]);
        self.bytes(lane.sessions.to_be_bytes());
        self.bytes(lane.sessions_before.to_be_bytes());
    }
}

struct Reader<'b>(&'b [u8]);

impl Reader<'_> {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        let (bytes, behind) = self.0.split_first_chunk().ok_or(Unreadable::CutOff)?;
        self.0 = behind;
        Ok(*bytes)
    }

    fn half_word(&mut self) -> Result<u16, Unreadable> {
        self.bytes().map(u16::from_be_bytes)
    }

    fn words<const N: usize>(&mut self) -> Result<[u32; N], Unreadable> {
        let mut words = [0; N];
        for word in &mut words {
            *word = u32::from_be_bytes(self.bytes()?);
        }
        Ok(words)
    }

    fn long(&mut self) -> Result<u64, Unreadable> {
        self.bytes().map(u64::from_be_bytes)
    }

    fn address(&mut self) -> Result<u128, Unreadable> {
        self.bytes().map(u128::from_be_bytes)
    }

    /// A leaf; `None`: one that says something that means nothing.
    fn leaf(&mut self) -> Result<Option<LeafRecord>, Unreadable> {
        let Some(Some(name)) = self.name(None)? else { return Ok(None) };
        let [bits] = self.bytes()?;
        let mut lanes = ByWay::default();
        for (bit, lane) in [DOWN, UP].into_iter().zip(lanes.values_mut()) {
            if bits & bit != 0 {
                *lane = self.lane()?;
                if lane.is_none() {
                    return Ok(None);
                }
            }
        }
        Ok((bits & !(DOWN | UP) == 0).then_some(LeafRecord { name, lanes }))
    }

    /// A connection; `None`: one that says something that means nothing.
    fn record(&mut self) -> Result<Option<FlowRecord>, Unreadable> {
        let [bits] = self.bytes()?;
        let mut flow = FlowState::default();
        (flow.lan, flow.wan) = if bits & SHORT != 0 {
            let [lan, wan] = self.words()?;
            (lan.into(), wan.into())
        } else {
            (self.address()?, self.address()?)
        };
        (flow.ends, flow.kind) = (self.long()?, self.long()?);
        flow.silence = Span::from_ns(self.long()?);
        [flow.frames, flow.state] = self.bytes()?;
        flow.cell = self.half_word()?;
        [flow.place] = self.words()?;
        let mut tcp = None;
        if bits & TCP != 0 {
            let Some(down) = self.name(None)? else { return Ok(None) };
            let Some(up) = self.name(down)? else { return Ok(None) };
            let Some(state) = self.tcp()? else { return Ok(None) };
            tcp = Some(TcpRecord { state, leaves: ByWay { down, up } });
        }
        let watch = if bits & WATCHED != 0 { Some(self.watch()?) } else { None };
        let is_known = bits & !(WAITING | TCP | WATCHED | SHORT) == 0;
        let is_waiting = bits & WAITING != 0;
        Ok(is_known.then_some(FlowRecord { is_waiting, flow, tcp, watch }))
    }

    fn name(&mut self, before: Option<LeafName>) -> Result<Option<Option<LeafName>>, Unreadable> {
        let [what] = self.bytes()?;
        match what {
            NO_NAME => Ok(Some(None)),
            AS_BEFORE => Ok(before.map(Some)),
            CLASS => Ok(Some(Some(LeafName { class: self.long()?, made: None }))),
            MADE => {
                let class = self.long()?;
                let made = self.made()?;
                Ok(made.map(|made| Some(LeafName { class, made: Some(made) })))
            }
            _ => Ok(None),
        }
    }

    fn made(&mut self) -> Result<Option<MadeLeaf>, Unreadable> {
        let [by, v4, v6, bits] = self.bytes()?;
        let host = (self.address()?, bits & 1 != 0);
        let first = (self.address()?, bits & 2 != 0);
        let silence = Span::from_ns(self.long()?);
        let by = match (by, v4, v6) {
            (0, 0, 0) => By::LanHost,
            (1, 0, 0) => By::WanHost,
            (2, 0..=32, 0..=128) => By::LanPrefix { v4, v6 },
            (3, 0..=32, 0..=128) => By::WanPrefix { v4, v6 },
            (4, 0, 0) => By::LanMac,
            (5, 0, 0) => By::Vlan,
            _ => return Ok(None),
        };
        Ok((bits <= 3).then_some(MadeLeaf { by, host, first, silence }))
    }

    fn tcp(&mut self) -> Result<Option<ConnectionState>, Unreadable> {
        let [state, scale, kind] = self.bytes()?;
        let [number] = self.words()?;
        let claim = ClaimState { number, mss: self.half_word()?, scale, kind };
        let Some(down) = self.half()? else { return Ok(None) };
        let Some(up) = self.half()? else { return Ok(None) };
        Ok(Some(ConnectionState { state, claim, halves: ByWay { down, up } }))
    }

    fn half(&mut self) -> Result<Option<HalfState>, Unreadable> {
        let [counted, scale, duplicates, flags] = self.bytes()?;
        let [next, acked, edge, timed, stamp, timed_ago] = self.words()?;
        let [shortest, last, paced_ago, released_ago] = self.words()?;
        let (mss, window) = (self.half_word()?, self.half_word()?);
        Ok((counted <= 1).then_some(HalfState {
            next,
            acked,
            edge,
            timed,
            stamp,
            timed_ago,
            shortest,
            last,
            paced_ago,
            released_ago,
            mss,
            window,
            scale,
            duplicates,
            flags,
            is_counted: counted == 1,
        }))
    }

    fn lane(&mut self) -> Result<Option<LaneState>, Unreadable> {
        let [fixed] = self.bytes()?;
        let (base, rate) = (self.long()?, self.long()?);
        let [since_ago, came, waited, least, counted_ago] = self.words()?;
        let (sessions, sessions_before) = (self.half_word()?, self.half_word()?);
        Ok((fixed <= 1).then_some(LaneState {
            base,
            fixed: fixed == 1,
            rate,
            since_ago,
            came,
            waited,
            least,
            counted_ago,
            sessions,
            sessions_before,
        }))
    }

    fn watch(&mut self) -> Result<WatchState, Unreadable> {
        let shortest_us = self.words()?;
        let streams = ByWay { down: self.words()?, up: self.words()? };
        let arrived = self.words()?;
        let [marks] = self.bytes()?;
        Ok(WatchState { shortest_us, streams, arrived, marks })
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::NotFlows => f.write_str("these are not the connections of an engine"),
            Unreadable::Version(version) => {
                write!(f, "connections of version {version}, but this weir reads {VERSION}")
            }
            Unreadable::TooMany(count) => {
                write!(f, "{count} records of a kind in one batch, of {EXPORTED_AT_ONCE} at most")
            }
            Unreadable::CutOff => f.write_str("the connections end too early"),
            Unreadable::LeftOver(bytes) => write!(f, "{bytes} bytes follow the last connection"),
            Unreadable::Unsound(at) => {
                write!(f, "record {at} says what cannot be")
            }
        }
    }
}

impl std::error::Error for Unreadable {}
