//! Connections that move to another engine: their traffic cannot tell. The same frames go through
//! one engine, and through one that hands over to a second at any moment.

#[path = "export/script.rs"]
mod script;

use proptest::prelude::*;
use script::{CONFIG, Coming, Left, World, acts, script};
use weir_engine::{Config, Exported, Imported, Margin, Unreadable};
use weir_packet::{Build, Side, tcp};
use weir_units::limits::EXPORTED_AT_ONCE;
use weir_units::{Instant, Rate, Span, Way};

/// Classes narrow enough that windows are sized and acknowledgements wait, with frames so far apart
/// that the shaper never holds any: what it would do depends on what others have sent before, and
/// that does not move.
const STEADY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9gbit\"\nup = \"9gbit\"\n\
    [class.\"/narrow\"]\nmatch = \"lan 172.16.0.0/24\"\nceil = \"2mbit\"\n\
    tcp = { window = true, pace-acks = true, mss = 500, least = 2 }\n\
    [class.\"/hosts\"]\nmatch = \"tcp\"\nceil = \"2mbit\"\n\
    each = { by = \"lan-host\", count = 4 }\n\
    tcp = { window = true, pace-acks = true, mss = 700, loss = \"release\" }\n\
    [class.\"/small\"]\nmatch = \"length 0-200\"\n\
    [class.\"/large\"]\nmatch = \"length 201-2000\"\n";

/// A line so slow that most frames wait.
const SLOW: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100kbit\"\nup = \"100kbit\"\n\
    [class.\"/narrow\"]\nmatch = \"lan 172.16.0.0/24\"\nceil = \"60kbit\"\n\
    aqm = \"none\"\ntcp = { window = false, pace-acks = false, mss = \"keep\" }\n\
    [class.\"/rest\"]\nmatch = [\"tcp\", \"udp\"]\n\
    aqm = \"none\"\ntcp = { window = false, pace-acks = false, mss = \"keep\" }\n";

