//! A thousand edits under load: nobody may notice. The same call, the same numbered stream and the
//! same transfers run without edits, with edits, and while shaping is turned off and on.

use weir_units::{Rate, Span};

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Book, Joined, Middle};
use super::policy::{self, BULK_PORT, CALL_PORT, NUMBERED, NUMBERED_PORT};
use super::traffic::{Bulk, Call, End, Flood, Flow, Heard, Seen, Transfer};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Sketch, WAN_HOST, World, lan_host};

/// What the numbered stream sends each way: well below what its class is promised.
const NUMBERED_RATE: Rate = Rate::from_bps(4_000_000);
const PACKET: u16 = 1_000;
/// What the transfers have to send: less than their ceiling, so that a box that shapes nothing for
/// a moment is not drowned, and all classes together stay within the line.
const TRANSFERS: Rate = Rate::from_bps(30_000_000);

/// How much a call may sound different.
const MOS_BAR: f64 = 0.05;
/// A machine that is later than this disturbs a call by itself.
const LATE_BAR: Span = Span::from_ms(40);
/// Between two words to a weir that is not asked to hurry.
const PAUSE: Span = Span::from_ms(5);

/// What runs meanwhile.
struct Load {
    call: Call,
    numbered: [Flow; 2],
    transfers: Transfer,
}

struct Phase {
    heard: Heard,
    numbered: Seen,
    goodput: Rate,
    late: super::traffic::Delays,
    /// Edits that were refused, with the first reason.
    refused: Option<String>,
    /// Frames that weir dropped of what ran below its share.
    dropped: Option<u64>,
    /// And of anything, before it was in the books.
    at_ports: Option<u64>,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let (edits, toggles) = if run.short { (50, 10) } else { (1_000, 100) };
    let world = World::make(Sketch { hosts: 200, line: None }, run.shell.clone())?;
    let joined = Joined::start(&world, middle, &policy::edited(0))?;
    run.out.line(&format!(
        "edits through {}: a call, {NUMBERED_RATE} of numbered packets each way and {TRANSFERS}\n\
         of TCP down, through {edits} edits and {toggles} times observe and shape; bar: nothing\n\
         numbered is lost or dropped in the books, the call sounds the same to {MOS_BAR}",
        middle.name()
    ));
    if middle == Middle::Bridge {
        run.out.line("(the bridge has no policy: each edit is only checked)");
    }
    run.out.flush();
    let calm = if run.short { Span::from_secs(3) } else { Span::from_secs(15) };
    let undisturbed = phase(&world, &joined, || {
        clock::sleep(calm);
        Ok(())
    })?;
    let edited = phase(&world, &joined, || {
        (1..=edits).try_for_each(|edit| {
            clock::sleep(PAUSE);
            joined.apply(&policy::edited(edit))
        })
    })?;
    let toggled = phase(&world, &joined, || {
        (0..toggles).try_for_each(|_| {
            joined.observe()?;
            clock::sleep(PAUSE);
            joined.shape()?;
            clock::sleep(PAUSE);
            Ok(())
        })
    })?;
    drop(joined);
    let mut table = Table::new(
        1,
        &[
            "while",
            "numbered sent",
            "lost",
            "doubled",
            "overtaken",
            "dropped by weir",
            "at its ports",
            "call lost",
            "call p99 ms",
            "MOS",
            "TCP",
            "late ms p99/max",
        ],
    );
    for (name, phase) in [("nothing", &undisturbed), ("edits", &edited), ("observe", &toggled)] {
        let verdict = phase.judge(&undisturbed);
        table.row(phase.cells(name), verdict);
    }
    for why in [&edited, &toggled].into_iter().filter_map(|phase| phase.refused.as_ref()) {
        run.out.line(&format!("an edit was refused: {why}"));
    }
    Ok(run.conclude(&table))
}

