//! How long queues may be, and what is held back so that they go.

use super::*;

#[test]
fn the_virtual_queue_drains_at_the_rate_of_the_link() {
    let nodes = [Node::link(Rate::from_bps(100_000_000)), Node::leaf(0, 1)];
    let (mut weir, _) = Weir::new(&nodes, Options::SHORT).expect("is a tree");
    weir.queue = leaf::cost(50_000).unsigned_abs();
    weir.drain(1_000_000);
    let left = weir.queue >> CREDIT;
    assert!(left.abs_diff(37_500) <= 1, "{left}");
    weir.drain(4_100_000);
    assert_eq!(weir.queue, 0);
}

#[test]
fn the_longer_a_queue_stands_the_more_is_held_back() {
    let nodes = [Node::link(Rate::from_bps(1_000_000_000)), Node::leaf(0, 1)];
    let (mut weir, _) = Weir::new(&nodes, Options::TCP).expect("is a tree");
    // parts of the link in 1/1024, behind a queue of so many us
    let mut held = |us: u64| {
        weir.queue = weir.capacity * us * 1_000;
        (i128::from(weir.capacity) - i128::from(weir.budget())) * 1_024 / i128::from(weir.capacity)
    };
    assert_eq!([0, 50, 120, 180].map(&mut held), [-4, 0, 3, 17]);
    assert_eq!([1_000, 20_000].map(&mut held), [36, 36]);
}

#[test]
fn more_than_the_rate_is_shared_out_while_less_waits_than_a_quarter_of_what_may_stand() {
    let mut weir = flat(1, Options::TCP);
    // 2 ms of the link are 250 000 bytes, and a 32nd of that is 7 812.5
    assert_eq!(weir.gate.rest, 15_625 << 32);
    let mut shared = |queue| {
        weir.queue = queue;
        weir.budget()
    };
    let quarter = 15_625 << 30;
    assert_eq!(shared(quarter - 1), GBIT + (1 << 22));
    assert_eq!(shared(quarter), GBIT);
}

#[test]
fn a_gate_is_so_many_ms_of_the_link_or_sixteen_packets_of_which_eight_may_stand() {
    let gate = Gate::new(GBIT, Span::from_ms(2), 100);
    assert_eq!((gate.rest, gate.long), (15_625 << 32, of_bytes(250_000)));
    // 10 Mbit/s: 2 500 bytes in 2 ms
    let gate = Gate::new(GBIT / 100, Span::from_ms(2), 1_000);
    assert_eq!((gate.rest, gate.long), (of_bytes(8_000), of_bytes(16_000)));
}

#[test]
fn for_tcp_20_ms_are_saved_and_the_short_queue_has_200_us() {
    let mut weir = flat(2, Options::TCP);
    weir.leaves[0].begin(MS, 1_000, 0);
    weir.inner[0].sums.level = Packed::new(GBIT << 15);
    let way = Way {
        share: GBIT / 2,
        by: Place::Inner(0),
        is_crowded: false,
        room: Room::All,
        gap: 1_000 * MS,
    };
    weir.enforce(0, 1_000, &way, false);
    // 500 Mbit/s for 20 ms are 1 250 000 bytes, of which a packet has gone
    assert_eq!(weir.leaves[0].credit, leaf::cost(1_249) * 1_000);
    let ten = made(&[Node::link(mbit(10_000)), Node::leaf(0, 1)], Options::SHORT);
    assert_eq!(bytes(ten.gate.long), 250_000);
}

/// What is left of 1 Gbit/s where so much waits, of which 10 000 bytes may stand and 250 000 are
/// long.
fn held(waiting: u64) -> (u64, bool, Room) {
    let behind = Behind { level: 1, waiting: Bytes::new(waiting), can_mark: false };
    let mut queue = Queue::new(behind, 2);
    let left = queue.hold(GBIT, Gate { rest: of_bytes(10_000), long: of_bytes(250_000) });
    (left, queue.is_long, queue.room)
}

#[test]
fn a_queue_behind_is_drained_by_a_1024th_and_within_4_ms_beyond_the_gate() {
    assert_eq!(held(10_000), (GBIT, false, Room::All));
    // in 2^24 ns: each byte beyond what may stand takes 2^9, at most 2^30 / 2^10
    assert_eq!(held(11_000).0, GBIT - (1_000 << 9));
    assert_eq!(held(12_048).0, GBIT - (1 << 20));
    assert_eq!(held(15_000).0, GBIT - (1 << 20));
    assert_eq!(held(250_000), (GBIT - (1 << 20), false, Room::All));
    // in 2^22 ns: each byte beyond the gate takes 2^11
    assert_eq!(held(250_001), (GBIT - (1 << 20) - (1 << 11), true, Room::All));
    assert_eq!(held(350_000).0, GBIT - (1 << 20) - (100_000 << 11));
    assert_eq!(held(450_000).2, Room::Quarter);
    // but a 64th is left
    assert_eq!(held(2_000_000), (GBIT / 64, true, Room::Least));
}

#[test]
fn any_length_of_a_queue_behind_is_taken() {
    for waiting in [1 << 30, 1 << 31, 1 << 40, u64::MAX] {
        assert_eq!(held(waiting), (GBIT / 64, true, Room::Least), "{waiting}");
    }
}

#[test]
fn the_longest_packet_is_forgotten_by_a_256th_with_each() {
    let mut weir = flat(1, Options::TCP);
    // 1 500 / 256 is 5, 1 490 / 256 is 5 as well
    let longest = [1_500, 64, 64, 1_500].map(|len| {
        weir.packet(at(MS), 0, len);
        weir.longest
    });
    assert_eq!(longest, [1_500, 1_495, 1_490, 1_500]);
}
