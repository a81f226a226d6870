//! Branches without queues of their own: what each of their leaves gets is what the law of sharing
//! says, beside branches that have queues, and while policies change.

use weir_engine::{Config, Engine, Planner, Report};
use weir_packet::{Build, Burst, Headers, Pool, Reason, Side};
use weir_policy::{Plan, Source, read};
use weir_share::{LINK, Node, exact};
use weir_units::{Instant, Rate, Span, Way};

const LEN: u64 = 1_000;

struct World {
    engine: Engine,
    planner: Planner,
    plan: Plan,
    now: Instant,
    /// Hosts that send, and the ns between their frames; when each sends next.
    senders: Vec<(u8, u64)>,
    next: Vec<u64>,
    draw: u64,
    left: Vec<Vec<u8>>,
}

fn plan(classes: &str) -> Plan {
    let link = "[link.l]\nlan = \"a\"\nwan = \"b\"\ncounts = \"ip\"\n\
        down = \"100mbit\"\nup = \"100mbit\"\n";
    let reading = read(Source::new("p", format!("{link}{classes}")), &mut |_| Err(String::new()));
    let reading = reading.expect("is text");
    assert!(!reading.is_at_fault(), "{:?}", reading.problems);
    reading.plans.into_iter().next().expect("has a link")
}

impl World {
    /// A link of 100 Mbit/s, and hosts that send so many Mbit/s up.
    fn new(classes: &str, senders: &[(u8, u64)]) -> World {
        let plan = plan(classes);
        let mut planner = Planner::new();
        let first = planner.prepare(&plan).expect("fits");
        let config = Config { flows: 256, ..Config::default() };
        let engine = Engine::new(config, Pool::new(5_000, 1_100), first, Instant::ZERO);
        let mut world = World {
            engine,
            planner,
            plan,
            now: Instant::ZERO,
            senders: Vec::new(),
            next: Vec::new(),
            draw: 1,
            left: Vec::new(),
        };
        world.say(senders);
        world
    }

    fn say(&mut self, senders: &[(u8, u64)]) {
        let gap = |&(host, mbit): &(u8, u64)| (host, LEN * 8_000 / mbit);
        self.senders = senders.iter().map(gap).collect();
        // no two begin at the same moment
        self.next = (0..senders.len() as u64).map(|at| self.now.ns() + 7_919 * at).collect();
    }

    fn frame(host: u8, ecn: u8) -> Vec<u8> {
        let from = format!("10.0.{}.{host}:7", host / 10).parse().expect("an address");
        let build = Build::udp(from, "192.0.2.1:53".parse().expect("an address"));
        build.ecn(ecn).payload_len(usize::try_from(LEN).expect("is small") - 28).to_vec()
    }

    fn send(&mut self, host: u8, ecn: u8) {
        let frame = self.engine.pool_mut().fill(&World::frame(host, ecn)).expect("a buffer");
        let mut burst = Burst::new();
        burst.push(frame).expect("room");
        self.engine.receive(self.now, Side::Lan, &mut burst);
    }

    fn run(&mut self, span: Span, ecn: u8) {
        let end = self.now + span;
        loop {
            let first = (0..self.next.len()).min_by_key(|&at| self.next[at]);
            let arrival = first.map(|at| Instant::from_ns(self.next[at]));
            let wakes = self.engine.next_wakeup();
            let next = [arrival, wakes].into_iter().flatten().min().filter(|at| *at < end);
            let Some(next) = next else { break };
            self.now = self.now.max(next);
            if let (Some(at), true) = (first, arrival == Some(next)) {
                // the gap is off by a few parts in a hundred, without a pattern
                let (host, gap) = self.senders[at];
                self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let draw = self.draw >> 40;
                self.next[at] += gap * (95 + draw % 11) / 100;
                self.send(host, ecn);
            }
            let mut out = Burst::new();
            self.engine.transmit(self.now, Side::Wan, &mut out);
            for frame in out.drain() {
                self.left.push(self.engine.pool().bytes(&frame).to_vec());
                self.engine.pool_mut().give(frame);
            }
        }
        self.now = end;
    }

    /// Mbit/s that left in `span`, by host, after the shares have settled.
    fn rates(&mut self, hosts: &[u8], span: Span) -> Vec<f64> {
        self.run(Span::from_ms(100), 0);
        self.left.clear();
        self.run(span, 0);
        let mut sums = vec![0.0; hosts.len()];
        for bytes in &self.left {
            let host = bytes[14 + 15];
            if let Some(at) = hosts.iter().position(|h| *h == host) {
                sums[at] += (LEN * 8) as f64;
            }
        }
        sums.iter().map(|bits| bits / span.ns() as f64 * 1e3).collect()
    }

