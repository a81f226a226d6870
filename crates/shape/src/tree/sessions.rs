//! Connections as sessions: none has more than its maximum, and only so many have a place; one more
//! shares, waits or is refused. A session is over when it has been silent for a while.

use weir_packet::Label;
use weir_units::limits::SESSION_IDLE_SECS;
use weir_units::{Instant, Span};

use super::care::{Next, Sessions};
use super::ceiling::Ceiling;
use super::heap::Entry;
use super::node::NONE;
use super::queues::{Away, Kept, Queues};
use super::ring::Place;

/// Silence is counted in these: about a millisecond.
const TICK: u32 = 20;

impl Queues {
    /// Whether a frame of this session may join its queue. It may also while it waits for a place.
    /// What comes from outside before the LAN side has answered shares one queue, which has no
    /// place, while there is one that is free. The last places are for hosts that have none.
    pub(super) fn may_speak(
        &mut self,
        now: Instant,
        leaf: u32,
        id: u32,
        told: Sessions,
        label: &Label,
    ) -> bool {
        self.queues[id].moment = ticks(now);
        if told.next == Next::Share || self.queues[id].turn.place == Place::Waiting {
            return true;
        }
        if self.queues[id].admitted {
            self.forget_age(leaf, id);
            self.is_youngest(leaf, id);
            return true;
        }
        if self.crowds[leaf as usize].waiting.first().is_none() {
            self.end_silent(now, leaf);
        }
        let left = told.count.saturating_sub(self.crowds[leaf as usize].admitted);
        if !label.is_answered() {
            return left > 0;
        }
        if left == 0 && told.next != Next::Wait {
            return false;
        }
        let Some(at) = self.hosts.find(leaf, label.host) else { return false };
        let has = self.hosts[at].sessions;
        let is_behind = left <= told.first || self.crowds[leaf as usize].waiting.first().is_some();
        let is_free = left > 0 && (has == 0 || !is_behind);
        if has >= told.host.max(1) || !is_free && told.next != Next::Wait {
            return false;
        }
        self.hosts[at].sessions += 1;
        (self.queues[id].host, self.queues[id].counted) = (at, true);
        if is_free {
            self.admit(leaf, id);
        } else {
            self.go_away(id, Away::Waiting);
            self.look_when_silent(now, leaf);
        }
        true
    }

    /// A session is no longer counted with its host.
    pub(super) fn gives_back(&mut self, id: u32) {
        if !std::mem::take(&mut self.queues[id].counted) {
            return;
        }
        let at = std::mem::replace(&mut self.queues[id].host, NONE);
        self.hosts[at].sessions -= 1;
        if self.hosts[at].sessions == 0 {
            self.hosts.forget(at);
        }
    }

    fn admit(&mut self, leaf: u32, id: u32) {
        self.queues[id].admitted = true;
        self.crowds[leaf as usize].admitted += 1;
        self.is_youngest(leaf, id);
    }

    /// A session is over.
    pub(super) fn end_session(&mut self, leaf: u32, id: u32) {
        self.forget_age(leaf, id);
        self.gives_back(id);
        self.queues[id].admitted = false;
        self.crowds[leaf as usize].admitted -= 1;
    }

    /// A session has left its place before it was silent for long: whoever waits first has it, and
    /// may send when the timer is looked at next.
    pub(super) fn gives_place(&mut self, leaf: u32) {
        if let Some(next) = self.crowds[leaf as usize].waiting.first() {
            self.go_away(next, Away::Held);
            self.admit(leaf, next);
            self.look_at(next, Instant::ZERO);
        }
    }

    fn is_youngest(&mut self, leaf: u32, id: u32) {
        let crowd = &mut self.crowds[leaf as usize];
        let older = std::mem::replace(&mut crowd.youngest, id);
        match older {
            NONE => crowd.oldest = id,
            older => self.queues[older].younger = id,
        }
        let queue = &mut self.queues[id];
        (queue.older, queue.younger) = (older, NONE);
    }

