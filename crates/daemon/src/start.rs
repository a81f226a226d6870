//! How weir comes up: the policy, the ports, the rights that are given up, the packet thread, and
//! control, in this order. What stands against it is said before anything has changed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use weir_engine::{Config, Report};
use weir_io::notify::{Notify, watchdog_span};
use weir_io::privileges::{Capabilities, Capability};
use weir_io::signals::{self, Signals};
use weir_io::wait::{now, since_boot};
use weir_packet::{BySide, Side};
use weir_policy::{Plan, Reading, Severity, Source};
use weir_units::{Instant, Span};

use crate::log::{hold_printing, print_aside, print_the_rest, problem, say};

use crate::{files, log};

use crate::begin::begin;
use crate::clock;
use crate::control::Control;
use crate::facts::Facts;
use crate::handover::{Connections, Handed, HandoverFile, send_the_rest};
use crate::history::History;
use crate::http;
use crate::link::{Link, Start};
use crate::lookout::Lookout;
use crate::ports::{self, Kept, Opened, Wanted};
use crate::reader::{Ports, Reader};
use crate::rights::{self, User};
use crate::serve::{self, Doors, Signal, Watcher};
use crate::socket::Socket;
use crate::trouble::Trouble;
use crate::words::{self, Wire};
use crate::{Args, Policy};

/// The name of a link that only the command line knows.
const WIRE: &str = "wire";

/// How long frames that wait have to leave when weir ends, before the bridge carries.
const LAST_FRAMES: Duration = Duration::from_millis(50);

/// How long those have to be read that had come before the bridge began to carry.
const LAST_ARRIVALS: Duration = Duration::from_millis(5);

/// How long what still waits then has to leave.
const VERY_LAST: Span = Span::from_ms(20);

/// As of a panic: whoever watches over weir starts it again.
const BROKEN: u8 = 101;

pub(crate) fn run(args: &Args) -> ExitCode {
    hold_printing();
    weir_io::wait::level_memory();
    let (Ok(code) | Err(code)) = up(args);
    print_the_rest();
    code
}

fn up(args: &Args) -> Result<ExitCode, ExitCode> {
    let (file, reading) = policy(args);
    let files = files_of(args, &reading);
    let name = link_of(args, &reading)?;
    let history = History::open(&args.state, &name);
    let begin = begin(&file, reading, &name, &history, clock::of_day()).map_err(|refused| {
        say(&format!("weir: {refused}"));
        ExitCode::from(if refused.fault == weir_control::Fault::Content { 1 } else { 2 })
    })?;
    let needed = [Capability::NetRaw, Capability::NetAdmin];
    if let Ok(rights) = Capabilities::effective() {
        rights.require(&needed).map_err(|missing| problem(&missing.to_string()))?;
    }
    // before the first thread: a thread that does not block a signal ends the process with it
    let signals = Signals::block().map_err(|e| problem(&format!("no signals: {e}")))?;
    let user = User::find(args.user.as_deref()).map_err(|why| problem(&why))?;
    let doors = doors(args, &name)?;
    let plan = begin.revision.plan.clone();
    let opened = ports::open(&Wanted {
        link: &name,
        names: BySide { lan: &plan.lan, wan: &plan.wan },
        via: args.io,
        bypass: !args.no_bypass,
        queue: args.queue as usize,
        files: &files,
        socket: doors.socket.path(),
    });
    let Opened { pool, ports, mut pulse, mut kept } = opened.map_err(|reasons| {
        reasons.iter().for_each(|why| say(&format!("weir: {why}")));
        ExitCode::from(2)
    })?;
    pulse.has_bypass = kept.bridge.is_some();
    let (handover, fresh_seed) =
        (HandoverFile::at(history.folder()), seed().map_err(|why| problem(&why))?);
    let notes = give_up(user, args, &name).map_err(|why| problem(&why))?;
    kept.notes.iter().chain(&notes).for_each(|note| say(&format!("weir: {note}")));
    let left = handover.take();
    let seed = seed_of(&left).unwrap_or(fresh_seed);
    let (cpu, first, queue_frames) = (args.cpu, !args.polite, args.queue as usize);
    let (settled, has_settled) = mpsc::sync_channel(1);
    let link = Link::start(Start {
        plan,
        observing: args.observe,
        config: Config { queue_frames, seed, watch: true, ..Config::default() },
        pool,
        ports,
        pulse,
        way: kept.backend.name(),
        bypass: kept.bridge.clone(),
        left,
        settle_in: Box::new(move || drop(settled.send(settle_in(cpu, first)))),
    });
    let failed = |why: String| {
        handover.put_back();
        problem(&why)
    };
    let (link, reader) = link.map_err(failed)?;
    // frames of strangers are not read before the thread that reads them has given up its rights
    let settled = has_settled.recv().unwrap_or_else(|_| Err("the packet thread has ended".into()));
    let notes = settled.and_then(|notes| rights::keep_least().map(|()| notes));
    notes.map_err(failed)?.iter().for_each(|note| say(&format!("weir: {note}")));
    handover.is_at_work();
    let helper = kept.helper.clone();
    files::open_policies_by(Box::new(move |path| ports::held(&helper).read(path)));
    kept.take_over();
    print_aside();
    say(&begun(&link, &kept));
    let control = Control::new(link, begin, history, &file, now());
    Ok(serve((control, reader), &doors, signals, (kept, &handover, seed)))
}

