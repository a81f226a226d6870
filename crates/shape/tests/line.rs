//! One leaf in front of the line: the order, the rate, the bounds.

use weir_packet::{Headers, Label, Pool, Reason, Side};
use weir_shape::FrameCost;
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Instant, Rate, Span};

fn label() -> Label {
    Label { leaf: 1, ..Label::new(Side::Lan, &Headers::EMPTY) }
}

fn tree(rate: u64, frames: u32, most: usize) -> Tree {
    let leaf = NodeSpec { frames, ..NodeSpec::new(1, 0, true) };
    let other = NodeSpec { frames, ..NodeSpec::new(2, 0, true) };
    let rate = Rate::from_bps(rate);
    let spec = Spec {
        rate,
        link: FrameCost::default(),
        nodes: vec![leaf, other],
        cares: vec![],
        ..Spec::default()
    };
    let mut tree = Tree::new(64, most, 0, Instant::ZERO);
    let mut edit = Edit::between(&Spec::default(), &spec);
    tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
    tree
}

#[test]
fn a_full_leaf_gives_the_frame_back_and_the_line_keeps_its_rate() {
    let mut pool = Pool::new(64, 100);
    let mut tree = tree(8_000, 2, 64);
    for _ in 0..2 {
        assert!(tree.push(Instant::ZERO, pool.fill(&[0; 96]).unwrap(), label()).is_ok());
    }
    let third = pool.fill(&[0; 96]).unwrap();
    let (third, why) = tree.push(Instant::ZERO, third, label()).unwrap_err();
    assert_eq!(why, Reason::QueueFull);
    pool.give(third);
    // 100 bytes with their check sequence take 100 ms at 8 kbit/s
    assert!(tree.pop(Instant::ZERO).is_some());
    assert!(tree.pop(Instant::ZERO + Span::from_ms(99)).is_none());
    assert_eq!(tree.next_at(), Some(Instant::ZERO + Span::from_ms(100)));
    assert!(tree.pop(Instant::ZERO + Span::from_ms(100)).is_some());
    assert_eq!(tree.next_at(), None);
}

#[test]
fn a_caller_that_slept_makes_no_burst_beyond_the_bound() {
    let mut pool = Pool::new(64, 1514);
    // 64 bytes at 512 kbit/s take 1 ms
    let mut tree = tree(512_000, 64, 64);
    for _ in 0..20 {
        assert!(tree.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), label()).is_ok());
    }
    let late = Instant::ZERO + Span::from_ms(10);
    let burst = std::iter::from_fn(|| tree.pop(late)).count();
    assert_eq!(burst, 2, "1 ms of catching up and the frame that is due");
}

#[test]
fn where_all_is_full_the_longest_queue_pays() {
    let mut pool = Pool::new(64, 1514);
    let mut tree = tree(8_000, 64, 20);
    for _ in 0..20 {
        assert!(matches!(
            tree.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), label()),
            Ok(None)
        ));
    }
    let small = Label { leaf: 2, ..label() };
    let victim = tree.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), small).unwrap();
    assert_eq!(victim.map(|(v, why)| (v.label.leaf, why)), Some((1, Reason::Crowded)));
    assert_eq!(tree.len(), 20);
}

#[test]
fn a_line_that_carries_nothing_is_never_ready() {
    let mut pool = Pool::new(64, 1514);
    let mut tree = tree(8_000, 64, 64);
    assert!(tree.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), label()).is_ok());
    tree.set_rate(Instant::ZERO, Rate::ZERO);
    assert_eq!((tree.next_at(), tree.pop(Instant::ZERO).is_some()), (None, false));
    tree.set_rate(Instant::ZERO, Rate::from_bps(8_000));
    assert!(tree.pop(Instant::ZERO).is_some());
}

/// Fifteen connections of one frame each in the first leaf, one connection of five in the second:
/// the first has the most, whatever it is cut into.
#[test]
fn where_all_is_full_a_leaf_of_many_connections_pays_before_one_long_connection() {
    use weir_packet::Flow;
    use weir_shape::tree::{Care, Queueing};
    let mut pool = Pool::new(64, 1514);
    let nodes = vec![NodeSpec::new(1, 0, true), NodeSpec::new(2, 0, true)];
    let cares = vec![Care { queue: Queueing::Fair, ..Care::default() }];
    let spec = Spec {
        rate: Rate::from_bps(8_000),
        link: FrameCost::default(),
        nodes,
        cares,
        ..Spec::default()
    };
    let mut tree = Tree::new(64, 20, 64, Instant::ZERO);
    let mut edit = Edit::between(&Spec::default(), &spec);
    tree.apply(Instant::ZERO, &mut edit, |leaf| leaf, |_, _, _| {});
    let from = |leaf, index| Label { leaf, flow: Flow { index, generation: 0 }, ..label() };
    let of_many = (0..15).map(|flow| from(1, flow));
    for label in of_many.chain((0..5).map(|_| from(2, 20))) {
        let frame = pool.fill(&[0; 60]).unwrap();
        assert!(matches!(tree.push(Instant::ZERO, frame, label), Ok(None)));
    }
    let lost = tree.push(Instant::ZERO, pool.fill(&[0; 60]).unwrap(), from(2, 20)).unwrap();
    assert_eq!(lost.map(|(v, why)| (v.label.leaf, why)), Some((1, Reason::Crowded)));
}
