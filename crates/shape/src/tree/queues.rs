//! The frames that wait. A plain leaf is one chain; a leaf with care (care.rs) has a queue per
//! connection, which take turns (ring.rs), or a single queue with queue management. Which leaf sends
//! is decided elsewhere; here is decided which of its frames.
//!
//! Queues are numbered like the flow table, and behind those each leaf has one of its own: for its
//! single queue, and for frames of no known connection.

use weir_packet::{Frame, Label, Reason};
use weir_units::{Instant, Rate};

use super::care::{Care, Queueing};
use super::ceiling::{Ceiling, Clock};
use super::heap::Heap;
use super::hosts::Hosts;
use super::longest::{Links, Longest};
use super::node::{Kind, NONE, Node};
use super::ring::{List, Member, Place, Ring, Turn};
use super::split::Split;
use super::store::{Chain, Link, Store, Waiting};
use crate::aqm::{Arriving, Depth, Fate, Leaving, Random, State};

/// Hosts that may wait at a time; hosts whose last frame has gone stay for a round.
const HOSTS: usize = 1 << 18;

/// One queue of a leaf with care.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    pub(super) chain: Chain,
    pub(super) turn: Turn,
    /// The leaf that it is in, if it is anywhere.
    pub(super) leaf: u32,
    /// Its host, where hosts take turns.
    host: u32,
    aqm: State,
    /// When it may send again, where each has a ceiling.
    pub(super) clock: Clock,
    /// The sessions that spoke before and after it.
    pub(super) older: u32,
    pub(super) younger: u32,
    /// When it spoke last, in 2^20 nanoseconds.
    pub(super) spoke: u32,
    rung: u8,
    /// It has an entry in the timer.
    pub(super) timed: bool,
    /// It is a session that has a place.
    pub(super) admitted: bool,
}

const _: () = assert!(size_of::<Queue>() <= 112);

impl Member for Queue {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

/// What a leaf with care knows of its queues.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crowd {
    /// Whose turn it is: queues, or hosts.
    ring: Ring,
    by_host: bool,
    /// Queues that have reached what they may have.
    held: List,
    /// Sessions that wait for a place.
    pub(super) waiting: List,
    /// Frames in these two, which may not leave now.
    away: u32,
    /// The queue with the most bytes, as far as was noticed, and how many it had then.
    fattest: u32,
    fat: u32,
    /// Sessions that have a place.
    pub(super) admitted: u32,
    /// The one of them that has been silent for longest, and the one that spoke last.
    pub(super) oldest: u32,
    pub(super) youngest: u32,
}

impl Default for Crowd {
    fn default() -> Self {
        Crowd {
            ring: Ring::default(),
            by_host: false,
            held: List::default(),
            waiting: List::default(),
            away: 0,
            fattest: NONE,
            fat: 0,
            admitted: 0,
            oldest: NONE,
            youngest: NONE,
        }
    }
}

impl Crowd {
    /// Any session that has a place.
    fn session(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }
}

/// A care as it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub(crate) care: Care,
    /// What one connection may have.
    pub(crate) max: Option<Ceiling>,
}

impl Kept {
    pub(crate) fn new(care: Care) -> Kept {
        let max = care.sessions.filter(|s| s.max < Rate::MAX);
        Kept { care, max: max.map(|s| Ceiling::new(s.max, None)) }
    }
}

/// All frames that wait for one port.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(super) store: Store,
    pub(super) longest: Longest,
    pub(super) cares: Box<[Kept]>,
    pub(super) queues: Split<Queue>,
    /// Queues of connections: those of leaves lie behind them.
    pub(super) flows: u32,
    pub(super) crowds: Vec<Crowd>,
    hosts: Hosts,
    /// Queues that wait for a moment, by when it comes.
    pub(super) timer: Heap,
    random: Random,
    /// Frames that queue management dropped at the head.
    dropped: Chain,
}

/// Room for the queues of so many leaves.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    queues: Vec<Queue>,
    crowds: Vec<Crowd>,
    longest: Vec<Links>,
}

