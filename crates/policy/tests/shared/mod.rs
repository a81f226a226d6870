//! Reading policies in tests.

use weir_policy::{Plan, Reading, Source, read};

/// Reads `text`; the table it names is `table`.
pub(crate) fn reading(text: &str, table: &str) -> Reading {
    let mut load = |name: &str| match name {
        "missing.csv" => Err("there is no such file".to_owned()),
        name => Ok(Source::new(name, table)),
    };
    read(Source::new("weir.toml", text), &mut load).expect("tests are text")
}

/// Every problem as `file:line:column severity: what (help)`.
pub(crate) fn problems(text: &str, table: &str) -> Vec<String> {
    let reading = reading(text, table);
    let line = |p: &weir_policy::Problem| {
        let help = if p.help.is_empty() { String::new() } else { format!(" ({})", p.help) };
        format!("{} {}: {}{help}", reading.position(p.place), p.severity, p.what)
    };
    reading.problems.iter().map(line).collect()
}

/// The plan of a policy without faults.
pub(crate) fn plan(text: &str, table: &str) -> Plan {
    let mut reading = reading(text, table);
    assert!(!reading.is_at_fault(), "{:#?}", problems(text, table));
    reading.plans.remove(0)
}

/// A link of 100 Mbit/s down and 20 up, all of it used.
pub(crate) const LINK: &str = r#"[link.office]
lan = "eth1"
wan = "eth2"
down = "100mbit"
up = "20mbit"
margin = { down = "100%" }
"#;
