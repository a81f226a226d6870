//! The stage between two sides, as the engine calls it: who must not be overtaken goes first, who
//! waits leaves at its moment. What every frame must keep is checked here, for scripts and
//! properties alike.

use std::collections::BTreeMap;

use weir_condition::{Conditioner, Edit, Pacing, Spec};
use weir_packet::{Flow, Frame, Headers, Label, Net, Pool, Side, checksum, tcp};
use weir_units::{Instant, Span};

/// Connections that a world remembers.
pub(crate) const FLOWS: usize = 64;
const FRAMES: usize = 20_000;

pub(crate) struct World {
    pub(crate) conditioner: Conditioner,
    pool: Pool,
    spec: Spec,
    pub(crate) now: Instant,
    /// Bytes in front of a frame from that side.
    pub(crate) waiting: [u32; 2],
    /// What came, by the buffer it is in: its number, when, and its bytes.
    came: Vec<(u64, Instant, Vec<u8>)>,
    number: u64,
    /// The last that left, by connection and side.
    last: BTreeMap<(u32, bool), u64>,
    pub(crate) left: Vec<Left>,
}

/// A frame that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub(crate) at: Instant,
    pub(crate) side: Side,
    pub(crate) flow: Flow,
    pub(crate) came: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

impl World {
    pub(crate) fn new(now: Instant) -> World {
        World {
            conditioner: Conditioner::new(4_096),
            pool: Pool::new(FRAMES, 2_048),
            spec: Spec::default(),
            now,
            waiting: [0; 2],
            came: vec![(0, now, Vec::new()); FRAMES],
            number: 0,
            last: BTreeMap::new(),
            left: Vec::new(),
        }
    }

    /// From now on `spec` holds; what waits is let go before, as the engine does it.
    pub(crate) fn tell(&mut self, spec: &Spec) {
        self.let_go(Instant::from_ns(u64::MAX));
        self.conditioner.apply(&mut Edit::between(&self.spec, spec, FLOWS));
        self.spec = spec.clone();
    }

    /// A frame comes in at `now`; returns until when it waits.
    pub(crate) fn arrive(
        &mut self,
        side: Side,
        flow: Flow,
        leaf: u32,
        bytes: &[u8],
    ) -> Option<Instant> {
        let frame = self.pool.fill(bytes).expect("the pool is large enough");
        self.number += 1;
        self.came[frame.index() as usize] = (self.number, self.now, bytes.to_vec());
        let headers = Headers::parse(bytes);
        let label = Label { flow, leaf, ..Label::new(side, &headers) };
        let waiting = self.waiting[side as usize];
        let bytes = self.pool.bytes_mut(&frame);
        let (frame, until) =
            match self.conditioner.frame(self.now, bytes, &headers, &label, waiting) {
                Pacing::Pass => (Some(frame), None),
                Pacing::Hold(due) => match self.conditioner.hold(frame, label, due) {
                    Ok(()) => (None, Some(due)),
                    Err(frame) => (Some(frame), None),
                },
            };
        self.let_go(self.now);
        if let Some(frame) = frame {
            self.leaves(frame, &label, self.now);
        }
        until
    }

    /// Time goes on; whoever waits leaves at its moment.
    pub(crate) fn pass_until(&mut self, now: Instant) {
        while let Some(due) = self.conditioner.next_at().filter(|due| *due <= now) {
            self.now = self.now.max(due);
            let before = self.conditioner.held();
            self.let_go(self.now);
            assert!(self.conditioner.held() < before, "a moment came and nobody left");
        }
        self.now = now;
    }

    pub(crate) fn let_go(&mut self, due: Instant) {
        while let Some((frame, label)) = self.conditioner.take(due) {
            self.leaves(frame, &label, self.now);
        }
    }

