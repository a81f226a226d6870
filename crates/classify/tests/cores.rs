//! Which core's engine has a frame: the one of its host, for both directions, for every flow and
//! every fragment. (That it is the host of the label is among the properties in `props.rs`.)

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;

use proptest::prelude::*;
use weir_classify::{Classifier, Index, Limits, Seed, Spec};
use weir_packet::{Build, Fragment, Headers, Side};

const LIMITS: Limits = Limits { flows: 64, fragmented: 8 };
/// The MAC of the box's far side.
const GATEWAY: [u8; 6] = [2, 8, 0, 0, 0, 1];

fn mac(number: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, number]
}

/// MACs below this number are routers.
fn classifier(seed: u128, routers: u8) -> Classifier {
    let routers = (0..routers).map(mac).collect();
    let spec = Spec { routers, ..Spec::default() };
    Classifier::new(LIMITS, Seed::new(seed), Index::compile(&spec))
}

fn side() -> impl Strategy<Value = Side> {
    prop::sample::select(Side::ALL.to_vec())
}

fn cores() -> impl Strategy<Value = NonZeroU32> {
    (1u32..33).prop_map(|cores| NonZeroU32::new(cores).unwrap_or(NonZeroU32::MIN))
}

/// An exchange between a host of the LAN and one outside: one frame of it.
#[derive(Clone, Debug)]
struct Sent {
    mac: u8,
    near: IpAddr,
    far: IpAddr,
    ports: (u16, u16),
    protocol: u8,
    /// Eighths of the offset, whether more follow, and the number of the packet.
    piece: Option<(u16, bool, u32)>,
    vlan: Option<u16>,
    side: Side,
}

impl Sent {
    fn bytes(&self) -> Vec<u8> {
        let ends = [(self.near, self.ports.0), (self.far, self.ports.1)].map(SocketAddr::from);
        let macs = [mac(self.mac), GATEWAY];
        let (from, to) = if self.side == Side::Lan { (0, 1) } else { (1, 0) };
        let mut build = match self.protocol {
            0 => Build::udp(ends[from], ends[to]),
            1 => Build::tcp(ends[from], ends[to]),
            2 => Build::icmp_echo(ends[from].ip(), ends[to].ip(), self.ports.0),
            _ => Build::protocol(ends[from].ip(), ends[to].ip(), 47),
        };
        build = build.macs(macs[from], macs[to]).payload_len(40);
        if let Some((at, more, id)) = self.piece {
            build = build.fragment(at * 8, more, id);
        }
        if let Some(vlan) = self.vlan {
            build = build.vlan(vlan);
        }
        build.to_vec()
    }

    /// Whose it is, as the README of the crate says it.
    fn host(&self, routers: u8) -> (Option<u8>, Option<IpAddr>) {
        if self.mac >= routers {
            return (Some(self.mac), None);
        }
        let address = match self.near {
            IpAddr::V4(_) => self.near,
            IpAddr::V6(v6) => IpAddr::from((v6.to_bits() & u128::MAX << 64).to_be_bytes()),
        };
        (None, Some(address))
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let near = prop_oneof![
        (0u8..6).prop_map(|n| IpAddr::from([10, 0, 0, n])),
        (0u16..4, 0u16..4).prop_map(|(a, b)| IpAddr::from([0x2001, 0xdb8, 0, a, 0, 0, 0, b])),
    ];
    let piece = prop::option::of((0u16..3, any::<bool>(), 0u32..3));
    let ends = (0u8..5, near, 0u16..9, (0u16..9, 0u16..9), 0u8..4);
    (ends, piece, prop::option::of(1u16..4), side()).prop_map(
        |((mac, near, far, ports, protocol), piece, vlan, side)| {
            let far = match near {
                IpAddr::V4(_) => IpAddr::from([192, 0, 2, far.to_be_bytes()[1]]),
                IpAddr::V6(_) => IpAddr::from([0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, far]),
            };
            Sent { mac, near, far, ports, protocol, piece, vlan, side }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn all_frames_of_a_host_meet_in_one_core(
        frames in prop::collection::vec(sent(), 2..80),
        (seed, routers, cores) in (any::<u128>(), 0u8..4, cores()),
    ) {
        // any of these may have received a frame
        let queues = [(); 2].map(|()| classifier(seed, routers).homes(cores));
        let mut homes = BTreeMap::new();
        for sent in frames {
            for (queue, side) in queues.iter().zip([sent.side, sent.side.other()]) {
                let sent = Sent { side, ..sent.clone() };
                let bytes = sent.bytes();
                let headers = Headers::parse(&bytes);
                let is_piece = sent.piece.is_some_and(|(at, more, _)| at > 0 || more);
                prop_assert_eq!(headers.fragment != Fragment::None, is_piece);
                let core = queue.core(side, &bytes);
                prop_assert!(core < cores.get());
                let home = *homes.entry(sent.host(routers)).or_insert(core);
                prop_assert_eq!(core, home, "{:?}", sent);
            }
        }
    }

    #[test]
    fn garbage_has_a_core_too(
        bytes in prop::collection::vec(any::<u8>(), 0..80),
        side in side(),
        (routers, cores) in (0u8..4, cores()),
    ) {
        prop_assert!(classifier(1, routers).homes(cores).core(side, &bytes) < cores.get());
    }
}