/// With other classes before, numbers are not those of the exporting engine.
const OTHER: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n\
    [class.\"/x\"]\nmatch = \"udp\"\neach = { by = \"lan-host\", count = 9 }\n\
    [class.\"/y\"]\nmatch = \"tcp\"\n";

/// Long after zero: what has never been is long ago then, by any clock.
const BEGIN: Instant = Instant::from_ns(1_000_000_000_000);

/// How far the second clock is ahead: by a whole number of microseconds, and of the turns by which
/// a host is known to be silent. Then not even a microsecond can differ.
const AHEAD: Span = Span::from_ns((1 << 33) * 125);

/// An engine that begins as the other ends: with another clock and other numbers.
fn second(config: Config, text: &str, first: &World) -> World {
    let mut second = World::new(config, OTHER, first.now + AHEAD);
    second.ahead = AHEAD;
    second.change(text);
    second
}

/// The first one sends what waits, the second one goes on. Returns it with all that has left.
fn hand_over(config: Config, text: &str, first: &mut World) -> (World, Imported) {
    let mut second = second(config, text, first);
    let batches = first.export();
    first.drain();
    let imported = second.import(&batches);
    second.left = std::mem::take(&mut first.left);
    (second, imported)
}

/// The frames without their moments.
fn bytes(left: &Left) -> Vec<Vec<&[u8]>> {
    left.values().map(|frames| frames.iter().map(|(_, bytes)| &bytes[..]).collect()).collect()
}

/// The first frame that is another one, or is missing.
fn differ(one: &Left, two: &Left) -> Option<String> {
    for (connection, (a, b)) in bytes(one).into_iter().zip(bytes(two)).enumerate() {
        let at = a.iter().zip(&b).position(|(a, b)| a != b);
        if let Some(at) = at.or((a.len() != b.len()).then(|| a.len().min(b.len()))) {
            let moments =
                |left: &Left| left.values().nth(connection).and_then(|f| Some(f.get(at)?.0));
            return Some(format!(
                "connection {connection}, frame {at} at {:?} {:?}: {:x?} and {:x?}",
                moments(one),
                moments(two),
                a.get(at),
                b.get(at)
            ));
        }
    }
    (one.len() != two.len()).then(|| "a connection is missing".to_owned())
}

/// What was counted of TCP, but for what waited: acknowledgements that are flushed wait less.
fn counted(worlds: &[&World]) -> [u64; 8] {
    let mut sum = [0; 8];
    for world in worlds {
        let c = world.engine.conditioner().counters();
        let total = Way::ALL.map(|way| *world.engine.total(way));
        let repeated = total.iter().map(|t| t.repeated.frames).sum();
        let late = total.iter().map(|t| t.late.frames).sum();
        let these =
            [c.sized, c.clamped, c.unknown, c.left_alone, c.repeated, c.rejected, repeated, late];
        sum.iter_mut().zip(these).for_each(|(sum, one)| *sum += one);
    }
    sum
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_traffic_cannot_tell(
        acts in acts(),
        at in any::<prop::sample::Index>(),
        has_other_seed in any::<bool>(),
    ) {
        let script = script(&acts);
        let (before, behind) = script.split_at(at.index(script.len()));
        let mut one = World::new(CONFIG, STEADY, BEGIN);
        one.run(&script);
        one.drain();

        let mut first = World::new(CONFIG, STEADY, BEGIN);
        first.run(before);
        let flows = first.engine.classifier().flows();
        let held = first.engine.conditioner().held();
        let seed = if has_other_seed { 99 } else { CONFIG.seed };
        let config = Config { flows: 512, seed, ..CONFIG };
        let (mut second, imported) = hand_over(config, STEADY, &mut first);
        prop_assert_eq!(imported, Imported { placed: as_u32(flows), ..Imported::default() });
        prop_assert_eq!(second.engine.classifier().flows(), flows, "one was forgotten");
        second.run(behind);
        second.drain();
        prop_assert_eq!(differ(&one.left, &second.left), None);
        // acknowledgements that waited left sooner, and nobody waits behind them any more
        prop_assert!(held > 0 || one.left == second.left, "frames left at other moments");
        prop_assert_eq!(counted(&[&one]), counted(&[&first, &second]));
    }

    /// Nothing is held but by the shaper: every frame leaves, and those of a connection in order.
    #[test]
    fn where_the_line_is_slow_nothing_is_lost_and_nothing_overtakes(
        acts in acts(),
        at in any::<prop::sample::Index>(),
    ) {
        let script = script(&acts);
        // twenty times as fast
        let fast = |coming: &Coming| {
            Coming { after: Span::from_ns(coming.after.ns() / 20), ..coming.clone() }
        };
        let script: Vec<Coming> = script.iter().map(fast).collect();
        let (before, behind) = script.split_at(at.index(script.len()));
        let mut one = World::new(CONFIG, SLOW, BEGIN);
        one.run(&script);
        one.drain();

        let mut first = World::new(CONFIG, SLOW, BEGIN);
        first.run(before);
        let (mut second, _) = hand_over(CONFIG, SLOW, &mut first);
        second.run(behind);
        second.drain();
        prop_assert_eq!(differ(&one.left, &second.left), None);
        let left: usize = second.left.values().map(Vec::len).sum();
        prop_assert_eq!(left, script.len());
    }

    /// Connections come one by one, those of which nothing waits first, while the first engine goes
    /// on with the others.
    #[test]
    fn what_has_left_is_released_and_what_waits_is_kept(
        acts in acts(),
        at in any::<prop::sample::Index>(),
    ) {
        let script = script(&acts);
        let script: Vec<Coming> = script
            .into_iter()
            .map(|coming| Coming { after: Span::from_ns(coming.after.ns() / 20), ..coming })
            .collect();
        let (before, _) = script.split_at(at.index(script.len()));
        let mut first = World::new(CONFIG, SLOW, BEGIN);
        first.run(before);
        let flows = first.engine.classifier().flows();
        let mut batch = Exported::with_room();
        batch.read(&first.flows()).expect("is a batch");
        prop_assert_eq!(batch.flows.len(), flows);
        let waiting = batch.flows.iter().filter(|record| record.is_waiting).count();
        let held = batch.flows.iter().filter(|record| first.engine.holds_frames_of(record));
        prop_assert_eq!(held.count(), waiting);
        let exported = first.now;
        prop_assert_eq!(first.engine.release(exported, &batch), waiting);
        prop_assert_eq!(first.engine.classifier().flows(), waiting);
        first.drain();
        prop_assert!(!batch.flows.iter().any(|record| first.engine.holds_frames_of(record)));
        prop_assert_eq!(first.engine.release(exported, &batch), 0);
        prop_assert_eq!(first.engine.classifier().flows(), 0);
        let left: usize = first.left.values().map(Vec::len).sum();
        prop_assert_eq!(left, before.len());
    }

    #[test]
    fn whatever_is_cut_off_or_changed_is_refused_or_harmless(
        acts in acts(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
        whole in any::<prop::sample::Index>(),
    ) {
        let script = script(&acts);
        let mut first = World::new(CONFIG, STEADY, BEGIN);
        first.run(&script);
        let batches = first.export();
        let mut batch = Exported::with_room();
        let whole = whole.get(&batches);
        prop_assert!(batch.read(&whole[..cut.index(whole.len())]).is_err());
        prop_assert!(batch.flows.is_empty());
        let mut longer = whole.clone();
        longer.push(0);
        prop_assert_eq!(batch.read(&longer), Err(Unreadable::LeftOver(1)));
        let mut changed = whole.clone();
        for (at, value) in changes {
            let at = at.index(changed.len());
            changed[at] = value;
        }
        let mut second = second(CONFIG, STEADY, &first);
        if batch.read(&changed).is_ok() {
            let imported = second.engine.import(second.now, &batch);
            prop_assert_eq!(imported.in_all() as usize, batch.flows.len());
        }
        second.run(&script);
        second.drain();
        prop_assert_eq!(second.engine.pool().free(), second.engine.pool().capacity());
    }
}

fn as_u32(n: usize) -> u32 {
    u32::try_from(n).expect("is small")
}

const LAN: &str = "172.16.0.1:5000";
const WAN: &str = "192.0.2.1:80";

/// A segment of one connection.
fn segment(side: Side, flags: u8, seq: u32, ack: u32, bytes: usize) -> Vec<u8> {
    let (lan, wan) = (LAN.parse().expect("an address"), WAN.parse().expect("an address"));
    let build = if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
    let options: &[u8] = if flags & 2 != 0 { &[2, 4, 5, 0xb4, 1, 3, 3, 2] } else { &[] };
    let build = build.tcp_flags(flags).tcp_seq(seq).tcp_ack(ack).tcp_window(60_000);
    build.tcp_options(options).payload_len(bytes).to_vec()
}

/// The connection opens and sends some data up, which are acknowledged.
fn talk(world: &mut World) {
    let frames = [
        (Side::Lan, segment(Side::Lan, tcp::SYN, 0, 0, 0)),
        (Side::Wan, segment(Side::Wan, tcp::SYN | tcp::ACK, 0, 1, 0)),
        (Side::Lan, segment(Side::Lan, tcp::ACK, 1, 1, 0)),
        (Side::Lan, segment(Side::Lan, tcp::ACK, 1, 1, 400)),
        (Side::Wan, segment(Side::Wan, tcp::ACK, 1, 401, 0)),
    ];
    for (side, bytes) in frames {
        world.pass(Span::from_ms(20));
        world.come(side, &bytes);
    }
}

/// The window of the last frame that left towards the LAN.
fn last_window(world: &World) -> u16 {
    let frames = world.left.values().flatten();
    let down = frames.filter(|(_, bytes)| bytes[36..38] == 5_000u16.to_be_bytes());
    let (_, bytes) = down.max_by_key(|(moment, _)| *moment).expect("one left");
    u16::from_be_bytes([bytes[48], bytes[49]])
}

#[test]
fn windows_go_on_as_they_were_and_would_not_without() {
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    assert!(last_window(&first) < 60_000);
    let (mut next, imported) = hand_over(CONFIG, STEADY, &mut first);
    assert_eq!(imported.placed, 1);
    // an acknowledgement comes before any data do
    let mut stranger = second(CONFIG, STEADY, &first);
    for world in [&mut next, &mut stranger, &mut first] {
        world.pass(Span::from_ms(50));
        world.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, 401, 700));
        world.drain();
    }
    assert_eq!(last_window(&stranger), 60_000, "nobody told it how windows are shifted");
    assert_eq!(last_window(&next), last_window(&first));
    assert!(last_window(&next) < 60_000);
}

