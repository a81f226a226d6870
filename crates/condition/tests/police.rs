//! The policer over frames and labels: what is written, and that nothing else is.

use std::collections::BTreeMap;

use proptest::prelude::*;
use weir_condition::meter::{Colour, Terms};
use weir_condition::police::{Action, Edit, Police, Policer, Spec, Treatment};
use weir_packet::{Build, Headers, Label, Net, Reason, Side, checksum};
use weir_units::{Bytes, Instant, Rate};

const BYTES: Bytes = Bytes::new(100);

fn terms(bps: u64, burst: u64) -> Terms {
    Terms::single_rate(Rate::from_bps(bps), Bytes::new(burst), Bytes::ZERO)
}

fn drops(bps: u64, burst: u64) -> Treatment {
    let fates = [Action::Forward(Colour::Green, None), Action::Drop, Action::Drop];
    Treatment::Police(Police { terms: terms(bps, burst), fates, aware: false })
}

fn spec(treatments: &[Treatment], leaves: &[(u32, u32)]) -> Spec {
    Spec { treatments: treatments.to_vec(), leaves: leaves.iter().copied().collect() }
}

fn policer(spec: &Spec) -> Policer {
    let mut policer = Policer::new();
    policer.apply(Instant::ZERO, &mut Edit::between(&Spec::default(), spec));
    policer
}

/// How many frames of `BYTES` a leaf lets through at once.
fn passes(policer: &mut Policer, now: Instant, leaf: u32, side: Side) -> usize {
    let mut label = Label::new(side, &Headers::EMPTY);
    label.leaf = leaf;
    (0..100).take_while(|_| policer.treat(now, BYTES, &mut [], &mut label).is_ok()).count()
}

#[test]
fn leaves_and_directions_have_meters_of_their_own() {
    let mut policer =
        policer(&spec(&[drops(8_000, 500), drops(8_000, 700)], &[(3, 0), (4_000, 1)]));
    let now = Instant::from_ns(5);
    assert_eq!(passes(&mut policer, now, 3, Side::Lan), 5);
    assert_eq!(passes(&mut policer, now, 3, Side::Wan), 5);
    assert_eq!(passes(&mut policer, now, 3, Side::Lan), 0);
    assert_eq!(passes(&mut policer, now, 4_000, Side::Lan), 7);
    for nobody in [2, 4, 3_999, 5_000, u32::MAX] {
        assert_eq!(passes(&mut policer, now, nobody, Side::Lan), 100);
    }
    let mut label = Label::new(Side::Lan, &Headers::EMPTY);
    label.leaf = 3;
    let refused = policer.treat(now, BYTES, &mut [], &mut label);
    assert_eq!(refused, Err(Reason::Policed));
    policer.begin_anew(3);
    policer.begin_anew(5);
    assert_eq!(passes(&mut policer, now, 3, Side::Lan), 5);
}

#[test]
fn an_edit_keeps_the_fill_of_leaves_that_stay() {
    let (slow, fast) = (drops(8_000, 500), drops(80_000, 400));
    let before = spec(&[slow], &[(1, 0), (2, 0), (3, 0), (2_000, 0)]);
    let mut policer = policer(&before);
    let now = Instant::from_ns(5);
    for leaf in [1, 2, 3, 2_000] {
        assert_eq!(passes(&mut policer, now, leaf, Side::Lan), 5);
    }
    // 1 stays, 2 has other terms, 3 goes, 4 comes; the page of 2 000 goes
    let after = spec(&[slow, fast], &[(1, 0), (2, 1), (4, 0)]);
    policer.apply(now, &mut Edit::between(&before, &after));
    let through = [1, 2, 3, 4, 2_000].map(|leaf| passes(&mut policer, now, leaf, Side::Lan));
    assert_eq!(through, [0, 0, 100, 5, 100]);
    // a list that starts anew gives other places and changes nothing
    let later = Instant::from_ns(100_000_005);
    let again = spec(&[fast, slow], &[(1, 1), (2, 0), (4, 1)]);
    policer.apply(later, &mut Edit::between(&after, &again));
    assert_eq!(passes(&mut policer, later, 1, Side::Lan), 1);
    assert_eq!(passes(&mut policer, later, 2, Side::Lan), 4, "no more than the burst");
    // whoever comes back begins anew, and without anybody nothing is asked
    policer.apply(later, &mut Edit::between(&again, &Spec::default()));
    assert!(policer.is_idle());
    assert_eq!(passes(&mut policer, later, 1, Side::Lan), 100);
    policer.apply(later, &mut Edit::between(&Spec::default(), &before));
    assert!(!policer.is_idle());
    assert_eq!(passes(&mut policer, later, 1, Side::Lan), 5);
}

