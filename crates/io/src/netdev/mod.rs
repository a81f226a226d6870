//! Interfaces by name: what they are, whether weir can use them, and what of them weir changes
//! (offloads, bridges, up). Facts come from rtnetlink and ethtool; judging them is pure.

mod bridge;
mod features;
mod generic;
mod netlink;
mod tags;
mod unfit;

use std::io;
use std::net::IpAddr;

use crate::kernel::ioctl::{self, Interface, Request};
use crate::kernel::socket;
use netlink::{Netlink, Request as Message};

pub use bridge::{
    add_to_bridge, create_bridge, remove_bridge, remove_from_bridge, set_isolated, set_isolated_at,
};
pub use features::{Feature, Features, see_single_frames, set_feature};
pub use tags::{TagsBeside, keeps_tags_in_metadata, leave_tags_in};
pub use unfit::Unfit;

/// What is known of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Netdev {
    /// Its name.
    pub name: String,
    /// Its number, which outlives a change of name.
    pub index: u32,
    /// The longest packet it carries, without the Ethernet header.
    pub mtu: usize,
    /// Its address.
    pub mac: [u8; 6],
    /// It was set up by its operator.
    pub up: bool,
    /// It has link.
    pub link: bool,
    /// Somebody has set it to take frames for others too.
    pub promiscuous: bool,
    /// What it is.
    pub kind: InterfaceKind,
    /// Number of the bridge or bond that it is part of.
    pub master: Option<u32>,
    /// What it is part of.
    pub part_of: PartOf,
    /// What its driver does by itself.
    pub features: Features,
}

/// What an interface is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum InterfaceKind {
    /// A network card, or what looks like one.
    #[default]
    Ethernet,
    /// One end of a pair of virtual interfaces.
    Veth,
    /// A VLAN of another interface.
    Vlan,
    /// Several interfaces as one, with one address.
    Bond,
    /// A switch in the kernel.
    Bridge,
    /// A tap device: frames to and from a program.
    Tap,
    /// The box itself.
    Loopback,
    /// PPP, tun, a tunnel or a serial line: packets without an Ethernet header.
    NoEthernet,
    /// A radio, by what it does.
    Wifi(Wifi),
    /// Something else with an Ethernet header, as the kernel calls it.
    Other(String),
}

/// What a radio does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wifi {
    /// It serves others.
    AccessPoint,
    /// It is served: the access point takes frames from its own address only.
    Station,
    /// It does not say.
    Unknown,
}

/// What an interface is part of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartOf {
    /// Nothing: it stands by itself.
    #[default]
    Nothing,
    /// A bridge; whether it is isolated from the other isolated ports there.
    Bridge {
        /// The bridge passes nothing between this port and others that are isolated.
        isolated: bool,
    },
    /// A bond.
    Bond,
    /// Something else.
    Other,
}

/// Whether weir can use the interface of that name: what it is, or all that stands against it.
pub fn examine(name: &str) -> Result<Netdev, Vec<Unfit>> {
    let unreadable = |error: io::Error| vec![Unfit::Unreadable(name.to_owned(), error.to_string())];
    let netdev = match facts(name) {
        Ok(netdev) => netdev,
        Err(error) if is_absent(&error) => {
            let there = names().map_err(unreadable)?;
            return Err(vec![unfit::not_found(name, &there)]);
        }
        Err(error) => return Err(unreadable(error)),
    };
    let against = unfit::judge(&netdev);
    if against.is_empty() { Ok(netdev) } else { Err(against) }
}

/// What the interface of that name is, whether or not weir can use it.
pub fn facts(name: &str) -> io::Result<Netdev> {
    let request = Message::link(libc::RTM_GETLINK, 0, 0).with_name(IFNAME, name);
    let answers = Netlink::open()?.ask(request)?;
    let answer = answers.first().ok_or(io::ErrorKind::NotFound)?;
    let mut netdev = read(answer).ok_or(io::ErrorKind::InvalidData)?;
    if std::path::Path::new(&format!("/sys/class/net/{name}/phy80211")).exists() {
        netdev.kind = InterfaceKind::Wifi(radio(name));
    }
    netdev.features = Features::of(name)?;
    Ok(netdev)
}

