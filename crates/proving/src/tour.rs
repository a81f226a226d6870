//! The tour's last part, for who is root: the same home on real interfaces, with the kernel's own
//! TCP, in network namespaces that are made for it and go with it.

use weir_units::{Rate, Span};

use crate::Paper;
use crate::clock::{now, sleep};
use crate::middle::{Joined, Middle, Signal};
use crate::shell::Shell;
use crate::traffic::{Bulk, Call, Heard, Ping, Transfer};
use crate::world::{Line, Sketch, World};

/// What the provider carries, with a queue as modems have it: a second of it on the way up.
const LINE: Line =
    Line { down: Rate::from_bps(50_000_000), up: Rate::from_bps(10_000_000), queue: 1_250_000 };

/// A call is listened to for so long before its line is printed.
const LISTEN: Span = Span::from_secs(2);
const LINES: usize = 3;

const CALL_PORT: u16 = 16_384;
const PING_PORT: u16 = 7_100;
const BACKUP_PORT: u16 = 873;

/// The home's policy on the interfaces of this world.
fn policy(home: &str, backup: &str) -> String {
    let home = home.replace("down = \"100mbit\"", "down = \"48mbit\"");
    let home = home.replace("up = \"20mbit\"", "up = \"9.7mbit\"");
    home.replace("weight = \"1mbit\"\n", &format!("weight = \"1mbit\"\n{backup}"))
}

/// Shows it, with the policy of a home on a line of 100 Mbit/s down and 20 up; says in the end what
/// made the difference.
///
/// # Errors
///
/// What could not be played.
pub fn show(home: &str, out: &mut dyn Paper) -> Result<(), String> {
    let world = World::make(Sketch { hosts: 3, line: Some(LINE) }, Shell { verbose: false })?;
    out.line(
        "   a provider's line of 50 Mbit/s down and 10 up with a second of queue; a backup over",
    );
    out.line("   four TCP connections fills it upwards, and somebody makes a call");

    said(out, "without weir: the box is a plain bridge");
    let bridge = Joined::start(&world, Middle::Bridge, "")?;
    let backup = backup(&world)?;
    let without = listen(&world, &backup, out, LINES)?;
    drop(bridge);

    said(out, "weir run --config home.toml");
    let mut weir = Joined::start(&world, Middle::Xdp, &policy(home, ""))
        .or_else(|_| Joined::start(&world, Middle::Packet, &policy(home, "")))?;
    // what stands in the provider's queue has to leave first
    sleep(LISTEN);
    let with = listen(&world, &backup, out, LINES)?;

    said(out, "weir apply home.toml     # the backup may have 3 Mbit/s at most, from now on");
    weir.apply(&policy(home, "ceil = { up = \"3mbit\" }\n"))?;
    listen(&world, &backup, out, 1)?;

    said(out, "kill -9 weir             # and start it again two seconds later");
    let silences = killed(&world, &mut weir)?;
    out.line(&format!(
        "  a ping every 5 ms was without an answer for {} when weir died, {} when it came back",
        ms(silences[0]),
        ms(silences[1])
    ));
    let after = listen(&world, &backup, out, 1)?;
    backup.stop()?;
    drop(weir);
    out.line("");
    out.line(&format!(
        "On this wire the call had a MOS of {:.1} without weir (99 % of it within {}) and {:.1}",
        without.mos,
        ms(without.p99),
        with.mos
    ));
    out.line(&format!(
        "with it ({}), and {:.1} after weir was killed and came back. MOS: 1 is bad, 4.4 the best",
        ms(with.p99),
        after.mos
    ));
    out.line("that this voice can have.");
    Ok(())
}

fn said(out: &mut dyn Paper, command: &str) {
    out.line("");
    out.line(&format!("$ {command}"));
    out.flush();
}

fn backup(world: &World) -> Result<Transfer, String> {
    let (lan, wan) = world.ends(0, BACKUP_PORT);
    let transfer = Bulk { connections: 4, rate: None }.start(&lan, &wan)?;
    // until it has filled what it finds
    sleep(Span::from_secs(2));
    Ok(transfer)
}

/// A call after the other beside the backup, a line for each; the last one is returned.
fn listen(
    world: &World,
    backup: &Transfer,
    out: &mut dyn Paper,
    calls: usize,
) -> Result<Heard, String> {
    let mut last = None;
    for _ in 0..calls {
        let (lan, wan) = world.ends(1, CALL_PORT);
        let (bytes, since) = (backup.received(), now());
        let call = Call::start(&lan, &wan)?;
        sleep(LISTEN);
        let heard = call.stop()?;
        let took = now().since(since).ns() / 1_000_000;
        let kbit = (backup.received() - bytes) * 8 / took.max(1);
        out.line(&format!(
            "  backup {}.{} Mbit/s   call: MOS {:.1}, {} of {} lost, 99 % within {}",
            kbit / 1_000,
            kbit / 100 % 10,
            heard.mos,
            heard.lost,
            heard.sent,
            ms(heard.p99)
        ));
        out.flush();
        last = Some(heard);
    }
    last.ok_or_else(|| "nobody called".to_owned())
}

/// The longest silences of a ping while weir is killed, and while it comes back.
fn killed(world: &World, weir: &mut Joined<'_>) -> Result<[Span; 2], String> {
    let (lan, wan) = world.ends(2, PING_PORT);
    let ping = Ping::start(&lan, &wan)?;
    sleep(Span::from_ms(500));
    let before = now();
    weir.signal(Signal::Kill)?;
    sleep(LISTEN);
    let between = now();
    weir.run()?;
    sleep(Span::from_ms(500));
    let after = now();
    let echoes = ping.stop()?;
    Ok([echoes.silence(before, between), echoes.silence(between, after)])
}

fn ms(span: Span) -> String {
    format!("{} ms", span.ns().div_ceil(1_000_000))
}
