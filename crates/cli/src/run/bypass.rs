//! The way around weir: a bridge of the kernel that has both ports, and carries frames between them
//! only while weir does not. Who decides is the program at the ports (AF_XDP) or the guard.

use std::fs;

use weir_io::netdev::{self, Netdev};
use weir_xdp::Heart;

/// A bridge of the kernel over both ports.
#[derive(Debug)]
pub(crate) struct Bridge {
    pub(crate) name: String,
    /// Whether the operator made it, who may have given the box an address there.
    pub(crate) is_theirs: bool,
}

impl Bridge {
    /// The bridge that both ports are in already, or a new one with both.
    pub(crate) fn over(link: &str, ports: &[Netdev; 2]) -> Result<Bridge, String> {
        let name = name_for(link);
        let ours = netdev::facts(&name).ok();
        match (ports[0].master, ports[1].master) {
            (Some(lan), Some(wan)) if lan == wan => {
                let is_theirs = ours.is_none_or(|ours| ours.index != lan);
                let name = if is_theirs { bridge_of(&ports[0].name)? } else { name };
                return Ok(Bridge { name, is_theirs });
            }
            (None, None) => {}
            _ => return Err(apart(ports)),
        }
        if ours.is_none() {
            netdev::create_bridge(&name).map_err(|e| {
                format!(
                    "the bridge {name} cannot be made: {e}; without it nothing carries the traffic \
                     when weir dies, and --no-bypass accepts that"
                )
            })?;
        }
        let bridge = Bridge { name, is_theirs: false };
        bridge.make_silent();
        netdev::set_up(&bridge.name, true).map_err(|e| format!("{}: {e}", bridge.name))?;
        Ok(bridge)
    }

    /// Takes a port in that is not a member yet.
    pub(crate) fn take_in(&self, port: &str) -> Result<(), String> {
        let facts = netdev::facts(port).map_err(|e| format!("{port}: {e}"))?;
        let bridge = netdev::facts(&self.name).map_err(|e| format!("{}: {e}", self.name))?;
        if facts.master == Some(bridge.index) {
            return Ok(());
        }
        netdev::add_to_bridge(port, &self.name)
            .map_err(|e| format!("{port} cannot become a port of the bridge {}: {e}", self.name))
    }

    /// Tells a program what is the box's own, where the operator may have given it addresses.
    pub(crate) fn tell(&self, heart: &Heart) {
        let Some(facts) = netdev::facts(&self.name).ok().filter(|_| self.is_theirs) else { return };
        heart.own_mac(facts.mac);
        if let Some(address) = netdev::ipv4_of(&self.name) {
            heart.own_ipv4(address);
        }
        let list = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
        if let Some(address) = netdev::ipv6_of(&self.name, &list) {
            heart.own_ipv6(address);
        }
    }

    /// A bridge of ours says nothing by itself and passes on all that a cable would. What of this
    /// the kernel does not have, it cannot do wrong.
    fn make_silent(&self) {
        let name = &self.name;
        let settings = [
            (format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1"),
            (format!("/sys/class/net/{name}/bridge/stp_state"), "0"),
            (format!("/sys/class/net/{name}/bridge/multicast_snooping"), "0"),
            (format!("/sys/class/net/{name}/bridge/nf_call_iptables"), "0"),
            (format!("/sys/class/net/{name}/bridge/nf_call_ip6tables"), "0"),
        ];
        for (file, value) in settings {
            let _ = fs::write(file, value);
        }
    }
}

/// `weir-` and the link, as far as an interface's name reaches.
fn name_for(link: &str) -> String {
    const LONGEST: usize = 15;
    let plain: String = link.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("weir-{plain}").chars().take(LONGEST).collect()
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
    fn a_bridge_has_a_name_that_the_kernel_takes() {
        assert_eq!(name_for("office"), "weir-office");
        assert_eq!(name_for("a link / with a long name"), "weir-alinkwitha");
    }

    #[test]
    fn ports_in_different_bridges_are_refused_with_the_line_that_frees_them() {
        let port =
            |name: &str, master| Netdev { name: name.to_owned(), master, ..Netdev::default() };
        let why = Bridge::over("x", &[port("a", None), port("b", Some(9))]).unwrap_err();
        assert!(why.contains("`ip link set b nomaster`"), "{why}");
    }
}
