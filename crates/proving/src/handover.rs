//! A weir that ends hands its connections over to the one that begins. A numbered stream and
//! transfers run through it, beside connections that say nothing meanwhile and would be forgotten.

use weir_units::limits::FLOW_IDLE_CLOSED_SECS;
use weir_units::{Rate, Span};

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Joined, Middle, Signal};
use super::policy::{self, BULK_PORT, NUMBERED_PORT};
use super::traffic::{Bulk, Delays, Flood, Seen};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Sketch, World};

const RATE: Rate = Rate::from_bps(4_000_000);
const PACKET: u16 = 1_000;
/// Below the ceiling of their class, so that weir drops nothing of them by itself.
const TRANSFERS: Rate = Rate::from_bps(30_000_000);

/// Hosts with silent connections, and how many each has.
const HOSTS: u16 = 50;
const EACH: u16 = 4;
const SILENT_PORT: u16 = 9_000;

/// What a daemon may take to end: as long as a restart by systemd takes in good order.
const ENDS: Span = Span::from_secs(5);

/// What a restart takes, about.
const A_RESTART: Span = Span::from_ms(600);

/// How long a closed connection is known, and a second more.
const CLOSED: Span = Span::from_secs(FLOW_IDLE_CLOSED_SECS + 1);

/// What was seen of one handover.
struct Passage {
    /// How long weir took to end.
    took: Span,
    before: u64,
    taken: Option<u64>,
    after: u64,
    numbered: Seen,
    /// Segments that the receivers of the transfers had to put in order.
    misplaced: u64,
    late: Delays,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let times = match (middle, run.short) {
        // it has no daemon that could end
        (Middle::Bridge, _) => 0,
        (_, true) => 1,
        (_, false) => 5,
    };
    let world = World::make(Sketch { hosts: HOSTS, line: None }, run.shell.clone())?;
    let mut joined = Joined::start(&world, middle, &policy::edited(0))?;
    run.out.line(&format!(
        "handover through {}: {RATE} of numbered packets up, {TRANSFERS} of TCP down, and {}\n\
         silent connections. Bound of a restart (SIGTERM, then `weir run`): all connections are\n\
         known after it. What the bridge carries meanwhile may be lost or overtaken: counted, as\n\
         without a restart (none).",
        middle.name(),
        HOSTS * EACH
    ));
    run.out.flush();
    let mut table = Table::new(
        1,
        &[
            "what",
            "time",
            "end ms",
            "known before",
            "taken over",
            "known after",
            "numbered sent",
            "lost",
            "doubled",
            "overtaken",
            "TCP out of order",
            "late ms p99/max",
        ],
    );
    let passage = pass(&world, &mut joined, undisturbed)?;
    table.row(passage.cells("none", 1), Verdict::Seen);
    for time in 1..=times {
        // transfers of the last time are closed, and forgotten soon: they are not to count
        clock::sleep(CLOSED);
        greet(&world)?;
        let passage = pass(&world, &mut joined, restart)?;
        table.row(passage.cells("restart", time), Verdict::of(passage.forgets_nothing()));
    }
    drop(joined);
    Ok(run.conclude(&table))
}

/// For comparison: nothing ends for about as long as a restart takes.
fn undisturbed(_: &mut Joined<'_>) -> Result<Span, String> {
    let from = clock::now();
    clock::sleep(A_RESTART);
    Ok(clock::now().since(from))
}

/// Tells how long the end took.
fn restart(joined: &mut Joined<'_>) -> Result<Span, String> {
    let from = clock::now();
    joined.signal(Signal::End)?;
    if !joined.ends_within(ENDS) {
        return Err(format!("weir has not ended; it said:\n{}", joined.said()));
    }
    let took = clock::now().since(from);
    joined.run().map(|()| took)
}

/// Does it under load.
fn pass<'w>(
    world: &'w World,
    joined: &mut Joined<'w>,
    hand_over: impl FnOnce(&mut Joined<'w>) -> Result<Span, String>,
) -> Result<Passage, String> {
    let settle = Span::from_secs(1);
    let (lan, wan) = world.ends(2, NUMBERED_PORT);
    let flood = Flood::new(RATE, PACKET).start(&lan, &wan)?;
    let (lan, wan) = world.ends(3, BULK_PORT);
    let transfers = Bulk { connections: 2, rate: Some(TRANSFERS) }.start(&wan, &lan)?;
    clock::sleep(settle);
    let known = |joined: &Joined<'_>| match joined.middle {
        Middle::Bridge => Ok((0, None)),
        _ => joined.status().map(|status| (status.flows.unwrap_or(0), status.taken_over)),
    };
    let ((before, _), placed_before) = (known(joined)?, misplaced(world)?);
    let late = Lateness::watch();
    let took = hand_over(joined)?;
    let (after, taken) = known(joined)?;
    clock::sleep(settle);
    let misplaced = misplaced(world)? - placed_before;
    let numbered = flood.stop()?;
    transfers.stop()?;
    Ok(Passage { took, before, taken, after, numbered, misplaced, late: late.stop() })
}

/// One datagram each way of connections that then are silent.
fn greet(world: &World) -> Result<(), String> {
    let failed = |e| format!("silent connections: {e}");
    for port in SILENT_PORT..SILENT_PORT + EACH {
        let (_, wan) = world.ends(0, port);
        let there = wan.socket()?;
        for host in 0..HOSTS {
            let (lan, _) = world.ends(host, port);
            let here = lan.socket()?;
            let mut datagram = [0; 8];
            here.send_to(&datagram, wan.at).map_err(failed)?;
            let (_, from) = there.recv_from(&mut datagram).map_err(failed)?;
            there.send_to(&datagram, from).map_err(failed)?;
            here.recv(&mut datagram).map_err(failed)?;
        }
    }
    Ok(())
}

/// Segments of TCP that came to the LAN before an earlier one, by the kernel's count.
fn misplaced(world: &World) -> Result<u64, String> {
    let text = world.lan.ask("cat /proc/net/netstat")?;
    let mut lines = text.lines().filter(|line| line.starts_with("TcpExt:"));
    let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut pairs = names.split_whitespace().zip(values.split_whitespace());
    let found = pairs.find(|(name, _)| *name == "TCPOFOQueue").and_then(|(_, n)| n.parse().ok());
    found.ok_or_else(|| "/proc/net/netstat does not tell TCPOFOQueue".to_owned())
}

impl Passage {
    fn forgets_nothing(&self) -> bool {
        self.taken.is_some_and(|taken| taken >= self.before) && self.after >= self.before
    }

    fn cells(&self, what: &str, time: u32) -> Vec<String> {
        let tally = &self.numbered.tally;
        vec![
            what.to_owned(),
            time.to_string(),
            ms(self.took),
            self.before.to_string(),
            self.taken.map_or_else(|| "none".to_owned(), |taken| taken.to_string()),
            self.after.to_string(),
            self.numbered.sent.to_string(),
            self.numbered.lost().to_string(),
            tally.doubled.to_string(),
            tally.overtaken.to_string(),
            self.misplaced.to_string(),
            lateness(&self.late),
        ]
    }
}
