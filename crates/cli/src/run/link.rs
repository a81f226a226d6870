//! Control's end of a running link: it knows the policy, prepares changes, and asks the packet
//! thread. Control may wait; the packet thread never does.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use weir_engine::{
    Books, Change, Config, Engine, Layout, Margin, Planner, Report, RoundTrips, Snapshot,
};
use weir_io::wait::{Wait, Waker, now};
use weir_io::{Port, PortCounters, PortState};
use weir_packet::{Pool, Side};
use weir_policy::Plan;
use weir_units::Rate;
use weir_xdp::{Counts, Heart};

use super::facts::Facts;
use super::mail::{Answer, Ask, LETTERS};
use super::pulse::Pulse;
use super::wheel::Wheel;

/// How long the packet thread may take to answer before it is said to be stuck.
const PATIENCE: Duration = Duration::from_secs(5);

/// The cursor behind a slice of the books, and the slice.
type Slice = (Option<u32>, Box<Snapshot>);

/// How the ports of a link are.
pub(crate) struct Ports {
    pub(crate) state: [PortState; 2],
    pub(crate) counters: [Option<PortCounters>; 2],
    /// Connections that are known.
    pub(crate) flows: usize,
    /// What the programs at ports of AF_XDP did with frames.
    pub(crate) passed: [Option<Counts>; 2],
}

/// A running link.
pub(crate) struct Link {
    /// As the operator wants it, also while weir only watches.
    plan: Plan,
    /// How many plans it has had.
    version: u64,
    observing: bool,
    planner: Planner,
    /// Finds the rate towards each side, where the policy leaves that to weir.
    margins: [Option<Margin>; 2],
    layout: Arc<Layout>,
    asks: SyncSender<Ask>,
    answers: Receiver<Answer>,
    waker: Waker,
    facts: Arc<Facts>,
    way: &'static str,
    bypass: Option<String>,
    /// Whether the planner has made a change that never reached the engine.
    is_astray: bool,
    found: [Option<Rate>; 2],
    round_trips: RoundTrips,
    passed: [Option<Counts>; 2],
    /// Answers that were given up on and may still come.
    owed: usize,
    thread: Option<std::thread::JoinHandle<(Engine, [Option<Port>; 2])>>,
}

/// What a link is started with.
pub(crate) struct Start {
    pub(crate) plan: Plan,
    pub(crate) observing: bool,
    pub(crate) config: Config,
    pub(crate) pool: Pool,
    pub(crate) ports: [Option<Port>; 2],
    pub(crate) pulse: Pulse,
    /// How frames come and go, in a word.
    pub(crate) way: &'static str,
    /// The bridge that carries them when weir does not.
    pub(crate) bypass: Option<String>,
    /// Runs on the packet thread before the first turn: pinning, priority.
    pub(crate) settle_in: Box<dyn FnOnce() + Send>,
}

impl Link {
    /// Starts the packet thread.
    pub(crate) fn start(start: Start) -> Result<Link, String> {
        let mut planner = Planner::of(&start.config);
        let first =
            planner.prepare(&shown(&start.plan, start.observing)).map_err(|e| e.to_string())?;
        let layout = first.layout();
        let margins = [Side::Lan, Side::Wan].map(|side| Margin::of(&start.plan, side));
        let engine = Engine::new(start.config, start.pool, first, now());
        let (asks, inbox) = sync_channel(LETTERS);
        let (outbox, answers) = sync_channel(LETTERS);
        let facts = Arc::new(Facts::default());
        let wait = Wait::new().map_err(|e| format!("nothing to wait on: {e}"))?;
        let waker = wait.waker();
        let told = facts.clone();
        let (ports, pulse, settle_in) = (start.ports, start.pulse, start.settle_in);
        let thread = std::thread::Builder::new()
            .name(format!("weir {}", start.plan.name))
            .spawn(move || {
                settle_in();
                Wheel::new(engine, ports, pulse, wait, (inbox, outbox), told).run()
            })
            .map_err(|e| format!("no thread for packets: {e}"))?;
        Ok(Link {
            plan: start.plan,
            version: 0,
            observing: start.observing,
            planner,
            margins,
            layout,
            asks,
            answers,
            waker,
            facts,
            way: start.way,
            bypass: start.bypass,
            is_astray: false,
            found: [None; 2],
            round_trips: RoundTrips::default(),
            passed: [None, None],
            owed: 0,
            thread: Some(thread),
        })
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A number that is another one after each change.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn way(&self) -> &'static str {
        self.way
    }

    pub(crate) fn bypass(&self) -> Option<&str> {
        self.bypass.as_deref()
    }

    pub(crate) fn is_observing(&self) -> bool {
        self.observing
    }

    pub(crate) fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// Whether the packet thread still turns.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Changes the policy between two packets. Nothing has changed if it fails, unless it says that
    /// the packet thread is late: then it will be in effect when that turns again.
    pub(crate) fn change_to(&mut self, plan: Plan) -> Result<(), String> {
        self.apply(plan, self.observing)
    }

    /// Stops shaping and only counts, or shapes again.
    pub(crate) fn observe(&mut self, observing: bool) -> Result<(), String> {
        if observing == self.observing {
            return Ok(());
        }
        self.apply(self.plan.clone(), observing)
    }

