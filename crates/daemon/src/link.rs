//! Control's end of a running link: it knows the policy, prepares changes, and asks the packet
//! thread. Control may wait; the packet thread never does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use weir_engine::{Change, Config, Engine, Layout, Planner, RoundTrips, Snapshot};
use weir_io::Port;
use weir_io::wait::{Wait, now};
use weir_packet::{BySide, Member, Pool};
use weir_policy::Plan;
use weir_units::{ByWay, Rate};
use weir_xdp::{Counts, Heart};

use crate::facts::Facts;
use crate::handover::{Handed, TakenOver};
use crate::mail::{Answer, Ask, Mail, post};
use crate::pulse::Pulse;
use crate::reader::{Reader, Terms};
use crate::wheel::{Stopped, Wheel};

/// A running link.
pub(crate) struct Link {
    /// As the operator wants it, also while weir only watches.
    plan: Arc<Plan>,
    /// How many changes have been sent to the packet thread.
    sent: Arc<AtomicU64>,
    observing: bool,
    planner: Planner,
    layout: Arc<Layout>,
    mail: Mail,
    facts: Arc<Facts>,
    way: &'static str,
    bypass: Option<String>,
    /// Whether the planner has made a change that never reached the engine.
    is_astray: bool,
    /// What the link was last seen to find of its line.
    found: ByWay<Option<Rate>>,
    round_trips: RoundTrips,
    passed: BySide<Option<Counts>>,
    /// What became of the connections of the weir before.
    taken_over: TakenOver,
    thread: Option<std::thread::JoinHandle<Stopped>>,
}

/// What a link is started with.
pub(crate) struct Start {
    pub(crate) plan: Plan,
    pub(crate) observing: bool,
    pub(crate) config: Config,
    pub(crate) pool: Pool,
    pub(crate) ports: BySide<Option<Port>>,
    pub(crate) pulse: Pulse,
    /// How frames come and go, in a word.
    pub(crate) way: &'static str,
    /// The bridge that carries them when weir does not.
    pub(crate) bypass: Option<String>,
    /// What the weir before has left.
    pub(crate) left: Result<Option<Handed>, String>,
    /// Runs on the packet thread before the first turn: pinning, priority.
    pub(crate) settle_in: Box<dyn FnOnce() + Send>,
}