impl Tables {
    pub(crate) fn with_capacity(numbers: usize) -> Tables {
        Tables {
            queues: vec![Queue::default(); numbers],
            crowds: vec![Crowd::default(); numbers],
            longest: vec![Links::default(); numbers],
        }
    }
}

impl Queues {
    /// Tables for the leaves come with the edit that makes them.
    pub(crate) fn new(buffers: usize, flows: usize) -> Queues {
        let flows = u32::try_from(flows).unwrap_or(u32::MAX >> 1).min(u32::MAX >> 1);
        Queues {
            store: Store::new(buffers),
            longest: Longest::new(flows as usize),
            cares: Box::default(),
            queues: Split::new(flows as usize),
            flows,
            crowds: Vec::new(),
            hosts: Hosts::new(4 * buffers.min(HOSTS / 4)),
            timer: Heap::with_capacity(buffers),
            random: Random::new(0),
            dropped: Chain::default(),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.queues.bytes() + self.longest.bytes() + self.crowds.len() * size_of::<Crowd>()
    }

    pub(crate) fn is_plain(&self, care: u16) -> bool {
        self.cares.get(usize::from(care)).is_none_or(|kept| kept.care.is_plain())
    }

    /// The larger tables take over; the smaller ones are left in their place.
    pub(crate) fn move_into(&mut self, tables: &mut Tables) {
        self.queues.move_into(&mut tables.queues);
        self.longest.move_into(&mut tables.longest);
        tables.crowds[..self.crowds.len()].copy_from_slice(&self.crowds);
        std::mem::swap(&mut self.crowds, &mut tables.crowds);
    }

    /// Lets the processor fetch what a frame of this label will need.
    #[inline]
    pub(crate) fn expect(&self, label: &Label) {
        if self.cares.is_empty() {
            return;
        }
        if let Some(queue) = self.queues.get(label.flow.index) {
            std::hint::black_box((queue.leaf, queue.rung));
        }
        if let Some(crowd) = self.crowds.get(label.leaf as usize) {
            std::hint::black_box(crowd.fat);
        }
    }

    /// Lets the processor fetch what a leaf that will be next needs.
    #[inline]
    pub(crate) fn look_ahead(&self, number: u32, node: &Node) {
        if node.is_plain() {
            self.store.look_at(&node.chain);
            return;
        }
        let first = self.crowds.get(number as usize).and_then(|crowd| crowd.ring.any());
        if let Some(queue) = first.and_then(|id| self.queues.get(id)) {
            std::hint::black_box(queue.rung);
            self.store.look_at(&queue.chain);
        }
    }

    /// A frame joins a plain leaf.
    #[inline]
    pub(crate) fn push(&mut self, now: Instant, number: u32, node: &mut Node, came: Came) {
        self.store.push(&mut node.chain, now, came.frame, came.label, false);
        self.longest.grew(self.flows + number, node.chain.frames(), &mut node.ring);
    }

    /// A frame joins a leaf with care; comes back what has to go instead of it, or itself.
    pub(crate) fn push_with_care(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        came: Came,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        // lent out, so that what it says and what it governs can be used at once
        let cares = std::mem::take(&mut self.cares);
        let result = match cares.get(usize::from(node.care)) {
            Some(kept) => self.consider(now, number, node, came, kept),
            None => Err((came.frame, Reason::QueueFull)),
        };
        self.cares = cares;
        result
    }

    fn consider(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        came: Came,
        kept: &Kept,
    ) -> Result<Option<(Waiting, Reason)>, (Frame, Reason)> {
        let care = &kept.care;
        let id = self.queue_of(care, number, &came.label);
        if self.queues[id].leaf != number {
            self.settle(id, number);
        }
        if let Some(sessions) = care.sessions
            && !self.may_speak(now, number, id, sessions)
        {
            return Err((came.frame, Reason::NoSession));
        }
        let queue = &mut self.queues[id];
        let can_mark = care.ecn && came.label.ecn() != 0;
        let frame = Arriving { colour: came.label.colour, can_mark };
        let behind = depth(&queue.chain);
        let fate = care.aqm.arrive(&mut queue.aqm, now, frame, behind, &mut self.random);
        if fate == Fate::Drop {
            return Err((came.frame, Reason::Managed));
        }
        if !self.has_turn(now, id, number, kept, &came.label) {
            return Err((came.frame, Reason::QueueFull));
        }
        let mut lost = None;
        if node.is_full(came.frame.len()) {
            match self.make_room(now, number, node, id, care) {
                Some(waiting) => lost = Some((waiting, Reason::QueueFull)),
                None => return Err((came.frame, Reason::QueueFull)),
            }
        }
        self.join(now, number, node, id, came, fate == Fate::Mark);
        Ok(lost)
    }

    /// Puts a frame into its queue, whatever the limits say.
    fn join(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        id: u32,
        came: Came,
        mark: bool,
    ) {
        let crowd = &mut self.crowds[number as usize];
        let queue = &mut self.queues[id];
        node.chain.count(u16::try_from(came.frame.len()).unwrap_or(u16::MAX));
        self.store.push(&mut queue.chain, now, came.frame, came.label, mark);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            crowd.away += 1;
        }
        self.longest.grew(id, queue.chain.frames(), &mut queue.rung);
        let bytes = queue.chain.bytes();
        if bytes > crowd.fat || crowd.fattest == id {
            (crowd.fattest, crowd.fat) = (id, bytes);
        }
    }

