//! How weir comes up: the policy, the ports, the rights that are given up, the packet thread, and
//! control, in this order. What stands against it is said before anything has changed.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;

use weir_engine::Config;
use weir_io::notify::{Notify, watchdog_span};
use weir_io::privileges::{Capabilities, Capability};
use weir_io::signals::{self, Signals};
use weir_io::wait::now;
use weir_packet::Side;
use weir_policy::{Reading, Severity, Source};
use weir_units::Instant;

use crate::out::{problem, say};
use crate::{files, problems};

use super::Args;
use super::begin::begin;
use super::clock;
use super::control::Control;
use super::history::History;
use super::http;
use super::link::{Link, Start};
use super::ports::{self, Kept, Opened, Wanted};
use super::refused::Fault;
use super::rights;
use super::serve::{self, Doors, Signal};
use super::socket::{self, Socket};
use super::words::{self, Wire};

/// The name of a link that only the command line knows.
const WIRE: &str = "wire";

/// As of a panic: whoever watches over weir starts it again.
const BROKEN: u8 = 101;

pub(crate) fn run(args: &Args) -> ExitCode {
    match up(args) {
        Ok(code) | Err(code) => code,
    }
}

fn up(args: &Args) -> Result<ExitCode, ExitCode> {
    let (file, reading) = policy(args)?;
    let name = link_of(args, &reading)?;
    let history = History::open(&args.state, &name);
    let begin = begin(&file, reading, &name, &history, clock::of_day()).map_err(|refused| {
        say(&format!("weir: {refused}"));
        ExitCode::from(if refused.fault == Fault::Content { 1 } else { 2 })
    })?;
    let needed = [Capability::NetRaw, Capability::NetAdmin];
    if let Ok(rights) = Capabilities::effective() {
        rights.require(&needed).map_err(|missing| problem(&missing.to_string()))?;
    }
    // before the first thread: a thread that does not block a signal ends the process with it
    let signals = Signals::block().map_err(|e| problem(&format!("no signals: {e}")))?;
    let doors = doors(args, &name)?;
    let plan = begin.revision.plan.clone();
    let opened = ports::open(&Wanted {
        link: &name,
        names: [&plan.lan, &plan.wan],
        via: args.io,
        bypass: !args.no_bypass,
        queue: args.queue as usize,
    });
    let Opened { pool, ports, pulse, kept } = opened.map_err(|reasons| {
        reasons.iter().for_each(|why| say(&format!("weir: {why}")));
        ExitCode::from(2)
    })?;
    // before the files that are not ours are out of reach
    let _ = std::fs::create_dir_all(&args.state);
    let folders = [doors.socket.path().parent().unwrap_or(Path::new("/")), &args.state];
    let given_up = rights::give_up(file.parent(), folders);
    kept.notes.iter().chain(&given_up).for_each(|note| say(&format!("weir: {note}")));
    let (cpu, first) = (args.cpu, !args.polite);
    let link = Link::start(Start {
        plan,
        observing: args.observe,
        config: Config {
            queue_frames: args.queue as usize,
            seed: seed(),
            watch: true,
            ..Config::default()
        },
        pool,
        ports,
        pulse,
        way: kept.way.name(),
        bypass: kept.bridge.as_ref().map(|bridge| bridge.name.clone()),
        settle_in: Box::new(move || settle_in(cpu, first)),
    });
    let link = link.map_err(|why| problem(&why))?;
    kept.take_over();
    say(&begun(&link, &kept));
    Ok(serve(Control::new(link, begin, history, &file, now()), &doors, signals, kept))
}

/// Answers the operator and looks after the ports until the end.
fn serve(control: Control, doors: &Doors, signals: Signals, mut kept: Kept) -> ExitCode {
    let (sender, receiver) = mpsc::channel();
    let forward = sender.clone();
    std::thread::spawn(move || {
        loop {
            let signal = match signals.wait() {
                signals::Signal::Reload => Signal::Reload,
                signals::Signal::Stop => Signal::Stop,
                signals::Signal::Dump => Signal::Dump,
            };
            if forward.send(signal).is_err() {
                return;
            }
        }
    });
    let told = Told::new();
    told.ready();
    let mut beaten = now();
    let link = serve::run(control, doors, (sender, receiver), |link, ports| {
        kept.look_after(link, ports).iter().for_each(|event| say(&format!("weir: {event}")));
        if let Err(why) = link.follow_the_line() {
            say(&format!("weir: {why}"));
        }
        told.alive(&mut beaten);
    });
    told.stopping();
    let broken = !link.is_alive();
    kept.let_go();
    link.stop();
    if broken {
        say(
            "weir: the packet thread has ended by a fault of weir: please report what stands above",
        );
        return ExitCode::from(BROKEN);
    }
    ExitCode::SUCCESS
}