    fn change(&mut self, classes: &str) {
        self.plan = plan(classes);
        let mut change = self.planner.prepare(&self.plan).expect("fits");
        while !self.engine.apply(self.now, &mut change) {}
        self.check();
    }

    /// All books balance, and add up to the link's.
    fn check(&self) {
        let report = Report::of(&self.engine, &self.plan);
        for row in &report.rows {
            assert!(row.from(Side::Lan).balance(), "{}: {:?}", row.path, row.from(Side::Lan));
        }
        let waiting = self.engine.waiting(Way::Up);
        assert_eq!(report.rows[0].from(Side::Lan).held.frames, waiting.0 as u64);
    }

    fn dropped(&self, path: &str, reason: Reason) -> u64 {
        let report = Report::of(&self.engine, &self.plan);
        let row = report.rows.iter().find(|row| row.path == path).expect("the class");
        row.from(Side::Lan).dropped[reason.index()].frames
    }
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(mbit * 1_000_000)
}

/// What the law says, by the nodes that are leaves.
fn exact(nodes: &[Node], link: u64, demands: &[(usize, u64)]) -> Vec<f64> {
    let mut nodes = nodes.to_vec();
    nodes[0].peak = mbit(link);
    let mut wants = vec![Rate::ZERO; nodes.len()];
    demands.iter().for_each(|&(node, rate)| wants[node] = mbit(rate));
    let shares = exact::shares(&nodes, &wants).expect("a tree");
    demands.iter().map(|&(node, _)| shares[node].bps() as f64 / 1e6).collect()
}

fn close(are: &[f64], should: &[f64], part: f64) {
    let is_close = |(is, should): (&f64, &f64)| (is - should).abs() <= should * part;
    assert!(are.iter().zip(should).all(is_close), "{are:?} instead of {should:?}");
}

fn class(path: &str, host: u8, words: &str) -> String {
    format!("[class.\"{path}\"]\nmatch = \"lan 10.0.{}.{host}\"\n{words}\n", host / 10)
}

/// Two branches of three leaves, as in the paper, with weights, a guarantee and peaks.
fn two_branches() -> (String, Vec<Node>) {
    let mut text = String::from(
        "[class.\"/a\"]\nenforce = \"weir\"\nweight = 1\nceil = \"60mbit\"\n\
         [class.\"/b\"]\nenforce = \"weir\"\nweight = 2\n",
    );
    text += &class("/a/1", 11, "weight = 1\nrate = \"20mbit\"");
    text += &class("/a/2", 12, "weight = 1");
    text += &class("/a/3", 13, "weight = 2");
    text += &class("/b/1", 21, "weight = 1\nceil = \"5mbit\"");
    text += &class("/b/2", 22, "weight = 1");
    text += &class("/b/3", 23, "weight = 3");
    let inner = |weight, peak, floor| Node { peak, floor, ..Node::inner(LINK, weight) };
    let leaf = |parent, weight| Node::leaf(parent, weight);
    let nodes = vec![
        Node::link(mbit(100)),
        inner(1, mbit(60), mbit(20)),
        inner(2, Rate::MAX, Rate::ZERO),
        Node { floor: mbit(20), ..leaf(1, 1) },
        leaf(1, 1),
        leaf(1, 2),
        Node { peak: mbit(5), ..leaf(2, 1) },
        leaf(2, 1),
        leaf(2, 3),
    ];
    (text, nodes)
}

const HOSTS: [u8; 6] = [11, 12, 13, 21, 22, 23];

#[test]
fn shares_are_those_of_the_law() {
    let (text, nodes) = two_branches();
    for loads in [[50, 50, 50, 50, 50, 50], [50, 5, 50, 50, 10, 50], [50, 50, 50, 1, 1, 20]] {
        let senders: Vec<(u8, u64)> = HOSTS.into_iter().zip(loads).collect();
        let mut world = World::new(&text, &senders);
        let demands: Vec<(usize, u64)> = (3..9).zip(loads).collect();
        let rates = world.rates(&HOSTS, Span::from_secs(1));
        world.check();
        let due = exact(&nodes, 100, &demands);
        // from 100 ms after the start on
        close(&rates, &due, 0.02);
        assert!(rates.iter().sum::<f64>() > 0.995 * due.iter().sum::<f64>(), "{rates:?}");
        assert!(world.dropped("/a/3", Reason::OverShare) > 100);
        assert_eq!(world.dropped("/", Reason::QueueFull) + world.dropped("/", Reason::Crowded), 0);
    }
}