#[test]
fn other_lines_alone_change_nothing() {
    let before = spec(&[drops(8_000, 500)], &[(1, 0), (2, 0)]);
    let after = Spec {
        treatments: [before.treatments.clone(), vec![Treatment::Mark(46)]].concat(),
        leaves: BTreeMap::from([(1, 0), (2, 0), (9, 1)]),
    };
    let edit = format!("{:?}", Edit::between(&before, &after));
    assert!(edit.contains("rows: [(9, 2)]"), "{edit}");
}

#[test]
fn assured_forwarding_gets_its_three_code_points() {
    let fates = [(Colour::Green, 10), (Colour::Yellow, 12), (Colour::Red, 14)];
    let fates = fates.map(|(colour, dscp)| Action::Forward(colour, Some(dscp)));
    let terms = Terms::two_rates(
        Rate::from_bps(8_000),
        Bytes::new(200),
        Rate::from_bps(16_000),
        Bytes::new(300),
    );
    for (aware, came, want) in [
        (false, 14, [(10, 0), (10, 0), (12, 1), (14, 2)]),
        (true, 10, [(10, 0), (10, 0), (12, 1), (14, 2)]),
        (true, 12, [(12, 1), (12, 1), (12, 1), (14, 2)]),
        (true, 14, [(14, 2); 4]),
    ] {
        let police = Treatment::Police(Police { terms, fates, aware });
        let mut policer = policer(&spec(&[police], &[(7, 0)]));
        for want in want {
            let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
            let mut bytes = Build::udp(a, b).dscp(came).ecn(2).to_vec();
            let mut label = Label::new(Side::Lan, &Headers::parse(&bytes));
            label.leaf = 7;
            policer.treat(Instant::ZERO, BYTES, &mut bytes, &mut label).unwrap();
            let headers = Headers::parse(&bytes);
            assert_eq!((headers.dscp(), label.colour), want, "came as {came}");
            assert_eq!(
                (headers.traffic_class & 3, label.traffic_class),
                (2, headers.traffic_class)
            );
            assert_eq!(checksum::of(&bytes[14..34]), 0);
        }
    }
}

fn fate() -> impl Strategy<Value = Action> {
    let colour = prop_oneof![Just(Colour::Green), Just(Colour::Yellow), Just(Colour::Red)];
    prop_oneof![
        3 => (colour, prop::option::of(0u8..64)).prop_map(|(c, d)| Action::Forward(c, d)),
        1 => Just(Action::Drop),
    ]
}

fn treatment() -> impl Strategy<Value = Treatment> {
    let police = (0u64..1 << 44, 0u64..2_000, [fate(), fate(), fate()], any::<bool>());
    prop_oneof![
        (0u8..64).prop_map(Treatment::Mark),
        police.prop_map(|(bps, burst, fates, aware)| {
            Treatment::Police(Police { terms: terms(bps, burst), fates, aware })
        }),
    ]
}

/// Frames that are right, and some that were cut or broken on the way.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let addresses = (any::<bool>(), any::<[u8; 4]>());
    let built = (addresses, any::<bool>(), 0u8..64, 0u8..4, 0usize..200, any::<bool>()).prop_map(
        |((v4, n), is_tcp, dscp, ecn, len, tagged)| {
            let [a, b, c, d] = n;
            let (from, to) = match v4 {
                true => (format!("10.{a}.{b}.1:{c}"), format!("192.0.2.{d}:80")),
                false => (format!("[fd00::{a:x}:{b:x}]:{c}"), format!("[2001:db8::{d:x}]:80")),
            };
            let (from, to) = (from.parse().expect("an address"), to.parse().expect("an address"));
            let build = if is_tcp { Build::tcp(from, to) } else { Build::udp(from, to) };
            let build = build.dscp(dscp).ecn(ecn).payload(&vec![a; len]);
            (if tagged { build.vlan(u16::from(b)) } else { build }).to_vec()
        },
    );
    let broken =
        (prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4), 0usize..300);
    (built, prop::option::weighted(0.3, broken)).prop_map(|(mut bytes, broken)| {
        let (changes, len): (Vec<_>, usize) = broken.unwrap_or((Vec::new(), usize::MAX));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(len);
        bytes
    })
}

