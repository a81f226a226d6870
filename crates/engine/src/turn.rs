//! One turn: the way of a frame from port to port. This is the file to read first.
//!
//! ```text
//! receive:   packet   ─►  classify  ─►  condition  ─►  shape     transmit:   shape  ─►  port
//!            bytes →      whose         steady the     may it                who is
//!            headers      is it?        sender         wait?                 next?
//! ```
//!
//! One stage is yet to come: bond, before the port.

use weir_condition::Pacing;
use weir_packet::{Burst, Frame, Headers, Label, Reason, Side, Verdict, edit};
use weir_shape::tree::Waiting;
use weir_units::limits::BURST_FRAMES;
use weir_units::{Instant, Way};

use crate::Engine;
use crate::enforce::Ruling;
use crate::watch::Again;

impl Engine {
    /// Takes the frames of `burst` that came in on the port of `side` at `now`, all of them: each
    /// now waits for [`Engine::transmit`] or has been dropped and counted, its buffer given back.
    ///
    /// Cost: O(1) per frame and class level; no allocation, no lock, no clock. Calling it with an
    /// empty burst is harmless. The answer of [`Engine::next_wakeup`] is stale afterwards.
    pub fn receive(&mut self, now: Instant, side: Side, burst: &mut Burst) {
        let frames = burst.len();
        let headers = &mut self.scratch.headers[..frames];
        let labels = &mut self.scratch.labels[..frames];
        for (frame, headers) in burst.frames().iter().zip(&mut *headers) {
            *headers = Headers::parse(self.pool.bytes(frame));
        }
        self.classifier.burst(now, side, &self.pool, burst.frames(), headers, labels);
        let again = if self.watch.is_idle() {
            Again::default()
        } else {
            self.watch.burst(now, side.way(), &self.pool, burst.frames(), headers, labels)
        };

        let way = side.way();
        let tree = &mut self.trees[way];
        labels.iter().for_each(|label| tree.expect(label));
        if !self.conditioner.is_idle() {
            self.conditioner.expect(way, labels);
        }
        let is_policed = !self.policer.is_idle();
        if is_policed {
            self.policer.expect(way, labels);
        }
        for (at, frame) in burst.drain().enumerate() {
            let mut label = self.scratch.labels[at];
            label.leaf = self.leaf_of(now, &label);
            self.ledger.received(way, label.leaf, frame.len());
            if (again.repeated | again.late) >> at & 1 != 0 {
                let is_late = again.late >> at & 1 != 0;
                self.ledger.retransmitted(way, label.leaf, frame.len(), is_late);
            }
            let mut refused = Reason::of(&self.scratch.headers[at]);
            if label.kind.is_stray() {
                refused = refused.or(Some(Reason::Fragment));
            }
            if is_policed && refused.is_none() {
                let link = self.trees[way].link();
                let cost = link.cost(frame.len(), label.net_at);
                let bytes = self.pool.bytes_mut(&frame);
                refused = self.policer.treat(now, cost, bytes, &mut label).err();
            }
            if let Some(reason) = refused {
                self.lose(frame, &label, reason);
            } else if self.conditioner.is_idle() {
                self.queue(now, frame, label);
            } else {
                self.steady(now, frame, at, label);
            }
        }
    }

    /// The leaf that a frame is of, so that it overtakes none of its connection.
    #[inline]
    fn leaf_of(&mut self, now: Instant, label: &Label) -> u32 {
        let waits = self.trees[label.way].leaf_of(label);
        if waits == label.leaf { waits } else { self.leaf_elsewhere(now, label, waits) }
    }

    /// The same where frames of its connection wait in another leaf: it joins them, unless that
    /// was by other rules. It obeys the new ones at once then, and what waits is dropped.
    #[cold]
    fn leaf_elsewhere(&mut self, now: Instant, label: &Label, waits: u32) -> u32 {
        let way = label.way;
        let leaf = self.enforcers[way].leaf_of(label.leaf, waits);
        if leaf == label.leaf || self.trees[way].obeys(now, label) { label.leaf } else { leaf }
    }

    /// A frame joins its queue, or somebody has to go.
    #[inline]
    fn queue(&mut self, now: Instant, frame: Frame, label: Label) {
        let way = label.way;
        let bytes = frame.len();
        let mut leaf = label.leaf;
        if !self.enforcers[way].is_idle() {
            match self.judge(now, &frame, &label) {
                Some(queue) => leaf = queue,
                None => return self.lose(frame, &label, Reason::OverShare),
            }
        }
        match self.trees[way].push_into(now, leaf, frame, label) {
            Ok(victim) => {
                self.ledger.judged(label.way, label.leaf, bytes, Verdict::Hold);
                if let Some((victim, reason)) = victim {
                    let Waiting { frame, label, .. } = victim;
                    self.ledger.dropped_from_queue(label.way, label.leaf, frame.len(), reason);
                    self.pool.give(frame);
                }
            }
            Err((frame, reason)) => self.refuse(frame, &label, reason),
        }
    }

    /// A frame found no place in its queue: if it was marked, the mark goes with it.
    #[cold]
    fn refuse(&mut self, frame: Frame, label: &Label, reason: Reason) {
        if self.enforcers[label.way].has_marked() {
            self.ledger.mark_lost(label.way, label.leaf, frame.len());
        }
        self.lose(frame, label, reason);
    }

