//! The packet thread: it joins the two ports of a link with its engine, turn after turn. It never
//! waits for control: what control asks lies in a queue that is looked at once a turn, and what
//! does not fit into the answer's queue waits here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use weir_engine::{Change, Engine};
use weir_io::wait::{Wait, now};
use weir_io::{Port, PortState};
use weir_packet::{Burst, Side};
use weir_units::{Instant, Span, limits};

use crate::facts::Facts;
use crate::mail::{Answer, Ask, LETTERS, Post, Who};
use crate::pulse::Pulse;

/// Bursts that one port may hand in during a turn before the other one is looked at.
const BURSTS: usize = 4;

/// The longest sleep: the pulse must not stop when there is nothing to carry.
const SLEEP: Span = Span::from_ms(10);

/// How soon a port that took nothing is asked again.
const AGAIN: Span = Span::from_us(50);

/// Without a turn for so long frames have gone past weir.
const STALE: Span = Span::from_ms(limits::STALE_MS);

/// Bursts that a port may have kept from before a standstill.
const OLD_BURSTS: usize = 4 * limits::XSK_RING_FRAMES / limits::BURST_FRAMES;

/// One link at work.
pub(crate) struct Wheel {
    engine: Engine,
    /// By side; a port whose interface is gone is away until control brings it back.
    ports: [Option<Port>; 2],
    pulse: Pulse,
    wait: Wait,
    post: Post,
    facts: Arc<Facts>,
    state: State,
}

/// What a turn leaves for the next.
#[derive(Default)]
struct State {
    into: Burst,
    /// Frames that a port could not take yet.
    out: [Burst; 2],
    change: Option<Box<Change>>,
    /// Answers that nobody has fetched yet, by [`Who`] asked.
    unsent: [VecDeque<Answer>; 2],
    stop: bool,
}

const SIDES: [Side; 2] = [Side::Lan, Side::Wan];

impl Wheel {
    pub(crate) fn new(
        engine: Engine,
        ports: [Option<Port>; 2],
        pulse: Pulse,
        wait: Wait,
        post: Post,
        facts: Arc<Facts>,
    ) -> Wheel {
        let unsent = [(); 2].map(|()| VecDeque::with_capacity(LETTERS));
        let state = State { unsent, ..State::default() };
        Wheel { engine, ports, pulse, wait, post, facts, state }
    }

    /// Turns until control says stop, and gives the engine and the ports back.
    pub(crate) fn run(mut self) -> (Engine, [Option<Port>; 2]) {
        let mut last = now();
        let mut before = last;
        loop {
            let now = now();
            self.facts.turned(now, now.since(last));
            if now.since(before) > STALE && self.pulse.has_bypass {
                self.let_old_frames_go(now);
            }
            before = now;
            if !self.is_starved() {
                self.pulse.beat(now);
            }
            let moved = self.turn(now);
            self.mail(now);
            if self.state.stop {
                return (self.engine, self.ports);
            }
            last = now;
            if !moved {
                // the time asleep is no lateness: it is counted from the moment we asked for
                last = self.sleep(now);
            }
        }
    }

    /// One turn: what came goes into the engine, what may leave goes out. Whether a frame moved.
    fn turn(&mut self, now: Instant) -> bool {
        let mut moved = false;
        for side in SIDES {
            moved |= self.receive(now, side);
        }
        for side in SIDES {
            moved |= self.transmit(now, side);
        }
        self.engine.age(now);
        moved
    }

    /// After a standstill: what came before it has been overtaken by what the kernel has carried
    /// meanwhile, and would only arrive late and out of order.
    #[cold]
    fn let_old_frames_go(&mut self, now: Instant) {
        let Wheel { engine, ports, facts, state, .. } = self;
        engine.forget_waiting(now);
        for out in &mut state.out {
            facts.stood_aside(out.len());
            out.drain().for_each(|frame| engine.pool_mut().give(frame));
        }
        for port in ports.iter_mut().flatten() {
            for _ in 0..OLD_BURSTS {
                if port.receive(engine.pool_mut(), &mut state.into) == 0 {
                    break;
                }
                facts.stood_aside(state.into.len());
                state.into.drain().for_each(|frame| engine.pool_mut().give(frame));
            }
        }
    }

    /// Whether a port has no buffer to receive into: the kernel would drop all that comes. Without
    /// a pulse it passes by instead.
    fn is_starved(&self) -> bool {
        let mut is_one = false;
        for side in SIDES {
            let starves = self.ports[side as usize].as_ref().is_some_and(Port::is_starved);
            self.facts.starves(side, starves);
            is_one |= starves;
        }
        is_one
    }

    fn receive(&mut self, now: Instant, side: Side) -> bool {
        let Some(port) = &mut self.ports[side as usize] else { return false };
        let mut moved = false;
        for _ in 0..BURSTS {
            if port.receive(self.engine.pool_mut(), &mut self.state.into) == 0 {
                break;
            }
            moved = true;
            if let Some(frame) = self.state.into.frames().first() {
                self.facts.sample(side, self.engine.pool().bytes(frame));
            }
            if self.pulse.is_bypassed() {
                // the bridge has carried these already
                let (into, engine) = (&mut self.state.into, &mut self.engine);
                self.facts.stood_aside(into.len());
                into.drain().for_each(|frame| engine.pool_mut().give(frame));
            } else {
                self.engine.receive(now, side, &mut self.state.into);
            }
        }
        moved
    }

