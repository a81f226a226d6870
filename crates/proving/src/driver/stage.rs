//! Where a run takes place: a namespace for each host and each box, and one in which all their
//! cables end (wires.rs). Hosts have their addresses, their neighbours and the habits of TCP that
//! the scenario says, as far as a kernel can be told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use weir_lab::run::{Live, is_real};
use weir_lab::scenario::{NodeKind, Profile, Scenario};
use weir_sim::tcp::TcpSpec;
use weir_sim::{NodeId, Source};

use super::SHELL;
use super::wires::Socket;
use crate::shell::Shell;
use crate::world::{Janitor, Place, cable, remove_stale, run_name};

pub(super) struct Stage {
    /// Hosts and boxes, by their nodes.
    places: BTreeMap<NodeId, Place>,
    /// Where the wires are.
    pub(super) wires: Place,
    /// The ends of all cables there.
    pub(super) sockets: Vec<Socket>,
    /// For the files of the run; removed with the namespaces.
    pub(super) folder: PathBuf,
    /// Goes last.
    _janitor: Janitor,
}

/// What the namespace of a host is made of.
struct Host<'s> {
    node: NodeId,
    place: &'s Place,
    tcp: &'s TcpSpec,
}

impl Stage {
    /// Number `run` of those that this process plays at once.
    pub(super) fn make(
        (scenario, profile): (&Scenario, &Profile),
        live: &Live,
        run: usize,
    ) -> Result<Stage, String> {
        let shell = &SHELL;
        remove_stale(shell)?;
        let name = |what: &str| run_name(&format!("r{run}-{what}"));
        let outside: Vec<(NodeId, NodeKind)> = (live.nodes.iter().copied())
            .zip(scenario.nodes.iter().map(|node| node.kind))
            .filter(|(_, kind)| is_real(*kind, profile))
            .collect();
        let mut names: Vec<String> =
            outside.iter().map(|(node, _)| name(&format!("n{node}"))).collect();
        names.push(name("wires"));
        let folder = std::env::temp_dir().join(name("files"));
        std::fs::create_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let janitor = Janitor::hire(&folder, &names)?;
        let wires = Place::make(&names[outside.len()], shell)?;
        let mut places = BTreeMap::new();
        for ((node, _), name) in outside.iter().zip(&names) {
            places.insert(*node, Place::make(name, shell)?);
        }
        let mut stage = Stage { places, wires, sockets: Vec::new(), folder, _janitor: janitor };
        for (node, kind) in &outside {
            stage.plug(*node, *kind, (scenario, profile), shell)?;
        }
        stage.settle((scenario, live), &outside)?;
        Ok(stage)
    }

    /// The namespace of a node.
    pub(super) fn place(&self, node: NodeId) -> Result<&Place, String> {
        self.places.get(&node).ok_or_else(|| format!("node {node} has no namespace"))
    }

    /// The namespace of the box, where there is one.
    pub(super) fn boxed(&self, scenario: &Scenario) -> Option<&Place> {
        let at = scenario.nodes.iter().position(|node| node.kind == NodeKind::Box)?;
        self.places.get(&at)
    }

    /// The cables of a node.
    fn plug(
        &mut self,
        node: NodeId,
        kind: NodeKind,
        (scenario, profile): (&Scenario, &Profile),
        shell: &Shell,
    ) -> Result<(), String> {
        let place = self.place(node)?.clone();
        let ends = scenario.links.iter().flat_map(|link| [link.between.0, link.between.1]);
        let count = ends.filter(|end| *end == node).count();
        let names = match (kind, &profile.plan) {
            (NodeKind::Box, Some(plan)) => vec![plan.lan.clone(), plan.wan.clone()],
            _ => vec![HOST.to_owned()],
        };
        if count != names.len() {
            let name = &scenario.nodes[node].name;
            return Err(format!("\"{name}\" has {count} links, and live it has {}", names.len()));
        }
        for (port, name) in names.iter().enumerate() {
            let socket = Socket { node, port };
            cable(shell, (name, &place), (&socket.name(), &self.wires), 1)?;
            // the wires take frames as they are on a wire: no large ones, no sums left out
            self.wires.run(&format!("ethtool -K {} gro off tx off", socket.name()))?;
            if kind != NodeKind::Box {
                place.run(&format!("ethtool -K {name} tx off tso off gso off gro off"))?;
            }
            self.sockets.push(socket);
        }
        Ok(())
    }

