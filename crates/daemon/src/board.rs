//! What is told of a running link to whoever asks, without waiting for it: control writes down what
//! it knows whenever that may have changed, a sampler what the packet thread has counted when
//! somebody wants it. Who asks reads the board, and holds no lock for longer than a copy takes.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weir_control::metrics::Times;
use weir_control::{Mode, Packets, Refused, Status, Stored, Tree, metrics};
use weir_engine::{Report, RoundTrips};
use weir_io::wait::now;
use weir_packet::BySide;
use weir_units::{ByWay, Instant, Rate, Span, limits};
use weir_xdp::Counts;

use crate::answers;

use crate::desk::Before;
use crate::facts::Facts;
use crate::handover::TakenOver;
use crate::reader::{Ports, Reader, Terms};
use crate::revision::Revision;
use crate::trouble::Trouble;

/// What control knows of the link.
pub(crate) struct Told {
    pub(crate) revision: Arc<Revision>,
    /// Where the way back leads; the same unless one waits for its confirmation.
    pub(crate) confirmed: Arc<Revision>,
    pub(crate) is_observing: bool,
    pub(crate) way: &'static str,
    pub(crate) bypass: Option<String>,
    pub(crate) file: String,
    pub(crate) started: Instant,
    /// Until when what is in effect must be confirmed, and what comes back otherwise.
    pub(crate) waits: Option<(Instant, u64)>,
    pub(crate) history: Stored,
    pub(crate) troubles: Vec<Trouble>,
    pub(crate) is_alive: bool,
    pub(crate) found: ByWay<Option<Rate>>,
    pub(crate) round_trips: RoundTrips,
    /// What the programs at the ports did with frames.
    pub(crate) passed: BySide<Option<Counts>>,
    /// Connections of the weir before.
    pub(crate) taken_over: TakenOver,
    pub(crate) terms: Terms,
}

impl Told {
    /// What a policy that comes now is read over.
    pub(crate) fn before(&self) -> Before {
        Before { now: self.revision.clone(), good: self.confirmed.clone() }
    }
}

/// How the link was when somebody last looked.
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) ports: Result<Ports, String>,
    pub(crate) packets: Packets,
    pub(crate) longest_gap: Span,
}

impl Look {
    /// Asks the packet thread; `is_alive` tells whether it turns.
    pub(crate) fn of(reader: &mut Reader, facts: &Facts, is_alive: bool, now: Instant) -> Look {
        Look {
            at: now,
            ports: reader.ports(),
            packets: answers::packets(facts, is_alive, now),
            longest_gap: facts.longest_gap(),
        }
    }
}

/// What the classes had got when somebody last counted.
pub(crate) struct Counted {
    pub(crate) at: Instant,
    /// All of them, also those that got nothing.
    pub(crate) tree: Result<Tree, String>,
}

impl Counted {
    /// What was read under these terms.
    pub(crate) fn of(report: Result<Report, String>, terms: &Terms, now: Instant) -> Counted {
        let tree = report.map(|report| answers::tree(&report, &terms.plan, now));
        Counted { at: now, tree }
    }
}

/// What is younger is told as it is.
const FRESH: Span = Span::from_ms(limits::SNAPSHOT_MS);
/// What is older is said to be.
const STALE: Span = Span::from_secs(3);
/// How long one who asks waits for the sampler.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// Where the newest of a kind hangs.
struct Slot<T> {
    newest: Mutex<Option<Arc<T>>>,
    came: Condvar,
}

impl<T> Slot<T> {
    fn new() -> Slot<T> {
        Slot { newest: Mutex::new(None), came: Condvar::new() }
    }

    fn put(&self, value: Option<T>) {
        *locked(&self.newest) = value.map(Arc::new);
        self.came.notify_all();
    }

    fn get(&self) -> Option<Arc<T>> {
        locked(&self.newest).clone()
    }

