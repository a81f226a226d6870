//! Everything of a system that weir could leave behind, in lines that can be compared.

use std::collections::BTreeSet;

use super::page::Place;
use super::world::World;

/// What is looked at. Of files the names: those that apt and dpkg keep for themselves aside, and
/// backups of the list of users.
const LOOKS: [(&str, &str); 7] = [
    (
        "file",
        "find / -xdev ! -path '/proc/*' ! -path \"$HOME/*\" ! -path '/tmp/*' \
         ! -path '/var/cache/*' \
         ! -path '/var/log/*' ! -path '/var/lib/apt/*' ! -path '/var/lib/dpkg/*' ! -path '/etc/*-' \
         ! -path '/var/lib/systemd/*'; find /run -path '*weir*'",
    ),
    // timers of bridges run, and a state follows the cable
    ("interface", "ip -d -o link show | sed -E 's/timer +[0-9.]+//g; s/ state [A-Z]+//'"),
    ("eth1", "ethtool -k eth1"),
    ("eth2", "ethtool -k eth2"),
    ("firewall", "nft list ruleset"),
    ("process", "ps -eo comm,args | grep '[w]eir ' || true"),
    ("user", "cat /etc/passwd /etc/group"),
];

pub(super) struct Traces(BTreeSet<String>);

pub(super) fn of(world: &mut World) -> Result<Traces, String> {
    let mut lines = BTreeSet::new();
    for (kind, look) in LOOKS {
        let said = world.run(Place::Box, look)?;
        if let Some(why) = said.status_against() {
            return Err(format!("{look}: {why}: {}", said.text().trim()));
        }
        lines.extend(said.text().lines().map(|line| format!("{kind} {}", line.trim())));
    }
    Ok(Traces(lines))
}

impl Traces {
    /// What is there now and was not, and the other way round.
    pub(super) fn differences(&self, before: &Traces) -> Vec<String> {
        let come = self.0.difference(&before.0).map(|line| format!("+ {line}"));
        let gone = before.0.difference(&self.0).map(|line| format!("- {line}"));
        come.chain(gone).collect()
    }
}
