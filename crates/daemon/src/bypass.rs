//! The way around weir: a bridge of the kernel that has both ports, and carries frames between them
//! only while weir does not. Who decides is the program at the ports (AF_XDP) or the guard.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::process::{Command, Stdio};

use weir_io::netdev::{self, Netdev};

/// A bridge of the kernel over both ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bridge {
    pub(crate) name: String,
    /// Whether the operator made it, who may have given the box an address there.
    pub(crate) is_theirs: bool,
}

/// What of the box itself can be reached over the operator's own bridge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) mac: [u8; 6],
    pub(crate) addresses: Vec<IpAddr>,
}

/// Groups that a bridge may pass on of those that belong to one cable (01:80:c2:00:00:00 to 0f):
/// all but the three that the kernel refuses, which are STP, PAUSE and LACP.
const ALL_GROUPS: &str = "0xfff8";

impl Bridge {
    /// The bridge that both ports are in already, or a new one with both.
    pub(crate) fn over(link: &str, ports: &[Netdev; 2]) -> Result<Bridge, String> {
        let name = name_for(link);
        let ours = netdev::facts(&name).ok();
        match (ports[0].master, ports[1].master) {
            (Some(lan), Some(wan)) if lan == wan => {
                let is_theirs = ours.is_none_or(|ours| ours.index != lan);
                let name = if is_theirs { bridge_of(&ports[0].name)? } else { name };
                let bridge = Bridge { name, is_theirs };
                return bridge.alone_with(ports);
            }
            (None, None) => {}
            _ => return Err(apart(ports)),
        }
        let bridge = Bridge { name, is_theirs: false };
        if ours.is_some() {
            return bridge.alone_with(ports);
        }
        netdev::create_bridge(&bridge.name).map_err(|e| {
            format!(
                "the bridge {} cannot be created: {e}; without it the link is cut if weir dies; \
                 use --no-bypass to accept that",
                bridge.name
            )
        })?;
        Ok(bridge)
    }

    /// The same if no other interface is in it, or why it must not be used: a bridge of weir's with
    /// the ports of two links in it would join two networks if weir stops.
    fn alone_with(self, ports: &[Netdev; 2]) -> Result<Bridge, String> {
        if self.is_theirs {
            return Ok(self);
        }
        let strangers = self.strangers([&ports[0].name, &ports[1].name])?;
        if strangers.is_empty() {
            return Ok(self);
        }
        let lines: Vec<String> =
            strangers.iter().map(|port| format!("`ip link set {port} nomaster`")).collect();
        Err(format!(
            "the bridge {} also has {}, and would join them to this link if weir stops; run {}",
            self.name,
            strangers.join(", "),
            lines.join(" and ")
        ))
    }

    /// Members beside the two ports.
    pub(crate) fn strangers(&self, ports: [&str; 2]) -> Result<Vec<String>, String> {
        let said = |e: std::io::Error| format!("{}: {e}", self.name);
        let index = netdev::index_of(&self.name).map_err(said)?;
        let mut members = netdev::members_of(index).map_err(said)?;
        members.retain(|member| !ports.contains(&member.as_str()));
        Ok(members)
    }

