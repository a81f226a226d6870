//! Scenarios as they are read: what is wrong is said, all of it, each at its place; what is right
//! gives figures that a pencil can check.

use weir_lab::scenario::{Load, Reading, Scenario, Size, read, read_sized};
use weir_lab::{figures, run};
use weir_policy::Source;

fn reading(text: &str) -> Reading {
    let load: &mut Load<'_> = &mut |_| Err("no such file".to_owned());
    read(Source::new("scenario.toml", text.to_owned()), load).expect("text")
}

fn problems(text: &str) -> Vec<String> {
    let Reading { problems, source, .. } = reading(text);
    let line =
        |p: &weir_policy::Problem| format!("{} {} ({})", source.position(p.place), p.what, p.help);
    problems.iter().map(line).collect()
}

fn scenario(text: &str) -> Scenario {
    assert_eq!(problems(text), [""; 0]);
    reading(text).scenario.expect("a scenario")
}

#[test]
fn a_dozen_mistakes_are_all_named_each_at_its_place() {
    let said = problems(include_str!("mistakes/scenario.toml"));
    let want: Vec<&str> = include_str!("mistakes/said.txt").lines().collect();
    assert_eq!(said, want);
}

const LANES: &str = r#"
[scenario]
run = "10s"
from = "2s"
to = "9s"
bin = "500ms"

[sweep]
rate = [800, 400]

[node.a]
[node.b]
[node.box]
kind = "box"

[link.lan]
between = ["a", "box"]

[link.line]
between = ["box", "b"]
rate = "800kbit"
counts = "ip"
queue = "4 frames"

# 1000 bytes of IP in frames of 1014
[flow.one]
from = "a"
to = "b"
source = "cbr"
rate = "{rate}kbit"
bytes = "1014b"

[flow.two]
from = "a"
to = "b"
source = "cbr"
rate = "405600bit"
bytes = "1014b"
stop = "5s"

[metric."rate.{rate}"]
kind = "rate"
flows = ["one"]
during = ["6s", "9s"]

[metric."taken.{rate}"]
kind = "taken"
flows = ["one"]
freed = ["two"]
before = ["2s", "5s"]
during = ["6s", "9s"]

[metric."dent_ms.{rate}"]
kind = "dent"
flows = ["one", "two"]
rate = "700kbit"

[metric."excess.{rate}"]
kind = "excess"
flows = ["one"]
rate = "100kbit"
during = ["6s", "9s"]

[metric."unused.{rate}"]
kind = "unused"
flows = ["one"]
rate = "800kbit"
during = ["6s", "9s"]

[metric."session_cov.{rate}"]
kind = "session-cov"
flows = ["one"]
during = ["6s", "9s"]

[metric."queue_ms.{rate}"]
kind = "queue-ms"
link = "line"

[metric.lowest]
kind = "lowest"
of = ["rate.400", "rate.800"]

[metric.highest]
kind = "highest"
of = ["rate.400", "rate.800"]

[[claim]]
metric = "lowest"
at-least = 0.3

[[claim]]
metric = "rate.{rate}"
at-least = 0.3

[profile.none]
"#;

#[test]
fn a_sweep_gives_the_figures_of_all_its_cases() {
    let scenario = scenario(LANES);
    assert_eq!(scenario.more.len(), 1);
    let ids: Vec<&str> = scenario.claims.iter().map(|said| said.claim.id.as_str()).collect();
    assert_eq!(ids, ["lowest", "rate.800", "rate.400"]);
    let runs = run::all(&scenario, &[0], 1..=2, 2, &|_, _| {}).expect("runs");
    let figures = figures::figures(&scenario, &runs[0]);
    let near = |key: &str, want: f64, within: f64| {
        let figure = figures.get(key).unwrap_or_else(|| panic!("no {key} in {figures:?}"));
        assert!((figure.mean - want).abs() <= within, "{key} {figure:?}, not {want}");
    };
    // 800 kbit/s of frames are 789 of IP, 400 are 394.5; frames are whole
    near("rate.800", 0.789, 0.004);
    near("rate.400", 0.3945, 0.004);
    near("lowest", 0.3945, 0.004);
    near("highest", 0.789, 0.004);
    near("excess.400", 0.2945, 0.004);
    near("unused.400", 1.0 - 0.3945 / 0.8, 0.005);
    near("session_cov.400", 0.0, 0.03);
    // with both under way the line is full (of 400); alone, one leaves it half empty for 4 s
    near("dent_ms.400", 4_000.0, 500.0);
    near("dent_ms.800", 0.0, 0.0);
    // nothing is taken by one who has no more to say
    near("taken.400", 0.0, 0.03);
    // four frames of 10 ms before each that passes, while both are there: three sevenths of it
    let queue = figures.get("queue_ms.800").expect("a queue").mean;
    assert!((10.0..40.0).contains(&queue), "{queue}");
}

