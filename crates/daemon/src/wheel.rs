//! The packet thread: it drives a link, poll after poll, over the ports that it has. It never waits
//! for control: what control asks lies in a queue that is looked at once a poll, and what does not
//! fit into the answer's queue waits here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use weir_engine::{Driver, Engine, Exchange};
use weir_io::wait::{Wait, now};
use weir_io::{Port, PortState};
use weir_packet::{Burst, BySide, Member, Pool, Side};
use weir_units::{Instant, Span, limits};
use weir_xdp::Heart;

use crate::facts::Facts;
use crate::mail::{Answer, Ask, LETTERS, Post, Who};
use crate::pulse::Pulse;

/// The longest sleep: the pulse must not stop when there is nothing to carry.
const SLEEP: Span = Span::from_ms(10);

/// How soon a port that is still sending is asked again.
const AGAIN: Span = Span::from_us(50);

/// Without a poll for so long frames have gone past weir.
const STALE: Span = Span::from_ms(limits::STALE_MS);

/// Bursts that a port may have kept from before a standstill.
const OLD_BURSTS: usize = 4 * limits::XSK_RING_FRAMES / limits::BURST_FRAMES;

/// How far the driver's time may be moved on, so that no connection is forgotten for that: what
/// would wait for longer stays where it is.
const MOST_AHEAD: Span = Span::from_secs(2);

/// What a packet thread had that has ended.
pub(crate) struct Stopped {
    /// With what no port could take yet.
    pub(crate) driver: Driver,
    pub(crate) ports: BySide<Option<Port>>,
    /// How far the driver's time is ahead of ours.
    pub(crate) ahead: Span,
}

/// How long nothing must have come before the bridge begins to carry: what comes a moment before
/// would be overtaken.
const QUIET: Span = Span::from_us(300);

/// What is seen of the end that control has announced.
#[derive(Debug, Default)]
struct Ending {
    /// Since when no frame has moved.
    quiet_since: Instant,
    /// Whether control knows that nothing waits any more.
    is_told: bool,
}

/// One link at work.
pub(crate) struct Wheel {
    driver: Driver,
    ports: Ports,
    wait: Wait,
    post: Post,
    facts: Arc<Facts>,
    /// Answers that nobody has fetched yet, by [`Who`] asked.
    unsent: [VecDeque<Answer>; 2],
    /// Control has announced the end.
    ending: Option<Ending>,
    /// How far the driver's time is ahead of ours.
    ahead: Span,
    stop: bool,
}

/// What the driver takes frames from and hands them to.
struct Ports {
    /// A port whose interface is gone is away until control brings it back.
    open: BySide<Option<Port>>,
    pulse: Pulse,
    facts: Arc<Facts>,
}

impl Exchange for Ports {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        let Some(open) = &mut self.open[port.side] else { return 0 };
        let frames = open.receive(pool, into);
        if let Some(frame) = into.frames().first() {
            self.facts.sample(port.side, pool.bytes(frame));
        }
        if self.pulse.is_bypassed() {
            // the bridge has carried these already
            self.facts.stood_aside(into.len());
            into.drain().for_each(|frame| pool.give(frame));
        }
        frames
    }

    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst) {
        let Some(open) = &mut self.open[port.side] else {
            // without an interface there is nowhere to go, and waiting would only fill queues with
            // what nobody wants any more
            self.facts.unsent(out.len());
            out.drain().for_each(|frame| pool.give(frame));
            return;
        };
        if !out.is_empty() {
            open.transmit(pool, out);
        }
        open.settle(pool);
    }
}

impl Ports {
    /// Whether a port has no buffer to receive into: the kernel would drop all that comes. Without
    /// a pulse it passes by instead.
    fn are_starved(&self) -> bool {
        let mut is_one = false;
        for side in Side::ALL {
            let starves = self.open[side].as_ref().is_some_and(Port::is_starved);
            self.facts.starves(side, starves);
            is_one |= starves;
        }
        is_one
    }

    /// What came before a standstill is let go.
    fn let_old_frames_go(&mut self, pool: &mut Pool) {
        let mut old = Burst::new();
        for port in self.open.values_mut().flatten() {
            for _ in 0..OLD_BURSTS {
                if port.receive(pool, &mut old) == 0 {
                    break;
                }
                self.facts.stood_aside(old.len());
                old.drain().for_each(|frame| pool.give(frame));
            }
        }
    }
}

impl Wheel {
    pub(crate) fn new(
        engine: Engine,
        open: BySide<Option<Port>>,
        pulse: Pulse,
        wait: Wait,
        post: Post,
        facts: Arc<Facts>,
    ) -> Wheel {
        Wheel {
            driver: Driver::new(engine, &Member::ONE_EACH),
            ports: Ports { open, pulse, facts: facts.clone() },
            wait,
            post,
            facts,
            unsent: [(); 2].map(|()| VecDeque::with_capacity(LETTERS)),
            ending: None,
            ahead: Span::ZERO,
            stop: false,
        }
    }

    /// Turns until control says stop.
    pub(crate) fn run(mut self) -> Stopped {
        let mut last = now();
        let mut before = last;
        loop {
            let now = now();
            self.facts.turned(now, now.since(last));
            if now.since(before) > STALE && self.ports.pulse.has_bypass {
                self.let_old_frames_go(now);
            }
            before = now;
            if !self.ports.are_starved() {
                self.ports.pulse.beat(now);
            }
            let mut has_moved = self.driver.poll(now + self.ahead, &mut self.ports);
            has_moved |= self.nears_the_end(now, has_moved);
            self.mail();
            if self.stop {
                let Wheel { driver, ports, ahead, .. } = self;
                return Stopped { driver, ports: ports.open, ahead };
            }
            last = now;
            if !has_moved {
                // the time asleep is no lateness: it is counted from the moment we asked for
                last = self.sleep(now);
            }
        }
    }

