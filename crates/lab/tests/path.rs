//! What a path does to packets, as words of a link: every example of docs/lab.md means what it
//! says, and what is wrong is said at its place, all of it.

use weir_lab::scenario::{Reading, Scenario, read};
use weir_lab::{figures, run};
use weir_policy::Source;
use weir_sim::impair::{Impairments, Jitter, Limit, Loss, Outage, Reorder, Service, Shape};
use weir_sim::impair::{Shift, Table, Trace};
use weir_sim::{Chance, LinkSpec};
use weir_units::{Instant, Rate, Span};

const TRACE: &str = "10\n20\n";
const DIST: &str = "# of one access point\n-8192 0 8192\n";

fn reading(text: &str) -> Reading {
    let mut load = |name: &str| match name {
        "lte.trace" => Ok(TRACE.to_owned()),
        "wifi.dist" => Ok(DIST.to_owned()),
        "bad.trace" => Ok("7\n5\n".to_owned()),
        _ => Err("no such file".to_owned()),
    };
    read(Source::new("scenario.toml", text.to_owned()), &mut load).expect("text")
}

fn with(words: &str) -> String {
    format!(
        "[scenario]\nrun = \"10s\"\n[node.a]\n[node.b]\n[profile.none]\n\
        [flow.one]\nfrom = \"a\"\nto = \"b\"\nsource = \"cbr\"\n\
        rate = \"80kbit\"\nbytes = \"1000b\"\n\
        [metric.lost]\nkind = \"loss\"\nflows = [\"one\"]\n\
        [metric.goodput]\nkind = \"goodput\"\nflows = [\"one\"]\nduring = [\"2s\", \"4s\"]\n\
        [metric.ms]\nkind = \"delay\"\nflows = [\"one\"]\npercent = 100\n\
        [link.line]\nbetween = [\"a\", \"b\"]\n{words}\n"
    )
}

fn said(words: &str) -> Vec<String> {
    let Reading { problems, source, .. } = reading(&with(words));
    let line =
        |p: &weir_policy::Problem| format!("{} {} ({})", source.position(p.place), p.what, p.help);
    problems.iter().map(line).collect()
}

fn scenario(words: &str) -> Scenario {
    assert_eq!(said(words), [""; 0], "{words}");
    reading(&with(words)).scenario.expect("a scenario")
}

fn link(words: &str) -> LinkSpec {
    let scenario = scenario(words);
    scenario.link(0, &scenario.profiles[0]).0
}

#[test]
fn losses_are_what_they_say() {
    let [never, one] = [Chance::NEVER, Chance::percent(1)];
    let pc = Chance::percent;
    let cases = [
        ("\"1%\"", Loss::Random { chance: one, correlation: never }),
        (
            "{ chance = \"1%\", correlation = \"25%\" }",
            Loss::Random { chance: one, correlation: pc(25) },
        ),
        ("{ every = 100, phase = 5 }", Loss::Periodic { every: 100, phase: 5 }),
        ("{ packets = [1, 4, 5] }", Loss::List(vec![1, 4, 5])),
        (
            "{ worse = \"1%\", better = \"20%\" }",
            Loss::Bursts { worse: one, better: pc(20), in_good: never, in_bad: Chance::ALWAYS },
        ),
        (
            "{ worse = \"1%\", better = \"20%\", in-good = \"2%\", in-bad = \"30%\" }",
            Loss::Bursts { worse: one, better: pc(20), in_good: pc(2), in_bad: pc(30) },
        ),
        (
            "{ p13 = \"2%\", p31 = \"30%\", p32 = \"10%\", p23 = \"40%\", p14 = \"1%\" }",
            Loss::FourStates { p13: pc(2), p31: pc(30), p32: pc(10), p23: pc(40), p14: one },
        ),
    ];
    for (words, loss) in cases {
        let path = link(&format!("loss = {words}")).path;
        assert_eq!(path, Impairments { loss, ..Impairments::default() }, "{words}");
    }
    assert_eq!(link("periodic-loss = 100").path.loss, Loss::Periodic { every: 100, phase: 0 });
    let marked = link("loss = { every = 100, mark = true }").path;
    assert!(marked.mark);
}

#[test]
fn delays_are_what_they_say() {
    let by = Span::from_ms(5);
    let cases = [
        ("\"5ms\"", Shape::Uniform(by), 0, false),
        ("{ by = \"5ms\", overtake = true }", Shape::Uniform(by), 0, true),
        (
            "{ shape = \"normal\", by = \"5ms\", correlation = \"25%\" }",
            Shape::Normal(by),
            25,
            false,
        ),
        ("{ shape = \"exponential\", by = \"5ms\" }", Shape::Exponential(by), 0, false),
        (
            "{ shape = \"pareto\", by = \"5ms\", exponent = 2.5 }",
            Shape::Pareto { scale: by, shape_tenths: 25 },
            0,
            false,
        ),
        (
            "{ shape = \"table\", by = \"5ms\", file = \"wifi.dist\" }",
            Shape::Table(Table::read(DIST).unwrap(), by),
            0,
            false,
        ),
    ];
    for (words, shape, correlation, overtake) in cases {
        let path = link(&format!("delay = \"50ms\"\njitter = {words}")).path;
        let jitter = Some(Jitter { shape, correlation: Chance::percent(correlation) });
        let delay = Span::from_ms(50);
        let want = Impairments { delay, jitter, overtake, ..Impairments::default() };
        assert_eq!(path, want, "{words}");
    }
}

