//! Interfaces: what is known of them, what is changed, and tap devices.

use std::process::Command;

use weir_packet::{Burst, Pool};
use weir_units::Span;

use super::{cable, in_own_network, ip, next, numbered, packet, pool, send};
use crate::netdev::{self, Feature, InterfaceKind, PartOf, Unfit};
use crate::wait::Wait;
use crate::{PacketPort, Port, PortState, TapPort};

#[test]
fn what_an_interface_is_and_what_stands_against_it() {
    in_own_network(|| {
        cable("lan0", "lan0peer");
        let lan = netdev::examine("lan0").unwrap();
        assert_eq!((lan.kind, lan.mtu, lan.up, lan.link), (InterfaceKind::Veth, 1_500, true, true));
        assert_eq!(lan.index, netdev::index_of("lan0").unwrap());
        assert_eq!(netdev::names().unwrap(), ["lo", "lan0peer", "lan0"]);
        assert_eq!(netdev::examine("lo"), Err(vec![Unfit::Loopback("lo".into())]));
        let near = vec!["lan0".to_owned()];
        assert_eq!(netdev::examine("lan1"), Err(vec![Unfit::NotFound("lan1".into(), near)]));
        let long = "a-name-that-is-too-long-for-the-kernel";
        assert!(matches!(&netdev::examine(long).unwrap_err()[..], [Unfit::NotFound(..)]));
        ip("link set lan0 down");
        assert_eq!(netdev::examine("lan0"), Err(vec![Unfit::Down("lan0".into())]));
        netdev::set_up("lan0", true).unwrap();
        assert!(netdev::examine("lan0").is_ok());
    });
}

#[test]
fn offloads_are_turned_off_as_ethtool_sees_them() {
    in_own_network(|| {
        cable("lan0", "lan0peer");
        netdev::set_feature("lan0", Feature::Gro, true).unwrap();
        assert!(netdev::facts("lan0").unwrap().features.gro);
        assert_eq!(netdev::see_single_frames("lan0").unwrap(), [Feature::Gro]);
        assert_eq!(netdev::see_single_frames("lan0").unwrap(), []);
        for feature in [Feature::Gro, Feature::Tso, Feature::Gso, Feature::TxChecksums] {
            netdev::set_feature("lan0", feature, false).unwrap();
        }
        let all = netdev::facts("lan0").unwrap().features;
        assert_eq!(all, netdev::Features::default());
        let Ok(shown) = Command::new("ethtool").args(["-k", "lan0"]).output() else {
            eprintln!("skipped: the rest needs ethtool");
            return;
        };
        let shown = String::from_utf8(shown.stdout).unwrap();
        for line in ["tx-checksumming", "generic-segmentation-offload", "generic-receive-offload"] {
            assert!(shown.contains(&format!("\n{line}: off")), "{shown}");
        }
    });
}

#[test]
fn ports_of_a_bridge_are_isolated_and_set_free() {
    in_own_network(|| {
        cable("host0", "box0");
        cable("box1", "host1");
        netdev::create_bridge("house").unwrap();
        assert!(netdev::create_bridge("house").is_err());
        // a bridge that snoops joins groups itself, and its reports would come between the frames
        ip("link set house type bridge mcast_snooping 0");
        netdev::set_up("house", true).unwrap();
        for port in ["box0", "box1"] {
            netdev::add_to_bridge(port, "house").unwrap();
            assert_eq!(netdev::examine(port), Err(vec![Unfit::Bridged(port.into())]));
        }
        assert_eq!(netdev::examine("house"), Err(vec![Unfit::Bridge("house".into())]));
        let (mut from, mut to, mut pool) = (packet("host0"), packet("host1"), pool());
        send(&mut from, &mut pool, &numbered(1).to_vec());
        assert_eq!(next(&mut to, &mut pool), numbered(1).to_vec(), "the bridge passes it");
        for port in ["box0", "box1"] {
            netdev::set_isolated(port, true).unwrap();
            let now = netdev::examine(port).unwrap();
            assert_eq!(now.part_of, PartOf::Bridge { isolated: true });
        }
        send(&mut from, &mut pool, &numbered(2).to_vec());
        netdev::set_isolated("box1", false).unwrap();
        send(&mut from, &mut pool, &numbered(3).to_vec());
        assert_eq!(next(&mut to, &mut pool), numbered(3).to_vec(), "and 2 it did not");
        netdev::remove_from_bridge("box0").unwrap();
        assert_eq!(netdev::examine("box0").unwrap().part_of, PartOf::Nothing);
        netdev::remove_bridge("house").unwrap();
        assert_eq!(netdev::examine("box1").unwrap().part_of, PartOf::Nothing);
    });
}