    /// After a standstill: what came before it has been overtaken by what the kernel has carried
    /// meanwhile, and would only arrive late and out of order.
    #[cold]
    fn let_old_frames_go(&mut self, now: Instant) {
        self.facts.stood_aside(self.driver.forget(now + self.ahead));
        self.ports.let_old_frames_go(self.driver.engine_mut().pool_mut());
    }

    /// Before the end, moves the driver's time on to the moment at which the next frame may leave.
    /// Its rates and its order hold by that time, so nothing of what it knows is another than it
    /// would be a moment later. When nothing waits and nothing comes, frames go past weir from now
    /// on. Returns whether another turn is to follow at once.
    fn nears_the_end(&mut self, now: Instant, has_moved: bool) -> bool {
        let Some(ending) = &mut self.ending else { return false };
        if has_moved || ending.quiet_since == Instant::ZERO {
            ending.quiet_since = now;
        }
        match self.driver.next_at(now + self.ahead) {
            // a port that takes no more is asked again soon
            Some(_) if self.driver.unsent() > 0 => false,
            Some(next) if next.since(now) <= MOST_AHEAD => {
                self.ahead = next.since(now).max(self.ahead);
                true
            }
            Some(_) => false,
            None => {
                if !ending.is_told && now.since(ending.quiet_since) >= QUIET {
                    ending.is_told = true;
                    self.ports.pulse.hearts.values().flatten().for_each(|heart| heart.take(false));
                    self.answer(Who::Link, Answer::Emptied);
                }
                false
            }
        }
    }

    /// Sleeps until a frame comes, one may leave, or control calls. Returns when it meant to wake.
    fn sleep(&mut self, now: Instant) -> Instant {
        let open = || self.ports.open.values().flatten();
        let next = self.driver.next_at(now + self.ahead).map(|at| at - self.ahead);
        let mut until = next.map_or(now + SLEEP, |at| at.min(now + SLEEP));
        if open().any(Port::is_sending) {
            until = until.min(now + AGAIN);
        }
        if self.ending.as_ref().is_some_and(|ending| !ending.is_told) {
            until = until.min(now + QUIET);
        }
        if until > now {
            // a wait that fails is a poll that comes at once
            let _ = self.wait.wait(open().filter_map(Port::fd), Some(until.since(now)));
        }
        // woken early by a frame: no lateness either
        until.min(weir_io::wait::now())
    }

    /// Answers what control asked, one letter a poll.
    fn mail(&mut self) {
        if let Some(change) = self.driver.changed() {
            self.answer(Who::Link, Answer::Changed(change));
        }
        for who in [Who::Link, Who::Reader] {
            let unsent = &mut self.unsent[who as usize];
            let answers = &self.post.answers[who as usize];
            while let Some(answer) = unsent.pop_front() {
                match answers.try_send(answer) {
                    Ok(()) => {}
                    Err(TrySendError::Full(answer)) => {
                        unsent.push_front(answer);
                        break;
                    }
                    // control is gone, and with it the whole program; a reader may go before
                    Err(TrySendError::Disconnected(_)) => self.stop |= who == Who::Link,
                }
            }
        }
        // a change is done before the next letter is opened: the order of letters is the law
        let is_full = |unsent: &VecDeque<Answer>| unsent.len() == LETTERS;
        if self.driver.is_changing() || self.unsent.iter().any(is_full) {
            return;
        }
        if let Ok((who, ask)) = self.post.asks.try_recv() {
            self.open(who, ask);
        }
    }

    fn answer(&mut self, who: Who, answer: Answer) {
        self.unsent[who as usize].push_back(answer);
    }

    fn open(&mut self, who: Who, ask: Ask) {
        let engine = self.driver.engine();
        let answer = match ask {
            Ask::Change(change) => {
                self.driver.change(change);
                return;
            }
            Ask::Look { cursor, mut slice } => {
                let next = engine.snapshot(cursor, &mut slice);
                Answer::Slice { next, slice }
            }
            Ask::Ports => {
                let mut state = BySide { lan: PortState::Gone, wan: PortState::Gone };
                let mut counters = BySide::default();
                for side in Side::ALL {
                    if let Some(port) = &mut self.ports.open[side] {
                        state[side] = port.state();
                        counters[side] = Some(port.counters());
                    }
                }
                Answer::Ports { state, counters, flows: engine.classifier().flows() }
            }
            Ask::Put { member, port, heart } => self.put(member, Some(*port), heart),
            Ask::Take { member } => self.put(member, None, None),
            Ask::Empty => {
                self.ending = Some(Ending::default());
                return;
            }
            Ask::Stop => {
                self.stop = true;
                return;
            }
        };
        self.answer(who, answer);
    }

    /// A port in place of another, which gives back the buffers that the kernel had of it.
    fn put(&mut self, member: Member, port: Option<Port>, heart: Option<Heart>) -> Answer {
        self.ports.pulse.hearts[member.side] = heart;
        if let Some(old) = std::mem::replace(&mut self.ports.open[member.side], port) {
            let lost = old.close(self.driver.engine_mut().pool_mut());
            self.facts.lost(lost);
        }
        Answer::Away
    }
}
