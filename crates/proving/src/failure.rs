//! What may go wrong with a box in the middle, under load: for how long is nobody heard? A daemon
//! is killed and stopped in its tracks and comes back; interfaces vanish, go down, change; somebody
//! starts a second daemon. Measured by a ping every 5 ms.

use weir_units::{Instant, Rate, Span};

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Joined, Middle, Signal};
use super::policy::{self, BULK_PORT, NUMBERED_PORT, PING_PORT};
use super::traffic::{Bulk, Delays, Echoes, Flood, Flow, Ping, Transfer};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Sketch, World};

/// The longest silence when a daemon dies, stands still or comes back, and when something happens
/// that need not cut the line at all.
const CUT: Span = Span::from_ms(100);
/// The longest silence after an interface is there again or up again: the kernel needs its time
/// for the carrier, the box to open the port anew.
const REOPENED: Span = Span::from_secs(2);
/// A machine that is later than this makes a silence of its own.
const LATE: Span = Span::from_ms(30);

/// What is looked at after each blow, longer than the longest silence that is allowed.
const AFTER: Span = Span::from_secs(3);
/// How long a link stays down, an interface away.
const AWAY: Span = Span::from_ms(500);
/// What a second daemon may take to find out that it is one.
const REFUSAL: Span = Span::from_secs(5);

const FLOOD: Rate = Rate::from_bps(4_000_000);
const TRANSFERS: Rate = Rate::from_bps(20_000_000);

/// Something that happens, and whether the ping may be cut meanwhile.
#[derive(Clone, Copy)]
enum Blow {
    Killed,
    Started,
    Stopped,
    Continued,
    Mtu,
    LinkDown,
    Unplugged,
    Second,
}

impl Blow {
    fn name(self) -> &'static str {
        match self {
            Blow::Killed => "killed (-9)",
            Blow::Started => "started again",
            Blow::Stopped => "stopped (SIGSTOP)",
            Blow::Continued => "goes on (SIGCONT)",
            Blow::Mtu => "MTU 1400, then 1500",
            Blow::LinkDown => "link down, then up",
            Blow::Unplugged => "interface gone, then back",
            Blow::Second => "a second daemon",
        }
    }

    fn is_of_daemon(self) -> bool {
        matches!(self, Blow::Killed | Blow::Started | Blow::Stopped | Blow::Continued)
    }

    fn bar(self) -> Span {
        match self {
            Blow::LinkDown | Blow::Unplugged => REOPENED,
            _ => CUT,
        }
    }
}

/// What runs meanwhile.
struct Load {
    ping: Ping,
    flood: Flow,
    transfers: Transfer,
    late: Lateness,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let times = if run.short { 1 } else { 5 };
    let world = World::make(Sketch { hosts: 10, line: None }, run.shell.clone())?;
    let mut joined = Joined::start(&world, middle, &policy::edited(0))?;
    run.out.line(&format!(
        "failure of {}: a ping every 5 ms beside {TRANSFERS} of TCP and {FLOOD} of UDP,\n\
         {times} times each; the longest silence counts",
        middle.name()
    ));
    if middle == Middle::Bridge {
        run.out.line("(the bridge has no daemon: it is taken away and made again)");
    }
    run.out.flush();
    let mut table = Table::new(2, &["what", "time", "silence ms", "bar ms", "late ms p99/max"]);
    for time in 1..=times {
        let pairs = [(Blow::Killed, Some(Blow::Started)), (Blow::Stopped, Some(Blow::Continued))];
        let alone = [Blow::Mtu, Blow::LinkDown, Blow::Unplugged, Blow::Second];
        for (first, then) in pairs.into_iter().chain(alone.map(|blow| (blow, None))) {
            let load = Load::start(&world)?;
            clock::sleep(Span::from_ms(1_000));
            let mut windows = Vec::new();
            for blow in std::iter::once(first).chain(then) {
                let from = clock::now();
                let (since, trouble) = strike(blow, &world, &mut joined)?;
                clock::sleep(AFTER);
                windows.push((blow, (since.unwrap_or(from), clock::now()), trouble));
            }
            let (echoes, late) = load.stop()?;
            for (blow, window, trouble) in windows {
                judge(&mut table, (middle, blow, time), (&echoes, window), &late, trouble);
            }
        }
    }
    if !joined.is_alive() {
        run.out.line(&format!("weir has ended; it said:\n{}", joined.said()));
    }
    drop(joined);
    Ok(run.conclude(&table))
}