#[test]
fn a_tap_device_carries_frames_both_ways_and_ends_with_its_port() {
    in_own_network(|| {
        let mut tap = Port::Tap(Box::new(TapPort::open("tap7").unwrap()));
        assert_eq!(netdev::facts("tap7").unwrap().kind, InterfaceKind::Tap);
        assert_eq!(tap.state(), PortState::NoLink);
        let mut pool = pool();
        send(&mut tap, &mut pool, &numbered(1).to_vec());
        assert_eq!(tap.counters().not_sent, 1, "it is still down");
        netdev::set_up("tap7", true).unwrap();
        assert_eq!(tap.state(), PortState::Up);
        let mut kernel = packet("tap7");
        for n in 0..100 {
            let frame = numbered(n).vlan(7).to_vec();
            send(&mut tap, &mut pool, &frame);
            assert_eq!(next(&mut kernel, &mut pool), frame);
            send(&mut kernel, &mut pool, &frame);
            assert_eq!(next(&mut tap, &mut pool), frame);
        }
        send(&mut tap, &mut pool, &numbered(1).padded_to(1_515).to_vec());
        let counters = tap.counters();
        assert_eq!((counters.sent_frames, counters.received_frames), (100, 100));
        assert_eq!(counters.too_long, 1);
        for n in 0..3 {
            send(&mut kernel, &mut pool, &numbered(n).to_vec());
        }
        let (mut one, mut burst) = (Pool::new(1, 2_048), Burst::new());
        assert_eq!((tap.receive(&mut one, &mut burst), tap.counters().no_buffer), (1, 2));
        assert_eq!(one.bytes(&burst.frames()[0]), numbered(0).to_vec());
        ip("link del tap7");
        assert_eq!((tap.state(), kernel.state()), (PortState::Gone, PortState::Gone));
        assert!(tap.fd().is_none());
        send(&mut tap, &mut pool, &numbered(1).to_vec());
        assert_eq!(pool.free(), pool.capacity());
        let second = TapPort::open("tap8").unwrap();
        assert!(netdev::index_of(second.name()).is_ok());
        drop(second);
        // a program that another test starts right now has the descriptor until it has begun
        let (wait, mut patience) = (Wait::new().unwrap(), 500);
        while netdev::index_of("tap8").is_ok() && patience > 0 {
            wait.wait([], Some(Span::from_ms(10))).unwrap();
            patience -= 1;
        }
        assert!(netdev::index_of("tap8").is_err());
    });
}

#[test]
fn a_port_that_cannot_be_opened_says_why_and_what_to_do() {
    in_own_network(|| {
        let text = PacketPort::open("nowhere").unwrap_err().to_string();
        assert!(text.contains("\"nowhere\" cannot be found"), "{text}");
        assert!(text.ends_with("`ip -brief link` lists the interfaces there are"), "{text}");
        cable("lan0", "lan0peer");
        crate::privileges::drop_to(crate::privileges::Capabilities::NONE).unwrap();
        let text = PacketPort::open("lan0").unwrap_err().to_string();
        assert!(text.contains("Operation not permitted") && text.contains("setcap"), "{text}");
    });
}