fn phase(
    world: &World,
    joined: &Joined,
    meanwhile: impl FnOnce() -> Result<(), String>,
) -> Result<Phase, String> {
    let (before, ports_before) = (joined.books()?, joined.lost_at_ports()?);
    let load = Load::start(world)?;
    clock::sleep(Span::from_secs(1));
    let late = Lateness::watch();
    let (start, had) = (clock::now(), load.transfers.received());
    let refused = meanwhile().err();
    let time = clock::now().since(start);
    let bits = (load.transfers.received() - had) * 8;
    let late = late.stop();
    let (heard, numbered) = load.stop()?;
    let dropped = before.zip(joined.books()?).map(|(before, after)| {
        dropped(&after, NUMBERED) - dropped(&before, NUMBERED).min(dropped(&after, NUMBERED))
    });
    let at_ports = ports_before.zip(joined.lost_at_ports()?);
    let at_ports = at_ports.map(|(before, after)| after.saturating_sub(before));
    let goodput = u128::from(bits) * 1_000_000_000 / u128::from(time.ns().max(1));
    // to the hundredth of a Mbit/s
    let goodput = u64::try_from(goodput / 10_000 * 10_000).unwrap_or(u64::MAX);
    Ok(Phase {
        heard,
        numbered,
        goodput: Rate::from_bps(goodput),
        late,
        refused,
        dropped,
        at_ports,
    })
}

fn told(count: Option<u64>) -> String {
    count.map_or_else(|| "-".to_owned(), |n| n.to_string())
}

/// Frames dropped of a class in both directions.
fn dropped(books: &[Book], class: &str) -> u64 {
    books
        .iter()
        .filter(|book| book.class == class)
        .map(|book| book.counters.dropped_in_all().frames)
        .sum()
}

impl Load {
    fn start(world: &World) -> Result<Load, String> {
        let (lan, wan) = world.ends(0, CALL_PORT);
        let call = Call::start(&lan, &wan)?;
        let flood = Flood::new(NUMBERED_RATE, PACKET);
        // one host each way: both of their ends use the port that the class goes by
        let (lan_up, wan_up) = world.ends(1, NUMBERED_PORT);
        let wan_down = End::new(&world.wan, WAN_HOST, NUMBERED_PORT + 1);
        let lan_down = End::new(&world.lan, lan_host(2), NUMBERED_PORT);
        let numbered = [flood.start(&lan_up, &wan_up)?, flood.start(&wan_down, &lan_down)?];
        let (lan, wan) = world.ends(3, BULK_PORT);
        let bulk = Bulk { connections: 2, rate: Some(TRANSFERS) };
        Ok(Load { call, numbered, transfers: bulk.start(&wan, &lan)? })
    }

    /// What was heard, and both numbered streams as one.
    fn stop(self) -> Result<(Heard, Seen), String> {
        self.transfers.stop()?;
        let [one, other] = self.numbered;
        let (mut one, other) = (one.stop()?, other.stop()?);
        one.sent += other.sent;
        one.tally.arrived += other.tally.arrived;
        one.tally.doubled += other.tally.doubled;
        one.tally.overtaken += other.tally.overtaken;
        Ok((self.call.stop()?, one))
    }
}

impl Phase {
    fn judge(&self, undisturbed: &Phase) -> Verdict {
        let complete = self.numbered.lost() == 0 && self.numbered.tally.doubled == 0;
        let kept = self.dropped.unwrap_or(0) == 0 && self.refused.is_none();
        let sounds_the_same = (self.heard.mos - undisturbed.heard.mos).abs() <= MOS_BAR;
        let in_order = self.numbered.tally.overtaken == 0;
        if complete && kept && sounds_the_same && in_order {
            return Verdict::Held;
        }
        // what weir itself has dropped, no late machine excuses
        let bearable = if kept { LATE_BAR } else { Span::MAX };
        Verdict::Failed.unless_late(self.late.longest(), bearable)
    }

    fn cells(&self, name: &str) -> Vec<String> {
        vec![
            name.to_owned(),
            self.numbered.sent.to_string(),
            self.numbered.lost().to_string(),
            self.numbered.tally.doubled.to_string(),
            self.numbered.tally.overtaken.to_string(),
            told(self.dropped),
            told(self.at_ports),
            format!("{} of {}", self.heard.lost, self.heard.sent),
            ms(self.heard.p99),
            format!("{:.2}", self.heard.mos),
            self.goodput.to_string(),
            lateness(&self.late),
        ]
    }
}
