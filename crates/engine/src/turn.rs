//! One turn: the way of a frame from port to port. This is the file to read first.
//!
//! ```text
//! receive:   packet    ─►  classify  ─►  condition  ─►  shape      transmit:   shape  ─►  port
//!            bytes →       whose         is it as       may it                 who is
//!            headers       is it?        agreed?        wait?                  next?
//! ```
//!
//! A stage yet to come stands before the port: bond.

use weir_packet::{Burst, Fault, Headers, Label, Reason, Side, Verdict, edit};
use weir_shape::tree::Waiting;
use weir_units::Instant;

use crate::Engine;

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

        let tree = &mut self.trees[side.other() as usize];
        labels.iter().for_each(|label| tree.expect(label));
        let is_policed = !self.policer.is_idle();
        if is_policed {
            self.policer.expect(side, labels);
        }
        let mut lost = None;
        for (frame, (headers, label)) in burst.drain().zip(headers.iter().zip(labels)) {
            let bytes = frame.len();
            label.leaf = tree.leaf_of(label);
            self.ledger.received(side, label.leaf, bytes);
            let mut refused = (headers.fault == Some(Fault::Runt)).then_some(Reason::Runt);
            if is_policed && refused.is_none() {
                let cost = tree.link().cost(bytes, label.net_at);
                let bytes = self.pool.bytes_mut(&frame);
                refused = self.policer.treat(now, cost, bytes, label).err();
            }
            let verdict = if let Some(reason) = refused {
                self.pool.give(frame);
                Verdict::Drop(reason)
            } else {
                match tree.push(now, frame, *label) {
                    Ok(victim) => {
                        lost = victim;
                        Verdict::Hold
                    }
                    Err((frame, reason)) => {
                        self.pool.give(frame);
                        Verdict::Drop(reason)
                    }
                }
            };
            self.ledger.judged(side, label.leaf, bytes, verdict);
            if let Some((victim, reason)) = lost.take() {
                let Label { side, leaf, .. } = victim.label;
                self.ledger.let_down(side, leaf, victim.frame.len(), reason);
                self.pool.give(victim.frame);
            }
        }
    }

    /// Fills `out` with the frames that may leave through the port of `side` at `now`; the caller
    /// owns them then and gives their buffers back to [`Engine::pool_mut`] when they have left.
    ///
    /// Calling it early or twice is harmless: nothing leaves before its time.
    pub fn transmit(&mut self, now: Instant, side: Side, out: &mut Burst) {
        let Engine { pool, trees, ledger, .. } = self;
        let tree = &mut trees[side as usize];
        tree.pop_burst(now, out.room(), |waiting| {
            let (label, bytes) = (waiting.label, waiting.frame.len());
            ledger.sent(label.side, label.leaf, bytes, now.since(waiting.since));
            if waiting.mark {
                edit::mark_congestion(pool.bytes_mut(&waiting.frame), &label);
                ledger.marked(label.side, label.leaf, bytes);
            }
            if let Err(frame) = out.push(waiting.frame) {
                // there is room for as many as were asked for
                pool.give(frame);
            }
        });
        while let Some(Waiting { frame, label, .. }) = tree.take_dropped() {
            ledger.let_down(label.side, label.leaf, frame.len(), Reason::Managed);
            pool.give(frame);
        }
    }
}