#[test]
fn beside_queues_both_have_their_parts() {
    let mut text = String::from("[class.\"/a\"]\nweight = 1\nenforce = \"weir\"\n");
    text += &class("/a/1", 11, "weight = 1");
    text += &class("/a/2", 12, "weight = 2");
    text += &class("/q", 31, "weight = 3\nqueue = \"fifo\"");
    let mut world = World::new(&text, &[(11, 80), (12, 80), (31, 200)]);
    let rates = world.rates(&[11, 12, 31], Span::from_secs(1));
    world.check();
    close(&rates, &[100.0 / 12.0, 200.0 / 12.0, 75.0], 0.01);
    // whoever waits, waits short
    let report = Report::of(&world.engine, &world.plan);
    let of = |path: &str| report.rows.iter().find(|row| row.path == path).expect("a class");
    let delay = of("/a/1").from(Side::Lan).delay;
    assert!(delay.max_ns < 20_000_000, "{delay:?}");
    assert_eq!(of("/a").from(Side::Lan).dropped[Reason::QueueFull.index()].frames, 0);
    // and what the one does not want the other has
    world.say(&[(11, 80), (12, 80), (31, 10)]);
    // once what had to wait has gone
    world.run(Span::from_secs(1), 0);
    let rates = world.rates(&[11, 12, 31], Span::from_secs(1));
    close(&rates, &[30.0, 60.0, 10.0], 0.04);
}

#[test]
fn queues_within_a_branch_that_has_none() {
    let mut text = String::from("[class.\"/a\"]\nceil = \"50mbit\"\nenforce = \"weir\"\n");
    text += &class("/a/1", 11, "weight = 1");
    text += &class("/a/2", 12, "weight = 1");
    text += &class("/a/q", 13, "weight = 2\nenforce = \"queue\"\nqueue = \"fifo\"");
    text += &class("/h", 21, "weight = 1\nenforce = \"hsdba\"");
    let mut world = World::new(&text, &[(11, 80), (12, 80), (13, 80), (21, 40)]);
    let rates = world.rates(&[11, 12, 13, 21], Span::from_secs(1));
    world.check();
    close(&rates, &[12.5, 12.5, 25.0, 40.0], 0.05);
    assert!(world.dropped("/a/q", Reason::QueueFull) > 0);
    assert_eq!(world.dropped("/a/q", Reason::OverShare), 0);
}

#[test]
fn hsdba_shares_too() {
    let mut text = String::from("[class.\"/a\"]\nenforce = \"hsdba\"\n");
    text += &class("/a/1", 11, "weight = 1");
    text += &class("/a/2", 12, "weight = 3");
    let mut world = World::new(&text, &[(11, 200), (12, 200)]);
    let rates = world.rates(&[11, 12], Span::from_secs(1));
    world.check();
    close(&rates, &[25.0, 75.0], 0.03);
}

#[test]
fn the_whole_link_and_made_leaves() {
    let text = "[class.\"/h\"]\nmatch = \"lan 10.0.1.0/24\"\n\
        each = { by = \"lan-host\", count = 3, age = \"1s\", ceil = \"10mbit\" }\n\
        [class.\"/z\"]\nmatch = \"lan 10.0.2.0/24\"\nweight = 1000\n";
    let link = "enforce = \"weir\"\n";
    let hosts = [11, 12, 13, 14, 15];
    let senders = hosts.map(|host| (host, 60));
    let mut world = World::new(&format!("{link}{text}"), &senders);
    // a flow may have 33 ms of its share ahead, which pass when the queue of the beginning is gone
    let ahead = Span::from_ms(500);
    world.run(ahead, 0);
    let rates = world.rates(&hosts, Span::from_secs(1));
    world.check();
    // three have a leaf, and those without one share another
    let check = |mut rates: Vec<f64>| {
        rates.sort_by(f64::total_cmp);
        close(&rates[..3], &[10.0; 3], 0.01);
        close(&[rates[3] + rates[4]], &[70.0], 0.05);
    };
    check(rates);
    // another policy, another law: the made leaves stay, and what waits is not lost
    world.change(&format!("enforce = \"hsdba\"\n{text}"));
    world.run(Span::from_ms(20), 0);
    world.change(text);
    world.run(Span::from_ms(20), 0);
    world.change(&format!("{link}{text}"));
    world.run(Span::from_ms(5), 0);
    world.change("");
    world.check();
    world.change(&format!("{link}{text}"));
    world.run(ahead, 0);
    let rates = world.rates(&hosts, Span::from_secs(1));
    check(rates);
    // hosts that are silent make room, and the next begins anew
    world.say(&[(16, 60)]);
    world.run(Span::from_secs(3), 0);
    for _ in 0..10 {
        world.engine.age(world.now);
    }
    world.say(&[(17, 60), (18, 60)]);
    let rates = world.rates(&[17, 18], Span::from_secs(1));
    close(&rates, &[10.0; 2], 0.01);
    world.check();
}

