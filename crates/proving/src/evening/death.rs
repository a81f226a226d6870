//! Who dies or stands still: the daemon, its helper, its guard, any two of them in every order, and
//! all at once.

use weir_units::Span;

use super::cuts::Watched;
use super::{CUT, Evening, end_all};
use crate::clock;
use crate::family::{self, Member, Role};
use crate::middle::{Joined, Middle};
use crate::policy;
use crate::world::World;

/// What is looked at after each blow.
const AFTER: Span = Span::from_ms(400);

/// How long weir may take until all its processes are there and its pulse beats.
const SETTLES: Span = Span::from_ms(300);

/// An orderly end of packet sockets and a new start.
const ORDERLY: Span = Span::from_ms(20);

/// What `weir stop` may take.
const STOP: Span = Span::from_secs(3);

/// A new guard, after the old one was killed.
const NEW_GUARD: Span = Span::from_secs(3);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Blow {
    Kill,
    Stop,
}

type Hit = (Role, Blow);

impl Blow {
    fn word(self) -> &'static str {
        match self {
            Blow::Kill => "-KILL",
            Blow::Stop => "-STOP",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Blow::Kill => "killed",
            Blow::Stop => "stopped",
        }
    }
}

/// Everyone alone, then every two in every order.
fn cases(roles: &[Role]) -> Vec<Vec<Hit>> {
    let hits = |role: Role| [(role, Blow::Kill), (role, Blow::Stop)];
    let mut cases: Vec<Vec<Hit>> =
        roles.iter().flat_map(|role| hits(*role)).map(|hit| vec![hit]).collect();
    for &first in roles {
        for &second in roles.iter().filter(|role| **role != first) {
            let pairs = hits(first).into_iter().flat_map(|a| hits(second).map(|b| vec![a, b]));
            cases.extend(pairs);
        }
    }
    cases
}

/// Those that have cut the line before, or nearly.
fn sample(roles: &[Role]) -> Vec<Vec<Hit>> {
    use Blow::{Kill, Stop};
    use Role::{Daemon, Guard, Helper};
    let all: [&[Hit]; 6] = [
        &[(Daemon, Kill)],
        &[(Daemon, Stop)],
        &[(Guard, Kill), (Daemon, Kill)],
        &[(Guard, Stop), (Daemon, Stop)],
        &[(Helper, Stop), (Daemon, Kill)],
        &[(Daemon, Stop), (Helper, Kill)],
    ];
    let known = |case: &&[Hit]| case.iter().all(|(role, _)| roles.contains(role));
    all.into_iter().filter(known).map(<[Hit]>::to_vec).collect()
}

/// What runs with this way of I/O. A weir without a helper is one from before there was any.
fn roles(members: &[Member]) -> Vec<Role> {
    let all = [Role::Daemon, Role::Guard, Role::Helper];
    all.into_iter().filter(|role| family::find(members, *role).is_some()).collect()
}

pub(super) fn one_or_two(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    clock::sleep(SETTLES);
    let members = family::of(&world.box_)?;
    let roles = roles(&members);
    let wanted = if evening.middle == Middle::Packet { 3 } else { 2 };
    let names: Vec<&str> = roles.iter().map(|role| role.name()).collect();
    evening.check("processes", names.join(", "), &wanted.to_string(), roles.len() == wanted);
    end_all(&world, joined)?;
    let cases = if evening.short { sample(&roles) } else { cases(&roles) };
    // it is heard only while weir runs or the bridge carries; a case looks at its own time alone
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    let mut watched = Watched::start(&world)?;
    end_all(&world, joined)?;
    for case in &cases {
        play(evening, &world, case, &mut watched)?;
    }
    watched.end(evening)
}

fn play(
    evening: &Evening,
    world: &World,
    case: &[Hit],
    watched: &mut Watched,
) -> Result<(), String> {
    let joined = evening.start(world, &policy::edited(0), &[])?;
    clock::sleep(SETTLES);
    let members = family::of(&world.box_)?;
    let mut said = String::new();
    let mut down = Vec::new();
    for (role, blow) in case {
        let pid = family::find(&members, *role)
            .ok_or_else(|| format!("there is no {}: {members:?}", role.name()))?;
        let comma = if said.is_empty() { "" } else { ", then " };
        said += &format!("{comma}{} {}", role.name(), blow.name());
        watched.blow(&said, (CUT, AFTER), || {
            family::signal(blow.word(), &[pid]);
            Ok(())
        })?;
        down.push(*role);
        if !down.contains(&Role::Daemon) {
            watched.excuse(joined.trouble().unwrap_or_default());
        }
    }
    end_all(world, joined)
}