/// The number of the interface of that name.
pub fn index_of(name: &str) -> io::Result<u32> {
    let request = Message::link(libc::RTM_GETLINK, 0, 0).with_name(IFNAME, name);
    let answers = Netlink::open()?.ask(request)?;
    let netdev = answers.first().and_then(|answer| read(answer));
    netdev.map(|netdev| netdev.index).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The addresses of an interface of this box.
pub fn addresses_of(name: &str) -> io::Result<Vec<IpAddr>> {
    let index = index_of(name)?;
    let request = Message::link(libc::RTM_GETADDR, libc::NLM_F_DUMP, 0);
    let answers = Netlink::open()?.ask(request)?;
    Ok(answers.iter().filter_map(|answer| address(answer, index)).collect())
}

/// The address that one answer tells of (`struct ifaddrmsg`, then attributes).
fn address(answer: &[u8], index: u32) -> Option<IpAddr> {
    const ADDRESS: u16 = 1;
    const LOCAL: u16 = 2;
    let head: &[u8; 8] = answer.first_chunk()?;
    let family = head[0];
    if u32::from_ne_bytes([head[4], head[5], head[6], head[7]]) != index {
        return None;
    }
    let mut found = None;
    for (attribute, value) in netlink::attributes(&answer[8..]) {
        let read = || match i32::from(family) {
            libc::AF_INET => Some(IpAddr::from(<[u8; 4]>::try_from(value).ok()?)),
            libc::AF_INET6 => Some(IpAddr::from(<[u8; 16]>::try_from(value).ok()?)),
            _ => None,
        };
        match attribute {
            // where both stand, as on a point-to-point link, this one is the box's own
            LOCAL => return read(),
            ADDRESS => found = read(),
            _ => {}
        }
    }
    found
}

/// The names of all interfaces, in the order of their numbers.
pub fn names() -> io::Result<Vec<String>> {
    Ok(all()?.into_iter().map(|netdev| netdev.name).collect())
}

/// The name of the interface with that number.
pub fn name_of(index: u32) -> io::Result<String> {
    let answers = Netlink::open()?.ask(Message::link(libc::RTM_GETLINK, 0, index))?;
    let netdev = answers.first().and_then(|answer| read(answer));
    netdev.map(|netdev| netdev.name).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The names of the interfaces that are part of the bridge or bond with that number.
pub fn members_of(master: u32) -> io::Result<Vec<String>> {
    let members = all()?.into_iter().filter(|netdev| netdev.master == Some(master));
    Ok(members.map(|netdev| netdev.name).collect())
}

fn all() -> io::Result<Vec<Netdev>> {
    let answers = Netlink::open()?.ask(Message::link(libc::RTM_GETLINK, libc::NLM_F_DUMP, 0))?;
    Ok(answers.iter().filter_map(|answer| read(answer)).collect())
}

/// Sets an interface up or down.
pub fn set_up(name: &str, up: bool) -> io::Result<()> {
    let flags = if up { libc::IFF_UP } else { 0 };
    let request = Message::link(libc::RTM_SETLINK, 0, index_of(name)?).flags(flags, libc::IFF_UP);
    Netlink::open()?.ask(request).map(drop)
}

/// Whether an interface takes frames for others too. A port of a bridge does so anyway.
pub fn set_promiscuous(name: &str, on: bool) -> io::Result<()> {
    let flags = if on { libc::IFF_PROMISC } else { 0 };
    let index = index_of(name)?;
    let request = Message::link(libc::RTM_SETLINK, 0, index).flags(flags, libc::IFF_PROMISC);
    Netlink::open()?.ask(request).map(drop)
}

fn is_absent(error: &io::Error) -> bool {
    // a name that is too long for the kernel is not there either
    matches!(error.raw_os_error(), Some(libc::ENODEV | libc::ERANGE | libc::EINVAL))
}

fn radio(name: &str) -> Wifi {
    let ask = || -> io::Result<Interface> {
        use std::os::fd::AsFd;
        let any = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        ioctl::ask(any.as_fd(), Request::WirelessMode, Interface::named(name))
    };
    match ask().map(|answer| answer.value()) {
        Ok(2) => Wifi::Station,
        Ok(3) => Wifi::AccessPoint,
        _ => Wifi::Unknown,
    }
}

/// What one answer says of a link (`linux/if_link.h`).
fn read(answer: &[u8]) -> Option<Netdev> {
    let head: &[u8; 16] = answer.first_chunk()?;
    let hardware = u16::from_ne_bytes([head[2], head[3]]);
    let index = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
    let flags = i32::from_ne_bytes([head[8], head[9], head[10], head[11]]);
    let up = flags & libc::IFF_UP != 0;
    let promiscuous = flags & libc::IFF_PROMISC != 0;
    let mut netdev = Netdev { index, up, promiscuous, ..Netdev::default() };
    let mut kind = String::new();
    for (attribute, value) in netlink::link_attributes(answer) {
        match attribute {
            IFNAME => netdev.name = text(value),
            MTU => netdev.mtu = number(value) as usize,
            ADDRESS => netdev.mac = value.try_into().unwrap_or_default(),
            MASTER => netdev.master = Some(number(value)).filter(|&master| master != 0),
            CARRIER => netdev.link = value.first() == Some(&1),
            LINKINFO => read_info(value, &mut kind, &mut netdev.part_of),
            _ => {}
        }
    }
    if netdev.master.is_some() && netdev.part_of == PartOf::Nothing {
        netdev.part_of = PartOf::Other;
    }
    netdev.kind = match hardware {
        libc::ARPHRD_LOOPBACK => InterfaceKind::Loopback,
        libc::ARPHRD_ETHER => match kind.as_str() {
            "" => InterfaceKind::Ethernet,
            "veth" => InterfaceKind::Veth,
            "vlan" => InterfaceKind::Vlan,
            "bond" | "team" => InterfaceKind::Bond,
            "bridge" | "openvswitch" => InterfaceKind::Bridge,
            "tun" => InterfaceKind::Tap,
            _ => InterfaceKind::Other(kind),
        },
        _ => InterfaceKind::NoEthernet,
    };
    Some(netdev)
}

fn read_info(info: &[u8], kind: &mut String, part_of: &mut PartOf) {
    for (attribute, value) in netlink::attributes(info) {
        match attribute {
            INFO_KIND => *kind = text(value),
            INFO_SLAVE_KIND => {
                *part_of = match text(value).as_str() {
                    "bridge" => PartOf::Bridge { isolated: false },
                    "bond" | "team" => PartOf::Bond,
                    _ => PartOf::Other,
                }
            }
            // comes behind the kind
            INFO_SLAVE_DATA if matches!(part_of, PartOf::Bridge { .. }) => {
                let mut all = netlink::attributes(value);
                let isolated = all.any(|(of, value)| of == bridge::ISOLATED && value == [1]);
                *part_of = PartOf::Bridge { isolated };
            }
            _ => {}
        }
    }
}

const ADDRESS: u16 = 1;
const IFNAME: u16 = 3;
const MTU: u16 = 4;
const MASTER: u16 = 10;
const LINKINFO: u16 = 18;
const CARRIER: u16 = 33;
const INFO_KIND: u16 = 1;
const INFO_SLAVE_KIND: u16 = 4;
const INFO_SLAVE_DATA: u16 = 5;

fn text(value: &[u8]) -> String {
    let text = value.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

fn number(value: &[u8]) -> u32 {
    value.first_chunk().map_or(0, |number| u32::from_ne_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(hardware: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut bytes = vec![0; 16];
        bytes[2..4].copy_from_slice(&hardware.to_ne_bytes());
        bytes[4] = 9;
        bytes[8] = 1;
        for (kind, value) in attributes {
            bytes.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(*value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn an_answer_tells_what_a_link_is() {
        let isolated = answer(0, &[(bridge::ISOLATED, &[1])]);
        let info = answer(0, &[(1, b"veth\0"), (4, b"bridge\0"), (5, &isolated[16..])]);
        let netdev = read(&answer(
            1,
            &[
                (IFNAME, b"lan0\0"),
                (MTU, &1_500_u32.to_ne_bytes()),
                (ADDRESS, &[2, 0, 0, 0, 0, 7]),
                (MASTER, &3_u32.to_ne_bytes()),
                (CARRIER, &[1]),
                (LINKINFO, &info[16..]),
            ],
        ))
        .unwrap();
        let want = Netdev {
            name: "lan0".into(),
            index: 9,
            mtu: 1_500,
            mac: [2, 0, 0, 0, 0, 7],
            up: true,
            link: true,
            promiscuous: false,
            kind: InterfaceKind::Veth,
            master: Some(3),
            part_of: PartOf::Bridge { isolated: true },
            features: Features::default(),
        };
        assert_eq!(netdev, want);
    }

    #[test]
    fn an_address_is_told_by_its_interface() {
        let answer = |family: i32, index: u8, attributes: &[(u16, &[u8])]| {
            let mut bytes = vec![u8::try_from(family).unwrap(), 24, 0, 0, index, 0, 0, 0];
            for (kind, value) in attributes {
                bytes.extend(u16::try_from(4 + value.len()).unwrap().to_ne_bytes());
                bytes.extend(kind.to_ne_bytes());
                bytes.extend(*value);
            }
            bytes
        };
        let v4 = answer(libc::AF_INET, 7, &[(1, &[10, 0, 0, 2]), (2, &[10, 0, 0, 1])]);
        assert_eq!(address(&v4, 7), "10.0.0.1".parse().ok());
        assert_eq!((address(&v4, 8), address(&v4[..7], 7)), (None, None));
        let long = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];
        let v6 = answer(libc::AF_INET6, 7, &[(1, &long)]);
        assert_eq!(address(&v6, 7), "2001:db8::7".parse().ok());
        assert_eq!(address(&answer(libc::AF_INET, 7, &[(1, &[1, 2])]), 7), None);
    }

    #[test]
    fn what_has_no_ethernet_header_is_told_by_its_hardware_type() {
        let kind = |hardware| read(&answer(hardware, &[])).unwrap().kind;
        assert_eq!(kind(libc::ARPHRD_LOOPBACK), InterfaceKind::Loopback);
        assert_eq!(kind(libc::ARPHRD_PPP), InterfaceKind::NoEthernet);
        assert_eq!(kind(libc::ARPHRD_ETHER), InterfaceKind::Ethernet);
        assert_eq!(read(&[0; 15]), None);
    }
}