/// The policy of the file, or of the command line.
fn policy(args: &Args) -> Result<(PathBuf, Result<Reading, String>), ExitCode> {
    let (file, reading) = match (&args.config, &args.lan, &args.wan, args.down, args.up) {
        (Some(file), ..) => (file.clone(), files::policy(file)),
        (None, Some(lan), Some(wan), Some(down), Some(up)) => {
            let name = args.link.as_deref().unwrap_or(WIRE);
            let wire = Wire { lan, wan, down, up, margin: args.margin.as_deref() };
            let source = Source::new("the command line", words::policy(name, &wire));
            let reading = weir_policy::read(source, &mut |_| Err("there is no file".to_owned()));
            let reading = reading.map_err(|_| "the command line is not text".to_owned());
            (PathBuf::from("the command line"), reading)
        }
        _ => return Err(problem("say -c FILE, or --lan, --wan, --down and --up")),
    };
    let reading = reading.map(|mut reading| {
        // what is merely worth knowing is for `weir check`
        reading.problems.retain(|problem| problem.severity <= Severity::Warning);
        problems::print(&reading);
        reading
    });
    Ok((file, reading))
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
                Err(problem(&format!("the policy has {names}: say --link NAME, one weir each")))
            }
        },
    }
}

/// Where the operator's commands and the metrics come in.
fn doors(args: &Args, link: &str) -> Result<Doors, ExitCode> {
    let path = args.socket.clone();
    let path = path.unwrap_or_else(|| socket::path_of(Path::new(socket::FOLDER), link));
    let socket = Socket::open(&path).map_err(|why| {
        problem(&format!(
            "{why}; `weir status --socket {}` tells who runs this link, `weir stop` ends it",
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
        Some(bridge) => format!("; when weir is away, the bridge {} carries it", bridge.name),
        None => "; when weir is away, nothing carries it".to_owned(),
    };
    let shaped = match link.is_observing() {
        true => "watched and not shaped".to_owned(),
        false => format!("shaped to {} down and {} up", root.down.rate, root.up.rate),
    };
    let ports = format!("{} | {}", kept.name(Side::Lan), kept.name(Side::Wan));
    format!("weir: link {} ({ports}, {}) is {shaped}{bridge}", plan.name, kept.way.name())
}

/// Where the packet thread runs, and whether before others. Neither is worth failing for.
fn settle_in(cpu: Option<usize>, first: bool) {
    let _ = weir_io::wait::be_punctual();
    if let Some(cpu) = cpu
        && let Err(error) = weir_io::wait::pin_to(cpu)
    {
        say(&format!("weir: CPU {cpu} is not to be had for packets: {error}"));
    }
    if first && let Err(error) = weir_io::wait::be_first() {
        say(&format!("weir: packets do not go before other programs: {error}"));
    }
    rights::keep_none();
}

/// What nobody outside can guess, so that nobody can aim flows at one place of the flow table.
fn seed() -> u128 {
    let mut bytes = [0; 16];
    let read = std::fs::File::open("/dev/urandom")
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes));
    match read {
        Ok(()) => u128::from_ne_bytes(bytes),
        // the time of this start is better than nothing
        Err(_) => u128::from(now().ns()),
    }
}

/// Systemd, if it has started us.
struct Told {
    to: Option<Notify>,
    watchdog: Option<weir_units::Span>,
}

impl Told {
    fn new() -> Told {
        let watchdog = std::env::var_os("WATCHDOG_USEC");
        let to = Notify::open(std::env::var_os("NOTIFY_SOCKET").as_deref()).ok();
        Told { to, watchdog: watchdog_span(watchdog.as_deref()) }
    }

    fn ready(&self) {
        // a service manager that does not listen is no reason to stop carrying frames
        let _ = self.to.as_ref().map(Notify::ready);
    }

    /// Only while packets turn: who calls this has just had an answer of the packet thread.
    fn alive(&self, last: &mut Instant) {
        if self.watchdog.is_some_and(|every| now().since(*last) >= every) {
            *last = now();
            let _ = self.to.as_ref().map(Notify::watchdog);
        }
    }

    fn stopping(&self) {
        let _ = self.to.as_ref().map(Notify::stopping);
    }
}