/// Whether the checksum of the IPv4 header is right; `None`: there is none to be right.
fn checksum_of(bytes: &[u8]) -> Option<bool> {
    let headers = Headers::parse(bytes);
    let at = usize::from(headers.net_at);
    let header = usize::from(*bytes.get(at)? & 15) * 4;
    let sum = || bytes.get(at..at + header).map(checksum::of);
    // one's complement writes nothing in two ways
    (headers.net == Net::V4).then(sum).flatten().map(|sum| sum == 0 || sum == 0xffff)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn nothing_but_the_code_point_is_written(
        treatment in treatment(),
        frames in prop::collection::vec((frame(), any::<bool>(), 0u32..1_000_000), 1..8),
    ) {
        let mut policer = policer(&spec(&[treatment], &[(1, 0)]));
        let mut now = Instant::ZERO;
        for (bytes, is_up, pause) in frames {
            now += weir_units::Span::from_ns(u64::from(pause));
            let side = if is_up { Side::Lan } else { Side::Wan };
            let before = Headers::parse(&bytes);
            let mut label = Label::new(side, &before);
            label.leaf = 1;
            let came = label;
            let mut written = bytes.clone();
            let cost = Bytes::new(bytes.len() as u64);
            let ruled = policer.treat(now, cost, &mut written, &mut label);

            let after = Headers::parse(&written);
            prop_assert_eq!(Headers { traffic_class: before.traffic_class, ..after }, before);
            prop_assert_eq!(after.traffic_class & 3, before.traffic_class & 3, "the ECN");
            prop_assert_eq!(label.traffic_class, after.traffic_class, "the label is true");
            prop_assert_eq!(checksum_of(&written), checksum_of(&bytes));
            // all that is not DSCP or checksum, byte by byte
            let at = usize::from(before.net_at);
            let mut same = written.clone();
            let (class, sum) = match before.net {
                Net::V4 => (at + 1..at + 2, at + 10..at + 12),
                Net::V6 => (at..at + 2, 0..0),
                Net::None | Net::Arp => (0..0, 0..0),
            };
            for range in [class, sum] {
                if let Some(old) = bytes.get(range.clone()) {
                    same[range].copy_from_slice(old);
                }
            }
            prop_assert_eq!(&same, &bytes);
            let is_ip = matches!(before.net, Net::V4 | Net::V6);
            match treatment {
                Treatment::Mark(dscp) if is_ip => prop_assert_eq!(after.dscp(), dscp),
                Treatment::Mark(_) => prop_assert_eq!(label, came),
                Treatment::Police(Police { aware, .. }) => {
                    if ruled.is_err() {
                        prop_assert_eq!((&written, label), (&bytes, came));
                    }
                    prop_assert!(!aware || label.colour >= came.colour);
                }
            }
        }
    }
}

#[test]
fn who_keeps_the_code_point_is_no_better_than_it_says() {
    let fates =
        [Action::Forward(Colour::Green, None), Action::Forward(Colour::Yellow, None), Action::Drop];
    let terms = Terms::single_rate(Rate::from_bps(8_000), Bytes::new(200), Bytes::new(200));
    let police = Treatment::Police(Police { terms, fates, aware: false });
    let mut policer = policer(&spec(&[police], &[(7, 0)]));
    let headers = Headers { traffic_class: 14 << 2, ..Headers::EMPTY };
    let (best, worst) = (Label::new(Side::Lan, &Headers::EMPTY), Label::new(Side::Lan, &headers));
    let mut colour = |label: Label| {
        let mut label = Label { leaf: 7, ..label };
        policer.treat(Instant::ZERO, BYTES, &mut [], &mut label).map(|()| label.colour)
    };
    assert_eq!([best, worst, best, worst].map(&mut colour), [Ok(0), Ok(2), Ok(1), Ok(2)]);
    assert_eq!(colour(best), Err(Reason::Policed));
}