/// The secret by which hosts are told apart is that of the weir before, where it has left any:
/// connections of hosts that spoof others are known by it.
fn seed_of(left: &Result<Option<Handed>, String>) -> Option<u128> {
    left.as_ref().ok()?.as_ref().map(|handed| handed.connections.seed)
}

/// Looks after the link; what is new is logged, what is wrong is told to systemd as well.
struct Watching {
    lookout: Lookout,
    systemd: Told,
}

impl Watcher for Watching {
    fn wants_report(&mut self, plan: &Plan, now: Instant) -> bool {
        self.lookout.wants_report(plan, now)
    }

    fn look(&mut self, link: &mut Link, ports: &Ports, report: Option<&Report>) -> Vec<Trouble> {
        let events = self.lookout.look(link, ports, report, now());
        events.iter().for_each(|event| say(&format!("weir: {event}")));
        self.systemd.status(self.lookout.troubles());
        self.lookout.troubles().to_vec()
    }
}

/// Gives up what only the start takes.
fn give_up(user: Option<User>, args: &Args, link: &str) -> Result<Vec<String>, String> {
    let folder = args.state.join(link);
    // a folder that cannot be made or given away is trouble with the history, and no more
    let owned = match user {
        Some(user) => user.own(&args.state, link),
        None => std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display())),
    };
    let mut notes = rights::give_up(user, &folder)?;
    notes.extend(owned.err().map(|why| format!("the history cannot be kept: {why}")));
    Ok(notes)
}