#[test]
fn acknowledgements_that_wait_leave_before_what_comes_next() {
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    for n in 1..=9 {
        first.come(Side::Lan, &segment(Side::Lan, tcp::ACK, n * 400 + 1, 1, 400));
    }
    first.pass(Span::from_ms(100));
    for n in 2..=10 {
        first.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, n * 400 + 1, 0));
    }
    assert!(first.engine.conditioner().held() > 0, "some wait");
    let mut batch = Exported::with_room();
    batch.read(&first.flows()).expect("is a batch");
    assert_eq!(first.engine.conditioner().held(), 0);
    assert!(batch.flows[0].is_waiting && first.engine.holds_frames_of(&batch.flows[0]));
    first.drain();
    assert!(!first.engine.holds_frames_of(&batch.flows[0]));
    let acks = first.left.values().flatten().filter(|(_, b)| b[36..38] == 5_000u16.to_be_bytes());
    let acks: Vec<u32> =
        acks.map(|(_, b)| u32::from_be_bytes([b[42], b[43], b[44], b[45]])).collect();
    assert_eq!(acks.len(), 11);
    assert!(acks.is_sorted(), "{acks:?}");
}

#[test]
fn the_next_acknowledgement_waits_for_the_last_one_elsewhere() {
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    for n in 1..=3 {
        first.come(Side::Lan, &segment(Side::Lan, tcp::ACK, n * 400 + 1, 1, 400));
    }
    first.pass(Span::from_ms(30));
    first.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, 801, 0));
    assert_eq!(first.engine.conditioner().held(), 0);
    let (mut next, _) = hand_over(CONFIG, STEADY, &mut first);
    next.left.clear();
    for world in [&mut first, &mut next] {
        world.pass(Span::from_us(100));
        world.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, 1_201, 0));
        assert_eq!(world.engine.conditioner().held(), 1);
        world.drain();
    }
    assert_eq!(first.left, next.left);
}