pub(super) fn stop_without_a_guard(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let blows = [(Role::Guard, Blow::Kill), (Role::Guard, Blow::Stop), (Role::Helper, Blow::Stop)];
    for (role, blow) in blows {
        let joined = evening.start(&world, &policy::edited(0), &[])?;
        let mut watched = Watched::start(&world)?;
        let members = family::of(&world.box_)?;
        let Some(pid) = family::find(&members, role) else {
            evening.cannot(role.name(), "there is none");
            end_all(&world, joined)?;
            continue;
        };
        let what = format!("{} {}, then `weir stop`", role.name(), blow.name());
        let stopped = watched.blow(&what, (CUT, AFTER + AFTER), || {
            family::signal(blow.word(), &[pid]);
            Ok(stop(&joined))
        })?;
        end_all(&world, joined)?;
        watched.end(evening)?;
        has_stopped(evening, &what, stopped);
    }
    Ok(())
}

/// Nobody is left who could tell the bridge: the line is cut, as docs/run.md says, until weir is
/// started again, with AF_XDP now.
pub(super) fn all_at_once(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    clock::sleep(SETTLES);
    end_all(&world, joined)?;
    let mut joined = Joined::prepare(&world, Middle::Xdp, &policy::edited(0), evening.how()?)?;
    joined.run()?;
    let mut watched = Watched::start(&world)?;
    watched.blow("started with AF_XDP", (CUT, AFTER), || Ok(()))?;
    watched.blow("then killed all at once", (CUT, AFTER), || family::end(&world.box_))?;
    drop(joined);
    watched.end(evening)
}

pub(super) fn a_new_guard(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let joined = evening.start(&world, &policy::edited(0), &[])?;
    clock::sleep(SETTLES);
    for blow in [Blow::Kill, Blow::Stop] {
        let old = family::find(&family::of(&world.box_)?, Role::Guard).ok_or("no guard")?;
        let began = clock::now();
        family::signal(blow.word(), &[old]);
        let took = loop {
            let guard = family::find(&family::of(&world.box_)?, Role::Guard);
            let took = clock::now().since(began);
            if guard.is_some_and(|guard| guard != old) {
                break Some(took);
            }
            if took > NEW_GUARD {
                break None;
            }
            clock::sleep(Span::from_ms(10));
        };
        let measured =
            took.map_or("none".to_owned(), |took| format!("after {} ms", took.ns() / 1_000_000));
        let what = format!("the guard {}: a new one", blow.name());
        evening.check(&what, measured, "3 s", took.is_some());
    }
    let trouble = joined.trouble()?;
    evening.check("trouble afterwards", trouble.join("; "), "none", trouble.is_empty());
    end_all(&world, joined)
}

/// `weir stop`, and how long that took.
fn stop(joined: &Joined<'_>) -> (Result<String, String>, Span) {
    let began = clock::now();
    let answer = joined.ask(&["stop"]);
    (answer, clock::now().since(began))
}

fn has_stopped(evening: &mut Evening, what: &str, (answer, took): (Result<String, String>, Span)) {
    let said = answer.as_ref().map_or_else(Clone::clone, |_| "done".to_owned());
    let measured = format!("{said} after {} ms", took.ns() / 1_000_000);
    evening.check(&format!("{what}: its end"), measured, "3 s", answer.is_ok() && took < STOP);
}

pub(super) fn stopped_and_started(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    let mut joined = evening.start(&world, &policy::edited(0), &[])?;
    let mut watched = Watched::start(&world)?;
    for _ in 0..if evening.short { 1 } else { 3 } {
        let stopped = watched.blow("`weir stop`", (ORDERLY, AFTER), || Ok(stop(&joined)))?;
        has_stopped(evening, "`weir stop`", stopped);
        joined.ends_within(STOP);
        watched.blow("a new start", (ORDERLY, AFTER), || joined.run())?;
    }
    end_all(&world, joined)?;
    watched.end(evening)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_one_and_every_two_are_played_once() {
        let all = cases(&[Role::Daemon, Role::Guard, Role::Helper]);
        assert_eq!(all.len(), 3 * 2 + 6 * 4);
        assert_eq!(cases(&[Role::Daemon, Role::Helper]).len(), 2 * 2 + 2 * 4);
        for (at, case) in all.iter().enumerate() {
            assert!(!all[..at].contains(case), "{case:?}");
        }
        assert_eq!(sample(&[Role::Daemon, Role::Helper]).len(), 4);
    }
}
