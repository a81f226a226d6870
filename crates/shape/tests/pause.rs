//! A caller that polls nobody for a while, with frames waiting: on resuming, frames come before the
//! first one leaves. Everyone then has what it had before.

use weir_packet::{Headers, Label, Pool, Side};
use weir_shape::FrameCost;
use weir_shape::tree::{Edit, NodeSpec, Spec, Tree};
use weir_units::{Instant, Rate, Span};

/// Bits of a frame on the line.
const FRAME: u64 = 12_144;

/// The line is one of 100 Mbit/s. The first leaf and the third flood; the second wants 15 Mbit/s,
/// which is less than its guarantee, and nothing comes to it while nobody polls.
struct World {
    tree: Tree,
    pool: Pool,
    spec: Spec,
    now: Instant,
    /// When the next frame of the second leaf comes.
    next: Instant,
    waits: [usize; 4],
    sent: [u64; 4],
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(mbit * 1_000_000)
}

impl World {
    fn new(at_once: usize) -> World {
        let leaf = |number, weight, rate| NodeSpec {
            weight,
            rate: mbit(rate),
            ..NodeSpec::new(number, 0, true)
        };
        let nodes = vec![leaf(1, 1, 50), leaf(2, 1, 20), leaf(3, 100, 0)];
        let spec = Spec {
            rate: mbit(100),
            link: FrameCost::default(),
            cares: vec![],
            nodes,
            ..Spec::default()
        };
        let now = Instant::from_ns(1 << 40);
        let mut tree = Tree::new(4_000, usize::MAX, 0, now);
        let mut edit = Edit::in_steps(&Spec::default(), &spec, at_once);
        tree.apply(now, &mut edit, |leaf| leaf, |_, _, _| {});
        let (waits, sent) = ([0; 4], [0; 4]);
        World { tree, pool: Pool::new(4_000, 2_000), spec, now, next: now, waits, sent }
    }

    fn push(&mut self, leaf: usize) {
        let Some(mut frame) = self.pool.take() else { return };
        assert!(self.pool.resize(&mut frame, 0, 1_514));
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        label.leaf = u32::try_from(leaf).expect("small");
        self.tree.push(self.now, frame, label).expect("room");
        self.waits[leaf] += 1;
    }

    fn come(&mut self) {
        if self.next <= self.now {
            let is_late = self.now.since(self.next) > Span::from_ms(10);
            self.next = if is_late { self.now } else { self.next + Span::from_us(809) };
            if self.waits[2] < 200 {
                self.push(2);
            }
        }
        for leaf in [1, 3] {
            if self.waits[leaf] < 4 {
                self.push(leaf);
            }
        }
    }

    /// What each leaf has in the next half second, in kbit/s.
    fn goes_on(&mut self) -> [u64; 3] {
        let until = self.now + Span::from_ms(500);
        self.sent = [0; 4];
        while self.now < until {
            self.come();
            self.now = self.now.max(self.tree.next_at().expect("frames wait"));
            let Some(out) = self.tree.pop(self.now) else { continue };
            let leaf = out.label.leaf as usize;
            self.pool.give(out.frame);
            self.waits[leaf] -= 1;
            self.sent[leaf] += 1;
        }
        self.tree.check(true).unwrap_or_else(|wrong| panic!("{wrong}"));
        [1, 2, 3].map(|leaf| self.sent[leaf] * FRAME * 2 / 1_000)
    }

    /// Everyone has what it wants, or is guaranteed, to within six frames.
    fn all_have_theirs(&mut self, when: &str) {
        let had = self.goes_on();
        let frames = 6 * FRAME * 2 / 1_000;
        let fits =
            had.iter().zip([50_000, 15_000, 35_000]).all(|(h, law)| h.abs_diff(law) < frames);
        assert!(fits, "{had:?} kbit/s {when}");
    }
}

#[test]
fn after_a_pause_everyone_has_what_it_had_before() {
    for ms in [20, 300, 3_000, 10_000, 100_000] {
        let mut world = World::new(64);
        for _ in 0..4 {
            world.goes_on();
        }
        for round in 0..3 {
            world.now += Span::from_ms(ms);
            for half in 0..9 {
                world.all_have_theirs(&format!("half second {half} of round {round}, {ms} ms"));
            }
        }
    }
}

/// The first that happens after the pause is an edit: the third leaf is guaranteed something too.
#[test]
fn a_clock_that_an_edit_gives_after_a_pause_begins_then() {
    for at_once in [0, 64] {
        let mut world = World::new(at_once);
        for _ in 0..4 {
            world.goes_on();
        }
        world.now += Span::from_secs(10);
        let mut new = world.spec.clone();
        (new.nodes[0].weight, new.nodes[2].weight, new.nodes[2].rate) = (100, 1, mbit(20));
        let mut edit = Edit::in_steps(&world.spec, &new, at_once);
        world.tree.apply(world.now, &mut edit, |leaf| leaf, |_, _, _| {});
        while !world.tree.goes_on(world.now, &mut edit) {}
        world.goes_on();
        for half in 1..9 {
            let had = world.goes_on();
            assert!(had[1] > 14_800 && had[2] > 19_800, "{had:?} kbit/s in half second {half}");
        }
    }
}