#[test]
fn what_a_line_did_before_it_counts_is_not_in_its_figures() {
    let early = LANES.replace("from = \"2s\"\nto = \"9s\"", "from = \"6s\"\nto = \"9s\"");
    let early =
        early.replace("bytes = \"1014b\"\nstop", "bytes = \"1014b\"\nspread = \"1ms\"\nstop");
    let scenario = scenario(&early);
    let runs = run::all(&scenario, &[0], 1..=1, 1, &|_, _| {}).expect("runs");
    let figures = figures::figures(&scenario, &runs[0]);
    // one alone sends less than the line carries: nobody waits
    assert_eq!(figures.get("queue_ms.400").map(|figure| figure.mean), Some(0.0));
}

const SIZED: &str = r#"
[scenario]
run = "{long}"
[size]
long = ["10s", "100s"]
fast = [800, 8000]
[sweep]
rate = ["{fast}", 400]
[node.a]
[node.b]
[link.line]
between = ["a", "b"]
[flow.one]
from = "a"
to = "b"
source = "cbr"
rate = "{rate}kbit"
[metric."rate.{rate}"]
kind = "rate"
flows = ["one"]
[[claim]]
id = "all"
text = "all arrives"
metric = "rate.{fast}"
profile = "none"
at-most = "{fast}"
[profile.none]
"#;

#[test]
fn a_size_stands_everywhere_also_in_what_the_sweep_says() {
    let of = |size| {
        let load: &mut Load<'_> = &mut |_| Err("no such file".to_owned());
        let source = Source::new("scenario.toml", SIZED.to_owned());
        read_sized(source, size, load).expect("text").scenario.expect("is right")
    };
    let name = |scenario: &Scenario| scenario.metrics[0].name.clone();
    let (usual, full) = (of(Size::Usual), of(Size::Full));
    assert!(usual.has_full && full.has_full && !scenario(LANES).has_full);
    assert_eq!((usual.run.ns(), full.run.ns()), (10_000_000_000, 100_000_000_000));
    assert_eq!((&*name(&usual), &*name(&full)), ("rate.800", "rate.8000"));
    assert_eq!(full.more[0].run, full.run);
}

#[test]
fn a_size_without_two_values_or_a_place_is_said() {
    let said = problems(&LANES.replace("[sweep]", "[size]\nlong = \"10s\"\n[sweep]"));
    assert!(
        said[0].starts_with("scenario.toml:9:1 nothing in the scenario says {long}"),
        "{said:?}"
    );
    assert!(said[1].contains("does not say two values"), "{said:?}");
}

#[test]
fn the_same_host_may_be_nearer_and_further_away() {
    let echo = r#"
[scenario]
run = "20s"
[node.a]
[node.b]
[link.line]
between = ["a", "b"]
delay = "9ms"
[flow.all]
from = "a"
to = "b"
source = "echo"
count = 20
away = "4ms"
[metric.least]
kind = "answer-ms"
flows = ["all"]
percent = 0
[metric.most]
kind = "answer-ms"
flows = ["all"]
percent = 100
[profile.none]
"#;
    let scenario = scenario(echo);
    let of = |seed| {
        let run = run::one(&scenario, &scenario.profiles[0], seed).expect("runs");
        let mean = |seen: &run::Seen| {
            let sum: u64 = seen.answers.iter().map(|answer| answer.ns()).sum();
            sum / seen.answers.len() as u64
        };
        run.flows[0].iter().map(mean).collect::<Vec<u64>>()
    };
    let ways = of(1);
    // 18 ms there and back, and 0 to 4 ms more, which stay the same for each; a letter typed while
    // one is under way may wait a little for it
    assert!(ways.iter().all(|way| (18_000_000..23_000_000).contains(way)), "{ways:?}");
    let (least, most) = (ways.iter().min().expect("some"), ways.iter().max().expect("some"));
    assert!(most - least > 2_000_000, "{ways:?}");
    assert_eq!(ways, of(1));
    assert_ne!(ways, of(2));
}

#[test]
fn a_law_may_be_left_out_of_what_is_too_large_for_it() {
    let text = r#"
[scenario]
run = "100ms"
[sweep]
leaves = ["2", "8"]
[sharing]
ask = "fair"
rate = "100mbit"
case = "{leaves}"
tree = { 2 = [2], 8 = [2, 4] }
row = { 2 = 1, 8 = 4 }
load = ["20mbit", "200mbit"]
[metric."total.{leaves}"]
kind = "share"
figure = "total"
[metric.total]
kind = "lowest"
of = ["total.2", "total.8"]
[profile.weir]
law = "weir"
[profile.small]
law = "weir"
leaves = 2
"#;
    let scenario = scenario(text);
    let keys = |profile: usize| {
        let run = run::one(&scenario, &scenario.profiles[profile], 1).expect("runs");
        let figures = figures::figures(&scenario, &[run]);
        figures.iter().map(|(key, figure)| (key.to_owned(), figure.mean)).collect::<Vec<_>>()
    };
    let (all, small) = (keys(0), keys(1));
    assert_eq!(
        all.iter().map(|(key, _)| &**key).collect::<Vec<_>>(),
        ["total.2", "total.8", "total"]
    );
    assert_eq!(small[..], [all[0].clone(), ("total".to_owned(), all[0].1)]);
    // four in a row send 20 each and four 200, so that there is too much: the link is full
    assert!((98.0..102.0).contains(&all[1].1), "{all:?}");
}
