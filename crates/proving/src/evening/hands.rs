//! What an operator does, and means no harm: a terminal that is closed, a pipe that nobody reads, a
//! full disk, a port with an address, a change of mind.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::process::Stdio;

use weir_units::Span;

use super::cuts::Watched;
use super::{CUT, Evening, end_all};
use crate::clock;
use crate::family::{self, Role};
use crate::middle::Joined;
use crate::policy::{self, PING_PORT};
use crate::traffic::Ping;
use crate::world::World;

/// What a command may take.
const ANSWER: Span = Span::from_secs(3);

/// After `apply --confirm 1s` the old policy is back within this.
const BACK_WITHIN: Span = Span::from_secs(3);

/// How long the kernel may take until it says how an interface is.
const SETTLES: Span = Span::from_ms(500);

/// What a pipe holds that nobody reads (pipe(7)).
const PIPE_BYTES: usize = 65_536;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stderr {
    /// A terminal whose window is closed.
    Terminal,
    /// A pipe that is full before weir starts, and nobody reads it.
    FullPipe,
    /// A pipe that becomes full.
    Pipe,
    /// A file on a disk that is full.
    Disk,
}

impl Stderr {
    fn name(self) -> &'static str {
        match self {
            Stderr::Terminal => "a closed terminal",
            Stderr::FullPipe => "a full pipe",
            Stderr::Pipe => "a pipe that fills",
            Stderr::Disk => "a full disk",
        }
    }
}

pub(super) fn standard_error(evening: &mut Evening) -> Result<(), String> {
    let all = [Stderr::Terminal, Stderr::FullPipe, Stderr::Pipe, Stderr::Disk];
    for stderr in all.into_iter().take(if evening.short { 2 } else { all.len() }) {
        if let Err(why) = one_stderr(evening, stderr) {
            evening.check(stderr.name(), why, "", false);
        }
    }
    Ok(())
}