impl Link {
    /// Starts the packet thread. The reader reads what it counts.
    pub(crate) fn start(start: Start) -> Result<(Link, Reader), String> {
        let mut planner = Planner::of(&start.config);
        let first =
            planner.prepare(&shown(&start.plan, start.observing)).map_err(|e| e.to_string())?;
        let layout = first.layout();
        let mut engine = Engine::new(start.config, start.pool, first, now());
        // no frame has come yet
        let taken_over = TakenOver::of(start.left, &mut engine);
        let facts = Arc::new(Facts::default());
        let wait = Wait::new().map_err(|e| format!("nothing to wait on: {e}"))?;
        let ([mail, readers], post) = post(&wait.waker());
        let told = facts.clone();
        let (ports, pulse, settle_in) = (start.ports, start.pulse, start.settle_in);
        let thread = std::thread::Builder::new()
            .name(format!("weir {}", start.plan.name))
            .spawn(move || {
                settle_in();
                Wheel::new(engine, ports, pulse, wait, post, told).run()
            })
            .map_err(|e| format!("no thread for packets: {e}"))?;
        let sent = Arc::new(AtomicU64::new(0));
        let link = Link {
            plan: Arc::new(start.plan),
            sent: sent.clone(),
            observing: start.observing,
            planner,
            layout,
            mail,
            facts,
            way: start.way,
            bypass: start.bypass,
            is_astray: false,
            found: ByWay::default(),
            round_trips: RoundTrips::default(),
            passed: BySide::default(),
            taken_over,
            thread: Some(thread),
        };
        Ok((link, Reader::new(readers, sent)))
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// A number that is another one after each change.
    pub(crate) fn version(&self) -> u64 {
        self.sent.load(SeqCst)
    }

    /// By which policy what is counted now is read.
    pub(crate) fn terms(&self) -> Terms {
        let (plan, layout) = (self.plan.clone(), self.layout.clone());
        Terms { version: self.version(), plan, layout }
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
        self.apply(Arc::new(plan), self.observing)
    }

    /// Stops shaping and only counts, or shapes again.
    pub(crate) fn observe(&mut self, observing: bool) -> Result<(), String> {
        if observing == self.observing {
            return Ok(());
        }
        self.apply(self.plan.clone(), observing)
    }

    fn apply(&mut self, plan: Arc<Plan>, observing: bool) -> Result<(), String> {
        if self.is_astray {
            return Err(
                "a change was lost on its way to the packet thread: restart weir".to_owned()
            );
        }
        let change = self.planner.prepare(&shown(&plan, observing)).map_err(|e| e.to_string())?;
        let layout = change.layout();
        // the planner counts on every change that it has made
        self.is_astray = true;
        // before it is sent: who reads what is counted must not take it for the old policy's
        self.sent.fetch_add(1, SeqCst);
        self.mail.send(Ask::Change(Box::new(change)))?;
        self.is_astray = false;
        self.found = ByWay::default();
        (self.plan, self.observing, self.layout) = (plan, observing, layout);
        let _: Box<Change> = self.mail.answer(|answer| match answer {
            Answer::Changed(change) => Some(change),
            _ => None,
        })?;
        Ok(())
    }

    /// Notes what the link has found of its line, and how long ways take.
    pub(crate) fn has_found(&mut self, totals: &Snapshot) {
        (self.found, self.round_trips) = (totals.found, totals.round_trips);
    }

    /// What the link carries now, where that was found by weir.
    pub(crate) fn found(&self) -> ByWay<Option<Rate>> {
        self.found
    }

    /// How long TCP takes to both sides and back, as seen in passing.
    pub(crate) fn round_trips(&self) -> RoundTrips {
        self.round_trips
    }

    /// What the programs at the ports did with frames, by who looks after them.
    pub(crate) fn has_passed(&mut self, passed: BySide<Option<Counts>>) {
        self.passed = passed;
    }

    /// The same, as it was told last.
    pub(crate) fn passed(&self) -> BySide<Option<Counts>> {
        self.passed
    }

    /// What became of the connections of the weir before.
    pub(crate) const fn taken_over(&self) -> &TakenOver {
        &self.taken_over
    }

    /// Puts a port to use, in place of the one that was there.
    pub(crate) fn put(
        &mut self,
        member: Member,
        port: Port,
        heart: Option<Heart>,
    ) -> Result<(), String> {
        self.mail.send(Ask::Put { member, port: Box::new(port), heart })?;
        self.away()
    }

    /// Takes a port out of use.
    pub(crate) fn take(&mut self, member: Member) -> Result<(), String> {
        self.mail.send(Ask::Take { member })?;
        self.away()
    }

    fn away(&mut self) -> Result<(), String> {
        self.mail.answer(|answer| matches!(answer, Answer::Away).then_some(()))
    }

    /// Lets all frames that wait leave now, and those that come leave at once, whatever the rates
    /// say; only [`Link::stop`] may follow. Returns when nothing waits, or after `patience`.
    pub(crate) fn empty(&mut self, patience: Duration) {
        let emptied = |answer| matches!(answer, Answer::Emptied).then_some(());
        // what still waits then is overtaken by what the bridge carries, as before
        let _ =
            self.mail.send(Ask::Empty).and_then(|()| self.mail.answer_within(patience, emptied));
    }

    /// Stops the packet thread and hands back what it had.
    pub(crate) fn stop(mut self) -> Option<Stopped> {
        let _ = self.mail.send(Ask::Stop);
        self.thread.take()?.join().ok()
    }
}

/// The policy as the packet thread gets it.
fn shown(plan: &Plan, observing: bool) -> Plan {
    if observing { plan.observing() } else { plan.clone() }
}