    fn leaves(&mut self, frame: Frame, label: &Label, at: Instant) {
        let (number, when, came) = std::mem::take(&mut self.came[frame.index() as usize]);
        assert!(at.since(when) <= Span::from_secs(1), "it waited longer than a second");
        if label.kind.is_tcp() {
            let of = (label.flow.index, label.side() == Side::Lan);
            let before = self.last.insert(of, number);
            assert!(before.is_none_or(|before| before < number), "one overtook another");
        }
        let bytes = self.pool.bytes(&frame).to_vec();
        only_window_and_size_differ(&came, &bytes);
        self.left.push(Left { at, side: label.side(), flow: label.flow, came, bytes });
        self.pool.give(frame);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.let_go(Instant::from_ns(u64::MAX));
            assert_eq!(self.pool.free(), FRAMES, "a frame stayed somewhere");
        }
    }
}

/// Fails unless `after` is `before` with, at most, a smaller window, a smaller segment size in a
/// SYN, and a checksum that is right if it was right.
fn only_window_and_size_differ(before: &[u8], after: &[u8]) {
    let headers = Headers::parse(before);
    let mut restored = after.to_vec();
    let at = usize::from(headers.transport_at);
    if let (Some(was), Some(is)) = (tcp::Tcp::of(before, &headers), tcp::Tcp::of(after, &headers)) {
        assert!(!is_signed(&was) || before == after, "a signed segment was changed");
        assert!(is.window() <= was.window(), "a window grew");
        assert!((is.window() == 0) == (was.window() == 0), "a window was closed or opened");
        restored[at + 14..at + 18].copy_from_slice(&before[at + 14..at + 18]);
        if let (Some(old), Some(new)) = (mss(&was), mss(&is))
            && old != new
        {
            assert!(new < old && was.has(tcp::SYN), "a segment size grew, or is not of a SYN");
            edit_back(&mut restored, &headers, before);
        }
        assert_eq!(sum(before, &headers), sum(after, &headers), "the checksum");
    }
    assert!(restored == before, "something else was changed:\n{before:02x?}\n{after:02x?}");
}

/// The options of a SYN as they were: the size is the only thing in them that may differ.
fn edit_back(restored: &mut [u8], headers: &Headers, before: &[u8]) {
    let old = tcp::Tcp::of(before, headers).and_then(|tcp| mss(&tcp)).unwrap_or(0);
    let (from, to) = (usize::from(headers.transport_at) + 20, usize::from(headers.payload_at));
    let at = (from..to).find(|&at| {
        let mut tried = restored.to_vec();
        tried[at..].iter_mut().zip(old.to_be_bytes()).for_each(|(byte, old)| *byte = old);
        tried[from..to] == before[from..to]
    });
    let at = at.expect("only the size differs");
    restored[at..at + 2].copy_from_slice(&old.to_be_bytes());
}

pub(crate) fn mss(tcp: &tcp::Tcp<'_>) -> Option<u16> {
    tcp.options().filter_map(Result::ok).find_map(|option| match option {
        tcp::TcpOption::Mss(mss) => Some(mss),
        _ => None,
    })
}

fn is_signed(tcp: &tcp::Tcp<'_>) -> bool {
    let signs = |option| matches!(option, tcp::TcpOption::Unknown { kind: 19 | 29, .. });
    tcp.options().filter_map(Result::ok).any(signs)
}

/// The sum over a TCP segment with its pseudo header: 0 where its checksum is right.
fn sum(bytes: &[u8], headers: &Headers) -> u16 {
    let segment = &bytes[usize::from(headers.transport_at)..usize::from(headers.end)];
    let net = usize::from(headers.net_at);
    let addresses = match headers.net {
        Net::V4 => &bytes[net + 12..net + 20],
        _ => &bytes[net + 8..net + 40],
    };
    let before = checksum::sum(6 + segment.len() as u64, addresses);
    match checksum::fold(checksum::sum(before, segment)) {
        // both are nothing in one's complement
        u16::MAX => 0,
        sum => sum,
    }
}
