//! Whoever shares a class among several engines asks each what its nodes want, and tells what they
//! may have.

use weir_engine::{Config, Demand, Driver, Engine, Planner, Single, Snapshot};
use weir_packet::{Build, Member, Pool, Side};
use weir_policy::{Plan, Source, read};
use weir_units::{Instant, Rate, Span, Way};

const POLICY: &str = r#"
    [link.l]
    lan = "a"
    wan = "b"
    down = "10mbit"
    up = "10mbit"
    margin = "100%"
    counts = "ip"
    [class."/a"]
    [class."/a/x"]
    match = "udp wan port 1"
    [class."/a/y"]
    match = "udp wan port 2"
    [class."/h"]
    match = "udp wan port 3"
    each = { by = "lan-host", count = 6000, age = "1s" }
    [class."/b"]
    match = "udp"
"#;

fn enforced(word: &str) -> String {
    POLICY.replace("counts = ", &format!("enforce = \"{word}\"\ncounts = "))
}

fn plan(policy: &str) -> Plan {
    let source = Source::new("p", policy.to_owned());
    read(source, &mut |_| Err(String::new())).expect("is text").plans.remove(0)
}

struct World {
    driver: Driver,
    planner: Planner,
    plan: Plan,
    now: Instant,
    /// Who sends.
    host: u8,
}

impl World {
    fn new(policy: &str) -> World {
        let plan = plan(policy);
        let config = Config { queue_frames: 2_000, seed: 1, limits: true, ..Config::default() };
        let mut planner = Planner::of(&config);
        let first = planner.prepare(&plan).expect("fits");
        let engine = Engine::new(config, Pool::new(4_000, 1_600), first, Instant::ZERO);
        let driver = Driver::new(engine, &Member::ONE_EACH);
        World { driver, planner, plan, now: Instant::from_ns(1_000_000_000), host: 1 }
    }

    fn number(&self, path: &str) -> u32 {
        self.driver.engine().layout().slot(self.plan.find(path).expect("is there")).expect("has")
    }

    /// Each of these ports gets frames of 1 000 bytes, of one host, at so many kbit/s; returns what
    /// leaves of each, in kbit/s.
    fn run(&mut self, ms: u64, offered: &[(u16, u64)]) -> Vec<u64> {
        let mut sent = vec![0; offered.len()];
        let mut due: Vec<u64> = vec![0; offered.len()];
        for ms in 0..ms {
            for (at, &(port, kbit)) in offered.iter().enumerate() {
                due[at] += kbit;
                while due[at] >= 8_000 {
                    due[at] -= 8_000;
                    // ports of a flow each, so that none of them is short of a queue
                    let port_of_flow = 1_000 + u16::try_from(ms % 7).unwrap_or(0);
                    let from = ([10, 0, 0, self.host], port_of_flow).into();
                    let build = Build::udp(from, ([192, 0, 2, 1], port).into());
                    let mut frame = build.payload_len(1_000 - 28).to_vec();
                    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, self.host]);
                    self.poll(Some(&frame), offered, &mut sent);
                }
            }
            let end = self.now + Span::from_ms(1);
            while let Some(at) = self.driver.next_at(self.now).filter(|at| *at < end) {
                self.now = at;
                self.poll(None, offered, &mut sent);
            }
            self.now = end;
        }
        sent.iter().map(|bytes| bytes * 8 / ms).collect()
    }

    fn poll(&mut self, frame: Option<&[u8]>, offered: &[(u16, u64)], sent: &mut [u64]) {
        let left = |_, bytes: &[u8]| {
            let port = u16::from_be_bytes([bytes[36], bytes[37]]);
            if let Some(at) = offered.iter().position(|(of, _)| *of == port) {
                sent[at] += bytes.len() as u64 - 14;
            }
        };
        let came = frame.map(|frame| (Side::Lan, frame));
        self.driver.poll(self.now, &mut Single { came, left });
    }

    fn limit(&mut self, path: &str, kbit: u64) -> usize {
        self.limit_of(self.number(path), Rate::from_bps(kbit * 1_000))
    }

    fn limit_of(&mut self, number: u32, rate: Rate) -> usize {
        self.driver.engine_mut().limits(self.now, &[(number, Way::Up, rate)])
    }

    fn edit(&mut self, policy: &str) {
        self.plan = plan(policy);
        let change = self.planner.prepare(&self.plan).expect("fits");
        self.driver.change(change.into());
        while self.driver.changed().is_none() {
            self.poll(None, &[], &mut []);
        }
    }
}

