//! Leaves that an edit takes away, and leaves that it tells other limits: where their frames go,
//! how many at once, and what connections notice.

use weir_packet::{Flow, Headers, Label, Pool, Side};
use weir_shape::FrameCost;
use weir_shape::tree::{Care, Edit, NodeSpec, Queueing, Spec, Tree};
use weir_units::{Bytes, Instant, Rate};

const NOW: Instant = Instant::from_ns(1_000_000_000);
const LEN: usize = 100;

struct World {
    tree: Tree,
    pool: Pool,
    spec: Spec,
    /// The leaf that each frame came from which an edit has moved.
    moved: Vec<u32>,
}

fn label(leaf: u32, connection: u32) -> Label {
    let flow = Flow { index: connection, generation: 0 };
    Label { leaf, flow, ..Label::new(Side::Lan, &Headers::EMPTY) }
}

impl World {
    fn new(leaves: u32) -> World {
        let nodes = (1..=leaves).map(|number| NodeSpec::new(number, 0, true)).collect();
        let cares = vec![];
        let rate = Rate::from_bps(100_000_000);
        let spec = Spec { rate, link: FrameCost::default(), nodes, cares, ..Spec::default() };
        let mut world = World {
            tree: Tree::new(1_024, 1_024, 16, NOW),
            pool: Pool::new(1_024, LEN),
            spec: Spec::default(),
            moved: vec![],
        };
        let edit = world.apply(spec);
        assert!(!edit.has_steps());
        world
    }

    fn apply(&mut self, new: Spec) -> Edit {
        let mut edit = Edit::in_steps(&self.spec, &new, 16);
        self.tree.apply(
            NOW,
            &mut edit,
            |_| 1,
            |from, label, bytes| {
                assert_eq!((label.leaf, bytes), (1, LEN));
                self.moved.push(from);
            },
        );
        self.spec = new;
        edit
    }

    fn edit(&mut self, change: impl FnOnce(&mut Spec)) -> Edit {
        let mut new = self.spec.clone();
        change(&mut new);
        self.apply(new)
    }

    fn push(&mut self, leaf: u32, connection: u32, count: usize) {
        for _ in 0..count {
            let frame = self.pool.fill(&[0; LEN]).expect("a buffer");
            assert!(matches!(self.tree.push(NOW, frame, label(leaf, connection)), Ok(None)));
        }
    }

    fn left_behind(&mut self) -> Vec<u32> {
        let mut from = vec![];
        while let Some(left) = self.tree.take_left_behind() {
            from.push(left.label.leaf);
            self.pool.give(left.frame);
        }
        from
    }
}

#[test]
fn an_edit_moves_so_many_frames_of_all_leaves_together() {
    let mut world = World::new(4);
    for (leaf, count) in [(1, 1), (2, 40), (3, 40), (4, 24)] {
        world.push(leaf, leaf, count);
    }
    world.edit(|spec| spec.nodes.truncate(1));
    let count = |leaf| world.moved.iter().filter(|&&from| from == leaf).count();
    // of leaves with more than is left of 64 all go
    assert_eq!([count(2), count(3), count(4)], [40, 0, 24]);
    assert_eq!(world.left_behind(), [3; 40]);
    assert_eq!((world.tree.len(), world.tree.waiting_in(1)), (65, 6_500));
    // connections wait with their frames
    assert_eq!([2, 4, 3].map(|leaf| world.tree.leaf_of(&label(9, leaf))), [1, 1, 9]);
}

#[test]
fn queues_of_leaves_that_are_gone_go_some_at_a_time() {
    let mut world = World::new(3);
    let care = Care { queue: Queueing::Fair, ..Care::default() };
    let mut edit = world.edit(|spec| {
        spec.cares = vec![Care::default(), care];
        spec.nodes[1].care = 1;
    });
    assert!(world.tree.goes_on(NOW, &mut edit));
    // 16 queues of five frames are more than one edit moves
    (0..16).for_each(|connection| world.push(2, connection, 5));
    let mut edit = world.edit(|spec| _ = spec.nodes.remove(1));
    assert_eq!((world.tree.len(), world.moved.len()), (80, 0));
    // where a connection had to wait is no leaf any more, so it goes where the rules send it
    assert_eq!(world.tree.leaf_of(&label(3, 5)), 2);
    assert!(world.tree.obeys(NOW, &label(3, 5)));
    assert_eq!(world.left_behind(), [2; 5]);
    let mut gone = vec![];
    // eight with each call
    while !world.tree.goes_on(NOW, &mut edit) {
        gone.push(world.left_behind().len());
        assert_eq!(world.tree.len(), 75 - gone.iter().sum::<usize>());
    }
    gone.push(world.left_behind().len());
    assert_eq!(gone, [40, 35]);
    assert!(world.tree.is_empty() && !edit.has_steps());
}

/// Those of the first leaf move; of the second there are too many for what is left.
#[test]
fn leaves_of_queues_have_one_room_together() {
    let mut world = World::new(3);
    world.edit(|spec| spec.cares = vec![Care { queue: Queueing::Fair, ..Care::default() }]);
    for leaf in [2, 3] {
        (0..8).for_each(|connection| world.push(leaf, 8 * (leaf - 2) + connection, 5));
    }
    let mut edit = world.edit(|spec| spec.nodes.truncate(1));
    assert_eq!(world.moved, [2; 40]);
    assert!(world.left_behind().is_empty());
    assert!(edit.has_steps());
    while !world.tree.goes_on(NOW, &mut edit) {}
    assert_eq!((world.left_behind(), world.tree.len()), (vec![3; 40], 40));
}