/// Does it, and tells from when on a silence counts (if not from before the blow), and what else
/// was wrong.
fn strike(
    blow: Blow,
    world: &World,
    joined: &mut Joined,
) -> Result<(Option<Instant>, Option<String>), String> {
    match blow {
        Blow::Killed => joined.signal(Signal::Kill)?,
        Blow::Stopped => joined.signal(Signal::Stop)?,
        Blow::Continued => joined.signal(Signal::Continue)?,
        Blow::Started => joined.run()?,
        Blow::Mtu => {
            for mtu in [1_400, 1_500] {
                world.box_.ip(&format!("link set eth1 mtu {mtu}"))?;
                clock::sleep(AWAY);
            }
        }
        Blow::LinkDown => {
            world.box_.ip("link set eth1 down")?;
            clock::sleep(AWAY);
            world.box_.ip("link set eth1 up")?;
            return Ok((Some(clock::now()), None));
        }
        Blow::Unplugged => {
            world.unplug_lan()?;
            clock::sleep(AWAY);
            world.plug_lan()?;
            joined.plugged_again()?;
            return Ok((Some(clock::now()), None));
        }
        Blow::Second if joined.middle == Middle::Bridge => {}
        Blow::Second => {
            let trouble = match joined.second(REFUSAL)? {
                None => Some("it was not refused".to_owned()),
                Some((Some(2), said)) if !said.is_empty() => None,
                Some((status, said)) => Some(format!("it ended with {status:?}, \"{said}\"")),
            };
            return Ok((None, trouble));
        }
    }
    Ok((None, None))
}

fn judge(
    table: &mut Table,
    (middle, blow, time): (Middle, Blow, u32),
    (echoes, (from, to)): (&Echoes, (Instant, Instant)),
    late: &Delays,
    trouble: Option<String>,
) {
    let after = match blow {
        // the silence while it was away is not the box's; from here on it is
        Blow::LinkDown | Blow::Unplugged => echoes.silence_after(from, to),
        _ => echoes.silence(from, to),
    };
    let within = Verdict::of(after <= blow.bar() && trouble.is_none());
    let verdict = match within {
        Verdict::Held => Verdict::Held,
        // it has no daemon, so this is informational
        _ if middle == Middle::Bridge && blow.is_of_daemon() => Verdict::Seen,
        // a late machine excuses what it may have caused, not a line that stays dead
        missed if after <= blow.bar() + late.longest() => missed.unless_late(late.longest(), LATE),
        missed => missed,
    };
    let what = match trouble {
        Some(trouble) => format!("{}: {trouble}", blow.name()),
        None => blow.name().to_owned(),
    };
    let cells = vec![what, time.to_string(), ms(after), ms(blow.bar()), lateness(late)];
    table.row(cells, verdict);
}

impl Load {
    fn start(world: &World) -> Result<Load, String> {
        let (lan, wan) = world.ends(0, PING_PORT);
        let ping = Ping::start(&lan, &wan)?;
        let (lan, wan) = world.ends(1, NUMBERED_PORT);
        let flood = Flood::new(FLOOD, 1_000).start(&lan, &wan)?;
        let (lan, wan) = world.ends(2, BULK_PORT);
        let transfers = Bulk { connections: 2, rate: Some(TRANSFERS) }.start(&wan, &lan)?;
        Ok(Load { ping, flood, transfers, late: Lateness::watch() })
    }

    fn stop(self) -> Result<(Echoes, Delays), String> {
        let echoes = self.ping.stop()?;
        let late = self.late.stop();
        self.flood.stop()?;
        self.transfers.stop()?;
        Ok((echoes, late))
    }
}