    /// The bytes of a queue, if it is still in this leaf.
    fn bytes_in(&self, id: u32, leaf: u32) -> u32 {
        let queue = &self.queues[id];
        if queue.leaf == leaf { queue.chain.bytes() } else { 0 }
    }

    /// Which queue a frame joins.
    fn queue_of(&self, care: &Care, number: u32, label: &Label) -> u32 {
        let by_flow = care.queue != Queueing::Fifo || care.sessions.is_some();
        if by_flow && label.flow.index < self.flows {
            label.flow.index
        } else {
            self.flows + number
        }
    }

    /// A queue that is empty moves to another leaf, and forgets all of the old one.
    fn settle(&mut self, id: u32, number: u32) {
        debug_assert!(self.queues[id].chain.is_empty(), "frames would change their leaf");
        self.quit(id);
        let queue = &mut self.queues[id];
        let (rung, timed) = (queue.rung, queue.timed);
        *queue = Queue { leaf: number, host: NONE, rung, timed, ..Queue::default() };
    }

    /// An empty queue leaves whatever it is in.
    fn quit(&mut self, id: u32) {
        let Queue { leaf, host, turn, .. } = self.queues[id];
        match turn.place {
            Place::Off => {}
            Place::New | Place::Old => self.leave_ring(leaf, host, id),
            Place::Held => self.crowds[leaf as usize].held.remove(&mut self.queues, id),
            Place::Waiting => self.crowds[leaf as usize].waiting.remove(&mut self.queues, id),
        }
        if self.queues[id].admitted {
            self.end_session(leaf, id);
        }
    }

    fn leave_ring(&mut self, leaf: u32, host: u32, id: u32) {
        let crowd = &mut self.crowds[leaf as usize];
        if host == NONE {
            crowd.ring.leave(&mut self.queues, id);
            return;
        }
        let ring = &mut self.hosts[host].ring;
        ring.leave(&mut self.queues, id);
        self.queues[id].host = NONE;
        if ring.is_empty() {
            crowd.ring.leave(&mut self.hosts, host);
            self.hosts.forget(host);
        }
    }