    /// Addresses and habits of all hosts.
    fn settle(
        &self,
        (scenario, live): (&Scenario, &Live),
        outside: &[(NodeId, NodeKind)],
    ) -> Result<(), String> {
        let all = addresses(scenario, live)?;
        let usual = TcpSpec::default();
        for (node, _) in outside.iter().filter(|(_, kind)| matches!(kind, NodeKind::Host(_))) {
            let specs = habits(live, *node);
            let tcp = specs.first().copied().unwrap_or(&usual);
            if specs.iter().any(|other| *other != tcp) {
                let name = &scenario.nodes[*node].name;
                return Err(format!("\"{name}\" speaks several kinds of TCP: a kernel has one"));
            }
            let host = Host { node: *node, place: self.place(*node)?, tcp };
            host.settle(&all)?;
        }
        Ok(())
    }
}

/// The interface of a host.
const HOST: &str = "eth0";

impl Host<'_> {
    fn settle(&self, all: &BTreeMap<NodeId, BTreeSet<Ipv4Addr>>) -> Result<(), String> {
        let Host { node, place, tcp } = self;
        place.ip(&format!("link set {HOST} address {}", mac(*node)))?;
        let mut lines = String::new();
        for address in all.get(node).into_iter().flatten() {
            lines += &format!("addr add {address}/32 dev {HOST}\n");
        }
        let path = self.path();
        for (other, addresses) in all.iter().filter(|(other, _)| *other != node) {
            for address in addresses {
                lines += &format!("route replace {address}/32 dev {HOST}{path}\n");
                lines += &format!(
                    "neigh replace {address} lladdr {} dev {HOST} nud permanent\n",
                    mac(*other)
                );
            }
        }
        place.batch(&lines)?;
        let flag = |is_on: bool| u8::from(is_on);
        for (name, value) in [
            ("tcp_sack", flag(tcp.sack)),
            ("tcp_timestamps", flag(tcp.timestamps)),
            ("tcp_window_scaling", flag(tcp.window_scale)),
            ("tcp_ecn", flag(tcp.ecn)),
            // what one connection has learned is no business of the next
            ("tcp_no_metrics_save", 1),
        ] {
            place.run(&format!("sysctl -qw net.ipv4.{name}={value}"))?;
        }
        Ok(())
    }

    /// What a route says of connections over it.
    fn path(&self) -> String {
        let TcpSpec { initial_window, rto_min, window, mss, window_scale, .. } = self.tcp;
        let mut words = format!(
            " initcwnd {initial_window} advmss {mss} rto_min {}ms",
            (rto_min.ns() / 1_000_000).max(1)
        );
        if !window_scale {
            words += &format!(" window {window}");
        }
        words
    }
}

/// The addresses of each host.
fn addresses(
    scenario: &Scenario,
    live: &Live,
) -> Result<BTreeMap<NodeId, BTreeSet<Ipv4Addr>>, String> {
    let mut all: BTreeMap<NodeId, BTreeSet<Ipv4Addr>> = BTreeMap::new();
    for (number, node) in (1..).zip(&scenario.nodes) {
        if let NodeKind::Host(_) = node.kind {
            let address = own_address(scenario, number - 1)?;
            all.entry(live.nodes[number - 1]).or_default().insert(address);
        }
    }
    for spec in live.flows.iter().flatten() {
        for (node, address) in [(spec.from, spec.from_address), (spec.to, spec.to_address)] {
            if let Some(address) = address {
                all.entry(node).or_default().insert(only_v4(address)?);
            }
        }
    }
    Ok(all)
}

/// The address of a host where a flow does not say another.
pub(super) fn own_address(scenario: &Scenario, node: usize) -> Result<Ipv4Addr, String> {
    let number = u32::try_from(node + 1).unwrap_or(u32::MAX);
    match scenario.nodes[node].kind {
        NodeKind::Host(Some(address)) => only_v4(address),
        _ => Ok(Ipv4Addr::from_bits(0x0a00_0000 + number)),
    }
}

pub(super) fn only_v4(address: IpAddr) -> Result<Ipv4Addr, String> {
    match address {
        IpAddr::V4(address) => Ok(address),
        IpAddr::V6(address) => Err(format!("{address}: live, flows go over IPv4")),
    }
}

/// How TCP of a host behaves, by flow.
fn habits(live: &Live, node: NodeId) -> Vec<&TcpSpec> {
    let flows =
        live.flows.iter().flatten().filter(|spec| matches!(spec.source, Source::Bulk { .. }));
    let ends = flows.flat_map(|spec| [(spec.from, &spec.tcp[0]), (spec.to, &spec.tcp[1])]);
    ends.filter(|(at, _)| *at == node).map(|(_, tcp)| tcp).collect()
}

/// The MAC address of a node.
pub(super) fn mac(node: NodeId) -> String {
    let [.., a, b] = node.to_be_bytes();
    format!("02:00:00:00:{a:02x}:{b:02x}")
}