    /// Waits for one that is good enough; in the end any will do.
    fn wait(&self, is_good: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let newest = locked(&self.newest);
        let lacks = |newest: &mut Option<Arc<T>>| !newest.as_ref().is_some_and(|t| is_good(t));
        let waited = self.came.wait_timeout_while(newest, PATIENCE, lacks);
        waited.map_or_else(|poisoned| poisoned.into_inner().0.clone(), |(newest, _)| newest.clone())
    }
}

/// What somebody waits for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Wanted {
    pub(crate) look: bool,
    pub(crate) count: bool,
}

pub(crate) struct Board {
    told: Mutex<Arc<Told>>,
    look: Slot<Look>,
    counted: Slot<Counted>,
    wanted: Mutex<Wanted>,
    called: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub(crate) fn new(told: Told) -> Board {
        Board {
            told: Mutex::new(Arc::new(told)),
            look: Slot::new(),
            counted: Slot::new(),
            wanted: Mutex::new(Wanted::default()),
            called: Condvar::new(),
        }
    }

    /// Writes down what control knows now; to be called while control is held.
    pub(crate) fn tell(&self, told: Told) {
        let mut newest = locked(&self.told);
        let old = std::mem::replace(&mut *newest, Arc::new(told));
        if old.terms.version != newest.terms.version {
            // the rows of another policy
            self.counted.put(None);
        }
    }

    pub(crate) fn told(&self) -> Arc<Told> {
        locked(&self.told).clone()
    }

    /// What somebody waits for, or nothing after a while.
    pub(crate) fn wanted(&self, within: Duration) -> Wanted {
        let wanted = locked(&self.wanted);
        let idle = |wanted: &mut Wanted| !wanted.look && !wanted.count;
        let waited = self.called.wait_timeout_while(wanted, within, idle);
        let mut wanted =
            waited.map_or_else(|poisoned| poisoned.into_inner().0, |(wanted, _)| wanted);
        std::mem::take(&mut wanted)
    }

    pub(crate) fn put_look(&self, look: Look) {
        self.look.put(Some(look));
    }

    /// What was read by the policy of this version; not taken if that is another's by now.
    pub(crate) fn put_counted(&self, counted: Counted, version: u64) -> bool {
        let told = locked(&self.told);
        let is_of_now = told.terms.version == version;
        if is_of_now {
            self.counted.put(Some(counted));
        }
        is_of_now
    }

    fn look(&self) -> Option<Arc<Look>> {
        self.fresh(&self.look, |look| look.at, |wanted| wanted.look = true)
    }

    fn counted(&self) -> Option<Arc<Counted>> {
        self.fresh(&self.counted, |counted| counted.at, |wanted| wanted.count = true)
    }

    /// The newest of a kind; if that is too old, the sampler is called and waited for.
    fn fresh<T>(
        &self,
        slot: &Slot<T>,
        at: fn(&T) -> Instant,
        want: fn(&mut Wanted),
    ) -> Option<Arc<T>> {
        let asked = now();
        let is_fresh = |newest: &T| asked.since(at(newest)) <= FRESH;
        if let Some(newest) = slot.get().filter(|newest| is_fresh(newest)) {
            return Some(newest);
        }
        want(&mut locked(&self.wanted));
        self.called.notify_all();
        slot.wait(is_fresh)
    }

    pub(crate) fn status(&self) -> Status {
        let look = self.look();
        status(&self.told(), look.as_deref(), now())
    }

    pub(crate) fn tree(&self, all: bool, path: &str, filter: &str) -> Result<Tree, Refused> {
        let counted = self.counted();
        tree(&self.told(), counted.as_deref(), (all, path, filter), now())
    }

    pub(crate) fn metrics(&self) -> String {
        let (look, counted) = (self.look(), self.counted());
        metrics(&self.told(), look.as_deref(), counted.as_deref(), now())
    }
}

/// How old it is in whole seconds, where that should be said.
fn stale(at: Instant, now: Instant) -> Option<u64> {
    let age = now.since(at);
    (age > STALE).then(|| age.ns() / 1_000_000_000)
}