/// Where a million...
#[test]
fn frames_of_hosts_that_have_no_place_are_dropped_and_counted() {
    let many = 1 << 18;
    let mut world = World::new(4);
    let mut spec = std::mem::take(&mut world.spec);
    spec.cares = vec![Care::default(), Care { queue: Queueing::FairHost, ..Care::default() }];
    (spec.nodes[0].care, spec.nodes[0].frames) = (1, u32::MAX);
    world.tree = Tree::new(many + 100, many + 100, many + 100, NOW);
    world.pool = Pool::new(many + 100, LEN);
    world.apply(spec);
    let push = |world: &mut World, leaf, host: usize| {
        let host = u32::try_from(host).expect("few");
        let frame = world.pool.fill(&[0; LEN]).expect("a buffer");
        let label = Label { host, ..label(leaf, host) };
        assert!(matches!(world.tree.push(NOW, frame, label), Ok(None)));
    };
    (0..many).for_each(|host| push(&mut world, 1, host));
    (0..3).for_each(|host| push(&mut world, 2, many + host));
    (0..5).for_each(|host| push(&mut world, 3, many + 10 + host));
    let dropped = |world: &mut World| {
        let dropped = std::iter::from_fn(|| world.tree.take_dropped()).map(|w| w.label.host);
        dropped.count()
    };
    world.edit(|spec| _ = spec.nodes.remove(1));
    assert_eq!((dropped(&mut world), world.tree.len()), (3, many + 5));
    world.edit(|spec| spec.nodes[1].care = 1);
    assert_eq!((dropped(&mut world), world.tree.len()), (5, many));
}

#[test]
fn what_has_to_go_with_its_leaf_does_not_pay_for_those_who_come() {
    let mut world = World::new(3);
    world.spec.cares = vec![Care { queue: Queueing::Fair, ..Care::default() }];
    let spec = std::mem::take(&mut world.spec);
    world.tree = Tree::new(1_024, 100, 16, NOW);
    world.apply(spec);
    world.push(2, 0, 80);
    world.push(3, 1, 20);
    world.edit(|spec| _ = spec.nodes.remove(1));
    let frame = world.pool.fill(&[0; LEN]).expect("a buffer");
    let lost = world.tree.push(NOW, frame, label(3, 1));
    assert!(matches!(lost, Ok(Some((lost, _))) if lost.label.leaf == 3));
}

#[test]
fn other_limits_hold_at_once() {
    let mut world = World::new(2);
    world.push(2, 0, 3);
    let refused = |world: &mut World| {
        let frame = world.pool.fill(&[0; LEN]).expect("a buffer");
        world.tree.push(NOW, frame, label(2, 0)).is_err_and(|(frame, _)| {
            world.pool.give(frame);
            true
        })
    };
    world.edit(|spec| spec.nodes[1].frames = 3);
    assert!(refused(&mut world));
    world.edit(|spec| spec.nodes[1].frames = 4);
    assert!(!refused(&mut world) && refused(&mut world));
    world.edit(|spec| spec.nodes[1].frames = 100);
    world.edit(|spec| spec.nodes[1].bytes = Bytes::new(450));
    assert!(refused(&mut world));
    world.edit(|spec| spec.nodes[1].bytes = Bytes::new(1 << 40));
    assert!(!refused(&mut world));
}

#[test]
fn where_children_are_many_each_call_gives_half_as_many_a_new_place() {
    let mut world = World::new(40);
    world.push(7, 0, 3);
    let mut edit = world.edit(|spec| {
        spec.nodes.iter_mut().filter(|node| node.number > 8).for_each(|node| node.weight = 2);
    });
    // eight with each call; those that wait in a calendar are then noted anew
    let calls = (1..100).find(|_| world.tree.goes_on(NOW, &mut edit));
    assert_eq!(calls, Some(5));
    assert!(world.tree.pop(NOW).is_some());
}

#[test]
fn where_many_wait_each_call_notes_half_as_many_anew() {
    let mut world = World::new(40);
    (1..=40).for_each(|leaf| world.push(leaf, 0, 2));
    let mut edit = world.edit(|spec| spec.nodes[6].weight = 2);
    // one with another weight and seven more, then eight with each call
    let calls = (1..100).find(|_| world.tree.goes_on(NOW, &mut edit));
    assert_eq!(calls, Some(6));
}

/// The flow table may give its place away while frames of it wait.
#[test]
fn a_connection_in_the_place_of_another_does_not_join_its_leaf() {
    let care = Care { queue: Queueing::Fair, ..Care::default() };
    for fair in [true, false] {
        let mut world = World::new(3);
        world.edit(|spec| {
            spec.cares = vec![Care::default(), care];
            spec.nodes.iter_mut().for_each(|node| node.care = u16::from(fair));
        });
        world.push(2, 5, 3);
        let mut other = label(3, 5);
        other.flow.generation = 1;
        // as the engine asks
        let leaf = world.tree.leaf_of(&other);
        assert!(leaf == 2 && world.tree.obeys(NOW, &other));
        let frame = world.pool.fill(&[0; LEN]).expect("a buffer");
        assert!(matches!(world.tree.push(NOW, frame, other), Ok(None)));
        assert_eq!(world.tree.leaf_of(&other), 3);
        let mut sent = vec![];
        let mut left = world.left_behind();
        while let Some(at) = world.tree.next_at() {
            sent.extend(world.tree.pop(at).map(|waiting| waiting.label.leaf));
            left.extend(world.left_behind());
        }
        assert_eq!((sent, left), (vec![3], vec![2; 3]), "fair: {fair}");
    }
}