    fn apply(&mut self, plan: Plan, observing: bool) -> Result<(), String> {
        if self.is_astray {
            return Err(
                "a change was lost on its way to the packet thread: restart weir".to_owned()
            );
        }
        let change = self.planner.prepare(&shown(&plan, observing)).map_err(|e| e.to_string())?;
        let layout = change.layout();
        // the planner counts on every change that it has made
        self.is_astray = true;
        self.send(Ask::Change(Box::new(change)))?;
        self.is_astray = false;
        for (margin, side) in self.margins.iter_mut().zip([Side::Lan, Side::Wan]) {
            *margin = Margin::after(margin.take(), &plan, side);
        }
        (self.plan, self.observing, self.layout) = (plan, observing, layout);
        self.version += 1;
        let _: Box<Change> = self.answer(|answer| match answer {
            Answer::Changed(change) => Some(change),
            _ => None,
        })?;
        Ok(())
    }

    /// The books as they are now, slice by slice while traffic flows.
    pub(crate) fn books(&mut self) -> Result<Books, String> {
        let mut books = Books::default();
        let mut cursor = 0;
        let mut slice = Box::new(Snapshot::with_room());
        loop {
            let (next, filled) = self.slice(cursor, slice)?;
            books.add(&filled);
            match next {
                Some(from) => (cursor, slice) = (from, filled),
                None => return Ok(books),
            }
        }
    }

    fn slice(&mut self, cursor: u32, slice: Box<Snapshot>) -> Result<Slice, String> {
        self.send(Ask::Look { cursor, slice })?;
        self.answer(|answer| match answer {
            Answer::Slice { next, slice } => Some((next, slice)),
            _ => None,
        })
    }

    /// Whether a rate is found.
    pub(crate) fn finds(&self) -> bool {
        self.margins.iter().any(Option::is_some) && !self.observing && self.is_alive()
    }

    /// Lets rates follow the line, where the policy leaves that to weir. To be called each
    /// [`Margin::CADENCE`] then.
    pub(crate) fn follow_the_line(&mut self) -> Result<(), String> {
        let slice = self.slice(u32::MAX, Box::new(Snapshot::default()))?.1;
        self.round_trips = slice.round_trips;
        for at in 0..self.margins.len() {
            if let Some(margin) = self.margins[at].as_mut().filter(|_| !self.observing) {
                let limit = margin.follow(now(), &slice);
                self.found[at] = Some(limit.2);
                self.send(Ask::Limit { limit })?;
            }
        }
        Ok(())
    }

    /// What the link carries towards each side now, where that was found by weir.
    pub(crate) fn found(&self) -> [Option<Rate>; 2] {
        [0, 1].map(|at| self.found[at].filter(|_| self.margins[at].is_some()))
    }

    /// How long TCP takes to both sides and back, as seen in passing.
    pub(crate) fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    /// The books by class.
    pub(crate) fn report(&mut self) -> Result<Report, String> {
        let books = self.books()?;
        Ok(Report::from_books(&books, &self.plan, &self.layout))
    }

    /// How the ports are.
    pub(crate) fn ports(&mut self) -> Result<Ports, String> {
        self.send(Ask::Ports)?;
        let passed = self.passed;
        self.answer(|answer| match answer {
            Answer::Ports { state, counters, flows } => {
                Some(Ports { state, counters, flows, passed })
            }
            _ => None,
        })
    }

    /// What the programs at the ports did with frames, by who looks after them.
    pub(crate) fn has_passed(&mut self, passed: [Option<Counts>; 2]) {
        self.passed = passed;
    }

    /// Puts a port to use, in place of the one that was there.
    pub(crate) fn put(
        &mut self,
        side: Side,
        port: Port,
        heart: Option<Heart>,
    ) -> Result<(), String> {
        self.send(Ask::Put { side, port: Box::new(port), heart })?;
        self.away()
    }

    /// Takes a port out of use.
    pub(crate) fn take(&mut self, side: Side) -> Result<(), String> {
        self.send(Ask::Take { side })?;
        self.away()
    }

    fn away(&mut self) -> Result<(), String> {
        self.answer(|answer| matches!(answer, Answer::Away).then_some(()))
    }

    fn send(&mut self, ask: Ask) -> Result<(), String> {
        match self.asks.try_send(ask) {
            Ok(()) => {
                self.waker.call();
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                Err("the packet thread does not open its mail".to_owned())
            }
            Err(TrySendError::Disconnected(_)) => Err("the packet thread has ended".to_owned()),
        }
    }

    fn answer<T>(&mut self, wanted: impl Fn(Answer) -> Option<T>) -> Result<T, String> {
        loop {
            match self.answers.recv_timeout(PATIENCE) {
                Ok(_) if self.owed > 0 => self.owed -= 1,
                Ok(answer) => {
                    return wanted(answer).ok_or_else(|| "an answer to no question".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.owed += 1;
                    return Err(format!("the packet thread has not answered for {PATIENCE:?}"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the packet thread has ended".to_owned());
                }
            }
        }
    }

    /// Stops the packet thread and hands back what it had.
    pub(crate) fn stop(mut self) -> Option<(Engine, [Option<Port>; 2])> {
        let _ = self.send(Ask::Stop);
        self.thread.take()?.join().ok()
    }
}

/// The policy as the packet thread gets it.
fn shown(plan: &Plan, observing: bool) -> Plan {
    if observing { plan.observing() } else { plan.clone() }
}
