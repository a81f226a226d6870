//! VLAN tags that the kernel keeps beside the frames: a bridge before the box takes them out as
//! frames arrive there, and hands them on over a virtual cable without putting them back.

use weir_packet::Pool;
use weir_xdp::{Attached, Mode, Program};

use super::{cable, in_own_network, ip, next, numbered, packet, send};
use crate::netdev::{self, Feature, TagsBeside};
use crate::{FrameSize, Port, Umem, XskPort, XskSpec};

/// A host, a bridge, the box, and a host behind it.
fn world() {
    for (near, far) in [("host0", "house0"), ("house1", "lan0"), ("wan0", "host1")] {
        cable(near, far);
    }
    ip("link add house type bridge forward_delay 0 mcast_snooping 0");
    ip("link set house up");
    ip("link set house0 master house");
    ip("link set house1 master house");
}

/// Whether frames without a tag, in VLAN 7, in service VLAN 5, and in VLAN 7 of service VLAN 5 come
/// out of the box as they went into it.
fn carried(lan: &mut Port, pool: &mut Pool) -> [bool; 4] {
    let (mut from, mut wan, mut to) = (packet("host0"), packet("wan0"), packet("host1"));
    let plain = numbered(100);
    let tagged = plain.clone().vlan(7).to_vec();
    let mut service = plain.clone().vlan(5).to_vec();
    service[12..14].copy_from_slice(&[0x88, 0xa8]);
    let both = plain.clone().vlan(5).vlan(7).to_vec();
    [plain.to_vec(), tagged, service, both].map(|frame| {
        lan.settle(pool);
        send(&mut from, pool, &frame);
        let at_box = next(lan, pool);
        send(&mut wan, pool, &at_box);
        let came = next(&mut to, pool);
        assert_eq!(came[..12], frame[..12], "it is the one that was sent");
        came == frame
    })
}

/// A port by AF_XDP whose program takes all frames.
fn xdp(name: &str, umem: &Umem, pool: &mut Pool) -> (Port, Program, Attached) {
    let index = netdev::index_of(name).unwrap();
    let program = Program::load(1).unwrap();
    let port = XskPort::open(umem, pool, &XskSpec::of(name, index)).unwrap();
    port.sockets().for_each(|(queue, socket)| program.put(queue, socket).unwrap());
    let heart = program.heart().unwrap();
    heart.take(true);
    heart.beat(u64::MAX / 4);
    let attached = program.attach(index, Mode::Native).unwrap();
    (Port::Xsk(Box::new(port)), program, attached)
}

#[test]
fn who_would_lose_tags_is_known_before() {
    in_own_network(|| {
        world();
        let (umem, mut pool) = Umem::with_pool(1_024, FrameSize::Normal).unwrap();
        let peer = TagsBeside::Peer("lan0".into(), "house1".into());
        assert_eq!(netdev::keeps_tags_in_metadata("lan0").unwrap(), Some(peer.clone()));
        assert!(peer.is_certain() && peer.to_string().contains("ethtool -K house1 tx-vlan"));
        // packet sockets bring them together again
        assert_eq!(carried(&mut packet("lan0"), &mut pool), [true; 4]);
        // and this is why it is asked: without its tag a frame is in another network
        let (mut port, program, attached) = xdp("lan0", &umem, &mut pool);
        assert_eq!(carried(&mut port, &mut pool), [true, false, false, false]);
        drop((port, program, attached));

        netdev::set_feature("house1", Feature::TxVlan, false).unwrap();
        assert_eq!(netdev::keeps_tags_in_metadata("lan0").unwrap(), None);
        let (umem, mut pool) = Umem::with_pool(1_024, FrameSize::Normal).unwrap();
        let (mut port, _program, _attached) = xdp("lan0", &umem, &mut pool);
        assert_eq!(carried(&mut port, &mut pool), [true; 4]);
    });
}

#[test]
fn features_that_only_their_names_tell_are_turned_off() {
    in_own_network(|| {
        cable("lan0", "host0");
        // nobody can ask the other end in another namespace
        let namespace = format!("weir-test-tags-{}", std::process::id());
        ip(&format!("netns add {namespace}"));
        ip(&format!("link add far0 type veth peer name far1 netns {namespace}"));
        let far = netdev::keeps_tags_in_metadata("far0");
        ip(&format!("netns del {namespace}"));
        let far = far.unwrap().unwrap();
        assert_eq!(far, TagsBeside::FarPeer("far0".into()));
        assert!(!far.is_certain() && far.to_string().contains("--io packet"));
        assert!(netdev::keeps_tags_in_metadata("lan7").is_err());
        // a kernel need not have these
        let add = ["link", "add", "link", "host0", "name", "upper0", "type", "macvlan"];
        if std::process::Command::new("ip").args(add).status().is_ok_and(|made| made.success()) {
            let upper = TagsBeside::Upper("upper0".into());
            assert_eq!(netdev::keeps_tags_in_metadata("upper0").unwrap(), Some(upper));
        }
        let is_on = || {
            let output = std::process::Command::new("ethtool").args(["-k", "lan0"]).output();
            let text = output.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
            text.ok().map(|text| {
                ["rx-vlan-offload: on", "rx-vlan-stag-hw-parse: on"].map(|is| text.contains(is))
            })
        };
        netdev::set_feature("lan0", Feature::RxServiceVlan, false).unwrap();
        assert!(is_on().is_none_or(|is_on| is_on == [true, false]), "{:?}", is_on());
        // what was off is not told, so that nobody turns it on again
        assert_eq!(netdev::leave_tags_in("lan0").unwrap(), [Feature::RxVlan]);
        assert!(is_on().is_none_or(|is_on| is_on == [false; 2]), "{:?}", is_on());
        assert_eq!(netdev::leave_tags_in("lan0").unwrap(), []);
        assert!(netdev::leave_tags_in("lan7").is_err());
        assert!(netdev::set_feature("lan7", Feature::RxVlan, false).is_err());
    });
}