#[test]
fn the_engine_that_saw_the_last_frame_is_right() {
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    let old = first.flows();
    first.pass(Span::from_ms(5));
    first.come(Side::Lan, &segment(Side::Lan, tcp::ACK, 401, 1, 400));
    let new = vec![first.flows()];
    let mut next = second(CONFIG, STEADY, &first);
    let one = Imported::default();
    // the older one was exported five milliseconds before
    let mut batch = Exported::with_room();
    batch.read(&old).unwrap();
    let then = next.now - Span::from_ms(5);
    assert_eq!(next.engine.import(then, &batch), Imported { placed: 1, ..one });
    assert_eq!(next.import(&new), Imported { renewed: 1, ..one });
    assert_eq!(next.import(&new), Imported { known: 1, ..one }, "it is the same again");
    assert_eq!(next.engine.import(then, &batch), Imported { known: 1, ..one });
    assert_eq!(next.engine.classifier().flows(), 1);
    // it went on from the newer one: these data are new, and those before are not
    for (seq, repeated) in [(801, 0), (401, 1)] {
        next.pass(Span::from_ms(5));
        next.come(Side::Lan, &segment(Side::Lan, tcp::ACK, seq, 1, 400));
        assert_eq!(next.engine.conditioner().counters().repeated, repeated);
    }
    // one that is known and goes on here is not what another engine remembers
    assert_eq!(next.engine.import(then, &batch), Imported { known: 1, ..one });
}

