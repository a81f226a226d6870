//! What holds for every frame: nothing panics, the parser agrees with another one, what was built
//! is what is read, a repaired checksum is the one computed anew, and a line reads back.

mod oracle;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use weir_packet::tcp::Tcp;
use weir_packet::{Build, Fragment, Headers, Net, checksum, edit, show};
use weir_units::limits::VLAN_TAGS;

/// What a test says of a frame, to compare with what is read from it.
#[derive(Clone, Debug)]
struct Said {
    source: SocketAddr,
    target: SocketAddr,
    kind: u8,
    dscp: u8,
    ecn: u8,
    tags: Vec<u16>,
    pppoe: Option<u16>,
    payload: usize,
    fragment: Option<(u16, bool, u16)>,
    tcp_options: Vec<u8>,
    v4_options: Vec<u8>,
    v6_extensions: Vec<(u8, Vec<u8>)>,
}

fn said() -> impl Strategy<Value = Said> {
    let ends = (any::<u128>(), any::<u128>(), any::<u16>(), any::<u16>(), any::<bool>());
    let link = (prop::collection::vec(any::<u16>(), 0..=4), prop::option::of(any::<u16>()));
    let offset = prop_oneof![Just(0), 0u16..8000];
    let net = (0u8..64, 0u8..4, prop::option::weighted(0.3, (offset, any::<bool>())));
    let number = prop::sample::select(vec![0u8, 43, 60, 51]);
    // the authentication header says its own length, which must be what follows
    let extension = (number, prop::collection::vec(any::<u8>(), 10..40));
    let more = (
        options(),
        prop::collection::vec(any::<u8>(), 0..40),
        prop::collection::vec(extension, 0..3),
        any::<u16>(),
    );
    (ends, 0u8..6, link, net, 0usize..1500, more).prop_map(
        |((a, b, port_a, port_b, v4), kind, (tags, pppoe), (dscp, ecn, cut), payload, more)| {
            let ip = |bits: u128| -> IpAddr {
                let [.., w, x, y, z] = bits.to_be_bytes();
                if v4 { Ipv4Addr::new(w, x, y, z).into() } else { Ipv6Addr::from(bits).into() }
            };
            Said {
                source: SocketAddr::new(ip(a), port_a),
                target: SocketAddr::new(ip(b), port_b),
                kind,
                dscp,
                ecn,
                tags,
                pppoe,
                payload,
                fragment: cut.map(|(offset, rest)| (offset * 8, rest, more.3)),
                tcp_options: more.0,
                v4_options: more.1,
                v6_extensions: more.2,
            }
        },
    )
}

/// TCP options that are partly well formed.
fn options() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        Just(vec![1]),
        any::<[u8; 2]>().prop_map(|mss| [&[2, 4][..], &mss].concat()),
        any::<u8>().prop_map(|shift| vec![3, 3, shift]),
        any::<[u8; 8]>().prop_map(|clocks| [&[8, 10][..], &clocks].concat()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop::collection::vec(one, 0..6).prop_map(|parts| parts.concat())
}

const PROTOCOLS: [u8; 6] = [17, 6, 132, 1, 50, 47];

impl Said {
    fn build(&self) -> Build {
        let (a, b) = (self.source, self.target);
        let base = match self.kind {
            0 => Build::udp(a, b),
            1 => Build::tcp(a, b).tcp_flags(2).tcp_options(&self.tcp_options),
            2 => Build::sctp(a, b),
            3 => Build::icmp_echo(a.ip(), b.ip(), a.port()),
            4 => Build::esp(a.ip(), b.ip(), 99),
            _ => Build::protocol(a.ip(), b.ip(), 47),
        };
        let mut build = base.dscp(self.dscp).ecn(self.ecn).payload_len(self.payload);
        build = self.tags.iter().fold(build, |build, &tag| build.vlan(tag));
        if let Some(session) = self.pppoe {
            build = build.pppoe(session);
        }
        if let Some((offset, more, id)) = self.fragment {
            build = build.fragment(offset, more, id.into());
        }
        let chain = self.v6_extensions.iter();
        build = chain.fold(build, |build, (number, body)| build.v6_extension(*number, body));
        build.v4_options(&self.v4_options).padded_to(60)
    }

