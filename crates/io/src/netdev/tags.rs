//! Whether the VLAN tags of arriving frames stand in the frames. Where the kernel keeps them beside
//! the frame instead, packet sockets bring them together again and AF_XDP loses them: a program at
//! the interface that is not under the GPL may not ask for them (the kernel has a function for it,
//! `bpf_xdp_metadata_rx_vlan_tag`, and refuses it to others).

use std::{fmt, io};

use super::features::{Feature, set_feature};
use super::generic::{self, RX_SERVICE_TAGS, RX_TAGS, TX_SERVICE_TAGS, TX_TAGS};
use super::netlink::{self, Netlink, Request};
use super::{InterfaceKind, facts, names, number};

/// Why tags may stand beside the frames of an interface, with its cure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagsBeside {
    /// Its driver takes them out, and does not let that be turned off.
    Driver(String, &'static str),
    /// It is one end of a virtual cable, and the other end hands them on beside the frames.
    Peer(String, String),
    /// The same, but the other end is in another network namespace and cannot be asked.
    FarPeer(String),
    /// It gets its frames from another interface, where the kernel has taken the tags out.
    Upper(String),
}

/// Why AF_XDP at the interface of that name may lose VLAN tags; `None`: it does not. Ask after
/// [`leave_tags_in`] has turned off what can be: what is still on is fixed.
pub fn keeps_tags_in_metadata(name: &str) -> io::Result<Option<TagsBeside>> {
    let own = || name.to_owned();
    match facts(name)?.kind {
        InterfaceKind::Veth => {
            let Some(peer) = peer(name)? else { return Ok(Some(TagsBeside::FarPeer(own()))) };
            let hands_on = first_active(&peer, &[TX_TAGS, TX_SERVICE_TAGS])?.is_some();
            Ok(hands_on.then(|| TagsBeside::Peer(own(), peer)))
        }
        InterfaceKind::Bond => Ok(Some(TagsBeside::Upper(own()))),
        InterfaceKind::Other(kind) if kind == "macvlan" => Ok(Some(TagsBeside::Upper(own()))),
        _ => {
            let fixed = first_active(name, &[RX_TAGS, RX_SERVICE_TAGS])?;
            Ok(fixed.map(|feature| TagsBeside::Driver(own(), feature)))
        }
    }
}

/// Turns off what takes tags out of arriving frames. Returns what was on, for who wants to turn it
/// on again.
pub fn leave_tags_in(name: &str) -> io::Result<Vec<Feature>> {
    let active = generic::active(name)?;
    let mut turned = Vec::new();
    for (feature, word) in [(Feature::RxVlan, RX_TAGS), (Feature::RxServiceVlan, RX_SERVICE_TAGS)] {
        if active.iter().any(|name| name == word) {
            set_feature(name, feature, false)?;
            turned.push(feature);
        }
    }
    Ok(turned)
}

fn first_active(name: &str, features: &[&'static str]) -> io::Result<Option<&'static str>> {
    let active = generic::active(name)?;
    let is_active = |feature: &&&'static str| active.iter().any(|name| name == **feature);
    Ok(features.iter().find(is_active).copied())
}

/// The other end of a virtual cable, if it is in this network namespace.
fn peer(name: &str) -> io::Result<Option<String>> {
    const IFNAME: u16 = 3;
    const LINK: u16 = 5;
    const LINK_NAMESPACE: u16 = 37;
    let request = Request::link(libc::RTM_GETLINK, 0, 0).with_name(IFNAME, name);
    let answers = Netlink::open()?.ask(request)?;
    let (mut index, mut is_far) = (None, false);
    for (attribute, value) in answers.iter().flat_map(|answer| netlink::link_attributes(answer)) {
        match attribute {
            LINK => index = Some(number(value)),
            LINK_NAMESPACE => is_far = true,
            _ => {}
        }
    }
    let Some(index) = index.filter(|_| !is_far) else { return Ok(None) };
    let mut found = None;
    for other in names()? {
        // one that goes away meanwhile is not the peer
        if facts(&other).is_ok_and(|other| other.index == index) {
            found = Some(other);
        }
    }
    Ok(found)
}

impl TagsBeside {
    /// Whether tags are lost for certain, and not only perhaps.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        !matches!(self, TagsBeside::FarPeer(_))
    }
}

impl fmt::Display for TagsBeside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TagsBeside::Driver(name, feature) => write!(
                f,
                "the driver of \"{name}\" removes VLAN tags from received frames and this cannot \
                 be turned off (`ethtool -k {name}`: {feature}), so AF_XDP would lose them; use \
                 `--io packet`"
            ),
            TagsBeside::Peer(name, peer) => write!(
                f,
                "\"{peer}\", the peer of \"{name}\", passes VLAN tags as metadata, which AF_XDP \
                 does not see; run `ethtool -K {peer} {TX_TAGS} off {TX_SERVICE_TAGS} off`, or use \
                 `--io packet`"
            ),
            TagsBeside::FarPeer(name) => write!(
                f,
                "the peer of \"{name}\" is in another network namespace and may pass VLAN tags as \
                 metadata, which AF_XDP does not see; use `--io packet` if frames there carry VLAN \
                 tags, or run `ethtool -K PEER {TX_TAGS} off {TX_SERVICE_TAGS} off` in its \
                 namespace"
            ),
            TagsBeside::Upper(name) => write!(
                f,
                "\"{name}\" receives its frames from another interface after the kernel has \
                 removed their VLAN tags, so AF_XDP would lose them; use `--io packet`"
            ),
        }
    }
}