/// A datagram of one of many connections.
fn udp(n: u16, side: Side) -> Vec<u8> {
    let lan = format!("10.0.{}.{}:{}", n % 9, n / 9 % 200, 1_000 + n).parse().expect("an address");
    let wan = "192.0.2.1:53".parse().expect("an address");
    let (from, to) = if side == Side::Lan { (lan, wan) } else { (wan, lan) };
    Build::udp(from, to).payload_len(100).to_vec()
}

#[test]
fn a_full_table_takes_what_it_can_and_tells_the_rest() {
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    for n in 0..40 {
        first.come(Side::Lan, &udp(n, Side::Lan));
        first.come(Side::Wan, &udp(n, Side::Wan));
        first.pass(Span::from_ms(5));
    }
    let (mut small, imported) = hand_over(Config { flows: 8, ..CONFIG }, STEADY, &mut first);
    assert_eq!((imported.in_all(), small.engine.classifier().flows()), (40, 8));
    assert!(imported.no_room > 0, "{imported:?}");
    let left: usize = small.left.values().map(Vec::len).sum();
    for n in 0..40 {
        small.come(Side::Lan, &udp(n, Side::Lan));
        small.pass(Span::from_ms(5));
    }
    small.drain();
    assert_eq!(small.left.values().map(Vec::len).sum::<usize>(), left + 40);
}

#[test]
fn a_table_with_hardly_a_free_place_moves_whole() {
    let config = Config { flows: 1_024, ..CONFIG };
    let mut first = World::new(config, STEADY, BEGIN);
    for n in 0..2_000 {
        first.come(Side::Lan, &udp(n, Side::Lan));
        first.come(Side::Wan, &udp(n, Side::Wan));
        first.pass(Span::from_us(50));
    }
    let known = first.engine.classifier().flows();
    assert!(known > 1_000, "{known}");
    let (same, imported) = hand_over(config, STEADY, &mut first);
    let all = u32::try_from(known).unwrap();
    assert_eq!((imported.placed, imported.no_room), (all, 0));
    assert_eq!(same.engine.classifier().flows(), known);
    // another seed scatters them in another way: no connection takes the place of another
    let (other, imported) = hand_over(Config { seed: 77, ..config }, STEADY, &mut first);
    assert_eq!(imported.in_all(), all);
    assert!(imported.placed > all / 10 * 9 && imported.no_room > 0, "{imported:?}");
    assert_eq!(other.engine.classifier().flows(), imported.placed as usize);
    assert_eq!(other.engine.classifier().counters().evicted, 0);
}

#[test]
fn a_table_of_more_than_one_slice_moves_whole() {
    let config = Config { flows: 4 * EXPORTED_AT_ONCE, ..CONFIG };
    let mut first = World::new(config, STEADY, BEGIN);
    for n in 0..500u16 {
        let lan = format!("10.{}.0.1:{}", n % 100, 1_000 + n).parse().unwrap();
        first.come(Side::Lan, &Build::udp(lan, "192.0.2.1:53".parse().unwrap()).to_vec());
        first.pass(Span::from_us(50));
    }
    assert_eq!(first.engine.classifier().flows(), 500);
    // those of leaves come before
    assert!(first.export().len() > 4);
    let (next, imported) = hand_over(config, STEADY, &mut first);
    assert_eq!((imported.placed, next.engine.classifier().flows()), (500, 500));
}

/// Frames that were counted up in the leaf of a class.
fn received(world: &World, text: &str, path: &str) -> u64 {
    let report = weir_engine::Report::of(&world.engine, &script::plan(text));
    let rows = report.rows.iter().filter(|row| row.path.starts_with(path) && row.is_leaf);
    rows.map(|row| row.counters.up.received.frames + row.counters.down.received.frames).sum()
}

