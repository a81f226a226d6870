//! Who is silent, how a level rises again, and what memory it takes.

use super::*;

const MBIT: Rate = Rate::from_bps(1_000_000);

fn at(us: u64) -> Instant {
    Instant::from_ns(us * 1_000)
}

/// A link of 8 Mbit/s with two branches of two leaves each.
fn branches(silence: Silence) -> Hsdba {
    let mut nodes = vec![Node::link(Rate::from_bps(8 * MBIT.bps()))];
    nodes.extend([Node::inner(0, 1), Node::inner(0, 1)]);
    nodes.extend([1, 1, 2, 2].map(|parent| Node::leaf(parent, 1)));
    Hsdba::new(&nodes, Options { silence, ..Options::default() }).unwrap().0
}

#[test]
fn who_is_silent_counts_no_longer_when_its_time_is_up() {
    for (silence, idle) in [(Silence::Timeout, 2_000), (Silence::Hybrid, 8_000)] {
        let mut hsdba = branches(silence);
        // leaf 2 sends one packet, leaf 0 so many for 30 ms, leaves 1 and 3 as many all the time
        hsdba.packet(at(0), 2, 50);
        for us in (0..60_000).step_by(100) {
            if us < 30_000 {
                hsdba.packet(at(us + 30), 0, 50);
            }
            hsdba.packet(at(us + 50), 3, 50);
            assert!(hsdba.inner[1].is_active || us == 0, "one of its leaves counts");
            hsdba.packet(at(us + 70), 1, 50);
            assert_eq!(hsdba.leaves[2].is_active, us + 70 <= idle, "{silence:?}: {us}");
            // its time began anew when it was looked at, so it has twice as long at most
            let (counts, last) = (hsdba.leaves[0].is_active, 29_930);
            assert!(counts || us + 70 > last + idle, "{silence:?}: {us}");
            assert!(!counts || us <= last + 2 * idle, "{silence:?}: {us}");
        }
        let counts = [0, 1, 2].map(|at: usize| hsdba.inner[at].is_active);
        assert_eq!(counts, [false, true, true], "the link is nobody's child");
        assert_eq!([0, 1, 2].map(|at: usize| hsdba.sums[at].active), [2, 1, 1]);
    }
}

#[test]
fn a_level_that_fell_to_nothing_rises_again() {
    // one has its guarantee alone, and another wants less than it may have
    let mut sums = Sums { active: 2, kept: 1, keeps: true, ..Sums::new(0) };
    let (budget, even) = (1 << 20, 1 << 35);
    // half the way to 1/1024 of the even split, then by half of what it is
    sums.level = sums.next(budget);
    assert_eq!(sums.level, even / 2_048);
    sums.level = sums.next(budget);
    assert_eq!(sums.level, even / 2_048 / 2 * 3);
}

#[test]
fn its_memory_is_that_of_nodes_and_leaves() {
    let bytes = |leaves: usize| {
        let nodes = [vec![Node::link(MBIT)], vec![Node::leaf(0, 1); leaves]].concat();
        Hsdba::new(&nodes, Options::default()).unwrap().0.bytes()
    };
    let leaf = size_of::<Known>() + 24;
    assert_eq!(bytes(100) - bytes(1), 99 * leaf);
    assert_eq!(bytes(1), size_of::<Sums>() + 2 * leaf);
}