fn assert_near(rates: &[u64], expected: &[u64], percent: u64) {
    let pairs = || rates.iter().zip(expected);
    let is_near = pairs().all(|(r, e)| r.abs_diff(*e) <= 16 + e * percent / 100);
    assert!(is_near, "{rates:?}, not {expected:?}");
}

#[test]
fn classes_and_leaves_obey_and_others_have_what_they_may_not() {
    let mut world = World::new(POLICY);
    let offered = [(1, 6_000), (2, 6_000), (9, 20_000)];
    assert_near(&world.run(2_000, &offered), &[2_500, 2_500, 5_000], 2);
    assert_eq!(world.limit("/a", 1_000), 1);
    world.run(200, &offered);
    assert_near(&world.run(2_000, &offered), &[500, 500, 9_000], 2);
    assert_eq!(world.limit("/a/x", 100), 1);
    world.run(200, &offered);
    assert_near(&world.run(2_000, &offered), &[100, 900, 9_000], 2);
    // through an edit
    let change = world.planner.prepare(&world.plan).expect("fits");
    world.driver.change(change.into());
    assert_near(&world.run(2_000, &offered), &[100, 900, 9_000], 2);
    assert_eq!(world.limit("/a", u64::MAX / 1_000) + world.limit("/a/x", u64::MAX / 1_000), 2);
    world.run(200, &offered);
    assert_near(&world.run(2_000, &offered), &[2_500, 2_500, 5_000], 2);
}

#[test]
fn branches_without_queues_obey_as_well() {
    for word in ["weir", "hsdba"] {
        let mut world = World::new(&enforced(word));
        let offered = [(1, 6_000), (2, 6_000), (9, 20_000)];
        world.run(1_000, &offered);
        let obeyed = [world.limit("/a", 1_000), world.limit("/(rest)", 5_000)];
        if word == "hsdba" {
            // as published, it limits the link alone
            assert_eq!(obeyed, [0, 0]);
            continue;
        }
        assert_eq!(obeyed, [1, 1]);
        world.run(500, &offered);
        let rates = world.run(3_000, &offered);
        assert_near(&rates, &[500, 500, 9_000], 6);
        let plan = world.plan.clone();
        let mut other = plan.clone();
        other.nodes[1].shares.up.weight *= 2;
        for plan in [other, plan] {
            let change = world.planner.prepare(&plan).expect("fits");
            world.driver.change(change.into());
            world.run(500, &offered);
        }
        assert_near(&world.run(3_000, &offered), &[500, 500, 9_000], 6);
    }
}