#[test]
fn under_another_policy_a_connection_obeys_that() {
    let other = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9gbit\"\nup = \"9gbit\"\n\
        [class.\"/web\"]\nmatch = \"tcp wan port 80\"\nceil = \"1mbit\"\n\
        tcp = { window = true, least = 2 }\n\
        [class.\"/narrow\"]\nmatch = \"lan 172.16.0.0/24\"\n";
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    let (mut next, imported) = hand_over(CONFIG, other, &mut first);
    assert_eq!(imported.placed, 1);
    next.pass(Span::from_ms(20));
    next.come(Side::Lan, &segment(Side::Lan, tcp::ACK, 401, 1, 400));
    next.pass(Span::from_ms(20));
    next.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, 801, 0));
    next.drain();
    assert_eq!(received(&next, other, "/web"), 2);
    assert_eq!(received(&next, other, "/narrow"), 0);
    assert!(last_window(&next) < 60_000, "its windows go on");
}

#[test]
fn a_class_that_is_gone_is_found_again_by_the_rules() {
    // no class of before is there, and an acknowledgement comes before any data
    let other = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9gbit\"\nup = \"9gbit\"\n\
        [class.\"/web\"]\nmatch = \"tcp wan port 80\"\nceil = \"300kbit\"\n\
        tcp = { window = true, least = 2 }\n";
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    talk(&mut first);
    let (mut next, _) = hand_over(CONFIG, other, &mut first);
    next.pass(Span::from_ms(20));
    next.come(Side::Wan, &segment(Side::Wan, tcp::ACK, 1, 401, 700));
    next.drain();
    assert!(last_window(&next) < 60_000, "{}", last_window(&next));
}

#[test]
fn a_leaf_made_for_a_host_is_there_before_the_host_has_sent() {
    let lan = "10.0.0.9:4000".parse().unwrap();
    let wan = "192.0.2.1:443".parse().unwrap();
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    first.come(Side::Lan, &Build::tcp(lan, wan).tcp_flags(tcp::ACK).to_vec());
    first.pass(Span::from_ms(5));
    let (mut next, _) = hand_over(CONFIG, STEADY, &mut first);
    let mut stranger = second(CONFIG, STEADY, &first);
    for (world, in_its_leaf) in [(&mut next, 1), (&mut stranger, 0)] {
        world.come(Side::Wan, &Build::tcp(wan, lan).tcp_flags(tcp::ACK).to_vec());
        let found = received(world, STEADY, "/hosts/10.0.0.9");
        assert_eq!(found, in_its_leaf);
    }
}

#[test]
fn who_writes_the_addresses_of_another_needs_the_same_seed() {
    let (lan, wan) = (LAN.parse().expect("an address"), WAN.parse().expect("an address"));
    let from = |mac: u8| {
        let mut bytes = Build::udp(lan, wan).payload_len(100).to_vec();
        bytes[11] = mac;
        bytes
    };
    let mut first = World::new(CONFIG, STEADY, BEGIN);
    for mac in [1, 2, 1] {
        first.pass(Span::from_ms(500));
        first.come(Side::Lan, &from(mac));
    }
    let (mut next, imported) = hand_over(CONFIG, STEADY, &mut first);
    assert_eq!((imported.placed, imported.foreign), (2, 0));
    for mac in [2, 1, 2] {
        next.come(Side::Lan, &from(mac));
    }
    let counters = next.engine.classifier().counters();
    assert_eq!((counters.known, counters.new), (3, 0));
    let other = Config { seed: 5, ..CONFIG };
    let (mut next, imported) = hand_over(other, STEADY, &mut first);
    assert_eq!((imported.placed, imported.foreign), (1, 1));
    // the first one that sends is taken for its host
    for mac in [1, 2, 1] {
        next.come(Side::Lan, &from(mac));
    }
    let counters = next.engine.classifier().counters();
    assert_eq!((counters.known, counters.new), (2, 1));
}

#[test]
fn what_is_no_batch_is_refused_with_the_reason() {
    let mut batch = Exported::with_room();
    let mut bytes = Vec::new();
    batch.write(&mut bytes);
    assert_eq!(bytes.len(), 19);
    assert_eq!(batch.read(&bytes), Ok(()));
    assert_eq!(batch.read(b"something else"), Err(Unreadable::NotFlows));
    assert_eq!(batch.read(b"weirfl"), Err(Unreadable::CutOff));
    bytes[6] = 9;
    assert_eq!(batch.read(&bytes), Err(Unreadable::Version(9)));
    bytes[6] = 2;
    bytes[15] = 255;
    assert_eq!(batch.read(&bytes), Err(Unreadable::TooMany(255 << 8)));
    bytes[15..17].copy_from_slice(&[0, 1]);
    assert_eq!(batch.read(&bytes), Err(Unreadable::CutOff));
    let said = Unreadable::Version(9).to_string();
    assert_eq!(said, "connections of version 9, but this weir reads 2");
}

