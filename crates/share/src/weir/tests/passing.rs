//! Which packets pass: by credit, by the length of queues, and with marks.

use super::*;
use crate::flows::{Flows, Who};

const COST: i64 = 1_000 << CREDIT;
const BY: Place = Place::Inner(0);
const WAY: Way = Way { share: GBIT / 2, by: BY, is_crowded: false, room: Room::All, gap: 0 };

/// An allocator that is limited by its level, whose first leaf has sent a packet of 1 000 bytes and
/// has this credit, and so many bytes of the small one. 25 000 bytes of queue are long.
fn limited(credit: i64, small: u64) -> Weir {
    let mut weir = flat(2, Options::SHORT);
    weir.leaves[0].begin(MS, 1_000, 0);
    weir.inner[0].sums.level = Packed::new(GBIT << 15);
    assert_eq!(bytes(weir.gate.long), 25_000);
    (weir.leaves[0].credit, weir.leaves[0].small) = (credit, of_bytes(small));
    weir
}

fn enforce(weir: &mut Weir, way: &Way, can_mark: bool) -> Fate {
    weir.enforce(0, 1_000, way, can_mark)
}

#[test]
fn a_packet_passes_on_just_its_credit() {
    let mut weir = limited(COST, 0);
    assert_eq!(enforce(&mut weir, &WAY, false), Fate::Pass);
    assert_eq!((weir.leaves[0].credit, weir.queue), (0, of_bytes(1_000)));
    let mut weir = limited(COST - 1, 0);
    assert_eq!(enforce(&mut weir, &WAY, false), Fate::Drop { by: BY });
    assert_eq!((weir.leaves[0].credit, weir.queue), (COST - 1, 0));
}

#[test]
fn saved_credit_is_good_up_to_the_gate_and_the_small_one_beyond() {
    let fate = |queue, small, is_crowded| {
        let mut weir = limited(9 * COST, 0);
        weir.leaves[0].small = small;
        weir.queue = queue;
        enforce(&mut weir, &Way { is_crowded, ..WAY }, false)
    };
    let (gate, cost) = (of_bytes(25_000), of_bytes(1_000));
    assert_eq!(fate(gate, 0, false), Fate::Pass);
    assert_eq!(fate(gate + 1, cost, false), Fate::Pass);
    assert_eq!(fate(gate + 1, cost - 1, false), Fate::Drop { by: BY });
    // and where a queue behind is long
    assert_eq!(fate(0, cost, true), Fate::Pass);
    assert_eq!(fate(0, cost - 1, true), Fate::Drop { by: BY });
}

#[test]
fn beyond_the_gate_a_burst_is_four_packets_and_beyond_two_gates_one() {
    let left = |queue| {
        let mut weir = limited(9 * COST, 16_000);
        weir.queue = queue;
        assert_eq!(enforce(&mut weir, &WAY, false), Fate::Pass);
        bytes(weir.leaves[0].small)
    };
    let gate = of_bytes(25_000);
    assert_eq!(left(gate), 15_000);
    assert_eq!([gate + 1, 2 * gate].map(left), [3_000, 3_000]);
    assert_eq!([2 * gate + 1, 4 * gate + 1].map(left), [0, 0]);
}

#[test]
fn what_is_not_sent_while_nothing_limits_is_saved_and_a_burst_is_there_in_any_case() {
    let mut weir = limited(-5 * COST, 0);
    weir.inner[0].sums.level = Packed::INFINITE;
    assert_eq!(enforce(&mut weir, &WAY, false), Fate::Pass);
    // sixteen packets, for which no credit is taken; but they queue
    assert_eq!((weir.leaves[0].credit, bytes(weir.leaves[0].small)), (16 * COST, 16_000));
    assert_eq!(weir.queue, of_bytes(1_000));
    // for TCP 20 ms are saved: 500 Mbit/s are 62 500 bytes in a ms
    weir.options = Options::TCP;
    enforce(&mut weir, &Way { gap: MS, ..WAY }, false);
    assert_eq!(weir.leaves[0].credit, 16 * COST + 62 * COST + COST / 2);
    enforce(&mut weir, &Way { gap: 50 * MS, ..WAY }, false);
    assert_eq!(weir.leaves[0].credit, 1_250 * COST);
}

#[test]
fn debt_is_marked_until_it_is_as_deep_as_a_burst() {
    let fate = |credit, can_mark, queue| {
        let mut weir = limited(credit, 0);
        weir.queue = queue;
        let fate = enforce(&mut weir, &WAY, can_mark);
        let paid = if fate.passes() { COST } else { 0 };
        assert_eq!(weir.leaves[0].credit, credit - paid);
        fate
    };
    let drop = Fate::Drop { by: BY };
    assert_eq!(fate(0, true, 0), Fate::Mark);
    assert_eq!(fate(-15 * COST + 1, true, 0), Fate::Mark);
    assert_eq!(fate(-15 * COST, true, 0), drop);
    // not where the packet can carry none, nor beyond the gate
    assert_eq!(fate(0, false, 0), drop);
    assert_eq!(fate(0, true, of_bytes(25_000) + 1), drop);
}

#[test]
fn nothing_is_marked_unless_the_options_say_so() {
    for options in [Options::TCP, Options::SHORT] {
        let fates = |options| {
            let mut weir = flat(2, options);
            let mut fates = Vec::new();
            for us in 0..40_000 {
                fates.extend([0, 1].map(|leaf| weir.packet(at(us * 10_000), leaf, 1_000)));
            }
            [Fate::Pass, Fate::Mark, Fate::Drop { by: BY }].map(|fate| fates.contains(&fate))
        };
        assert_eq!(fates(options), [true, false, true]);
        assert_eq!(fates(Options { marks: true, ..options }), [true, true, true]);
    }
}

#[test]
fn flows_are_cut_where_the_virtual_queue_is_long_and_where_the_one_behind_is() {
    // how many of sixty packets pass that come at once, where so many gates of queue stand
    let passed = |queue: u64, behind: u64| {
        let mut weir = flat(1, Options::TCP);
        let mut flows = Flows::new(1);
        weir.last = 1_000 * MS;
        weir.queue = of_bytes(queue * 250_000);
        let behind = Behind { level: 1, waiting: Bytes::new(behind * 250_000), can_mark: false };
        let who = Who { flow: 7, host: None };
        let one = |_: &u32| {
            let fate = weir.packet_among(at(1_000 * MS), (0, 0), 1_000, behind, (&mut flows, who));
            fate.passes()
        };
        (0..60).filter(one).count()
    };
    assert_eq!(passed(0, 0), 60);
    // beyond two gates a flow has what the leaf is served in 0.4 ms: 2^-7 of 50 ms, 47 packets
    assert_eq!(passed(3, 0), 47);
    // behind a long queue the share is a 64th, and two full frames are the least: three packets
    assert_eq!(passed(0, 3), 3);
}