#[test]
fn nodes_that_stay_keep_what_they_have() {
    let (text, nodes) = two_branches();
    let loads = [50; 6];
    let senders: Vec<(u8, u64)> = HOSTS.into_iter().zip(loads).collect();
    let mut world = World::new(&text, &senders);
    let demands: Vec<(usize, u64)> = (3..9).zip(loads).collect();
    let want = exact(&nodes, 100, &demands);
    world.run(Span::from_ms(200), 0);
    // other policies every few frames: shares are right all the time
    let mut sums = [0.0; 6];
    for round in 0..200 {
        let more = if round % 2 == 0 { class("/c", 31, "weight = 1") } else { String::new() };
        world.change(&format!("{more}{text}"));
        world.left.clear();
        world.run(Span::from_ms(5), 0);
        for bytes in &world.left {
            let at = HOSTS.iter().position(|host| *host == bytes[29]).expect("is known");
            sums[at] += (LEN * 8) as f64 / 1e6;
        }
    }
    close(&sums, &want, 0.02);
}

#[test]
fn nodes_under_hsdba_keep_what_they_have() {
    let mut text = String::from("[class.\"/a\"]\nenforce = \"hsdba\"\n");
    text += &class("/a/1", 11, "weight = 1");
    text += &class("/a/2", 12, "weight = 3");
    let mut world = World::new(&text, &[(11, 200), (12, 200)]);
    world.run(Span::from_ms(200), 0);
    let mut sums = [0.0; 2];
    for round in 0..200 {
        let more = if round % 2 == 0 { class("/c", 31, "weight = 1") } else { String::new() };
        world.change(&format!("{more}{text}"));
        world.left.clear();
        world.run(Span::from_ms(5), 0);
        for bytes in &world.left {
            sums[usize::from(bytes[29] == 12)] += (LEN * 8) as f64 / 1e6;
        }
    }
    close(&sums, &[25.0, 75.0], 0.03);
}

#[test]
fn the_rate_of_the_link_may_change_at_any_time() {
    let text = format!(
        "[class.\"/a\"]\nenforce = \"weir\"\n{}{}",
        class("/a/1", 11, "weight = 1"),
        class("/a/2", 12, "weight = 3")
    );
    let mut world = World::new(&text, &[(11, 80), (12, 80)]);
    world.run(Span::from_ms(100), 0);
    assert_eq!(world.engine.limits(world.now, &[(0, Way::Up, mbit(20))]), 1);
    let rates = world.rates(&[11, 12], Span::from_secs(1));
    close(&rates, &[5.0, 15.0], 0.01);
    let bytes = World::frame(11, 0);
    let trace = world.engine.trace(&world.plan, Side::Lan, &bytes);
    let words = trace.words(&world.plan, |_| String::new());
    let line = words.iter().find(|line| line.starts_with("allocate")).expect("is said");
    assert!(line.contains("by weir") && line.contains("limited by /a"), "{line}");
}

#[test]
fn a_guarantee_that_is_scaled_is_explained() {
    let text = class("/a", 11, "rate = \"50mbit\"")
        + &class("/b", 12, "rate = \"30mbit\"")
        + &class("/c", 13, "");
    let mut world = World::new(&text, &[(11, 80), (12, 80), (13, 80)]);
    let said = |world: &World| {
        let trace = world.engine.trace(&world.plan, Side::Lan, &World::frame(11, 0));
        trace.words(&world.plan, |_| String::new()).pop().expect("lines")
    };
    assert!(said(&world).contains("/ (link l): 100mbit"), "{}", said(&world));
    world.engine.limits(world.now, &[(0, Way::Up, mbit(60))]);
    let want = "/a: 37.125mbit of its guarantee while all its siblings have traffic, \
                scaled by 0.742";
    assert_eq!(said(&world).trim(), want);
    // one without a guarantee has none to lose
    let trace = world.engine.trace(&world.plan, Side::Lan, &World::frame(13, 0));
    let words = trace.words(&world.plan, |_| String::new());
    assert!(words.iter().all(|line| !line.contains("scaled")), "{words:?}");
    // and that is what it gets
    world.run(Span::from_secs(1), 0);
    let rates = world.rates(&[11, 12, 13], Span::from_secs(1));
    close(&rates, &[37.125, 22.275, 0.6], 0.01);
}