    /// The leaf of the tree that a frame may join where classes have no queues of their own.
    #[inline(never)]
    fn judge(&mut self, now: Instant, frame: &Frame, label: &Label) -> Option<u32> {
        let way = label.way;
        let tree = &self.trees[way];
        let cost = tree.link().cost(frame.len(), label.net_at);
        let waiting = |leaf| tree.waiting_in(leaf);
        match self.enforcers[way].judge(now, label, cost, waiting) {
            Ruling::Queue(leaf) => Some(leaf),
            Ruling::Mark(leaf) => {
                edit::mark_congestion(self.pool.bytes_mut(frame), label);
                self.ledger.marked(label.way, label.leaf, frame.len());
                Some(leaf)
            }
            Ruling::Drop => None,
        }
    }

    fn lose(&mut self, frame: Frame, label: &Label, reason: Reason) {
        self.ledger.judged(label.way, label.leaf, frame.len(), Verdict::Drop(reason));
        self.pool.give(frame);
    }

    /// TCP is steadied: a segment may be changed, and may have to wait for its moment. `at` is its
    /// place in the burst.
    #[inline(never)]
    fn steady(&mut self, now: Instant, frame: Frame, at: usize, label: Label) {
        let headers = &self.scratch.headers[at];
        let waiting = self.trees[label.way].waiting_in(label.leaf);
        let bytes = self.pool.bytes_mut(&frame);
        let fate = self.conditioner.frame(now, bytes, headers, &label, waiting);
        let frame = match fate {
            Pacing::Pass => Some(frame),
            Pacing::Hold(due) => {
                let bytes = frame.len();
                match self.conditioner.hold(frame, label, due) {
                    Ok(()) => {
                        self.ledger.judged(label.way, label.leaf, bytes, Verdict::Hold);
                        None
                    }
                    Err(frame) => Some(frame),
                }
            }
        };
        // those before it that it must not overtake
        self.let_go(now, now);
        let Some(frame) = frame else { return };
        if self.leaf_of(now, &label) == label.leaf {
            return self.queue(now, frame, label);
        }
        // they wait in another leaf, where rules of before had sent them
        self.ledger.judged(label.way, label.leaf, frame.len(), Verdict::Hold);
        self.requeue(now, frame, label);
    }

    /// Segments whose moment comes by `due` join their queues.
    pub(crate) fn let_go(&mut self, due: Instant, now: Instant) {
        while let Some((frame, label)) = self.conditioner.take(due) {
            self.requeue(now, frame, label);
        }
    }

    /// One that was held until now is held again in its queue.
    fn requeue(&mut self, now: Instant, frame: Frame, mut label: Label) {
        let leaf = self.leaf_of(now, &label);
        if leaf != label.leaf {
            self.ledger.moved(label.way, label.leaf, leaf, frame.len());
            label.leaf = leaf;
        }
        self.ledger.requeued(label.way, leaf, frame.len());
        self.queue(now, frame, label);
    }

    /// Fills `out` with the frames that may leave through the port of `side` at `now`; the caller
    /// owns them then and gives their buffers back to [`Engine::pool_mut`] when they have left.
    ///
    /// Calling it early or twice is harmless: nothing leaves before its time.
    pub fn transmit(&mut self, now: Instant, side: Side, out: &mut Burst) {
        if !self.conditioner.is_idle() {
            self.let_go(now, now);
        }
        let Engine { pool, trees, ledger, watch, stale_before, .. } = self;
        let tree = &mut trees[side.way_out()];
        let is_watched = watch.looks_at(side.way_out());
        tree.pop_burst(now, out.room(), |waiting| {
            let (label, bytes) = (waiting.label, waiting.frame.len());
            if waiting.since < *stale_before {
                ledger.dropped_from_queue(label.way, label.leaf, bytes, Reason::Stale);
                return pool.give(waiting.frame);
            }
            ledger.sent(label.way, label.leaf, bytes, now.since(waiting.since));
            if is_watched {
                watch.left(now, &label, pool.bytes(&waiting.frame), waiting.since);
            }
            if waiting.mark {
                edit::mark_congestion(pool.bytes_mut(&waiting.frame), &label);
                ledger.marked(label.way, label.leaf, bytes);
            }
            if let Err(frame) = out.push(waiting.frame) {
                // there is room for as many as were asked for
                pool.give(frame);
            }
        });
        while let Some(Waiting { frame, label, .. }) = tree.take_dropped() {
            ledger.dropped_from_queue(label.way, label.leaf, frame.len(), Reason::Managed);
            pool.give(frame);
        }
        self.drop_left_behind(side.way_out(), BURST_FRAMES);
    }

    /// Drops up to `most` frames of connections that wait in another leaf since an edit.
    #[inline]
    pub(crate) fn drop_left_behind(&mut self, way: Way, most: usize) {
        for _ in 0..most {
            let Some(waiting) = self.trees[way].take_left_behind() else { return };
            let Waiting { frame, label, .. } = waiting;
            self.ledger.dropped_from_queue(label.way, label.leaf, frame.len(), Reason::Stale);
            self.pool.give(frame);
        }
    }
}
