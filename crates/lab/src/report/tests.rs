use super::*;
use crate::plot::Line;
use crate::result::{Driver, Series, over_seeds};

const EXPECTED: &str = r#"
[paper]
"accuracy.20k" = 0.95

[[claim]]
id = "accurate"
text = "every class gets its rate & no more"
paper = "near 1"
bound = "accuracy.* within 1% of 0.973"

[[claim]]
id = "fair"
text = "sessions share <evenly>"
bound = "fairness.* <= 0.02"
pending = "TCP rate control"

[[claim]]
id = "uncontrolled"
text = "without control the slowest class gets its rate too"
paper = 0.95
bound = "none:accuracy.20k >= 0.95"

[[plot]]
kind = "bars"
title = "How much of its rate each class gets"
of = "accuracy.*"
y = "goodput / rate"

[[plot]]
kind = "lines"
title = "Three sessions share one class"
of = "rate.*"

[[plot]]
kind = "points"
title = "Accuracy over rate"
of = "accuracy.*k"
x = "rate of the class (kbit/s)"
log = "x"

[[plot]]
kind = "steps"
title = "not drawn: there is no such series"
of = "delay.*"
"#;

/// Numbers that look like a run: they are made up.
fn section() -> Section {
    let mut outcome = Outcome::new("survey-basic", Driver::Virtual, 3, "weir");
    for (profile, below) in [("weir", 0.001), ("none", 0.13), ("altq-cbq", 0.06)] {
        let runs: Vec<Vec<(String, f64)>> = (0..3)
            .map(|seed| {
                let classes = ["20k", "40k", "128k", "256k", "1100k"].iter().zip(1..);
                let one = |(class, at): (&&str, i32)| {
                    let moved = below / f64::from(at) * (1.0 + 0.3 * f64::from(seed));
                    (format!("accuracy.{class}"), 0.973 - moved)
                };
                classes.map(one).chain([("fairness.20k".to_owned(), below)]).collect()
            })
            .collect();
        outcome.set(profile, over_seeds(&runs));
    }
    for (name, share) in [("voice", 30.0), ("bulk 1", 50.0), ("bulk 2", 45.0)] {
        let rate = |at: i32| share + 8.0 * (f64::from(at) * share / 40.0).sin();
        let points = (0..=240).map(|at| (f64::from(at), rate(at))).collect();
        let series = Series { x: "time (s)".into(), y: "rate (kbit/s)".into(), points };
        outcome.series.set(format!("rate.{name}"), series);
    }
    let expected = Expected::read(EXPECTED).unwrap();
    outcome.judge(&expected.claims, None);
    Section::of(&outcome, &expected, "The basic test", "Five classes on a line.\n\nFour each.")
}

fn report() -> Report {
    let line = |name: &str, slow: i32| {
        let points = (0..=20).map(|at| (20.0 + f64::from(at * slow), f64::from(at) / 20.0));
        Line { name: name.to_owned(), points: points.collect() }
    };
    let plot = Plot {
        title: "One-way delay of a call".into(),
        x: crate::plot::Axis::new("delay (ms)"),
        y: crate::plot::Axis::new("share of packets"),
        shape: crate::plot::Shape::Steps(vec![line("weir", 2), line("none", 9), line("red", 6)]),
    };
    let delays = Section {
        id: "delays".into(),
        title: "How long packets take".into(),
        blocks: vec![Block::Plot(plot)],
    };
    Report {
        title: "A report <of> tests".into(),
        text: "Why.".into(),
        sections: vec![section(), delays],
    }
}

#[test]
fn the_page_stands_alone_and_says_the_same_twice() {
    let page = report().html();
    assert_eq!(page, report().html());
    for outside in ["<script", "http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    for text in ["A report &lt;of&gt; tests", "rate &amp; no more", "does not hold", "pending"] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn every_element_is_closed() {
    let page = report().html();
    for name in ["section", "figure", "svg", "table", "tr", "td", "th", "ul", "li", "text", "main"]
    {
        let opened =
            page.matches(&format!("<{name}>")).count() + page.matches(&format!("<{name} ")).count();
        assert_eq!(opened, page.matches(&format!("</{name}>")).count(), "{name}");
    }
}

#[test]
fn a_section_has_its_claims_then_plots_then_all_figures() {
    let kinds: Vec<&str> = section()
        .blocks
        .iter()
        .map(|block| match block {
            Block::Text(_) => "text",
            Block::Claims(_) => "claims",
            Block::Plot(_) => "plot",
            Block::Table(..) => "table",
        })
        .collect();
    assert_eq!(kinds, ["text", "claims", "plot", "plot", "plot", "table"]);
}

#[test]
fn the_body_of_a_page() {
    let page = Report { sections: vec![section()], ..report() }.html();
    let body = page.split_once("<body>").unwrap().1;
    // plots have snapshots of their own
    let shown: String = body
        .split("<svg")
        .map(|part| part.split_once("</svg>\n").map_or(part, |(_, after)| after))
        .collect();
    insta::assert_snapshot!(shown);
}

#[test]
fn many_profiles_stand_in_several_tables() {
    let mut outcome = Outcome::new("x", Driver::Virtual, 1, "weir");
    (0..13).for_each(|at| outcome.set(&format!("p{at}"), over_seeds(&[vec![("a", 1.0)]])));
    let section = Section::of(&outcome, &Expected::default(), "", "");
    let tables = section.blocks.iter().filter(|block| matches!(block, Block::Table(..)));
    assert_eq!(tables.count(), 3);
}

#[test]
fn a_drawing_shows_what_it_names() {
    let plots = |profiles: &str| {
        let text = format!(
            "[paper]\n\"none:a.x\" = 5\n\"none:a.y\" = \"much\"\n\
            [[plot]]\nkind = \"bars\"\ntitle = \"t\"\nof = \"a.*\"\nprofiles = [{profiles}]\n"
        );
        let mut outcome = Outcome::new("x", Driver::Virtual, 1, "weir");
        outcome.set("weir", over_seeds(&[vec![("a.x", 1.0), ("b.x", 2.0)]]));
        outcome.set("none", over_seeds(&[vec![("a.y", 3.0), ("a.x", 4.0)]]));
        let expected = Expected::read(&text).unwrap();
        expected.plots[0].of(&outcome, &expected)
    };
    let Some(crate::plot::Shape::Bars { groups, sets }) = plots("").map(|plot| plot.shape) else {
        panic!("bars were asked for");
    };
    let values = |at: usize| sets[at].values.iter().map(|v| v.map(|v| v.mean)).collect::<Vec<_>>();
    assert_eq!((groups, values(0)), (vec!["x".into(), "y".into()], vec![Some(1.0), None]));
    assert_eq!(values(1), [Some(4.0), Some(3.0)]);
    // words cannot be drawn
    assert_eq!((sets[2].name.as_str(), values(2)), ("none, paper", vec![Some(5.0), None]));
    assert!(plots("\"other\"").is_none());
    let error = Expected::read("[[plot]]\nkind = \"pie\"\ntitle = \"\"\nof = \"\"\n").unwrap_err();
    assert!(error.contains("pie") && error.contains("bars"), "{error}");
}