#[test]
fn marks_come_before_drops_where_both_ends_know_them() {
    let text = format!(
        "[class.\"/a\"]\nenforce = \"weir\"\necn = true\nceil = \"10mbit\"\n{}",
        class("/a/1", 11, "weight = 1")
    );
    for (ecn, load) in [(2, 11), (0, 11), (2, 50)] {
        let mut world = World::new(&text, &[(11, load)]);
        world.run(Span::from_secs(1), ecn);
        let marked = world.left.iter().filter(|b| Headers::parse(b).traffic_class & 3 == 3).count();
        assert_eq!(marked > 0, ecn == 2, "{marked} of {}", world.left.len());
        // whoever does not heed marks is dropped all the same
        assert!(world.left.len() < 1_300, "{} left", world.left.len());
        if load == 50 {
            assert!(world.dropped("/a/1", Reason::OverShare) > 1_000);
        }
        world.check();
    }
}

#[test]
fn a_mark_counts_where_the_frame_is_taken() {
    let text = format!(
        "[class.\"/a\"]\nenforce = \"weir\"\necn = true\nceil = \"10mbit\"\n\
         limit = \"1 frames\"\n{}",
        class("/a/1", 11, "weight = 1")
    );
    let mut world = World::new(&text, &[(11, 11)]);
    world.run(Span::from_secs(1), 2);
    world.say(&[]);
    world.run(Span::from_secs(1), 2);
    let marked = world.left.iter().filter(|b| Headers::parse(b).traffic_class & 3 == 3).count();
    assert!(world.dropped("/a/1", Reason::QueueFull) > 0);
    let report = Report::of(&world.engine, &world.plan);
    for path in ["/", "/a/1"] {
        let row = report.rows.iter().find(|row| row.path == path).expect("the class");
        assert_eq!(row.from(Side::Lan).marked.frames, marked as u64, "{path}");
    }
    assert!(marked > 0);
}

/// What `weir explain` says the leaf of a host may send.
fn allocated(world: &World, host: u8) -> String {
    let bytes = World::frame(host, 0);
    let trace = world.engine.trace(&world.plan, Side::Lan, &bytes);
    let words = trace.words(&world.plan, |_| String::new());
    words.into_iter().find(|line| line.starts_with("allocate")).expect("is said")
}

#[test]
fn allocators_know_the_rate_of_the_link_and_of_the_policy() {
    let text = format!("[class.\"/a\"]\nenforce = \"weir\"\n{}", class("/a/1", 11, ""));
    let mut world = World::new(&text, &[(11, 5)]);
    world.run(Span::from_ms(100), 0);
    assert!(allocated(&world, 11).contains(" 100mbit now"));
    world.engine.limits(world.now, &[(0, Way::Up, mbit(20))]);
    assert!(allocated(&world, 11).contains(" 20mbit now"));
    world.change(&text);
    assert!(allocated(&world, 11).contains(" 100mbit now"));
}

#[test]
fn a_leaf_that_is_given_to_another_host_is_forgotten() {
    let text = "enforce = \"weir\"\n[class.\"/h\"]\nmatch = \"lan 10.0.1.0/24\"\n\
        each = { by = \"lan-host\", count = 3, age = \"1s\" }\nweight = 3\n\
        [class.\"/z\"]\nmatch = \"lan 10.0.2.0/24\"\nweight = 1\n";
    let mut world = World::new(text, &[(11, 60), (12, 60), (13, 60)]);
    world.run(Span::from_secs(1), 0);
    world.say(&[]);
    world.run(Span::from_secs(5), 0);
    for _ in 0..10 {
        world.engine.age(world.now);
    }
    // nobody else has sent anything since, so nobody has seen that they are silent
    world.send(21, 0);
    assert!(allocated(&world, 21).contains(" 100mbit now"), "{}", allocated(&world, 21));
}