    fn fragment(&self) -> Fragment {
        match self.fragment {
            None | Some((0, false, _)) => Fragment::None,
            Some((0, true, _)) => Fragment::First,
            Some(_) => Fragment::Later,
        }
    }
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => v4.to_bits().into(),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Everything that may be done to a frame, none of which may panic.
fn touch(bytes: &[u8]) {
    let headers = Headers::parse(bytes);
    assert!(usize::from(headers.end) <= bytes.len());
    assert!(headers.payload_at <= headers.end && headers.transport_at <= headers.end);
    let line = show(bytes).to_string();
    let _ = line.parse::<Build>();
    if let Some(tcp) = Tcp::of(bytes, &headers) {
        let errors = tcp.options().filter(Result::is_err).count();
        assert!(errors <= 1);
    }
    let mut bytes = bytes.to_vec();
    edit::set_traffic_class(&mut bytes, &headers, 0xa5);
    edit::set_tcp_window(&mut bytes, &headers, 7);
    edit::clamp_mss(&mut bytes, &headers, 500);
    edit::set_source_mac(&mut bytes, [1; 6]);
    edit::set_target_mac(&mut bytes, [1; 6]);
}

/// The checksums of a whole TCP segment as they should be: header of IPv4, and TCP.
fn sums_are_right(bytes: &[u8]) -> bool {
    let headers = Headers::parse(bytes);
    let (net, transport) = (usize::from(headers.net_at), usize::from(headers.transport_at));
    if headers.net == Net::V4 {
        let own = usize::from(bytes[net] & 15) * 4;
        if checksum::of(&bytes[net..net + own]) != 0 {
            return false;
        }
    }
    let segment = &bytes[transport..usize::from(headers.end)];
    let addresses = [headers.source, headers.target]
        .iter()
        .fold(0, |sum, address| checksum::sum(sum, &address.to_be_bytes()));
    let pseudo = addresses + segment.len() as u64 + u64::from(headers.protocol);
    checksum::fold(checksum::sum(pseudo, segment)) == 0
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_048, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        touch(&bytes);
    }