#[test]
fn accidents_and_outages_are_what_they_say() {
    let at = |s| Instant::ZERO + Span::from_secs(s);
    let path = |words: &str| link(words).path;
    assert_eq!(path("duplicate = \"1%\"").duplicate, Chance::percent(1));
    assert_eq!(path("corrupt = \"0.1%\"").corrupt, Chance::ppm(1_000));
    let early = Reorder { gap: 1, chance: Chance::percent(1), by: Shift::Early };
    assert_eq!(path("reorder = \"1%\"").reorder, Some(early));
    let by = Shift::Late(Span::from_ms(8));
    let late = Reorder { gap: 10, chance: Chance::percent(50), by };
    let words = "reorder = { gap = 10, chance = \"50%\", late = \"8ms\" }";
    assert_eq!(path(words).reorder, Some(late));
    let once = Outage::Scheduled(vec![(at(10), at(20))]);
    assert_eq!(path("outage = [\"10s\", \"20s\"]").outage, once);
    let twice = Outage::Scheduled(vec![(at(1), at(2)), (at(3), at(4))]);
    assert_eq!(path("outage = [[\"1s\", \"2s\"], [\"3s\", \"4s\"]]").outage, twice);
    let chance = Outage::Random { up: Span::from_secs(30), down: Span::from_secs(2) };
    assert_eq!(path("outage = { up = \"30s\", down = \"2s\" }").outage, chance);
}

#[test]
fn a_rate_counts_cells_and_a_trace_stands_for_a_rate() {
    let cells = link("rate = \"2mbit\"\ncounts = \"atm\"\noverhead = 8");
    assert_eq!((cells.rate, cells.layers.overhead), (Some(Rate::from_bps(2_000_000)), 8));
    // 1500 + 8 bytes and the 8 of AAL5 are 32 cells; without the 8 they are too, 1510 are not
    assert_eq!(cells.layers.cost(1_514 - 8, 14).get(), 32 * 53);
    let traced = "trace = \"lte.trace\"\nqueue = \"7 frames\"";
    let service = Service::Trace { trace: Trace::read(TRACE).unwrap(), limit: Limit::Frames(7) };
    assert_eq!((link(traced).rate, link(traced).path.service), (None, service.clone()));
    // whoever says the one has not the other's
    let changed = format!("{traced}\n[profile.slow.link.line]\nrate = \"64kbit\"");
    let scenario = scenario(&changed);
    let slow = scenario.profiles.iter().find(|p| p.name == "slow").expect("it is there");
    let slow = scenario.link(0, slow).0;
    assert_eq!((slow.rate, slow.path.service), (Some(Rate::from_bps(64_000)), Service::Free));
    let there = link("rate = \"64kbit\"\nthere = { trace = \"lte.trace\", queue = \"7 frames\" }");
    assert_eq!((there.rate, there.path.service), (None, service));
}

#[test]
fn a_run_meets_what_was_said() {
    let figure = |words: &str, key: &str| {
        let scenario = scenario(words);
        let runs = run::all(&scenario, &[0], 1..=1, 1, &|_, _| {}).expect("runs");
        let all = figures::figures(&scenario, &runs[0]);
        all.get(key).expect("is measured").mean
    };
    // ten frames a second
    let lost = figure("loss = { packets = [1, 2, 11] }", "lost");
    assert!((lost - 0.03).abs() < 0.001, "{lost}");
    let lost = figure("outage = [\"2s\", \"4s\"]", "lost");
    assert!((lost - 0.2).abs() < 0.02, "{lost}");
    assert!(figure("", "goodput") > 70.0);
    assert!(figure("outage = [\"2s\", \"4s\"]", "goodput") < 5.0);
    // the next moment of the trace is never more than 10 ms away
    let ms = figure("trace = \"lte.trace\"", "ms");
    assert!((5.0..=10.0).contains(&ms), "{ms}");
    assert!(
        (figure("delay = \"5ms\"\nreorder = { gap = 10, late = \"30ms\" }", "ms") - 35.0).abs()
            < 0.1
    );
}

#[test]
fn everything_wrong_is_said_at_its_place() {
    let want = include_str!("mistakes/path-said.txt");
    let words = include_str!("mistakes/path.toml");
    let said = said(words).join("\n") + "\n";
    assert_eq!(said, want);
}
