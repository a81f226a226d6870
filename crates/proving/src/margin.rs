//! Does `margin = "auto"` follow a line? Four hosts download, then upload, over a provider's line
//! with a deep queue (HTB over a FIFO of 1 MB), which falls below what weir was told and rises
//! again. How long weir sends more than it carries until it has found that out, what it shapes to
//! after five seconds, and how long the queue in front of it is: the same as `edge-auto` measures.

use serde_json::Value;
use weir_control::Status;
use weir_units::{Bytes, Rate, Span, Way};

use super::clock::{self, Lateness};
use super::middle::{Joined, Middle};
use super::traffic::{Bulk, Delays, Transfer};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Line, Sketch, World};
use super::{Run, policy};

/// What weir is told, and the line carries in the beginning.
const TOLD: u64 = 40_000_000;
const QUEUE: u32 = 1_000_000;
const HOSTS: u16 = 4;

/// How often the queue is looked at, and what weir has found.
const LOOK: Span = Span::from_ms(20);
/// After a change the rate must be right from here on.
const RIGHT: Span = Span::from_secs(5);
/// How far it may be off, in a hundred.
const OFF: u64 = 5;
const LONGEST_QUEUE: Span = Span::from_ms(30);

/// A change of the line, and what must hold after it.
struct Step {
    /// What the line carries, in a tenth of what was told.
    tenths: u64,
    above: Span,
    /// From here on the queue is short.
    calm: Span,
}

const fn step(tenths: u64, above_ms: u64, calm_secs: u64) -> Step {
    Step { tenths, above: Span::from_ms(above_ms), calm: Span::from_secs(calm_secs) }
}

/// A fall to each part, and a rise after each.
const STEPS: [Step; 7] = [
    step(10, 0, 3),
    step(8, 500, 3),
    step(10, 0, 3),
    step(5, 1_000, 5),
    step(10, 0, 3),
    step(1, 3_000, 8),
    step(10, 0, 3),
];
const OF_SHORT: usize = 3;

/// What was seen after a step.
#[derive(Default)]
struct Seen {
    /// How long weir shaped to more than the line carries until it did not any more.
    above: Span,
    /// And later, together: it tries whether there is more.
    tries: Span,
    /// What weir shaped to from five seconds on, a look each.
    found: Vec<u64>,
    /// What had to wait in front of the line when it had to be calm.
    queue: Delays,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    if middle == Middle::Bridge {
        run.out.line("margin of the bridge: it follows no line, so nothing is played\n");
        return Ok(true);
    }
    let steps = if run.short { &STEPS[..OF_SHORT] } else { &STEPS[..] };
    let time = Span::from_secs(if run.short { 15 } else { 30 });
    run.out.line(&format!(
        "margin through {}: four hosts each way in turn, a line of HTB and a FIFO of 1 MB, told\n\
         {}; {} s after each change. Bars: not above the line after the time said, always within\n\
         {OFF} % of it after 5 s, 99 of 100 looks at its queue at most {} ms",
        middle.name(),
        Rate::from_bps(TOLD),
        time.ns() / 1_000_000_000,
        ms(LONGEST_QUEUE),
    ));
    run.out.flush();
    let of_it = "after 5 s, % of it";
    let head =
        ["way", "line", "above ms", "bar", "tries ms", of_it, "to", "queue p99 ms", "late ms"];
    let mut table = Table::new(2, &head);
    for way in Way::ALL {
        follow(way, run, middle, (steps, time), &mut table)?;
    }
    Ok(run.conclude(&table))
}