    /// Lets a queue take its turns, if it has none yet. `false`: there is no place for its host.
    fn has_turn(&mut self, now: Instant, id: u32, number: u32, kept: &Kept, label: &Label) -> bool {
        if self.queues[id].turn.place != Place::Off || self.is_ahead(now, id, kept) {
            return true;
        }
        let crowd = &mut self.crowds[number as usize];
        if !kept.care.is_by_host() {
            crowd.ring.begin(&mut self.queues, id);
            return true;
        }
        let Some(host) = self.hosts.find(number, label.host) else { return false };
        crowd.by_host = true;
        if self.hosts[host].turn().place == Place::Off {
            crowd.ring.begin(&mut self.hosts, host);
        }
        self.hosts[host].ring.begin(&mut self.queues, id);
        self.queues[id].host = host;
        true
    }

    /// A queue that was away takes its turns again, behind all others.
    pub(super) fn resume(&mut self, id: u32) {
        let Queue { leaf, chain, .. } = self.queues[id];
        let crowd = &mut self.crowds[leaf as usize];
        match self.queues[id].turn.place {
            Place::Held => crowd.held.remove(&mut self.queues, id),
            Place::Waiting => crowd.waiting.remove(&mut self.queues, id),
            Place::Off | Place::New | Place::Old => return,
        }
        crowd.away -= chain.frames();
        // sessions are queues of the leaf, not of its hosts
        crowd.ring.resume(&mut self.queues, id);
    }

    /// A queue may not send for now.
    pub(super) fn go_away(&mut self, id: u32, place: Place) {
        let Queue { leaf, host, turn, chain, .. } = self.queues[id];
        if turn.place != Place::Off {
            self.leave_ring(leaf, host, id);
        }
        let crowd = &mut self.crowds[leaf as usize];
        self.queues[id].turn.place = place;
        match place {
            Place::Held => crowd.held.append(&mut self.queues, id),
            Place::Waiting => crowd.waiting.append(&mut self.queues, id),
            Place::Off | Place::New | Place::Old => return,
        }
        crowd.away += chain.frames();
    }

