//! The ports themselves: many queues, links that go down, interfaces that vanish.

use weir_units::{Rate, Span};

use super::asks::ask;
use super::cuts::Watched;
use super::{CUT, Evening, end_all};
use crate::clock::{self, Lateness};
use crate::family::{self, Role};
use crate::middle::{Joined, Middle, Signal};
use crate::policy::{self, NUMBERED_PORT};
use crate::traffic::{Flood, Seen};
use crate::world::{WAN_HOST, World};

const FLOOD: Rate = Rate::from_bps(4_000_000);

/// What weir may take until it has seen what is wrong: it looks every second.
const SEEN_WITHIN: Span = Span::from_secs(4);
const LOOK: Span = Span::from_ms(200);

/// Flows that are enough to meet every queue.
const FLOWS: u16 = 256;

pub(super) fn many_queues(evening: &mut Evening) -> Result<(), String> {
    let all: &[u16] = if evening.short { &[16] } else { &[8, 16] };
    for &queues in all {
        let world = evening.world()?;
        world.unplug_lan()?;
        world.plug_lan_with(queues)?;
        let joined = evening.start(&world, &policy::edited(0), &[])?;
        let mut watched = Watched::start(&world)?;
        let what = format!("{queues} queues: ");
        watched.blow(&format!("{what}a ping"), (CUT, Span::from_secs(1)), || Ok(()))?;
        let (from, to) = world.ends(3, NUMBERED_PORT);
        let asked = ask(&from, &to, FLOWS)?;
        let measured = format!("{} of {} flows answered", asked.answered, asked.asked);
        evening.check(&(what.clone() + "flows"), measured, "all", asked.answered == asked.asked);
        if evening.middle == Middle::Xdp {
            let used = queues_used(&world)?;
            let measured = format!("{used} had frames");
            let bar = queues.to_string();
            evening.check(&(what.clone() + "queues"), measured, &bar, used == usize::from(queues));
        }
        // weir looks once a second
        clock::sleep(Span::from_ms(1_500));
        let trouble = joined.trouble()?;
        evening.check(&(what + "trouble"), trouble.join("; "), "none", trouble.is_empty());
        end_all(&world, joined)?;
        watched.end(evening)?;
    }
    Ok(())
}

/// Receive queues of the port that the program has seen a frame of.
fn queues_used(world: &World) -> Result<usize, String> {
    let text = world.box_.ask("ethtool -S eth1")?;
    let used = text.lines().filter(|line| {
        let Some((name, count)) = line.trim().split_once(": ") else { return false };
        name.starts_with("rx_queue_") && name.ends_with("_xdp_packets") && count.trim() != "0"
    });
    Ok(used.count())
}

/// Numbered packets towards the WAN, whose neighbour does not have to be asked for.
fn numbered(
    evening: &mut Evening,
    what: &str,
    strike: impl FnOnce(&World, &mut Joined<'_>) -> Result<(), String>,
) -> Result<Seen, String> {
    let world = evening.world()?;
    world.lan.ip(&format!("neigh replace {WAN_HOST} lladdr 02:00:00:4d:00:02 dev lan0"))?;
    let mut joined = evening.start(&world, &policy::edited(0), &[])?;
    let (lan, wan) = world.ends(1, NUMBERED_PORT);
    let flow = Flood::new(FLOOD, 1_000).start(&lan, &wan)?;
    clock::sleep(Span::from_secs(1));
    let late = Lateness::watch();
    let from = clock::now();
    strike(&world, &mut joined)?;
    clock::sleep(Span::from_secs(2));
    let seen = flow.stop()?;
    let late = late.stop_with_moments().between(from, clock::now());
    end_all(&world, joined)?;
    let oldest = seen.tally.delays.longest();
    evening.cut(&format!("{what}: the oldest that came"), oldest, CUT, late, &[]);
    let measured = format!("{} of {} came", seen.tally.arrived, seen.sent);
    let enough = seen.tally.arrived * 2 > seen.sent;
    evening.check(&format!("{what}: packets"), measured, "half", enough);
    Ok(seen)
}

pub(super) fn down_for_a_second(evening: &mut Evening) -> Result<(), String> {
    let all: &[&str] = if evening.short { &["eth2"] } else { &["eth1", "eth2"] };
    for port in all {
        numbered(evening, &format!("{port} down for 1 s"), |world, _| {
            world.box_.ip(&format!("link set {port} down"))?;
            clock::sleep(Span::from_secs(1));
            world.box_.ip(&format!("link set {port} up"))
        })?;
    }
    Ok(())
}

pub(super) fn stopped_and_continued(evening: &mut Evening) -> Result<(), String> {
    let seen = numbered(evening, "SIGSTOP, SIGCONT after 1 s", |_, joined| {
        joined.signal(Signal::Stop)?;
        clock::sleep(Span::from_secs(1));
        joined.signal(Signal::Continue)
    })?;
    let (overtaken, doubled) = (seen.tally.overtaken, seen.tally.doubled);
    let measured = format!("{overtaken} out of order, {doubled} twice");
    evening.check("SIGSTOP, SIGCONT: order", measured, "none", overtaken + doubled == 0);
    Ok(())
}

pub(super) fn trouble(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    clock::sleep(Span::from_ms(1_500));
    let none = joined.trouble()?;
    evening.check("a sound link", none.join("; "), "no trouble", none.is_empty());
    world.lan.ip("link set lan0 down")?;
    told(evening, &joined, "link down", "eth1")?;
    world.lan.ip("link set lan0 up")?;
    cured(evening, &joined, "link up again")?;
    world.unplug_lan()?;
    told(evening, &joined, "port gone", "eth1")?;
    world.plug_lan()?;
    cured(evening, &joined, "port back")?;
    let members = family::of(&world.box_)?;
    for role in [Role::Helper, Role::Guard] {
        if let Some(pid) = family::find(&members, role) {
            family::signal("-KILL", &[pid]);
            told(evening, &joined, &format!("{} dead", role.name()), role.name())?;
        }
    }
    end_all(&world, joined)
}

/// Trouble must name this, say what cures it, and make `weir status` end with 1.
fn told(evening: &mut Evening, joined: &Joined<'_>, what: &str, name: &str) -> Result<(), String> {
    let until = clock::now() + SEEN_WITHIN;
    loop {
        let trouble = joined.trouble()?;
        let named = trouble.iter().find(|trouble| {
            // another trouble may mention it
            trouble.trim_start_matches("the ").starts_with(name)
        });
        if named.is_none() && clock::now() < until {
            clock::sleep(LOOK);
            continue;
        }
        let (status, _, _) = joined.try_ask(&["status"])?;
        let has_cure = |said: &String| {
            said.rsplit_once(": ").or(said.split_once("; ")).is_some_and(|(_, cure)| cure.len() > 8)
        };
        let held = named.is_some_and(has_cure) && status.code() == Some(1);
        let said = named.map_or("not in trouble", String::as_str);
        let measured = format!("{said} (exit {})", status.code().unwrap_or(-1));
        evening.check(what, measured, "named, with a cure; exit 1", held);
        return Ok(());
    }
}

fn cured(evening: &mut Evening, joined: &Joined<'_>, what: &str) -> Result<(), String> {
    let until = clock::now() + SEEN_WITHIN;
    let mut trouble = joined.trouble()?;
    while !trouble.is_empty() && clock::now() < until {
        clock::sleep(LOOK);
        trouble = joined.trouble()?;
    }
    evening.check(what, trouble.join("; "), "no trouble", trouble.is_empty());
    Ok(())
}
