//! The box is found and reached over the operator's own bridge while AF_XDP takes all other frames,
//! and what the box would route is taken too.

use weir_packet::{Build, Headers, Net, Pool};
use weir_xdp::{Attached, Counts, Heart, Mode, Program};

use super::{cable, in_own_network, ip, next, packet, send};
use crate::netdev;
use crate::{FrameSize, Port, Umem, XskPort, XskSpec};

const BOX_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x99];
const BOX: [u8; 4] = [10, 0, 0, 1];
const HOST: [u8; 4] = [10, 0, 0, 7];

/// A port by AF_XDP, its program, what holds that there, and the hand on it.
struct Opened {
    port: Port,
    pool: Pool,
    heart: Heart,
    _held: (Umem, Program, Attached),
}

fn open(name: &str) -> Opened {
    let index = netdev::index_of(name).unwrap();
    let (umem, mut pool) = Umem::with_pool(1_024, FrameSize::Normal).unwrap();
    let program = Program::load(1).unwrap();
    let port = XskPort::open(&umem, &mut pool, &XskSpec::of(name, index)).unwrap();
    port.sockets().for_each(|(queue, socket)| program.put(queue, socket).unwrap());
    let heart = program.heart().unwrap();
    heart.own_mac(BOX_MAC);
    heart.own_addresses(&[BOX.into()]);
    heart.take(true);
    heart.beat(u64::MAX / 4);
    let attached = program.attach(index, Mode::Native).unwrap();
    let port = Port::Xsk(Box::new(port));
    Opened { port, pool, heart, _held: (umem, program, attached) }
}

/// The first frame of this kind that comes to the host.
fn answer(host: &mut Port, pool: &mut Pool, kind: Net) -> Option<Headers> {
    let headers = (0..10).map(|_| Headers::parse(&next(host, pool)));
    headers.take_while(|headers| headers.net != Net::None).find(|headers| headers.net == kind)
}

#[test]
fn the_box_is_reached_and_nothing_behind_it() {
    in_own_network(|| {
        cable("lan0", "host0");
        ip("link set host0 address 02:00:00:00:00:01");
        ip("link add house type bridge forward_delay 0 mcast_snooping 0");
        ip("link set house address 02:00:00:00:00:99");
        ip("link set house up");
        ip("link set lan0 master house");
        ip("addr add 10.0.0.1/24 dev house");
        std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        let mut at_box = open("lan0");
        let (mut host, mut pool) = (packet("host0"), super::pool());

        let ask = Build::arp(HOST.into(), BOX.into()).macs(Build::SOURCE_MAC, [0xff; 6]);
        send(&mut host, &mut pool, &ask.clone().padded_to(60).to_vec());
        let found = answer(&mut host, &mut pool, Net::Arp).expect("an answer by ARP");
        assert_eq!(found.addresses(), Some((BOX.into(), HOST.into())));

        let ping = |to: [u8; 4]| {
            let ping = Build::icmp_echo(HOST.into(), to.into(), 5).payload_len(1_000);
            ping.macs(Build::SOURCE_MAC, BOX_MAC).to_vec()
        };
        send(&mut host, &mut pool, &ping(BOX));
        let echo = answer(&mut host, &mut pool, Net::V4).expect("an echo");
        assert_eq!(echo.addresses(), Some((BOX.into(), HOST.into())));

        // what carries more than a question, and what is to be routed
        let long = ask.padded_to(1_500).to_vec();
        let before = at_box.heart.counts();
        for frame in [&long, &ping([192, 0, 2, 1])] {
            send(&mut host, &mut pool, frame);
            assert_eq!(&next(&mut at_box.port, &mut at_box.pool), frame);
            at_box.port.settle(&mut at_box.pool);
        }
        let Counts { taken, to_box, arp, .. } = at_box.heart.counts();
        assert_eq!(taken - before.taken, 2);
        assert_eq!((to_box, arp), (before.to_box, before.arp));
        assert!(to_box >= 1 && arp >= 1);
    });
}