fn one_stderr(evening: &mut Evening, stderr: Stderr) -> Result<(), String> {
    let world = evening.world()?;
    let mut joined = evening.prepare(&world, &policy::edited(0), &[])?;
    // nobody reads it, but it must not be closed
    let _unread = match stderr {
        Stderr::Terminal => {
            let line = format!("exec {}", joined.run_line().join(" "));
            let mut command = world.box_.command("script");
            command.args(["-q", "-c", &line, "/dev/null"]).stdin(Stdio::piped());
            joined.start_by(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
            None
        }
        Stderr::FullPipe | Stderr::Pipe => {
            let failed = |e| format!("a pipe: {e}");
            let (unread, mut full) = std::io::pipe().map_err(failed)?;
            let again = full.try_clone().map_err(failed)?;
            if stderr == Stderr::FullPipe {
                full.write_all(&[b'x'; PIPE_BYTES]).map_err(failed)?;
            }
            start_with(&world, &mut joined, again.into())?;
            // waits for room until nobody can read it any more
            std::thread::spawn(move || full.write_all(&[b'x'; 2 * PIPE_BYTES]));
            Some(unread)
        }
        Stderr::Disk => {
            let full = File::options().write(true).open("/dev/full");
            start_with(&world, &mut joined, full.map_err(|e| format!("/dev/full: {e}"))?.into())?;
            None
        }
    };
    let mut watched = Watched::start(&world)?;
    let name = stderr.name();
    let pid = family::find(&family::of(&world.box_)?, Role::Daemon).ok_or("no daemon")?;
    let revision = revision(&joined)?;
    if stderr == Stderr::Terminal {
        // what a reload would take
        joined.write(&policy::edited(1))?;
        watched.blow(&format!("{name}: a ping"), (CUT, Span::from_ms(1_000)), || {
            joined.signal(crate::middle::Signal::Kill)
        })?;
        let now = revision_of(&joined);
        let measured = format!("revision {now:?}, was {revision}");
        evening.check(&format!("{name}: no reload"), measured, "the same", now == Some(revision));
    } else {
        watched.blow(&format!("{name}: a ping"), (CUT, Span::from_ms(500)), || Ok(()))?;
    }
    for _ in 0..5 {
        family::signal("-USR1", &[pid]);
    }
    commands(evening, &joined, name)?;
    let began = clock::now();
    family::signal("-TERM", &[pid]);
    while clock::now().since(began) < ANSWER
        && family::find(&family::of(&world.box_)?, Role::Daemon).is_some()
    {
        // a child that has ended is waited for by whoever started it
        joined.is_alive();
        clock::sleep(Span::from_ms(10));
    }
    let took = clock::now().since(began);
    evening.check(&format!("{name}: SIGTERM"), seconds(took), "3 s", took < ANSWER);
    end_all(&world, joined)?;
    watched.end(evening)
}

fn start_with(world: &World, joined: &mut Joined<'_>, stderr: Stdio) -> Result<(), String> {
    let line = joined.run_line();
    let mut command = world.box_.command(&line[0]);
    command.args(&line[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    joined.start_by(command.stderr(stderr))
}

/// `observe`, `shape`, and a policy that goes back by itself.
fn commands(evening: &mut Evening, joined: &Joined<'_>, name: &str) -> Result<(), String> {
    let mut timed = |words: &[&str]| {
        let began = clock::now();
        let answer = joined.ask(words);
        let took = clock::now().since(began);
        let held = answer.is_ok() && took < ANSWER;
        let measured = answer.map_or_else(|why| why, |_| seconds(took));
        evening.check(&format!("{name}: weir {}", words[0]), measured, "3 s", held);
    };
    timed(&["observe"]);
    timed(&["shape"]);
    let before = revision_of(joined);
    joined.write(&policy::edited(2))?;
    let file = joined.policy().display().to_string();
    timed(&["apply", &file, "--confirm", "1s"]);
    let applied = revision_of(joined);
    let until = clock::now() + BACK_WITHIN;
    while revision_of(joined) != before && clock::now() < until {
        clock::sleep(Span::from_ms(100));
    }
    let after = revision_of(joined);
    let measured = format!("revision {before:?}, {applied:?}, {after:?}");
    let held = before.is_some() && applied != before && after == before;
    evening.check(&format!("{name}: goes back"), measured, "as before", held);
    Ok(())
}

fn revision(joined: &Joined<'_>) -> Result<u64, String> {
    revision_of(joined).ok_or_else(|| "weir status does not answer".to_owned())
}

fn revision_of(joined: &Joined<'_>) -> Option<u64> {
    joined.status().ok().map(|status| status.revision.number)
}

fn seconds(span: Span) -> String {
    format!("{}.{:02} s", span.ns() / 1_000_000_000, span.ns() / 10_000_000 % 100)
}

pub(super) fn addressed(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    clock::sleep(SETTLES);
    world.box_.ip("addr add 192.0.2.9/24 dev eth1")?;
    let before = interfaces(&world)?;
    let joined = evening.prepare(&world, &policy::edited(0), &[])?;
    let ended = joined.second(Span::from_secs(5))?;
    family::end(&world.box_)?;
    let (status, said) = ended.unwrap_or((None, "it started".to_owned()));
    let named = ["ip link add br0 type bridge", "ip addr flush dev eth1", "192.0.2.9"];
    let missing: Vec<&str> = named.into_iter().filter(|line| !said.contains(line)).collect();
    let first = said.lines().next().unwrap_or_default();
    let measured = format!("exit {status:?}, without {missing:?}: {first}");
    let held = status == Some(2) && missing.is_empty();
    let measured = if held { "exit 2, with the lines".to_owned() } else { measured };
    evening.check("weir run refuses", measured, "exit 2, with the lines", held);
    let changed = difference(&before, &interfaces(&world)?);
    evening.check("interfaces", changed.join("; "), "nothing changed", changed.is_empty());
    Ok(())
}

pub(super) fn no_bypass(evening: &mut Evening) -> Result<(), String> {
    let world = evening.world()?;
    clock::sleep(SETTLES);
    let before = interfaces(&world)?;
    // an ordinary run leaves its bridge
    let mut joined = evening.start(&world, &policy::edited(0), &[])?;
    let pid = family::find(&family::of(&world.box_)?, Role::Daemon).ok_or("no daemon")?;
    family::signal("-TERM", &[pid]);
    joined.ends_within(ANSWER);
    drop(joined);
    let joined = evening.start(&world, &policy::edited(0), &["--no-bypass"])?;
    let (lan, wan) = world.ends(0, PING_PORT);
    let ping = Ping::start(&lan, &wan)?;
    clock::sleep(Span::from_secs(1));
    let pid = family::find(&family::of(&world.box_)?, Role::Daemon).ok_or("no daemon")?;
    let killed = clock::now();
    family::signal("-KILL", &[pid]);
    clock::sleep(Span::from_secs(1));
    let echoes = ping.stop()?;
    let passed = echoes.back.iter().filter(|at| **at < killed).count();
    let leaked = echoes.back.iter().filter(|at| at.since(killed) > Span::from_ms(200)).count();
    evening.check("pings before it is killed", passed.to_string(), "some", passed > 0);
    evening.check("pings afterwards", leaked.to_string(), "0", leaked == 0);
    let (status, printed, said) = joined.try_ask(&["remove"])?;
    let measured =
        format!("exit {:?} {}", status.code(), if said.is_empty() { printed } else { said });
    evening.check("weir remove", measured.replace('\n', ", "), "exit 0", status.success());
    clock::sleep(SETTLES);
    let changed = difference(&before, &interfaces(&world)?);
    evening.check("interfaces", changed.join("; "), "as before", changed.is_empty());
    end_all(&world, joined)
}

/// All that weir may have changed of the box's interfaces, in lines.
fn interfaces(world: &World) -> Result<BTreeSet<String>, String> {
    let mut lines: BTreeSet<String> = BTreeSet::new();
    for line in world.box_.ask("ip -d -o link show")?.lines() {
        lines.insert(settings(line));
    }
    for port in ["eth1", "eth2"] {
        for line in world.box_.ask(&format!("ethtool -k {port}"))?.lines().skip(1) {
            lines.insert(format!("{port} {}", line.trim()));
        }
    }
    Ok(lines)
}

/// A line of `ip` without what the other end of the cable decides.
fn settings(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_state = |at: usize| at > 0 && words[at - 1] == "state";
    let words = words.iter().enumerate().filter(|(at, _)| !is_state(*at));
    let words: Vec<&str> = words.map(|(_, word)| *word).collect();
    words.join(" ").replace("NO-CARRIER,", "").replace(",LOWER_UP", "")
}

/// What is new, as words: of a long line only those that are not in the line it was.
fn difference(before: &BTreeSet<String>, after: &BTreeSet<String>) -> Vec<String> {
    let name = |line: &str| line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>();
    let new = after.difference(before).map(|line| {
        let was = before.iter().find(|was| name(was) == name(line));
        let was: Vec<&str> = was.map_or("", String::as_str).split_whitespace().collect();
        let words = line.split_whitespace().enumerate();
        let changed: Vec<&str> = words
            .filter(|(at, word)| *at < 2 || was.get(*at) != Some(word))
            .map(|(_, word)| word)
            .collect();
        changed.join(" ")
    });
    let gone = before.iter().filter(|was| after.iter().all(|line| name(line) != name(was)));
    new.chain(gone.map(|was| format!("{} is gone", name(was).join(" ")))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_comes_up_is_no_change() {
        let down = "2: eth1: <NO-CARRIER,BROADCAST,UP,LOWER_UP> mtu 1500 state DOWN mode DEFAULT";
        let up = "2: eth1: <BROADCAST,UP,LOWER_UP> mtu 1500  state UP mode DEFAULT";
        assert_eq!(settings(down), settings(up));
        assert_ne!(settings(up), settings(&up.replace("UP>", "UP,PROMISC>")));
    }

    #[test]
    fn a_change_of_an_interface_is_told_in_its_words() {
        let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        let before = set(&["2: eth1 promiscuity 0 mtu 1500", "eth1 gro: on", "3: eth2 x"]);
        let after = set(&["2: eth1 promiscuity 1 mtu 1500", "eth1 gro: off", "4: br0 up"]);
        let changed = difference(&before, &after);
        assert_eq!(changed, ["2: eth1 1", "4: br0 up", "eth1 gro: off", "3: eth2 is gone"]);
        assert_eq!(difference(&before, &before), Vec::<String>::new());
    }
}