#[test]
fn a_rate_that_was_found_is_begun_with_if_the_line_is_configured_the_same() {
    const AUTO: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"40mbit\"\n\
        up = \"9mbit\"\nmargin = \"auto\"\n";
    let mut first = World::new(CONFIG, AUTO, BEGIN);
    let mut found = first.engine.found_rates();
    let down = found.down.as_mut().expect("it is left to weir");
    (down.rate, down.line) = (Rate::from_bps(19_400_000), Some(Rate::from_bps(20_000_000)));
    first.engine.begin_with_rates(BEGIN, &found);
    assert_eq!(first.engine.found_rates(), found);
    assert_eq!(first.engine.margin(Way::Down).map(Margin::rate), found.down.map(|f| f.rate));

    for other in [AUTO.replace("40mbit", "50mbit"), format!("{AUTO}counts = \"ptm\"\n")] {
        let mut second = World::new(CONFIG, &other, BEGIN);
        let before = second.engine.found_rates();
        second.engine.begin_with_rates(BEGIN, &found);
        assert_eq!(second.engine.found_rates().down, before.down, "another line: {other}");
    }
}

/// Another connection begins at the same addresses and ports while acknowledgements of the first
/// wait: they leave first, and none stays behind.
#[test]
fn acknowledgements_that_wait_leave_before_those_of_another_connection_in_their_place() {
    const PACED: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9gbit\"\nup = \"9gbit\"\n\
        [class.\"/n\"]\nmatch = \"tcp\"\n\
        tcp = { window = true, pace-acks = true, rate = \"100kbit\" }\n";
    let mut world = World::new(CONFIG, PACED, BEGIN);
    let (syn, ack) = (tcp::SYN, tcp::ACK);
    let come = |world: &mut World, side, flags, seq, ack, bytes| {
        world.come(side, &segment(side, flags, seq, ack, bytes));
    };
    come(&mut world, Side::Lan, syn, 0, 0, 0);
    world.pass(Span::from_ms(300));
    come(&mut world, Side::Wan, syn | ack, 0, 1, 0);
    world.pass(Span::from_ms(1_200));
    for at in 0..6 {
        come(&mut world, Side::Lan, ack, 1 + at * 1_000, 1, 1_000);
    }
    world.pass(Span::from_ms(500));
    for at in 1..=6 {
        come(&mut world, Side::Wan, ack, 1, 1 + at * 1_000, 0);
    }
    assert!(world.engine.conditioner().held() > 2);
    come(&mut world, Side::Lan, syn, 1_000_000, 0, 0);
    come(&mut world, Side::Wan, syn | ack, 5_000_000, 1_000_001, 0);
    for at in 0..2 {
        come(&mut world, Side::Lan, ack, 1_000_001 + at * 1_000, 5_000_001, 1_000);
        world.pass(Span::from_ms(100));
        come(&mut world, Side::Wan, ack, 5_000_001, 1_001_001 + at * 1_000, 0);
    }
    world.pass(Span::from_secs(13));
    world.drain();
    assert_eq!(world.engine.conditioner().held(), 0);
    assert_eq!(world.engine.pool().free(), world.engine.pool().capacity());
    let number = |bytes: &[u8]| u32::from_be_bytes([bytes[42], bytes[43], bytes[44], bytes[45]]);
    let to_lan = world.left.values().flatten().filter(|(_, bytes)| bytes[34..36] == [0, 80]);
    let numbers: Vec<u32> = to_lan.map(|(_, bytes)| number(bytes)).collect();
    assert!(numbers.len() > 8 && numbers.is_sorted(), "{numbers:?}");
}
