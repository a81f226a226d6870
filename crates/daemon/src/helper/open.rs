//! What the helper opens: interfaces that it has looked at, as bare sockets and a program.

use std::net::IpAddr;
use std::os::fd::OwnedFd;

use weir_io::netdev::{self, InterfaceKind, Netdev, Unfit};
use weir_io::{PacketSockets, bare_sockets};
use weir_units::limits;
use weir_xdp::{Mode, Program};

use super::{Interface, Undo};
use crate::Via;

/// What the interfaces are, or everything that stands against them.
pub(super) fn examine(
    names: [&str; 2],
    undo: &mut Undo,
) -> Result<([Netdev; 2], Vec<String>), Vec<String>> {
    let mut notes = Vec::new();
    // all is looked at first: a start that is refused changes nothing
    let are_free =
        names.iter().all(|name| netdev::facts(name).is_ok_and(|netdev| netdev.master.is_none()));
    let mut against: Vec<String> = addressed(names, are_free).into_iter().collect();
    against.extend(names.iter().filter_map(|name| fit(name).err()).flatten());
    if !against.is_empty() {
        return Err(against);
    }
    let mut found = Vec::new();
    for name in names {
        match usable(name, &mut notes, undo) {
            Ok(netdev) => found.push(netdev),
            Err(why) => against.extend(why),
        }
    }
    let Ok([lan, wan]) = <[Netdev; 2]>::try_from(found) else { return Err(against) };
    if lan.mtu != wan.mtu {
        let (small, large) = if lan.mtu < wan.mtu { (&lan, &wan) } else { (&wan, &lan) };
        notes.push(format!(
            "the MTU of {} is {} bytes and that of {} {}: longer frames are dropped; run `ip link \
             set {} mtu {}`",
            large.name, large.mtu, small.name, small.mtu, large.name, small.mtu
        ));
    }
    for port in [&lan, &wan] {
        if !port.link {
            notes.push(format!("{} has no link: check the cable; weir waits for it", port.name));
        }
    }
    Ok(([lan, wan], notes))
}

/// Ports that have addresses: a port of a bridge does not answer at them any more, so that a
/// router, or the operator's own session, would be cut off without a word. One that is in a bridge
/// already does not answer anyway.
fn addressed(names: [&str; 2], are_free: bool) -> Option<String> {
    let with: Vec<(&str, Vec<String>)> = names
        .iter()
        .filter(|_| are_free)
        .filter_map(|name| {
            let addresses = Some(addresses(name)).filter(|list| !list.is_empty())?;
            Some((*name, addresses.iter().map(ToString::to_string).collect()))
        })
        .collect();
    if with.is_empty() {
        return None;
    }
    let told: Vec<String> =
        with.iter().map(|(n, list)| format!("{n} has {}", list.join(", "))).collect();
    let [lan, wan] = names;
    let mut lines = format!(
        "ip link add br0 type bridge forward_delay 0\nip link set {lan} master br0\nip link set \
         {wan} master br0\nip link set br0 up"
    );
    for (name, _) in &with {
        lines += &format!("\nip addr flush dev {name}");
    }
    for address in with.iter().flat_map(|(_, list)| list) {
        let bits = if address.contains(':') { 64 } else { 24 };
        lines += &format!("\nip addr add {address}/{bits} dev br0   # the prefix that it had");
    }
    Some(format!(
        "the box has addresses at its ports ({}), where it could not be reached any more: weir is \
         a bridge, not a router. To reach the box over these ports, make the bridge and give it \
         the addresses, then start weir again (routes go with the addresses; do it at the console):\
         \n{lines}",
        told.join("; ")
    ))
}

/// The addresses of an interface that somebody gave it: those that only its link knows come by
/// themselves.
pub(super) fn addresses(name: &str) -> Vec<IpAddr> {
    let is_given = |address: &IpAddr| match address {
        IpAddr::V4(_) => true,
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    };
    let all = netdev::addresses_of(name).unwrap_or_default();
    all.into_iter().filter(is_given).collect()
}

/// What stands against an interface that weir cannot cure.
fn fit(name: &str) -> Result<(), Vec<String>> {
    let can_be_cured = |reason: &Unfit| matches!(reason, Unfit::Down(_) | Unfit::Bridged(_));
    let reasons = netdev::examine(name).err().unwrap_or_default();
    let against: Vec<String> =
        reasons.iter().filter(|r| !can_be_cured(r)).map(ToString::to_string).collect();
    if against.is_empty() { Ok(()) } else { Err(against) }
}

