//! One leaf in front of a line, senders, and virtual time.

use weir_packet::{Flow, Headers, Label, Pool, Reason, Side};
use weir_shape::FrameCost;
use weir_shape::tree::{Care, Edit, NodeSpec, Spec, Tree, Waiting};
use weir_units::{Instant, Rate, Span, Way};

pub(crate) const LEAF: u32 = 1;

/// Whoever sends frames of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) flow: u32,
    pub(crate) host: u32,
    /// Bytes of a frame without its check sequence.
    pub(crate) size: usize,
    pub(crate) pace: Pace,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    /// Always has so many frames waiting (those that were dropped are sent anew).
    Keeps(usize),
    /// One frame at a time: the next comes so long after the last has gone.
    After(Span),
    /// A frame every so often, whatever happens to it.
    Every(Span),
    /// Nothing.
    Silent,
}

pub(crate) struct World {
    pub(crate) tree: Tree,
    pub(crate) spec: Spec,
    pub(crate) pool: Pool,
    pub(crate) now: Instant,
    pub(crate) senders: Vec<Sender>,
    due: Vec<Instant>,
    pub(crate) waiting: Vec<usize>,
    /// Bytes on the line by sender.
    pub(crate) sent: Vec<u64>,
    /// How long frames waited at most, by sender.
    pub(crate) waited: Vec<Span>,
    pub(crate) dropped: Vec<(usize, Reason)>,
    pub(crate) marked: usize,
    /// ECN bits of frames that come.
    pub(crate) ecn: u8,
    pub(crate) colour: u8,
    /// Connections from outside that nobody has answered.
    pub(crate) strangers: std::ops::Range<u32>,
    /// Flows of hosts that have not been sending for a second.
    pub(crate) new_hosts: std::ops::Range<u32>,
}

impl World {
    pub(crate) fn new(rate: u64, care: Care) -> World {
        World::with(rate, care, |_| {})
    }

    pub(crate) fn with(rate: u64, care: Care, change: impl FnOnce(&mut NodeSpec)) -> World {
        let mut leaf = NodeSpec { frames: 10_000, ..NodeSpec::new(LEAF, 0, true) };
        change(&mut leaf);
        let rate = Rate::from_bps(rate);
        let (link, nodes, cares) = (FrameCost::default(), vec![leaf], vec![care]);
        let spec = Spec { rate, link, nodes, cares, ..Spec::default() };
        let mut tree = Tree::new(20_010, 20_000, 1_000, Instant::ZERO);
        let mut edit = Edit::between(&Spec::default(), &spec);
        tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
        World {
            tree,
            spec,
            pool: Pool::new(20_010, 1_514),
            now: Instant::ZERO,
            senders: vec![],
            due: vec![],
            waiting: vec![],
            sent: vec![],
            waited: vec![],
            dropped: vec![],
            marked: 0,
            ecn: 0,
            colour: 0,
            strangers: 0..0,
            new_hosts: 0..0,
        }
    }

    pub(crate) fn add(&mut self, sender: Sender) -> usize {
        self.senders.push(sender);
        self.due.push(self.now);
        self.waiting.push(0);
        self.sent.push(0);
        self.waited.push(Span::ZERO);
        self.senders.len() - 1
    }

    pub(crate) fn label(&self, of: usize) -> Label {
        let Sender { flow, host, .. } = self.senders[of];
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        (label.leaf, label.host, label.colour) = (LEAF, host, self.colour);
        label.flow = Flow { index: flow, generation: 0 };
        label.way = if self.strangers.is_empty() { Way::Up } else { Way::Down };
        label.kind = label.kind.answered(!self.strangers.contains(&flow));
        if self.new_hosts.contains(&flow) {
            label.kind = label.kind.of_new_host();
        }
        label.traffic_class = self.ecn;
        label
    }

    /// Sends one frame; `false` if it was refused.
    pub(crate) fn send(&mut self, of: usize) -> bool {
        let mut frame = self.pool.take().expect("a buffer");
        assert!(self.pool.resize(&mut frame, 0, self.senders[of].size));
        let label = self.label(of);
        match self.tree.push(self.now, frame, label) {
            Ok(lost) => {
                self.waiting[of] += 1;
                if let Some((waiting, reason)) = lost {
                    self.lost(waiting, reason);
                }
                true
            }
            Err((frame, reason)) => {
                self.pool.give(frame);
                self.dropped.push((of, reason));
                false
            }
        }
    }

    fn of(&self, waiting: &Waiting) -> usize {
        let flow = waiting.label.flow.index;
        self.senders.iter().position(|s| s.flow == flow).expect("a sender")
    }

    fn lost(&mut self, waiting: Waiting, reason: Reason) {
        let of = self.of(&waiting);
        self.waiting[of] -= 1;
        self.dropped.push((of, reason));
        self.pool.give(waiting.frame);
    }

    fn arrive(&mut self) {
        for of in 0..self.senders.len() {
            match self.senders[of].pace {
                Pace::Silent => {}
                Pace::Keeps(frames) => while self.waiting[of] < frames && self.send(of) {},
                Pace::After(_) => {
                    if self.waiting[of] == 0 && self.due[of] <= self.now {
                        self.send(of);
                    }
                }
                Pace::Every(span) => {
                    while self.due[of] <= self.now {
                        self.due[of] += span;
                        self.send(of);
                    }
                }
            }
        }
    }

    /// Runs for so long from now on; counts anew.
    pub(crate) fn run(&mut self, span: Span) {
        self.sent.fill(0);
        self.waited.fill(Span::ZERO);
        self.dropped.clear();
        let end = self.now + span;
        while self.now < end {
            self.arrive();
            while let Some(out) = self.tree.pop(self.now) {
                let of = self.of(&out);
                self.waiting[of] -= 1;
                if let Pace::After(span) = self.senders[of].pace {
                    self.due[of] = self.now + span;
                }
                let cost = self.spec.link.cost(out.frame.len(), 0);
                self.sent[of] += cost.get();
                self.waited[of] = self.waited[of].max(self.now.since(out.since));
                self.marked += usize::from(out.mark);
                self.pool.give(out.frame);
            }
            while let Some(dropped) = self.tree.take_dropped() {
                self.lost(dropped, Reason::Managed);
            }
            let due = self.senders.iter().zip(&self.due);
            let due = due.filter(|(s, _)| matches!(s.pace, Pace::Every(_) | Pace::After(_)));
            let due = due.map(|(_, &due)| due).filter(|&due| due > self.now);
            let next = due.chain(self.tree.next_at()).min().unwrap_or(end);
            // a moment that has passed brings nothing: look again a little later
            let soon = self.now + Span::from_us(1);
            self.now = if next > self.now { next.min(end) } else { soon };
        }
    }
}

/// Jain's index: 1 if all have the same.
pub(crate) fn jain(shares: &[u64]) -> f64 {
    let sum: f64 = shares.iter().map(|&x| x as f64).sum();
    let squares: f64 = shares.iter().map(|&x| (x as f64).powi(2)).sum();
    sum * sum / (shares.len() as f64 * squares)
}