    fn transmit(&mut self, now: Instant, side: Side) -> bool {
        let out = &mut self.state.out[side as usize];
        let mut moved = false;
        loop {
            if out.is_empty() {
                self.engine.transmit(now, side, out);
            }
            if out.is_empty() {
                break;
            }
            let before = out.len();
            match &mut self.ports[side as usize] {
                Some(port) => port.transmit(self.engine.pool_mut(), out),
                // without an interface there is nowhere to go, and waiting would only fill queues
                // with what nobody wants any more
                None => {
                    self.facts.unsent(out.len());
                    out.drain().for_each(|frame| self.engine.pool_mut().give(frame));
                }
            }
            moved |= out.len() < before;
            if !out.is_empty() {
                break;
            }
        }
        if let Some(port) = &mut self.ports[side as usize] {
            port.settle(self.engine.pool_mut());
        }
        moved
    }

    /// Sleeps until a frame comes, one may leave, or control calls. Returns when it meant to wake.
    fn sleep(&mut self, now: Instant) -> Instant {
        // a change of the policy goes on with each turn
        let mut until = if self.state.change.is_some() { now } else { now + SLEEP };
        if let Some(at) = self.engine.next_wakeup() {
            until = until.min(at);
        }
        if self.state.out.iter().any(|out| !out.is_empty())
            || self.ports.iter().flatten().any(Port::is_sending)
        {
            until = until.min(now + AGAIN);
        }
        if until > now {
            let fds = self.ports.iter().flatten().filter_map(Port::fd);
            // a wait that fails is a turn that comes at once
            let _ = self.wait.wait(fds, Some(until.since(now)));
        }
        // woken early by a frame: no lateness either
        until.min(weir_io::wait::now())
    }

    /// Answers what control asked, one letter a turn.
    fn mail(&mut self, now: Instant) {
        if let Some(mut change) = self.state.change.take() {
            match self.engine.apply(now, &mut change) {
                true => self.answer(Who::Link, Answer::Changed(change)),
                false => self.state.change = Some(change),
            }
        }
        for who in [Who::Link, Who::Reader] {
            let unsent = &mut self.state.unsent[who as usize];
            let answers = &self.post.answers[who as usize];
            while let Some(answer) = unsent.pop_front() {
                match answers.try_send(answer) {
                    Ok(()) => {}
                    Err(TrySendError::Full(answer)) => {
                        unsent.push_front(answer);
                        break;
                    }
                    // control is gone, and with it the whole program; a reader may go before
                    Err(TrySendError::Disconnected(_)) => self.state.stop |= who == Who::Link,
                }
            }
        }
        // a change is done before the next letter is opened: the order of letters is the law
        let is_full = |unsent: &VecDeque<Answer>| unsent.len() == LETTERS;
        if self.state.change.is_some() || self.state.unsent.iter().any(is_full) {
            return;
        }
        if let Ok((who, ask)) = self.post.asks.try_recv() {
            self.open(now, who, ask);
        }
    }

    fn answer(&mut self, who: Who, answer: Answer) {
        self.state.unsent[who as usize].push_back(answer);
    }

    fn open(&mut self, now: Instant, who: Who, ask: Ask) {
        let answer = match ask {
            Ask::Limit { limit } => {
                self.engine.limits(now, &[limit]);
                return;
            }
            Ask::Change(change) => {
                self.state.change = Some(change);
                return;
            }
            Ask::Look { cursor, mut slice } => {
                let next = self.engine.snapshot(cursor, &mut slice);
                Answer::Slice { next, slice }
            }
            Ask::Ports => {
                let mut state = [PortState::Gone; 2];
                let mut counters = [None; 2];
                for side in SIDES {
                    if let Some(port) = &mut self.ports[side as usize] {
                        state[side as usize] = port.state();
                        counters[side as usize] = Some(port.counters());
                    }
                }
                Answer::Ports { state, counters, flows: self.engine.classifier().flows() }
            }
            Ask::Put { side, port, heart } => {
                self.pulse.hearts[side as usize] = heart;
                let old = self.ports[side as usize].replace(*port);
                self.put_away(old);
                Answer::Away
            }
            Ask::Take { side } => {
                self.pulse.hearts[side as usize] = None;
                let old = self.ports[side as usize].take();
                self.put_away(old);
                Answer::Away
            }
            Ask::Stop => {
                self.state.stop = true;
                return;
            }
        };
        self.answer(who, answer);
    }

    /// A port that is not used any more gives back the buffers that the kernel had of it.
    fn put_away(&mut self, port: Option<Port>) {
        if let Some(port) = port {
            let lost = port.close(self.engine.pool_mut());
            self.facts.lost(lost);
        }
    }
}
