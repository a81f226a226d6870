//! The processes of weir in a namespace: `weir run`, its helper and its guard, also those that have
//! lost their parent.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use weir_units::Span;

use super::clock;
use super::world::Place;

/// What a process of weir does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Role {
    Daemon,
    Helper,
    Guard,
}

impl Role {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Role::Daemon => "daemon",
            Role::Helper => "helper",
            Role::Guard => "guard",
        }
    }

    /// By the first words of a command.
    fn of(words: &[&str]) -> Option<Role> {
        let (program, word) = (words.first()?, words.get(1)?);
        if !program.rsplit('/').next()?.starts_with("weir") {
            return None;
        }
        match *word {
            "run" => Some(Role::Daemon),
            "helper" => Some(Role::Helper),
            "guard" => Some(Role::Guard),
            _ => None,
        }
    }
}

/// A process, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) role: Role,
    pub(crate) pid: u32,
}

/// All of weir in a place that run now; one that has ended and was not waited for does not count.
pub(crate) fn of(place: &Place) -> Result<Vec<Member>, String> {
    let inside = place.within(|| {
        fs::read_link("/proc/thread-self/ns/net").map_err(|e| format!("/proc/thread-self: {e}"))
    })?;
    let entries = fs::read_dir("/proc").map_err(|e| format!("/proc: {e}"))?;
    let mut members = Vec::new();
    for entry in entries.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if fs::read_link(entry.path().join("ns/net")).is_ok_and(|space| space == inside)
            && let Some(role) = role(&entry.path())
        {
            members.push(Member { role, pid });
        }
    }
    members.sort();
    Ok(members)
}

/// The first that does this.
pub(crate) fn find(members: &[Member], role: Role) -> Option<u32> {
    members.iter().find(|member| member.role == role).map(|member| member.pid)
}

fn role(folder: &Path) -> Option<Role> {
    // empty of one that has ended
    let line = fs::read(folder.join("cmdline")).ok()?;
    let words: Vec<&str> =
        line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok()).collect();
    Role::of(&words)
}

/// A signal such as `-KILL` to processes that may have ended.
pub(crate) fn signal(word: &str, pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let mut command = Command::new("kill");
    command.arg(word).args(pids.iter().map(u32::to_string));
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Kills all of weir in a place at once, and waits until they are gone.
pub(crate) fn end(place: &Place) -> Result<(), String> {
    const PATIENCE: Span = Span::from_secs(3);
    let until = clock::now() + PATIENCE;
    loop {
        let members = of(place)?;
        if members.is_empty() {
            return Ok(());
        }
        if clock::now() > until {
            return Err(format!("{}: processes that cannot be killed: {members:?}", place.name));
        }
        let pids: Vec<u32> = members.iter().map(|member| member.pid).collect();
        signal("-KILL", &pids);
        clock::sleep(Span::from_ms(5));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_known_by_their_first_words() {
        assert_eq!(Role::of(&["weir", "helper", "--link"]), Some(Role::Helper));
        assert_eq!(Role::of(&["/x/weir", "run"]), Some(Role::Daemon));
        assert_eq!(Role::of(&["/x/weir", "guard", "--page"]), Some(Role::Guard));
        assert_eq!(Role::of(&["sh", "-c", "weir run"]), None);
        assert_eq!(Role::of(&["weir"]), None);
    }
}