/// Answers the operator and looks after the ports until the end.
fn serve(
    (control, reader): (Control, Reader),
    doors: &Doors,
    signals: Signals,
    (kept, handover, seed): (Kept, &HandoverFile, u128),
) -> ExitCode {
    let (sender, receiver) = mpsc::channel();
    let forward = sender.clone();
    std::thread::spawn(move || {
        loop {
            let signal = match signals.wait() {
                signals::Signal::Reload => Signal::Reload,
                signals::Signal::Stop => Signal::Stop,
                signals::Signal::Dump => Signal::Dump,
                signals::Signal::Hangup => {
                    say("weir: the terminal was closed; the link keeps running");
                    continue;
                }
            };
            if forward.send(signal).is_err() {
                return;
            }
        }
    });
    let systemd = Told::new();
    systemd.ready();
    beat(control.facts());
    let mut watcher = Watching { lookout: Lookout::new(kept), systemd };
    let mut link = serve::run((control, reader), doors, (sender, receiver), &mut watcher);
    let Watching { lookout, systemd } = watcher;
    systemd.stopping();
    let broken = !link.is_alive();
    let mut kept = lookout.kept;
    // what waits leaves before anything newer can overtake it
    link.empty(LAST_FRAMES);
    let cut = kept.let_go().err();
    cut.iter().for_each(|why| say(&format!("weir: {why}")));
    std::thread::park_timeout(LAST_ARRIVALS);
    let connections = link.stop().map(|mut stopped| {
        let left_at = since_boot();
        let connections = Connections::of(stopped.driver.engine_mut(), seed, now() + stopped.ahead);
        send_the_rest(stopped, VERY_LAST);
        (connections, left_at)
    });
    if !broken {
        kept.leave();
    }
    // last: a disk that hangs holds up nothing
    if let Some((connections, left_at)) = connections {
        let (Ok(line) | Err(line)) = handover.leave(&connections, left_at);
        say(&format!("weir: {line}"));
    }
    if broken {
        say("weir: the packet thread has ended because of a bug in weir: please report the lines \
             above");
        return ExitCode::from(BROKEN);
    }
    ExitCode::from(u8::from(cut.is_some()))
}

/// The files of the policy: itself, and the table that it names.
fn files_of(args: &Args, reading: &Result<Reading, String>) -> Vec<PathBuf> {
    match (&args.policy, reading) {
        (Policy::File(_), Ok(reading)) => {
            reading.sources.iter().map(|s| PathBuf::from(s.name())).collect()
        }
        (Policy::File(file), Err(_)) => vec![file.clone()],
        (Policy::Wire { .. }, _) => Vec::new(),
    }
}

/// The policy of the file, or of the command line.
fn policy(args: &Args) -> (PathBuf, Result<Reading, String>) {
    let (file, reading) = match &args.policy {
        Policy::File(file) => (file.clone(), files::policy(file)),
        Policy::Wire { lan, wan, down, up, margin } => {
            let name = args.link.as_deref().unwrap_or(WIRE);
            let wire = Wire { lan, wan, down: *down, up: *up, margin: margin.as_deref() };
            let source = Source::new("the command line", words::policy(name, &wire));
            let reading = weir_policy::read(source, &mut |_| Err("there is no file".to_owned()));
            let reading = reading.map_err(|_| "the command line is not text".to_owned());
            (PathBuf::from(crate::control::COMMAND_LINE), reading)
        }
    };
    let reading = reading.map(|mut reading| {
        // what is merely worth knowing is for `weir check`
        reading.problems.retain(|problem| problem.severity <= Severity::Warning);
        log::problems(&reading);
        reading
    });
    (file, reading)
}

/// The link that is meant.
fn link_of(args: &Args, reading: &Result<Reading, String>) -> Result<String, ExitCode> {
    if let Some(name) = &args.link {
        return Ok(name.clone());
    }
    match reading {
        Err(why) => Err(problem(why)),
        Ok(reading) => match &reading.plans[..] {
            [] => Err(ExitCode::from(1)),
            [plan] => Ok(plan.name.clone()),
            plans => {
                let names: Vec<&str> = plans.iter().map(|plan| &*plan.name).collect();
                let names = names.join(", ");
                Err(problem(&format!(
                    "the policy has {names}: choose one with --link NAME, and \
                    run one weir for each"
                )))
            }
        },
    }
}

/// Where the operator's commands and the metrics come in.
fn doors(args: &Args, link: &str) -> Result<Doors, ExitCode> {
    let path = args.socket.clone();
    let path = path.unwrap_or_else(|| weir_control::path_of(Path::new(weir_control::FOLDER), link));
    let socket = Socket::open(&path).map_err(|why| {
        problem(&format!(
            "{why}; `weir status --socket {}` shows the running link, `weir stop` ends it",
            path.display()
        ))
    })?;
    let metrics = match args.metrics {
        None => None,
        Some(address) => Some(http::open(address).map_err(|why| problem(&why))?),
    };
    Ok(Doors { socket, metrics })
}