    /// Makes a bridge of ours say nothing by itself and pass on all that a cable would, and sets it
    /// up. What of this the kernel does not have, it cannot do wrong.
    pub(crate) fn make_silent(&self) -> Result<(), String> {
        let name = &self.name;
        let settings = [
            (format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1"),
            // it would answer for all addresses of this machine, and hosts would send there what
            // is for a router behind it
            (format!("/proc/sys/net/ipv4/conf/{name}/arp_ignore"), "8"),
            (format!("/proc/sys/net/ipv4/conf/{name}/forwarding"), "0"),
            (format!("/sys/class/net/{name}/bridge/stp_state"), "0"),
            (format!("/sys/class/net/{name}/bridge/multicast_snooping"), "0"),
            (format!("/sys/class/net/{name}/bridge/group_fwd_mask"), ALL_GROUPS),
            (format!("/sys/class/net/{name}/bridge/nf_call_iptables"), "0"),
            (format!("/sys/class/net/{name}/bridge/nf_call_ip6tables"), "0"),
        ];
        for (file, value) in settings {
            let _ = fs::write(file, value);
        }
        netdev::set_up(name, true).map_err(|e| format!("{name}: {e}"))
    }

    /// Where the kernel's firewall looks at bridged frames too (br_netfilter), it would track
    /// connections that pass by, and a NAT of this machine would then not translate them
    /// (`cargo x live evening`, D8).
    pub(crate) fn keep_from_tracking(&self) -> Result<(), String> {
        if !is_filtered() || !is_tracking() {
            return Ok(());
        }
        // beginning anew: a table of the same rules would have them twice
        feed_nft(&tracking_table(&self.name)).map_err(|why| {
            format!(
                "the kernel's firewall inspects bridged frames (bridge-nf-call-iptables = 1), and \
                 connections that the bridge forwards may lose their NAT: {why}; install \
                 nftables, or run `sysctl -w net.bridge.bridge-nf-call-iptables=0`"
            )
        })
    }

    /// Takes a port in that is not a member yet.
    pub(crate) fn take_in(&self, port: &str) -> Result<(), String> {
        if self.has(port)? {
            return Ok(());
        }
        netdev::add_to_bridge(port, &self.name)
            .map_err(|e| format!("{port} cannot become a port of the bridge {}: {e}", self.name))
    }

    /// Whether a port is a member.
    pub(crate) fn has(&self, port: &str) -> Result<bool, String> {
        let facts = netdev::facts(port).map_err(|e| format!("{port}: {e}"))?;
        let bridge = netdev::index_of(&self.name).map_err(|e| format!("{}: {e}", self.name))?;
        Ok(facts.master == Some(bridge))
    }

    /// What is the box's own there, where the operator may have given it addresses.
    pub(crate) fn own(&self) -> Own {
        let facts = netdev::facts(&self.name).ok().filter(|_| self.is_theirs);
        facts.map_or_else(Own::default, |facts| Own {
            mac: facts.mac,
            addresses: netdev::addresses_of(&self.name).unwrap_or_default(),
        })
    }
}

/// Whether the kernel's firewall looks at bridged frames.
pub(crate) fn is_filtered() -> bool {
    ["bridge-nf-call-iptables", "bridge-nf-call-ip6tables"].iter().any(|name| {
        let said = fs::read_to_string(format!("/proc/sys/net/bridge/{name}"));
        said.is_ok_and(|said| said.trim() != "0")
    })
}

/// Whether the kernel tracks connections here at all.
fn is_tracking() -> bool {
    fs::exists("/proc/sys/net/netfilter/nf_conntrack_count").unwrap_or(false)
}

/// The table that keeps frames on this bridge out of connection tracking.
fn tracking_table(bridge: &str) -> String {
    format!(
        "table inet {bridge}\ndelete table inet {bridge}\ntable inet {bridge} {{\n\
         chain prerouting {{\ntype filter hook prerouting priority -300;\n\
         iifname \"{bridge}\" notrack\n}}\n}}\n"
    )
}

/// Removes that table, if it is there.
pub(crate) fn track_again(bridge: &str) {
    let _ = feed_nft(&format!("table inet {bridge}\ndelete table inet {bridge}\n"));
}

fn feed_nft(script: &str) -> Result<(), String> {
    let mut command = Command::new("nft");
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut nft = command.spawn().map_err(|e| format!("nft cannot be started ({e})"))?;
    if let Some(mut stdin) = nft.stdin.take() {
        let _ = stdin.write_all(script.as_bytes());
    }
    let output = nft.wait_with_output().map_err(|e| format!("nft: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("nft: {}", said.lines().next().unwrap_or("no reason was given")))
}

/// The name of a link's bridge: `weir-LINK` where that is a name of the kernel's, else a part of it
/// with a number made of all of it, so that no two links share one.
pub(crate) fn name_for(link: &str) -> String {
    const LONGEST: usize = 10;
    const PART: usize = 4;
    let plain: String = link.chars().filter(char::is_ascii_alphanumeric).collect();
    if plain == link && plain.len() <= LONGEST && !plain.is_empty() {
        return format!("weir-{plain}");
    }
    // FNV-1a, 64 bits, the upper 24 of them
    let sum = link.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let part: String = plain.chars().take(PART).collect();
    format!("weir-{part}{:06x}", sum >> 40)
}

fn bridge_of(port: &str) -> Result<String, String> {
    let path = format!("/sys/class/net/{port}/master");
    let target = fs::read_link(&path).map_err(|e| format!("{path}: {e}"))?;
    let name = target.file_name().ok_or_else(|| format!("{path} leads nowhere"))?;
    Ok(name.to_string_lossy().into_owned())
}

fn apart(ports: &[Netdev; 2]) -> String {
    let [lan, wan] = ports;
    let member = if lan.master.is_some() { lan } else { wan };
    format!(
        "{} is in a bridge and {} is not in the same one; run `ip link set {} nomaster`, or put \
         both into one bridge",
        member.name,
        if member == lan { &wan.name } else { &lan.name },
        member.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_has_a_bridge_of_its_own() {
        assert_eq!(name_for("office"), "weir-office");
        let links = [
            "building-a-floor1",
            "building-a-floor2",
            "buildingaf",
            "a-b",
            "ab",
            "a b",
            "\u{e4}",
            "",
            "Office",
            "office1234567",
        ];
        let names: std::collections::BTreeSet<String> = links.map(name_for).into();
        assert_eq!(names.len(), links.len(), "{names:?}");
        for name in names {
            assert!(name.len() <= 15 && name.bytes().all(|b| b.is_ascii_graphic()), "{name}");
        }
    }

    #[test]
    fn ports_in_different_bridges_are_refused_with_the_line_that_frees_them() {
        let port =
            |name: &str, master| Netdev { name: name.to_owned(), master, ..Netdev::default() };
        let why = Bridge::over("x", &[port("a", None), port("b", Some(9))]).unwrap_err();
        assert!(why.contains("`ip link set b nomaster`"), "{why}");
    }
}