    #[test]
    fn no_broken_frame_panics(
        said in said(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in any::<prop::sample::Index>(),
        whole in any::<bool>(),
    ) {
        let mut bytes = said.build().to_vec();
        for (at, byte) in hits {
            let at = at.index(bytes.len().min(120));
            bytes[at] = byte;
        }
        if !whole {
            bytes.truncate(cut.index(bytes.len()));
        }
        touch(&bytes);
        oracle::agree(&bytes)?;
    }

    #[test]
    fn what_was_built_is_read(said in said()) {
        let bytes = said.build().to_vec();
        let headers = Headers::parse(&bytes);
        prop_assert_eq!(headers.fault, None);
        prop_assert_eq!(headers.source, bits(said.source.ip()));
        prop_assert_eq!(headers.target, bits(said.target.ip()));
        prop_assert_eq!(headers.net == Net::V4, said.source.is_ipv4());
        prop_assert_eq!((headers.dscp(), headers.ecn()), (said.dscp, said.ecn));
        prop_assert_eq!(usize::from(headers.tags), said.tags.len());
        let names_a_vlan = said.tags.iter().find(|tag| **tag & 0x0fff != 0);
        prop_assert_eq!(headers.tci, names_a_vlan.or(said.tags.first()).copied().unwrap_or(0));
        prop_assert_eq!(headers.pppoe, said.pppoe.is_some());
        let has_ah = said.v6_extensions.iter().any(|(number, _)| *number == 51);
        prop_assert_eq!(headers.ah, has_ah && said.source.is_ipv6());
        prop_assert_eq!(headers.fragment, said.fragment());
        prop_assert_eq!(headers.payload_len(), said.payload);
        let ports = headers.transport_at != 0 && said.kind < 3;
        let expected = if ports { (said.source.port(), said.target.port()) } else { (0, 0) };
        prop_assert_eq!((headers.source_port, headers.target_port), expected);
        let v6_icmp = said.kind == 3 && said.source.is_ipv6();
        let protocol = if v6_icmp { 58 } else { PROTOCOLS[usize::from(said.kind)] };
        prop_assert_eq!(headers.protocol, protocol);
        oracle::agree(&bytes)?;
    }

    #[test]
    fn what_is_wrapped_is_read_as_if_it_were_not(
        said in said(),
        layers in prop::collection::vec(0usize..5, 0..=VLAN_TAGS),
    ) {
        let plain = Said { tags: vec![], ..said }.build().to_vec();
        let bare = Headers::parse(&plain);
        oracle::agree(&plain)?;
        let mut wrapped = plain[..12].to_vec();
        let mut tags = 0;
        for layer in &layers {
            match layer {
                0 => wrapped.extend([0x81, 0x00, 0x00, 0x00]),
                1 => wrapped.extend([0x88, 0xa8, 0xe0, 0x00]),
                2 => wrapped.extend([0x91, 0x00, 0x00, 0x00]),
                3 => wrapped.extend([0x05, 0xdc, 0xaa, 0xaa, 0x03, 0, 0, 0]),
                _ => wrapped.extend([0x00, 0x00, 0xaa, 0xaa, 0x03, 0, 0, 0xf8]),
            }
            tags += u8::from(*layer < 3);
        }
        let moved = u16::try_from(wrapped.len() - 12).unwrap();
        wrapped.extend(&plain[12..]);
        let headers = Headers::parse(&wrapped);
        let shift = |at: u16| if at == 0 { 0 } else { at + moved };
        let expected = Headers {
            tags,
            tci: headers.tci,
            net_at: shift(bare.net_at),
            transport_at: shift(bare.transport_at),
            payload_at: shift(bare.payload_at),
            end: shift(bare.end),
            ..bare
        };
        prop_assert_eq!(headers, expected);
        prop_assert_eq!(headers.vlan(), None);
        touch(&wrapped);
    }

    #[test]
    fn a_repaired_checksum_is_the_one_computed_anew(
        said in said(),
        class in any::<u8>(),
        window in any::<u16>(),
        mss in any::<u16>(),
    ) {
        let said = Said { kind: 1, fragment: None, ..said };
        let mut bytes = said.build().to_vec();
        let headers = Headers::parse(&bytes);
        prop_assert!(sums_are_right(&bytes));
        edit::set_traffic_class(&mut bytes, &headers, class);
        prop_assert_eq!(Headers::parse(&bytes).traffic_class, class);
        prop_assert!(sums_are_right(&bytes));
        edit::set_tcp_window(&mut bytes, &headers, window);
        prop_assert_eq!(Tcp::of(&bytes, &headers).unwrap().window(), window);
        prop_assert!(sums_are_right(&bytes));
        edit::clamp_mss(&mut bytes, &headers, mss);
        prop_assert!(sums_are_right(&bytes));
    }

    #[test]
    fn a_line_reads_back(
        said in said(),
        ttl in any::<u8>(),
        mss in prop::option::of(any::<u16>()),
    ) {
        let options = mss.map_or(vec![], |mss| [&[2, 4][..], &mss.to_be_bytes()].concat());
        let said = Said {
            fragment: None,
            tcp_options: options,
            v4_options: vec![],
            v6_extensions: vec![],
            // the drop bit of a tag has no word
            tags: said.tags.iter().map(|tag| tag & !0x1000).collect(),
            ..said
        };
        // padding behind the packet has none either
        let bytes = said.build().ttl(ttl).padded_to(0).to_vec();
        let line = show(&bytes).to_string();
        let again = line.parse::<Build>().map_err(|wrong| {
            TestCaseError::fail(format!("{line}: {wrong}"))
        })?;
        prop_assert_eq!(&again.to_vec(), &bytes, "{}", line);
    }

    #[test]
    fn no_line_panics(line in "(udp|tcp|esp|arp|mac|.{0,5}) ?[0-9.:\\[\\]> a-z,]{0,60}.{0,4}") {
        if let Err(wrong) = line.parse::<Build>() {
            prop_assert!(!wrong.to_string().is_empty());
        }
    }
}