    /// The leaf is full: the fattest of its queues gives its first frame. `None`: that is the
    /// queue which is to grow, and it is alone; so the newcomer has to go.
    fn make_room(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<Waiting> {
        let fattest = self.crowds[number as usize].fattest;
        let is_other =
            fattest != NONE && self.bytes_in(fattest, number) > self.queues[id].chain.bytes();
        let from = if is_other { fattest } else { id };
        care.aqm.overflow(&mut self.queues[from].aqm, now);
        if care.queue == Queueing::Fifo && care.sessions.is_none() {
            return None;
        }
        let (at, _) = self.pop_queue(now, node, from, care)?;
        self.store.take(at)
    }

    /// Takes the first frame of a queue.
    fn pop_queue(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<(u32, Link)> {
        let queue = &mut self.queues[id];
        let (at, link) = self.store.pop(&mut queue.chain)?;
        node.chain.discount(link.len);
        let crowd = &mut self.crowds[queue.leaf as usize];
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            crowd.away -= 1;
        }
        if crowd.fattest == id {
            crowd.fat = queue.chain.bytes();
        }
        if queue.chain.is_empty() {
            care.aqm.emptied(&mut queue.aqm, now);
        }
        Some((at, link))
    }

    /// The frame of a leaf with care that is next; `None` if queue management dropped all that may
    /// leave. `cost` says what a frame costs on the link.
    pub(crate) fn pop(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        cost: impl Fn(&Link) -> u64,
    ) -> Option<(u32, Link)> {
        let cares = std::mem::take(&mut self.cares);
        let kept = cares.get(usize::from(node.care));
        let popped = kept.and_then(|kept| self.pop_with_care(now, number, node, kept, cost));
        self.cares = cares;
        popped
    }

    #[inline]
    fn pop_with_care(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        cost: impl Fn(&Link) -> u64,
    ) -> Option<(u32, Link)> {
        let care = &kept.care;
        loop {
            let host = self.next_host(number, care)?;
            let ring = match host {
                NONE => &mut self.crowds[number as usize].ring,
                host => &mut self.hosts[host].ring,
            };
            let id = ring.next(&mut self.queues)?;
            if self.queues[id].chain.is_empty() {
                self.is_silent(number, host, id);
                continue;
            }
            let Some((at, link)) = self.pop_managed(now, node, id, care) else { continue };
            let bytes = cost(&link);
            let charged = i32::try_from(bytes).unwrap_or(i32::MAX);
            let crowd = &mut self.crowds[number as usize];
            if host == NONE {
                crowd.ring.sent(&mut self.queues, id, charged);
            } else {
                self.hosts[host].ring.sent(&mut self.queues, id, charged);
                crowd.ring.sent(&mut self.hosts, host, charged);
            }
            if let Some(max) = &kept.max {
                self.has_sent(now, id, max, bytes);
            }
            return Some((at, link));
        }
    }

    /// Whose turn it is among hosts; `NONE` where there are none.
    #[inline]
    fn next_host(&mut self, number: u32, care: &Care) -> Option<u32> {
        if !care.is_by_host() {
            return Some(NONE);
        }
        self.crowds[number as usize].ring.next(&mut self.hosts)
    }

    /// The queue whose turn it is has nothing to send.
    fn is_silent(&mut self, number: u32, host: u32, id: u32) {
        let crowd = &mut self.crowds[number as usize];
        if host == NONE {
            crowd.ring.has_nothing(&mut self.queues, id);
            return;
        }
        let ring = &mut self.hosts[host].ring;
        if ring.has_nothing(&mut self.queues, id) {
            self.queues[id].host = NONE;
            if ring.is_empty() {
                crowd.ring.leave(&mut self.hosts, host);
                self.hosts.forget(host);
            }
        }
    }

    /// The first frame of a queue that queue management lets go.
    #[inline]
    fn pop_managed(
        &mut self,
        now: Instant,
        node: &mut Node,
        id: u32,
        care: &Care,
    ) -> Option<(u32, Link)> {
        loop {
            let (at, link) = self.pop_queue(now, node, id, care)?;
            let queue = &mut self.queues[id];
            let can_mark = care.ecn && link.can_mark();
            let frame = Leaving { since: link.since, can_mark };
            let behind = depth(&queue.chain);
            match care.aqm.leave(&mut queue.aqm, now, frame, behind, &mut self.random) {
                Fate::Take => return Some((at, link)),
                Fate::Mark => {
                    self.store.mark(at);
                    return Some((at, link));
                }
                Fate::Drop => self.store.append_one(&mut self.dropped, at),
            }
        }
    }

    /// Makes a leaf plain: all its frames in one chain, those of each queue in their order.
    pub(crate) fn flatten(&mut self, number: u32, node: &mut Node) {
        if node.is_plain() {
            self.longest.forget(self.flows + number, &mut node.ring);
            return;
        }
        node.chain = Chain::default();
        while let Some(id) = self.any_queue(number) {
            let queue = &mut self.queues[id];
            let chain = std::mem::take(&mut queue.chain);
            self.longest.forget(id, &mut queue.rung);
            self.store.splice(&mut node.chain, chain);
            self.quit(id);
        }
        while let Some(id) = self.crowds[number as usize].session() {
            self.end_session(number, id);
        }
        self.crowds[number as usize] = Crowd::default();
        node.kind = Kind::Plain;
    }

    /// A queue of this leaf that is in any list.
    fn any_queue(&self, number: u32) -> Option<u32> {
        let crowd = &self.crowds[number as usize];
        let away = || crowd.held.first().or_else(|| crowd.waiting.first());
        let in_turn = || {
            let first = crowd.ring.any()?;
            if crowd.by_host { self.hosts[first].ring.any() } else { Some(first) }
        };
        away().or_else(in_turn)
    }

    /// Lets all frames of a chain wait in this leaf, whatever its limits say. `relabel` is told of
    /// each.
    pub(crate) fn fill(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        mut chain: Chain,
        mut relabel: impl FnMut(&mut Label, usize),
    ) {
        let cares = std::mem::take(&mut self.cares);
        let kept = cares.get(usize::from(node.care)).filter(|_| !node.is_plain());
        while let Some((at, link)) = self.store.pop(&mut chain) {
            let Some(label) = self.store.label(at) else { continue };
            relabel(label, usize::from(link.len));
            let label = *label;
            match kept {
                None => {
                    self.store.append_one(&mut node.chain, at);
                    let id = self.flows + number;
                    self.longest.grew(id, node.chain.frames(), &mut node.ring);
                }
                Some(kept) => self.put(now, number, node, kept, &label, (at, link)),
            }
        }
        self.cares = cares;
    }

    fn put(
        &mut self,
        now: Instant,
        number: u32,
        node: &mut Node,
        kept: &Kept,
        label: &Label,
        (at, link): (u32, Link),
    ) {
        let id = self.queue_of(&kept.care, number, label);
        if self.queues[id].leaf != number {
            self.settle(id, number);
        }
        if let Some(sessions) = kept.care.sessions {
            let _ = self.may_speak(now, number, id, sessions);
        }
        if !self.has_turn(now, id, number, kept, label) {
            self.store.append_one(&mut self.dropped, at);
            return;
        }
        let queue = &mut self.queues[id];
        self.store.append_one(&mut queue.chain, at);
        node.chain.count(link.len);
        if matches!(queue.turn.place, Place::Held | Place::Waiting) {
            self.crowds[number as usize].away += 1;
        }
        self.longest.grew(id, queue.chain.frames(), &mut queue.rung);
    }

    /// A frame that queue management dropped since the last call.
    pub(crate) fn take_dropped(&mut self) -> Option<Waiting> {
        let (at, _) = self.store.pop(&mut self.dropped)?;
        self.store.take(at)
    }

    /// Frames of a leaf that may leave now.
    #[inline]
    pub(crate) fn ready(&self, number: u32, node: &Node) -> u32 {
        node.chain.frames() - self.crowds[number as usize].away
    }

    /// The longest queue of all gives its first frame; if none has two, that of the frame which
    /// joined last. A leaf that is empty thereby stays a child of its parent until its turn comes.
    #[cold]
    pub(crate) fn longest_pays(
        &mut self,
        now: Instant,
        nodes: &mut [Node],
        joined: &Label,
    ) -> Option<Waiting> {
        let node = nodes.get(joined.leaf as usize)?;
        let own = match self.cares.get(usize::from(node.care)) {
            Some(kept) if !node.is_plain() => self.queue_of(&kept.care, joined.leaf, joined),
            _ => self.flows + joined.leaf,
        };
        let id = self.find_longest(nodes).unwrap_or(own);
        let (at, _) = match self.plain(id, nodes) {
            Some(number) => self.store.pop(&mut nodes[number].chain)?,
            None => {
                let node = &mut nodes[self.queues[id].leaf as usize];
                let care = self.cares.get(usize::from(node.care))?.care;
                self.pop_queue(now, node, id, &care)?
            }
        };
        self.store.take(at)
    }

    /// The plain leaf whose only queue this is.
    fn plain(&self, id: u32, nodes: &[Node]) -> Option<usize> {
        let number = id.checked_sub(self.flows)? as usize;
        nodes.get(number).filter(|node| node.is_plain()).map(|_| number)
    }

    fn find_longest(&mut self, nodes: &mut [Node]) -> Option<u32> {
        let mut longest = std::mem::take(&mut self.longest);
        let found = longest.find(|id, ring| {
            let (frames, is) = match self.plain(id, nodes) {
                Some(n) => (nodes[n].chain.frames(), &mut nodes[n].ring),
                None => {
                    let queue = &mut self.queues[id];
                    (queue.chain.frames(), &mut queue.rung)
                }
            };
            if let Some(ring) = ring {
                *is = ring;
            }
            frames
        });
        self.longest = longest;
        found
    }
}

/// A frame that comes, with its label.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) frame: Frame,
    pub(crate) label: Label,
}

#[inline]
fn depth(chain: &Chain) -> Depth {
    Depth { frames: chain.frames(), bytes: u64::from(chain.bytes()) }
}
