//! What does not hold yet, and the README says so: each test fails, by the figure beside it. They
//! are run by `cargo test --package weir-shape --test credit -- --ignored`.

use super::*;

#[test]
#[ignore = "not held: rows of 200 frames 0.94 of the guarantee, of 1 000 frames 0.69"]
fn a_guarantee_below_a_class_in_long_rows_is_whole() {
    let parts = [200, 1_000].map(|siblings| {
        let inner = NodeSpec { weight: u64::from(siblings), ..NodeSpec::new(1, 0, false) };
        let promised = NodeSpec { rate: mbit(25), ..leaf(2, 1, 1) };
        let mut nodes = vec![inner, promised, leaf(3, 1, 100)];
        let row = |number| NodeSpec { priority: 0, ..leaf(number, 0, 1) };
        nodes.extend((4..4 + siblings).map(row));
        let mut world = World::new(spec(mbit(100), nodes), 2..4 + siblings);
        world.steps(200_000);
        world.share(2) / 0.25
    });
    assert!(parts.iter().all(|&part| part > 0.98), "{parts:.2?} of the guarantee");
}

#[test]
#[ignore = "not held: nothing of 2 000 frames"]
fn one_that_slept_while_time_went_half_around_has_its_turn() {
    let nodes = vec![leaf(1, 0, 1 << 20), leaf(2, 0, 1), leaf(3, 0, 1)];
    let mut world = World::new(spec(mbit(100), nodes), 1..4);
    world.steps(50);
    world.backlogged.retain(|&leaf| leaf != 1);
    // 280 MB, 22 s
    world.steps(280_000);
    world.backlogged.push(1);
    (0..2).for_each(|_| world.push(1));
    let before = world.sent[1];
    world.steps(2_000);
    let had = world.sent[1] - before;
    assert!(had > 1_900, "{had} of 2 000 frames");
}

#[test]
#[ignore = "not held: 25 Mbit/s"]
fn a_ceiling_that_edits_above_it_make_needless_is_no_higher() {
    let class = NodeSpec { ceil: mbit(50), ..NodeSpec::new(1, 0, false) };
    let held = NodeSpec { ceil: mbit(1), ..leaf(2, 1, 1) };
    let mut world = World::new(spec(mbit(100), vec![class, held, leaf(3, 0, 1)]), [2, 3]);
    for round in 0..2_000 {
        world.steps(10);
        world.edit(|spec| spec.nodes[0].ceil = mbit([1, 50][round % 2]));
    }
    let mbits = 100.0 * world.share(2);
    assert!(mbits < 1.1, "{mbits:.1} Mbit/s under a ceiling of 1");
}