/// How a link is.
pub(crate) fn status(told: &Told, look: Option<&Look>, now: Instant) -> Status {
    let plan = &told.revision.plan;
    let none = Err("the packet thread has not responded yet".to_owned());
    let ports = look.map_or(&none, |look| &look.ports);
    let stale = look.and_then(|look| stale(look.at, now));
    let mut troubles = told.troubles.clone();
    if let Err(why) = ports {
        let what = format!("no frame passes through weir: {why}");
        troubles.insert(0, Trouble::new(what, "restart weir, and report what it printed"));
    }
    if let Some(seconds) = stale {
        let what = format!("the packet thread has not responded for {seconds} s");
        let cure = "the figures of ports and packets are as old; find out what occupies the CPU";
        troubles.insert(0, Trouble::new(what, cure));
    }
    let found = told.found.map(|rate| rate.map(Rate::bps));
    Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        link: plan.name.clone(),
        mode: Mode::of(told.is_observing),
        io: told.way.to_owned(),
        bypass: told.bypass.clone(),
        found_down: found.down,
        found_up: found.up,
        round_trips: answers::round_trips(told.round_trips),
        file: told.file.clone(),
        uptime_s: now.since(told.started).ns() / 1_000_000_000,
        revision: told.revision.about.revision(),
        confirm: answers::confirm(told.waits, now),
        ports: answers::ports(plan, ports.as_ref().ok(), told.passed),
        packets: look.map(|look| look.packets),
        flows: ports.as_ref().ok().map(|ports| ports.flows as u64),
        taken_over: told.taken_over.flows,
        not_taken_over: told.taken_over.lost.clone(),
        stale_s: stale,
        history: told.history.clone(),
        subscribers: told.revision.rows,
        trouble: troubles.iter().map(Trouble::to_string).collect(),
    }
}

/// What each class got.
pub(crate) fn tree(
    told: &Told,
    counted: Option<&Counted>,
    (all, path, filter): (bool, &str, &str),
    now: Instant,
) -> Result<Tree, Refused> {
    let none = || stuck("the packet thread has not responded yet");
    let counted = counted.ok_or_else(none)?;
    let tree = counted.tree.as_ref().map_err(|why| stuck(why))?;
    let of_path = |path: &str| tree.rows.iter().any(|row| row.class == path);
    if !path.is_empty() && !of_path(path) {
        let what = format!("link \"{}\" has no class \"{path}\"", tree.link);
        // enough to find a slip of the pen in
        let classes = tree.rows.iter().map(|row| row.class.as_str()).take(limits::CONTROL_ROWS);
        return Err(Refused::call(what, weir_policy::instead(path, classes)));
    }
    let shown = match (path, filter) {
        ("", "") => tree.shown(all, limits::CONTROL_ROWS),
        // who asks for one wants to see it, silent or not
        _ => tree.within(path, filter).shown(true, limits::CONTROL_ROWS),
    };
    let mode = Mode::of(told.is_observing);
    Ok(Tree { mode, stale_s: stale(counted.at, now), ..shown })
}

/// The metrics as text.
pub(crate) fn metrics(
    told: &Told,
    look: Option<&Look>,
    counted: Option<&Counted>,
    now: Instant,
) -> String {
    let oldest = [look.map(|look| look.at), counted.map(|counted| counted.at)];
    let times = Times {
        uptime: now.since(told.started),
        age: oldest.into_iter().flatten().min().map_or(Span::ZERO, |at| now.since(at)),
        longest_gap: look.map_or(Span::ZERO, |look| look.longest_gap),
    };
    let tree = counted.and_then(|counted| counted.tree.as_ref().ok());
    metrics::text(&status(told, look, now), tree, times)
}

/// What is answered when the packet thread does not.
pub(crate) fn stuck(why: &str) -> Refused {
    Refused::cannot(why, "run `weir status`; the bridge forwards frames unshaped if weir has one")
}