/// One interface; what weir can cure by itself is cured and said.
pub(super) fn usable(
    name: &str,
    notes: &mut Vec<String>,
    undo: &mut Undo,
) -> Result<Netdev, Vec<String>> {
    let mut against = Vec::new();
    for reason in netdev::examine(name).err().unwrap_or_default() {
        match reason {
            Unfit::Down(_) => match netdev::set_up(name, true) {
                Ok(()) => {
                    undo.down(name);
                    notes.push(format!("{name} was down; weir has set it up"));
                }
                Err(_) => against.push(reason.to_string()),
            },
            // the bridge that they are in becomes the way around weir
            Unfit::Bridged(_) => {}
            other => against.push(other.to_string()),
        }
    }
    if !against.is_empty() {
        return Err(against);
    }
    single_frames(name, undo);
    netdev::facts(name).map_err(|e| vec![format!("{name}: {e}")])
}

/// What a port must be before frames come from it: whole, single and with their tags. What cannot
/// be turned off is met frame by frame: cut, or too long and counted.
pub(super) fn single_frames(name: &str, undo: &mut Undo) {
    let turned = [netdev::see_single_frames(name), netdev::leave_tags_in(name)];
    for feature in turned.into_iter().flatten().flatten() {
        undo.feature(name, feature);
    }
}

impl Interface {
    pub(super) fn of(netdev: &Netdev) -> Interface {
        Interface {
            index: netdev.index,
            mtu: netdev.mtu,
            queues: receive_queues(&netdev.name),
            is_virtual: matches!(
                netdev.kind,
                InterfaceKind::Veth | InterfaceKind::Tap | InterfaceKind::Other(_)
            ),
        }
    }
}

/// Packet sockets of a port.
pub(super) fn packet(netdev: &Netdev) -> Result<(Interface, Vec<OwnedFd>), String> {
    let sockets = PacketSockets::open(&netdev.name).map_err(|e| e.to_string())?;
    let opened = Interface { index: sockets.index, mtu: sockets.mtu, ..Interface::of(netdev) };
    Ok((opened, vec![sockets.arriving, sockets.leaving]))
}

/// What keeps AF_XDP from seeing the VLAN tags of frames. Where that is only possible, who asked
/// for AF_XDP gets it, with a note.
pub(super) fn tags_are_whole(netdev: &Netdev, asked: Via) -> Result<Option<String>, String> {
    match netdev::keeps_tags_in_metadata(&netdev.name) {
        Ok(Some(why)) if why.is_certain() || asked == Via::Auto => Err(why.to_string()),
        Ok(why) => Ok(why.map(|why| why.to_string())),
        // a kernel that cannot be asked is one that has not been found to lose them
        Err(_) => Ok(None),
    }
}

/// A program at the port that passes all frames to the kernel, and a socket for each queue; in the
/// order of the response: the program's page, what keeps it attached, the sockets and as many spare
/// ones.
pub(super) fn xdp(netdev: &Netdev) -> Result<(Interface, Vec<OwnedFd>), String> {
    let opened = Interface::of(netdev);
    let said = |error: &dyn std::fmt::Display| format!("{}: {error}", netdev.name);
    if opened.queues as usize > limits::XSK_QUEUES {
        return Err(said(&format!(
            "{} receive queues are more than {}; `ethtool -L {} combined {}` sets fewer",
            opened.queues,
            limits::XSK_QUEUES,
            netdev.name,
            limits::XSK_QUEUES
        )));
    }
    let sockets = bare_sockets(2 * opened.queues as usize).map_err(|e| said(&e))?;
    let program = Program::load(opened.queues).map_err(|e| said(&e))?;
    for (queue, socket) in (0..opened.queues).zip(&sockets) {
        program.put(queue, std::os::fd::AsFd::as_fd(socket)).map_err(|e| said(&e))?;
    }
    let attached = program.attach(netdev.index, Mode::Auto).map_err(|e| said(&e))?;
    let mut fds = vec![program.into_page(), attached.into_link()];
    fds.extend(sockets);
    Ok((opened, fds))
}

/// A program at the bridge: its page, and what keeps it there.
pub(super) fn face(bridge: &str) -> Result<Vec<OwnedFd>, String> {
    let said = |error: weir_xdp::XdpError| format!("{bridge}: {error}");
    let index = netdev::index_of(bridge).map_err(|e| format!("{bridge}: {e}"))?;
    let program = Program::of_bridge().map_err(said)?;
    let attached = program.attach(index, Mode::Generic).map_err(said)?;
    Ok(vec![program.into_page(), attached.into_link()])
}

pub(super) fn receive_queues(name: &str) -> u32 {
    let queues = std::fs::read_dir(format!("/sys/class/net/{name}/queues"));
    let receive = queues.into_iter().flatten().flatten();
    let receive = receive.filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-"));
    u32::try_from(receive.count()).unwrap_or(1).max(1)
}