    fn forget_age(&mut self, leaf: u32, id: u32) {
        let queue = &self.queues[id];
        let (older, younger) = (queue.older, queue.younger);
        let crowd = &mut self.crowds[leaf as usize];
        match older {
            NONE => crowd.oldest = younger,
            older => self.queues[older].younger = younger,
        }
        match younger {
            NONE => crowd.youngest = older,
            younger => self.queues[younger].older = older,
        }
    }

    /// When the session that has been silent for longest is over, if no frame of it comes.
    fn silence_ends(&self, now: Instant, leaf: u32) -> Option<Instant> {
        let oldest = self.queues.get(self.crowds[leaf as usize].oldest)?;
        let silence = Span::from_secs(SESSION_IDLE_SECS);
        let since = u64::from(ticks(now).wrapping_sub(oldest.moment)) << TICK;
        let is_silent = oldest.chain.is_empty();
        Some(if is_silent { now + (silence - Span::from_ns(since)) } else { now + silence })
    }

    /// Ends the session that has been silent for longest, if that is long enough. Returns whether.
    fn end_silent(&mut self, now: Instant, leaf: u32) -> bool {
        let is_over = self.silence_ends(now, leaf).is_some_and(|end| end <= now);
        if is_over {
            self.end_session(leaf, self.crowds[leaf as usize].oldest);
        }
        is_over
    }

    /// Somebody waits for a place: the leaf is looked at when the oldest session may be over.
    fn look_when_silent(&mut self, now: Instant, leaf: u32) {
        if let Some(end) = self.silence_ends(now, leaf) {
            self.look_at(self.flows + leaf, end);
        }
    }

    /// Notes a moment for a queue, unless one is noted.
    fn look_at(&mut self, id: u32, when: Instant) {
        if !self.queues[id].timed && !self.timer.is_full() {
            self.queues[id].timed = true;
            self.timer.push(Entry { key: when.ns(), node: id });
        }
    }

    /// What one connection may have is used up: it is away until its next moment.
    pub(super) fn has_sent(&mut self, now: Instant, id: u32, max: &Ceiling, bytes: u64) {
        let queue = &mut self.queues[id];
        let until = max.send(&mut queue.clock, now, bytes);
        if let Some(until) = until
            && !queue.chain.is_empty()
            && !self.timer.is_full()
        {
            self.go_away(id, Away::Held);
            self.look_at(id, until);
        }
    }

    /// Whether a queue that begins is still ahead of what it may have: then it is held.
    pub(super) fn is_ahead(&mut self, now: Instant, id: u32, kept: &Kept) -> bool {
        let until = self.queues[id].clock.not_before(now);
        let Some(until) = until.filter(|_| kept.max.is_some() && !self.timer.is_full()) else {
            return false;
        };
        self.go_away(id, Away::Held);
        self.look_at(id, until);
        true
    }

    /// Lets queues go whose moment has come; returns a leaf that has something to send thereby.
    pub(crate) fn let_go(&mut self, now: Instant) -> Option<u32> {
        while let Some(first) = self.timer.first().filter(|first| first.key <= now.ns()) {
            self.timer.pop();
            let id = first.node;
            let queue = &mut self.queues[id];
            queue.timed = false;
            let mut woken = None;
            if queue.turn.place == Place::Held {
                match queue.clock.not_before(now) {
                    Some(until) => self.look_at(id, until),
                    None => {
                        woken = Some(queue.leaf);
                        self.resume(id);
                    }
                }
            }
            if let Some(leaf) = id.checked_sub(self.flows) {
                woken = woken.or(self.let_in(now, leaf));
            }
            if woken.is_some() {
                return woken;
            }
        }
        None
    }

    /// Sessions that wait get the places of those that are over.
    fn let_in(&mut self, now: Instant, leaf: u32) -> Option<u32> {
        let mut woken = None;
        while let Some(id) = self.crowds[leaf as usize].waiting.first() {
            if !self.end_silent(now, leaf) {
                self.look_when_silent(now, leaf);
                break;
            }
            self.resume(id);
            self.admit(leaf, id);
            woken = Some(leaf);
        }
        woken
    }

    /// When a queue may go on, if one waits for its moment.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.timer.first().map(|first| Instant::from_ns(first.key))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "it turns once in 52 days")]
fn ticks(now: Instant) -> u32 {
    (now.ns() >> TICK) as u32
}
