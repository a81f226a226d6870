//! What stays and what goes when policies follow one another.

use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Span};

fn plan(classes: &str) -> Plan {
    let text =
        format!("[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1mbit\"\nup = \"1mbit\"\n{classes}");
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

struct World {
    engine: Engine,
    planner: Planner,
    plan: Plan,
    /// Every call of `send` is a connection of its own.
    port: u16,
}

impl World {
    fn new(classes: &str) -> World {
        let mut planner = Planner::new();
        let plan = plan(classes);
        let first = planner.prepare(&plan).expect("fits");
        let config = Config { flows: 64, ..Config::default() };
        let engine = Engine::new(config, Pool::new(500, 256), first, Instant::ZERO);
        World { engine, planner, plan, port: 1_000 }
    }

    fn send(&mut self, host: u8, frames: usize) {
        self.port += 1;
        let from = format!("10.0.0.{host}:{}", self.port).parse().expect("an address");
        let bytes = Build::udp(from, "192.0.2.1:53".parse().expect("an address")).to_vec();
        let mut burst = Burst::new();
        for _ in 0..frames {
            let frame = self.engine.pool_mut().fill(&bytes).expect("a buffer");
            burst.push(frame).expect("room");
        }
        self.engine.receive(Instant::ZERO, Side::Lan, &mut burst);
    }

    fn change(&mut self, classes: &str) {
        self.plan = plan(classes);
        let mut change = self.planner.prepare(&self.plan).expect("fits");
        while !self.engine.apply(Instant::ZERO, &mut change) {}
    }

    /// Frames that came and frames that wait, by path.
    fn seen(&self) -> Vec<(String, u64, u64)> {
        let report = Report::of(&self.engine, &self.plan);
        let rows = report.rows.iter().filter(|r| !r.is_silent());
        rows.map(|r| {
            let counters = r.from(Side::Lan);
            (r.path.clone(), counters.received.frames, counters.held.frames)
        })
        .collect()
    }
}

fn rows(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    rows.iter().map(|(path, came, wait)| ((*path).to_owned(), *came, *wait)).collect()
}

const A: &str = "[class.\"/a\"]\nmatch = \"lan 10.0.0.1\"\n";
const B: &str = "[class.\"/b\"]\nmatch = \"lan 10.0.0.2\"\n";

#[test]
fn a_class_keeps_its_books_and_its_queue_while_others_come_and_go() {
    let mut world = World::new(A);
    world.send(1, 3);
    world.send(2, 2);
    assert_eq!(world.seen(), rows(&[("/", 5, 5), ("/a", 3, 3), ("/(rest)", 2, 2)]));
    world.change(&format!("{B}{A}"));
    world.send(2, 4);
    let want = [("/", 9, 9), ("/b", 4, 4), ("/a", 3, 3), ("/(rest)", 2, 2)];
    assert_eq!(world.seen(), rows(&want));
}

#[test]
fn what_waits_in_a_class_that_is_gone_goes_to_the_rest() {
    let mut world = World::new(&format!("{A}{B}"));
    world.send(1, 3);
    world.send(2, 2);
    world.change(B);
    // its three frames came as /a's: the link has them, the rest has them waiting
    assert_eq!(world.seen(), rows(&[("/", 5, 5), ("/b", 2, 2), ("/(rest)", 0, 3)]));
}

#[test]
fn a_renamed_class_takes_everything_along() {
    let mut world = World::new("[class.\"/x\"]\n[class.\"/x/a\"]\nmatch = \"lan 10.0.0.1\"\n");
    world.send(1, 3);
    world.change("[class.\"/y\"]\nwas = \"/x\"\n[class.\"/y/a\"]\nmatch = \"lan 10.0.0.1\"\n");
    world.send(1, 1);
    assert_eq!(world.seen(), rows(&[("/", 4, 4), ("/y", 4, 4), ("/y/a", 4, 4)]));
}

#[test]
fn made_leaves_outlive_a_change_and_are_named_by_their_host() {
    let each = "[class.\"/h\"]\nmatch = \"udp\"\neach = { by = \"lan-host\", count = 2 }\n";
    let mut world = World::new(each);
    (1..=3).for_each(|host| world.send(host, 1));
    let want = [
        ("/", 3, 3),
        ("/h", 3, 3),
        ("/h/10.0.0.1", 1, 1),
        ("/h/10.0.0.2", 1, 1),
        ("/h/(others)", 1, 1),
    ];
    assert_eq!(world.seen(), rows(&want));
    world.change(&format!("[class.\"/z\"]\nmatch = \"tcp\"\n{each}"));
    world.send(2, 1);
    let want = [
        ("/", 4, 4),
        ("/h", 4, 4),
        ("/h/10.0.0.1", 1, 1),
        ("/h/10.0.0.2", 2, 2),
        ("/h/(others)", 1, 1),
    ];
    assert_eq!(world.seen(), rows(&want));
}

#[test]
fn an_unknown_host_shares_the_rest_until_a_change_approves_it() {
    let guests = |known: &str| {
        format!(
            "[class.\"/guests\"]\nmatch = \"any\"\n\
             each = {{ by = \"lan-host\", count = 4, unknown = \"ask\", known = [{known}] }}\n"
        )
    };
    let mut world = World::new(&guests("\"10.0.0.1\""));
    world.send(1, 2);
    world.send(2, 3);
    // one that sends on is told of once
    world.send(2, 4);
    let told = |world: &World| {
        let report = Report::of(&world.engine, &world.plan);
        report.askers.into_iter().map(|a| (a.class, a.who)).collect::<Vec<_>>()
    };
    let two = ("/guests".to_owned(), "10.0.0.2".to_owned());
    assert_eq!(told(&world), [two]);
    assert_eq!(world.engine.classifier().counters().hosts_asked, 1);
    let leaf = |world: &World, path: &str| {
        let row = world.seen().into_iter().find(|(row, ..)| row == path);
        row.map_or(0, |(_, received, _)| received)
    };
    assert_eq!((leaf(&world, "/guests/10.0.0.1"), leaf(&world, "/guests/(others)")), (2, 7));
    world.change(&guests("\"10.0.0.0/30\""));
    world.send(2, 1);
    world.send(9, 1);
    assert_eq!(told(&world), [("/guests".to_owned(), "10.0.0.9".to_owned())]);
    assert_eq!((leaf(&world, "/guests/10.0.0.2"), leaf(&world, "/guests/(others)")), (1, 8));
    // who is known no longer asks again
    world.change(&guests(""));
    world.send(2, 1);
    assert_eq!(told(&world).len(), 2);
    assert_eq!(leaf(&world, "/guests/(others)"), 9);
}

#[test]
fn no_more_askers_are_remembered_than_there_is_room_for() {
    let mut world = World::new(
        "[class.\"/guests\"]\nmatch = \"any\"\n\
         each = { by = \"lan-host\", unknown = \"ask\" }\n",
    );
    let many = u8::try_from(weir_units::limits::EACH_ASKERS).expect("is small") + 3;
    (1..=many).for_each(|host| world.send(host, 1));
    let askers = Report::of(&world.engine, &world.plan).askers;
    assert_eq!(askers.len(), weir_units::limits::EACH_ASKERS);
    // the first three are forgotten
    assert_eq!(askers[0].who, "10.0.0.4");
}

#[test]
fn a_host_that_was_silent_makes_room_and_its_books_stay_with_the_class() {
    let each = "[class.\"/h\"]\nmatch = \"udp\"\n\
                each = { by = \"lan-host\", count = 1, age = \"1s\" }\n";
    let mut world = World::new(each);
    world.send(1, 1);
    let later = Instant::ZERO + Span::from_secs(5);
    let mut out = Burst::new();
    world.engine.transmit(later, Side::Wan, &mut out);
    out.drain().for_each(|frame| world.engine.pool_mut().give(frame));
    for _ in 0..10 {
        world.engine.age(later);
    }
    world.send(2, 1);
    let want = [("/", 2, 1), ("/h", 2, 1), ("/h/10.0.0.2", 1, 1)];
    assert_eq!(world.seen(), rows(&want));
}

#[test]
fn numbers_of_classes_that_are_gone_are_used_again() {
    let mut planner = Planner::new();
    for round in 0..600 {
        // 4 096 leaves each time under another path: without reuse the numbers end at round 512
        let classes = format!("[class.\"/h{round}\"]\nmatch = \"udp\"\neach = \"lan-host\"\n");
        assert!(planner.prepare(&plan(&classes)).is_ok(), "round {round}");
    }
}

#[test]
fn a_leaf_that_gets_children_hands_over_to_their_rest() {
    let mut world = World::new(A);
    world.send(1, 3);
    world.change(&format!("{A}[class.\"/a/small\"]\nmatch = \"length 0-20\"\n"));
    assert_eq!(world.seen(), rows(&[("/", 3, 3), ("/a", 3, 3), ("/a/(rest)", 3, 3)]));
}

#[test]
fn leaves_made_by_another_rule_are_other_leaves() {
    let each =
        |by| format!("[class.\"/h\"]\nmatch = \"udp\"\neach = {{ by = \"{by}\", count = 2 }}\n");
    let mut world = World::new(&each("lan-host"));
    world.send(1, 3);
    world.change(&each("lan-prefix"));
    world.send(1, 1);
    let want = [("/", 4, 4), ("/h", 1, 1), ("/h/10.0.0.0/24", 1, 1), ("/(rest)", 0, 3)];
    assert_eq!(world.seen(), rows(&want));
}

#[test]
fn no_two_classes_ever_have_one_number() {
    let mut planner = Planner::new();
    let old = plan("[class.\"/old\"]\n[class.\"/old/c\"]\nmatch = \"tcp\"\n");
    assert!(planner.prepare(&old).is_ok());
    let new = plan(
        "[class.\"/new\"]\nwas = \"/old\"\n[class.\"/new/c\"]\nmatch = \"tcp\"\n\
         [class.\"/x\"]\nwas = \"/old/c\"\nmatch = \"udp\"\n",
    );
    let change = planner.prepare(&new).expect("fits");
    let layout = change.layout();
    let slots: std::collections::BTreeSet<_> = (0..5).map(|node| layout.slot(node)).collect();
    assert_eq!(slots.len(), 5);
    let number = |plan: &Plan, path| layout.slot(plan.find(path).expect("a class"));
    assert_eq!(number(&new, "/x"), Some(2), "/x says that it was /old/c");
}

#[test]
fn a_group_without_addresses_matches_nobody_also_for_those_below() {
    let text = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1mbit\"\nup = \"1mbit\"\n\
                [group]\nvip = []\n[class.\"/vip\"]\nmatch = \"lan vip\"\n\
                [class.\"/vip/voice\"]\nmatch = \"udp\"\n";
    let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
    let mut planner = Planner::new();
    let plan = reading.plans.into_iter().next().expect("has a link");
    let first = planner.prepare(&plan).expect("fits");
    let engine = Engine::new(Config::default(), Pool::new(1, 1), first, Instant::ZERO);
    let bytes = "udp 10.0.0.5:5060 > 192.0.2.1:5060".parse::<Build>().expect("a packet").to_vec();
    assert_eq!(engine.trace(&plan, Side::Lan, &bytes).leaf(&plan), "/(rest)");
}

mod numbers {
    use super::plan;
    use proptest::prelude::*;
    use weir_engine::Planner;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        /// Four classes whose leaves come, go, grow and shrink need few more numbers than there are
        /// leaves at most, however often they change.
        #[test]
        fn are_used_again(
            counts in prop::collection::vec(prop::collection::vec(1u32..600, 4), 60),
        ) {
            let mut planner = Planner::new();
            for counts in &counts {
                let class = |(at, count): (usize, &u32)| format!(
                    "[class.\"/{at}\"]\nmatch = \"vlan {at}\"\n\
                     each = {{ by = \"lan-host\", count = {count} }}\n"
                );
                let classes: String = counts.iter().enumerate().map(class).collect();
                let plan = plan(&classes);
                let layout = planner.prepare(&plan).expect("fits").layout();
                let ends = (0..4).filter_map(|at| layout.each(plan.find(&format!("/{at}"))?));
                let most = ends.map(|(first, count)| first + count).max();
                prop_assert!(most < Some(4 * 4 * 600), "numbers up to {most:?}");
            }
        }
    }
}
