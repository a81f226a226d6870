//! Do frames pass at all? A few seconds of everything, for a first look and for the tests.

use weir_units::{Rate, Span};

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Joined, Middle};
use super::policy::{self, BULK_PORT, CALL_PORT, NUMBERED_PORT, PING_PORT};
use super::traffic::{Bulk, Call, Flood, Ping};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Line, Sketch, World};

/// The provider's line behind the box, which the policy stays below.
const LINE: Line =
    Line { down: Rate::from_bps(120_000_000), up: Rate::from_bps(120_000_000), queue: 500_000 };

const RATE: Rate = Rate::from_bps(4_000_000);

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let world = World::make(Sketch { hosts: 10, line: Some(LINE) }, run.shell.clone())?;
    let joined = Joined::start(&world, middle, &policy::edited(0))?;
    let time = if run.short { Span::from_secs(2) } else { Span::from_secs(5) };
    let late = Lateness::watch();
    let (lan, wan) = world.ends(0, CALL_PORT);
    let call = Call::start(&lan, &wan)?;
    let (lan, wan) = world.ends(1, PING_PORT);
    let ping = Ping::start(&lan, &wan)?;
    let (lan, wan) = world.ends(2, NUMBERED_PORT);
    let flood = Flood::new(RATE, 1_000).start(&lan, &wan)?;
    let (lan, wan) = world.ends(3, BULK_PORT);
    let bulk = Bulk { connections: 2, rate: None }.start(&wan, &lan)?;
    let start = clock::now();
    clock::sleep(time);
    let end = clock::now();
    let bytes = bulk.stop()?;
    let (flood, heard, echoes) = (flood.stop()?, call.stop()?, ping.stop()?);
    let late = late.stop();
    let books = joined.books()?;
    drop(joined);

    run.out.line(&format!("path through {}, 120 Mbit/s behind it", middle.name()));
    let mut table = Table::new(1, &["traffic", "sent", "arrived", "seen"]);
    let mut row = |name: &str, sent: u64, arrived: u64, seen: String| {
        let cells = vec![name.to_owned(), sent.to_string(), arrived.to_string(), seen];
        table.row(cells, Verdict::of(arrived > 0));
    };
    row(
        "numbered up",
        flood.sent,
        flood.tally.arrived,
        format!("p99 {} ms", ms(flood.tally.delays.at_most(990).unwrap_or(Span::ZERO))),
    );
    let sound = format!("MOS {:.2}, p99 {} ms", heard.mos, ms(heard.p99));
    row("call", heard.sent, heard.sent - heard.lost, sound);
    let p99 = echoes.delays.at_most(990).unwrap_or(Span::ZERO);
    let silence = ms(echoes.silence(start, end));
    let back = echoes.delays.count();
    row("ping", echoes.sent, back, format!("p99 {} ms, silence {silence} ms", ms(p99)));
    let goodput = bytes * 8_000 / (end.since(start).ns() / 1_000_000).max(1) / 1_000;
    row("tcp down", 0, bytes, format!("{goodput} kbit/s"));
    if let Some(books) = &books {
        let exact = books.iter().filter(|book| book.counters.is_balanced()).count() as u64;
        row("books", books.len() as u64, exact, "those that balance".to_owned());
    }
    run.out.line(&format!("the machine was late by {} ms (p99/max)", lateness(&late)));
    Ok(run.conclude(&table))
}