#[test]
fn a_class_wants_what_its_leaves_want_in_bounded_pieces() {
    let mut world = World::new(POLICY);
    for host in 0..3_000u32 {
        let from = ((0x0a00_0000 + host).to_be_bytes(), 7).into();
        let frame = Build::udp(from, ([192, 0, 2, 1], 3).into()).payload_len(972).to_vec();
        world.poll(Some(&frame), &[], &mut []);
        world.now += Span::from_us(100);
    }
    world.run(100, &[(1, 9_000), (2, 5_000), (9, 3_000)]);
    let all = ["/a", "/a/x", "/a/y", "/h", "/b"].map(|path| world.number(path));
    let mut demands: Vec<Demand> = [0].into_iter().chain(all).map(Demand::of).collect();
    let mut calls = 1;
    while !world.driver.engine().demands(&mut demands) {
        calls += 1;
    }
    assert!(calls > 1, "6 000 leaves are more than one call looks at");
    let [link, a, x, y, h, b] = [0, 1, 2, 3, 4, 5].map(|at| demands[at]);
    for of in [|d: Demand| d.offered, |d: Demand| d.waiting] {
        assert_eq!(of(a).up, of(x).up + of(y).up);
        assert_eq!(of(link).up, of(a).up + of(h).up + of(b).up);
        assert_eq!(of(link).down, 0);
    }
    assert_eq!(h.offered.up, 3_000 * 1_014);
    assert!(x.offered.up > y.offered.up && a.waiting.up > 0);
    // what is whole stays as it was
    let before = demands.clone();
    assert!(world.driver.engine().demands(&mut demands));
    assert_eq!(demands, before);
}

#[test]
fn a_limit_holds_whoever_enforces_it_until_it_is_lifted() {
    let offered = [(1, 6_000), (2, 6_000), (9, 12_000)];
    for laws in [["queue", "weir"], ["weir", "queue"]] {
        for (path, limited) in [("/a", 0..2), ("/a/x", 0..1), ("/b", 2..3)] {
            let mut world = World::new(&enforced(laws[0]));
            assert_eq!(world.limit(path, 300), 1);
            for law in [laws[0], laws[1], "hsdba", laws[0]] {
                world.edit(&enforced(law));
                world.run(500, &offered);
                let rates = world.run(2_000, &offered);
                let rate: u64 = rates[limited.clone()].iter().sum();
                // HSDBA limits the link alone, and forgets nothing
                let has_obeyed = (280..340).contains(&rate);
                assert_eq!(has_obeyed, law != "hsdba", "{laws:?}, {law}, {path}: {rates:?}");
                let all: u64 = rates.iter().sum();
                assert!(all > 9_400, "{laws:?}, {law}, {path}: {rates:?}");
            }
            world.edit(&enforced("hsdba"));
            assert_eq!(world.limit_of(world.number(path), Rate::MAX), 0);
            world.edit(&enforced(laws[0]));
            world.run(500, &offered);
            let rates = world.run(2_000, &offered);
            assert!(rates[limited].iter().sum::<u64>() > 2_000, "{laws:?}, {path}: {rates:?}");
        }
    }
}

#[test]
fn a_limit_of_what_no_class_takes_is_never_that_of_the_link() {
    for law in ["weir", "hsdba"] {
        // frames of other protocols than UDP would be in it
        let policy = |law| enforced(law).replace("match = \"udp\"", "match = \"tcp\"");
        let mut world = World::new(&policy("queue"));
        let offered = [(1, 6_000), (9, 6_000)];
        assert_eq!(world.limit("/(rest)", 500), 1);
        world.edit(&policy(law));
        world.run(500, &offered);
        let limited = world.run(2_000, &offered);
        assert!(
            limited.iter().sum::<u64>() > if law == "weir" { 6_400 } else { 9_400 },
            "{law}: {limited:?}"
        );
        let _ = world.limit_of(world.number("/(rest)"), Rate::MAX);
        world.run(500, &offered);
        let lifted = world.run(2_000, &offered);
        assert!(lifted.iter().sum::<u64>() > 9_400, "{law}: {lifted:?}");
    }
}

#[test]
fn a_leaf_that_becomes_a_class_keeps_its_limit() {
    for law in ["queue", "weir"] {
        let mut world = World::new(&enforced(law));
        let offered = [(9, 6_000)];
        assert_eq!(world.limit("/b", 300), 1);
        world.run(500, &offered);
        let class = "[class.\"/b/c\"]\nmatch = \"udp wan port 5\"\n";
        world.edit(&format!("{}{class}", enforced(law)));
        world.run(500, &offered);
        let rates = world.run(1_000, &offered);
        assert!((280..340).contains(&rates[0]), "{law}: {rates:?}");
    }
}

