//! The half of a connection that receives: what has arrived, what is missing, and when to say so.

use weir_packet::tcp;
use weir_units::{Instant, Span};

use super::TcpSpec;
use super::segment::Segment;

/// Ranges out of order that are kept; the farthest are thrown away beyond.
const RANGES: usize = 512;
/// After so long without data, acknowledgements are quick again.
const PAUSE: Span = Span::from_ms(200);

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// The next byte that is expected, counted from the SYN.
    pub(crate) next: u64,
    /// Where the peer ended, when all before has arrived too.
    pub(crate) is_over: bool,
    fin_at: Option<u64>,
    /// What arrived out of order, by its place, apart and not touching.
    ranges: Vec<(u64, u64)>,
    /// The left edges of ranges, those that changed last first.
    recent: Vec<u64>,
    /// What arrived a second time since the last acknowledgement.
    twice: Option<(u64, u64)>,
    /// Payload that arrived in order.
    pub(crate) delivered: u64,
    window: u64,
    edge: u64,
    acked: u64,
    pub(crate) ack_now: bool,
    pub(crate) ack_at: Instant,
    quick: u32,
    last: Instant,
    mss: u64,
    /// Congestion was marked, and the peer has not said that it knows.
    pub(crate) echo: bool,
    /// The timestamp to echo.
    pub(crate) stamp: u32,
    pub(crate) dup_acks: u64,
}

impl Receiver {
    pub(crate) fn new(spec: &TcpSpec) -> Receiver {
        Receiver {
            next: 0,
            is_over: false,
            fin_at: None,
            ranges: Vec::new(),
            recent: Vec::new(),
            twice: None,
            delivered: 0,
            window: u64::from(spec.window),
            edge: 0,
            acked: 0,
            ack_now: false,
            ack_at: Instant::MAX,
            quick: spec.quick_acks,
            last: Instant::ZERO,
            mss: u64::from(spec.mss),
            echo: false,
            stamp: 0,
            dup_acks: 0,
        }
    }

    /// Takes the payload of a segment that begins at `start`.
    pub(crate) fn take(&mut self, now: Instant, start: u64, segment: &Segment, spec: &TcpSpec) {
        let end = start + u64::from(segment.payload);
        if segment.has(tcp::FIN) {
            self.fin_at = Some(end);
        }
        if segment.ecn == 3 {
            self.echo = true;
            self.ack_now = true;
        }
        let gap = now.since(self.last);
        if gap > PAUSE {
            self.quick = spec.quick_acks;
        } else if gap > spec.delayed_ack {
            // there is no use in waiting for a second one that comes later than that
            self.quick = self.quick.max(spec.quick_acks.min(1));
        }
        self.last = now;
        if end <= self.next && segment.payload > 0 {
            self.twice = Some((start, end));
            self.ack_now = true;
            return;
        }
        if start > self.next {
            self.ack_now = true;
            if end <= self.edge.max(self.next + self.window) {
                self.keep(start, end);
            }
            return;
        }
        let filled_a_hole = !self.ranges.is_empty();
        let before = self.next;
        self.next = self.next.max(end);
        while let Some((from, to)) = self.ranges.first().copied()
            && from <= self.next
        {
            self.next = self.next.max(to);
            self.ranges.remove(0);
            self.recent.retain(|left| *left != from);
        }
        self.delivered += self.next - before;
        if self.fin_at == Some(self.next) {
            self.next += 1;
            self.is_over = true;
            self.ack_now = true;
        }
        if self.next - self.acked > self.mss || filled_a_hole || self.quick > 0 {
            self.quick = self.quick.saturating_sub(1);
            self.ack_now = true;
        } else if self.ack_at == Instant::MAX {
            self.ack_at = now + spec.delayed_ack;
        }
    }

    /// Keeps what came too early.
    fn keep(&mut self, start: u64, end: u64) {
        let at = self.ranges.partition_point(|(_, to)| *to < start);
        let mut merged = (start, end);
        let mut behind = at;
        while let Some((from, to)) = self.ranges.get(behind).copied()
            && from <= end
        {
            if from <= start && to >= end && start < end {
                self.twice = Some((start, end));
            }
            merged = (merged.0.min(from), merged.1.max(to));
            self.recent.retain(|left| *left != from);
            behind += 1;
        }
        self.ranges.splice(at..behind, [merged]);
        self.recent.insert(0, merged.0);
        if self.ranges.len() > RANGES
            && let Some((from, _)) = self.ranges.pop()
        {
            self.recent.retain(|left| *left != from);
        }
    }

    /// An acknowledgement leaves: what it says about ranges, as offsets.
    pub(crate) fn acknowledge(&mut self, mut say: impl FnMut(u64, u64)) {
        self.acked = self.next;
        self.ack_now = false;
        self.ack_at = Instant::MAX;
        if !self.ranges.is_empty() {
            self.dup_acks += 1;
        }
        if let Some((start, end)) = self.twice.take() {
            say(start, end);
        }
        for left in self.recent.iter().take(4) {
            let at = self.ranges.partition_point(|(from, _)| from < left);
            if let Some((from, to)) = self.ranges.get(at) {
                say(*from, *to);
            }
        }
    }

    /// The window to tell now: the application reads at once, so it is always the whole.
    pub(crate) fn window(&mut self) -> u64 {
        self.edge = self.next + self.window;
        self.window
    }
}
