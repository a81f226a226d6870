//! What the kernel has become of what weir has set up: looked at once a second, mended where that
//! can be done without asking, and told otherwise.

use weir_io::netdev;
use weir_packet::{BySide, Side};
use weir_units::limits;

use super::serve::Serving;
use super::{Look, open};
use crate::Via;
use crate::bypass::Bridge;
use crate::trouble::Trouble;

impl Serving<'_> {
    /// One look.
    pub(super) fn look(&mut self) -> Look {
        let mut troubles = Vec::new();
        if let Some(guard) = &mut self.guard {
            // so that no dead one stays in the table of processes
            let _ = guard.try_wait();
        }
        troubles.extend(self.look_at_the_bridge());
        let names = self.names.clone();
        let mut queues = BySide::default();
        for side in Side::ALL {
            let name = names[side].as_str();
            if netdev::index_of(name).is_err() {
                // the daemon has it in its own list, if it is not called otherwise now
                troubles.extend(self.renamed(side));
                continue;
            }
            queues[side] = open::receive_queues(name);
            open::single_frames(name, &mut self.undo);
            troubles.extend(self.look_at_a_port(side, name));
        }
        let mut own = self.bridge.as_ref().map(Bridge::own).unwrap_or_default();
        // of each family as many as the programs have room for; a message has its bound
        let mut of = [0; 2];
        own.addresses.retain(|address| {
            let count = &mut of[usize::from(address.is_ipv6())];
            *count += 1;
            *count <= limits::XDP_OWN_ADDRESSES
        });
        Look { mac: own.mac, addresses: own.addresses, queues: queues.both(), troubles }
    }

    /// The bridge is what carries the traffic when weir does not: one of ours is made again, or set
    /// up again.
    fn look_at_the_bridge(&mut self) -> Vec<Trouble> {
        let Some(bridge) = self.bridge.clone() else { return Vec::new() };
        let name = &bridge.name;
        let cut = |what: String, cure: String| {
            vec![Trouble::new(format!("{what}: the link is cut if weir stops now"), cure)]
        };
        match netdev::facts(name) {
            Ok(facts) if facts.up => self.strangers(&bridge),
            Ok(_) if !bridge.is_theirs && netdev::set_up(name, true).is_ok() => Vec::new(),
            Ok(_) => {
                cut(format!("the bridge {name} is down"), format!("run `ip link set {name} up`"))
            }
            Err(_) if !bridge.is_theirs && self.make_again(&bridge).is_ok() => Vec::new(),
            Err(_) => cut(
                format!("the bridge {name} is gone"),
                format!(
                    "run `ip link add {name} type bridge` and `ip link set PORT master {name}` for \
                     both ports"
                ),
            ),
        }
    }

    fn make_again(&self, bridge: &Bridge) -> Result<(), String> {
        netdev::create_bridge(&bridge.name).map_err(|e| format!("{}: {e}", bridge.name))?;
        bridge.make_silent()?;
        for name in self.names.values() {
            bridge.take_in(name)?;
            if self.via == Via::Packet && self.is_carried_by_weir() {
                netdev::set_isolated(name, true).map_err(|e| format!("{name}: {e}"))?;
            }
        }
        Ok(())
    }

    fn strangers(&self, bridge: &Bridge) -> Vec<Trouble> {
        let mut strangers =
            bridge.strangers(self.names.as_ref().map(String::as_str).both()).unwrap_or_default();
        // a port that is called otherwise now
        strangers.retain(|name| {
            let index = netdev::index_of(name).ok();
            self.opened.values().flatten().all(|(opened, _)| Some(*opened) != index)
        });
        let Some(first) = strangers.first() else { return Vec::new() };
        // a bridge with a thousand ports is told in a line, too
        let some = strangers.iter().take(4).cloned().collect::<Vec<_>>().join(", ");
        vec![Trouble::new(
            format!("the bridge {} also has {some}", bridge.name),
            format!(
                "traffic between them and this link is not shaped; run `ip link set {first} \
                 nomaster`"
            ),
        )]
    }

    /// A port of another name is used as before, and will not be found again when it goes.
    fn renamed(&self, side: Side) -> Option<Trouble> {
        let (index, _) = self.opened[side]?;
        let now = netdev::name_of(index).ok()?;
        let name = &self.names[side];
        Some(Trouble::new(
            format!("{name} is now called {now}"),
            format!(
                "weir keeps using it, but cannot open it again if it disappears; write \"{now}\" \
                 into the policy and restart weir, or run `ip link set {now} name {name}`"
            ),
        ))
    }

    fn look_at_a_port(&self, side: Side, name: &str) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let now = netdev::facts(name).map_or(0, |netdev| netdev.mtu);
        if let Some((_, opened)) = self.opened[side].filter(|(_, opened)| now > *opened) {
            troubles.push(Trouble::new(
                format!(
                    "the MTU of {name} is now {now} bytes, and weir was started with {opened}: \
                     longer packets are dropped"
                ),
                if now > limits::PORT_MTU {
                    format!("run `ip link set {name} mtu {opened}`")
                } else {
                    format!("restart weir, or run `ip link set {name} mtu {opened}`")
                },
            ));
        }
        let Some(bridge) = &self.bridge else { return troubles };
        if matches!(bridge.has(name), Ok(false)) {
            troubles.push(Trouble::new(
                format!("{name} is no longer in the bridge {}", bridge.name),
                format!(
                    "the link is cut if weir stops now; run `ip link set {name} master {}`",
                    bridge.name
                ),
            ));
        }
        let addresses = open::addresses(name);
        if let Some(address) = addresses.first().filter(|_| !bridge.is_theirs) {
            troubles.push(Trouble::new(
                format!("{name} has the address {address}, which cannot be reached there"),
                format!("a bridge port must not have an address; run `ip addr flush dev {name}`"),
            ));
        }
        troubles
    }
}
