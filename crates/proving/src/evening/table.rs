//! A table of subscribers with a typo in it: nobody may become unlimited by it.

use weir_units::{Rate, Span};

use super::wrapped::{arriving, within};
use super::{Evening, end_all};
use crate::clock;
use crate::family::{self, Role};
use crate::middle::Joined;
use crate::policy::NUMBERED_PORT;
use crate::traffic::Flood;
use crate::world::{World, lan_host};

/// What a host sends, what its plan allows, and what a host has that nobody knows.
const SENT: Rate = Rate::from_bps(15_000_000);
const PLAN: Rate = Rate::from_bps(5_000_000);
const REST: Rate = Rate::from_bps(2_000_000);

/// The hosts: one whose row gets the typo, and one that has no row.
const CUSTOMER: u16 = 0;
const STRANGER: u16 = 5;

const POLICY: &str = "[link.live]\nlan = \"eth1\"\nwan = \"eth2\"\ndown = \"100mbit\"\n\
    up = \"100mbit\"\ncounts = \"ip\"\nrest = \"2mbit\"\n\n[class.\"/sites\"]\n\n\
    [class.\"/sites/tower\"]\nceil = \"50mbit\"\n\n\
    [subscribers]\nfile = \"subscribers.csv\"\nunder = \"/sites\"\n";

pub(super) fn with_a_typo(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    write(&world, "tower")?;
    let joined = evening.start(&world, POLICY, &[])?;
    let pid = family::find(&family::of(&world.box_)?, Role::Daemon).ok_or("no daemon")?;
    measure(evening, &world, ("the customer's plan", CUSTOMER), PLAN)?;
    write(&world, "towre")?;
    family::signal("-HUP", &[pid]);
    clock::sleep(Span::from_ms(1_500));
    measure(evening, &world, ("with the typo: the customer", CUSTOMER), PLAN)?;
    measure(evening, &world, ("with the typo: an unknown host", STRANGER), REST)?;
    let trouble = joined.trouble()?;
    let (status, _, _) = joined.try_ask(&["status"])?;
    let told = trouble.iter().any(|said| said.contains("skipped") || said.contains("towre"));
    let measured = format!("exit {:?}: {}", status.code(), trouble.join("; "));
    let held = told && status.code() == Some(1);
    evening.check("with the typo: status", measured, "trouble, exit 1", held);
    applied(evening, &joined)?;
    end_all(&world, joined)
}

/// `weir apply` refuses a table with such a row, until it is told to take the others.
fn applied(evening: &mut Evening, joined: &Joined<'_>) -> Result<(), String> {
    let file = joined.policy().display().to_string();
    let revision = |joined: &Joined<'_>| joined.status().ok().map(|status| status.revision.number);
    let before = revision(joined);
    let (status, _, said) = joined.try_ask(&["apply", &file])?;
    let last = said.lines().last().unwrap_or_default();
    let held = !status.success() && said.contains("--allow-skipped") && revision(joined) == before;
    let measured = format!("exit {:?}: {last}", status.code());
    evening.check("weir apply", measured, "refused, with the cure", held);
    // something new, for a policy that is in effect already is nothing to apply
    joined.write(&POLICY.replace("50mbit", "40mbit"))?;
    let (status, _, said) = joined.try_ask(&["apply", &file, "--allow-skipped"])?;
    let measured = match revision(joined) == before {
        true => format!("nothing changed: {}", said.lines().last().unwrap_or_default()),
        false => format!("exit {:?}", status.code()),
    };
    evening.check("weir apply --allow-skipped", measured, "applied", revision(joined) != before);
    Ok(())
}

fn write(world: &World, tower: &str) -> Result<(), String> {
    let text = format!(
        "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n\
         s1,Ada,{tower},{},1mbit,5mbit,1mbit,5mbit\ns2,Bob,tower,{},1mbit,5mbit,1mbit,5mbit\n",
        lan_host(CUSTOMER),
        lan_host(1)
    );
    weir_daemon::files::write(&world.folder.join("subscribers.csv"), &text)
}

/// At least half of the ceiling must come too: a host that is cut off is no success.
fn measure(
    evening: &mut Evening,
    world: &World,
    (what, host): (&str, u16),
    ceiling: Rate,
) -> Result<(), String> {
    let (lan, wan) = world.ends(host, NUMBERED_PORT);
    let flow = Flood::new(SENT, 1_000).start(&lan, &wan)?;
    let arrived = arriving(world);
    let seen = flow.stop()?;
    let arrived = arrived?;
    within(evening, what, seen.sent, arrived, ceiling);
    if arrived.bps() < ceiling.bps() / 2 {
        evening.check(what, format!("{arrived}"), "at least half of it", false);
    }
    Ok(())
}