/// What is said when frames flow.
fn begun(link: &Link, kept: &Kept) -> String {
    let plan = link.plan();
    let root = plan.nodes[0].shares;
    let bridge = match &kept.bridge {
        Some(bridge) => format!("; if weir stops, bridge {bridge} forwards traffic unshaped"),
        None => "; if weir stops, the link is cut".to_owned(),
    };
    let shaped = match link.is_observing() {
        true => "observed and not shaped".to_owned(),
        false => format!("shaped to {} down and {} up", root.down.rate, root.up.rate),
    };
    let ports = format!("{} | {}", kept.name(Side::Lan), kept.name(Side::Wan));
    format!("weir: link {} ({ports}, {}) is {shaped}{bridge}", plan.name, kept.backend.name())
}

/// Where the packet thread runs, and whether before others. Neither is worth failing for; giving
/// up its rights is.
fn settle_in(cpu: Option<usize>, first: bool) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    let _ = weir_io::wait::be_punctual();
    if let Some(cpu) = cpu
        && let Err(error) = weir_io::wait::pin_to(cpu)
    {
        notes.push(format!("CPU {cpu} is not available for packets: {error}"));
    }
    if first && let Err(error) = weir_io::wait::be_first() {
        notes.push(format!("real-time scheduling is not available for the packet thread: {error}"));
    }
    rights::keep_none()?;
    Ok(notes)
}

/// What nobody outside can guess, so that nobody can aim flows at one place of the flow table.
fn seed() -> Result<u128, String> {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    match read {
        Ok(()) => Ok(u128::from_ne_bytes(bytes)),
        Err(error) => Err(format!("/dev/urandom cannot be read: {error}")),
    }
}

/// Tells the watchdog of systemd that packets turn, from a thread of its own: control may take
/// seconds for a policy of a million rows, and that is no reason to be started again.
fn beat(facts: Arc<Facts>) {
    let watchdog = std::env::var_os("WATCHDOG_USEC");
    let Some(every) = watchdog_span(watchdog.as_deref()) else { return };
    let Ok(to) = Notify::open(std::env::var_os("NOTIFY_SOCKET").as_deref()) else { return };
    let spawned = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        loop {
            if now().since(facts.last_turn()) < TURNS {
                let _ = to.watchdog();
            }
            std::thread::park_timeout(Duration::from_nanos(every.ns() / 2));
        }
    });
    if let Err(error) = spawned {
        say(&format!("weir: the watchdog will restart weir: no thread to notify it: {error}"));
    }
}

/// A packet thread whose last turn is longer ago does not turn.
const TURNS: Span = Span::from_secs(1);

/// Systemd, if it has started us.
struct Told {
    to: Option<Notify>,
    /// As it was told last.
    status: String,
}

impl Told {
    fn new() -> Told {
        let to = Notify::open(std::env::var_os("NOTIFY_SOCKET").as_deref()).ok();
        Told { to, status: String::new() }
    }

    fn ready(&self) {
        // a service manager that does not listen is no reason to stop carrying frames
        let _ = self.to.as_ref().map(Notify::ready);
    }

    /// What `systemctl status` shows.
    fn status(&mut self, troubles: &[Trouble]) {
        let status = match troubles {
            [] => "no trouble".to_owned(),
            [one] => one.to_string(),
            [one, rest @ ..] => format!("{}; and {} more troubles", one.what, rest.len()),
        };
        if self.status != status {
            let _ = self.to.as_ref().map(|to| to.status(&status));
            self.status = status;
        }
    }

    fn stopping(&self) {
        let _ = self.to.as_ref().map(Notify::stopping);
    }
}