fn follow(
    way: Way,
    run: &mut Run<'_>,
    middle: Middle,
    (steps, time): (&[Step], Span),
    table: &mut Table,
) -> Result<(), String> {
    let told = Rate::from_bps(TOLD);
    let line = Line { down: told, up: told, queue: QUEUE };
    let world = World::make(Sketch { hosts: HOSTS, line: Some(line) }, run.shell.clone())?;
    world.lengthen_line(port(way), told, QUEUE)?;
    let joined = Joined::start(&world, middle, &policy::found("40mbit"))?;
    let transfers = transfers(way, &world)?;
    for step in steps {
        let rate = Rate::from_bps(TOLD / 10 * step.tenths);
        world.change_line(port(way), rate)?;
        let late = Lateness::watch();
        let seen = watch(way, &world, &joined, (step, rate, time))?;
        let late = late.stop();
        let percent = |bps: u64| {
            let part = bps.saturating_mul(1_000) / rate.bps();
            format!("{}.{}", part / 10, part % 10)
        };
        let (least, most) = seen.ends();
        let p99 = seen.queue.at_most(990).unwrap_or(Span::ZERO);
        let is_near = |bps: u64| bps.abs_diff(rate.bps()) * 100 <= rate.bps() * OFF;
        let is_right = is_near(least) && is_near(most);
        let holds = seen.above <= step.above.max(LOOK) && is_right && p99 <= LONGEST_QUEUE;
        let cells = vec![
            way.name().to_owned(),
            rate.to_string(),
            ms(seen.above),
            ms(step.above),
            ms(seen.tries),
            percent(least),
            percent(most),
            ms(p99),
            lateness(&late),
        ];
        table.row(cells, Verdict::of(holds));
    }
    transfers.into_iter().try_for_each(|transfer| transfer.stop().map(drop))
}

fn watch(
    way: Way,
    world: &World,
    joined: &Joined,
    (step, rate, time): (&Step, Rate, Span),
) -> Result<Seen, String> {
    let start = clock::now();
    let mut seen = Seen::default();
    let (mut is_above, mut last) = (true, start);
    loop {
        let now = clock::now();
        let since = now.since(start);
        if since > time {
            return Ok(seen);
        }
        // it shapes to what it was told until it has found another rate
        let found = found(way, &joined.status()?).unwrap_or(TOLD);
        is_above &= found > rate.bps();
        if is_above {
            seen.above = since;
        } else if found > rate.bps() {
            seen.tries += now.since(last);
        }
        last = now;
        if since >= RIGHT {
            seen.found.push(found);
        }
        if since >= step.calm {
            let waiting = world.waiting_at_line(port(way))?;
            seen.queue.see(rate.time_for(Bytes::new(waiting)));
        }
        clock::sleep_until(now + LOOK);
    }
}

impl Seen {
    /// The least and the most that weir shaped to.
    fn ends(&self) -> (u64, u64) {
        let least = self.found.iter().min().copied().unwrap_or(0);
        (least, self.found.iter().max().copied().unwrap_or(0))
    }
}

/// The port of the line that sends this way.
fn port(way: Way) -> &'static str {
    match way {
        Way::Down => "in0",
        Way::Up => "out0",
    }
}

/// The rate that weir has found this way.
fn found(way: Way, status: &Status) -> Option<u64> {
    match way {
        Way::Down => status.found_down,
        Way::Up => status.found_up,
    }
}

/// A connection for each host.
fn transfers(way: Way, world: &World) -> Result<Vec<Transfer>, String> {
    let bulk = Bulk { connections: 1, rate: None };
    let each = (0..HOSTS).map(|host| {
        let (lan, wan) = world.ends(host, policy::BULK_PORT + host);
        match way {
            Way::Down => bulk.start(&wan, &lan),
            Way::Up => bulk.start_at_listener(&lan, &wan),
        }
    });
    each.collect()
}

/// Bytes in the FIFO, from what `tc -s -j qdisc show` prints.
pub(super) fn waiting(printed: &str) -> Option<u64> {
    let all: Value = serde_json::from_str(printed).ok()?;
    let fifo = all.as_array()?.iter().find(|qdisc| qdisc["kind"] == "bfifo")?;
    fifo["backlog"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_the_fifo_is_read() {
        let text = r#"[{"kind":"htb","backlog":7},{"kind":"bfifo","backlog":4542,"qlen":3}]"#;
        assert_eq!(waiting(text), Some(4_542));
        assert_eq!(waiting("[]"), None);
    }

    #[test]
    fn all_looks_lie_between_the_ends() {
        let seen = Seen { found: vec![9, 1, 5], ..Seen::default() };
        assert_eq!(seen.ends(), (1, 9));
        assert_eq!(Seen::default().ends(), (0, 0));
    }
}