#[test]
fn a_leaf_that_is_made_for_another_host_has_no_limit() {
    for law in ["queue", "weir"] {
        let mut world = World::new(&enforced(law).replace("count = 6000", "count = 1"));
        let offered = [(3, 6_000)];
        world.run(200, &offered);
        let owner = |world: &World| {
            let mut books = Snapshot::with_room();
            world.driver.engine().snapshot(0, &mut books);
            books.leaves.iter().find_map(|leaf| Some((leaf.leaf, leaf.owner?)))
        };
        let (leaf, first) = owner(&world).expect("it is made");
        assert_eq!(world.limit_of(leaf, Rate::from_bps(100_000)), 1);
        world.run(500, &offered);
        assert!(world.run(1_000, &offered)[0] < 150, "{law}");
        world.host = 9;
        world.run(8_000, &[]);
        let rates = world.run(1_000, &offered);
        let (same_leaf, second) = owner(&world).expect("it is made");
        assert!(same_leaf == leaf && second != first, "{law}");
        assert!(rates[0] > 5_500, "{law}: {rates:?}");
    }
}

#[test]
fn a_class_that_has_the_number_of_one_that_is_gone_has_no_limit() {
    let with = |class: &str| {
        let class = format!("[class.\"/{class}\"]\nmatch = \"udp wan port 7\"\n[class.\"/b\"]");
        POLICY.replace("[class.\"/b\"]", &class)
    };
    let slow = Rate::from_bps(300_000);
    let mut world = World::new(&with("c"));
    let number = world.number("/c");
    assert_eq!(world.limit_of(number, slow), 1);
    // a number is free for the policy after the next; what is said of it until then counts for
    // nobody
    for _ in 0..2 {
        world.edit(POLICY);
        assert_eq!(world.limit_of(number, slow), 0);
    }
    world.edit(&with("d"));
    assert_eq!(world.number("/d"), number);
    let rates = world.run(1_000, &[(7, 6_000)]);
    assert!(rates[0] > 5_500, "{rates:?}");
}

#[test]
fn any_number_may_be_asked_for_and_who_is_asked_across_an_edit_begins_anew() {
    let mut world = World::new(POLICY);
    let mut demands = [u32::MAX, u32::MAX - 1, 123_456].map(Demand::of);
    assert!(world.driver.engine().demands(&mut demands));
    assert_eq!(demands.map(|demand| demand.offered.up), [0; 3]);
    world.run(100, &[(3, 2_000)]);
    let mut demands = [Demand::of(world.number("/h"))];
    assert!(!world.driver.engine().demands(&mut demands));
    let before = demands[0].policy;
    world.edit(&POLICY.replace("count = 6000", "count = 10"));
    while !world.driver.engine().demands(&mut demands) {}
    // the leaves that had frames are gone
    assert_eq!((demands[0].policy, demands[0].offered.up), (before + 1, 0));
}

#[test]
fn numbers_that_nobody_has_do_not_obey() {
    for law in ["queue", "weir", "hsdba"] {
        let mut world = World::new(&enforced(law));
        for number in [u32::MAX, u32::MAX - 1, 1 << 20, 7_000, 2_000_000] {
            assert_eq!(world.limit_of(number, Rate::from_bps(5)), 0, "{law}: {number}");
        }
    }
}

#[test]
fn connections_with_a_backlog_follow_another_law_at_once() {
    let offered = [(1, 6_000), (2, 6_000), (9, 20_000)];
    for from in ["hsdba", "weir"] {
        let mut world = World::new(&enforced(from));
        world.run(2_000, &offered);
        world.edit(&enforced("queue"));
        world.run(1_000, &offered);
        assert_near(&world.run(2_000, &offered), &[2_500, 2_500, 5_000], 2);
        assert_eq!(world.limit("/a", 1_000), 1);
        world.run(200, &offered);
        assert_near(&world.run(2_000, &offered), &[500, 500, 9_000], 2);
    }
}
