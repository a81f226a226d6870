//! What operators write: policies and tables of subscribers.

use std::collections::BTreeSet;

use weir_policy::{Reading, Severity, Source, diff, format, held_rows, read, read_over};

/// Any text is read to its end: problems lie within the file, a policy without errors has a plan
/// whose numbers hold together, and it can be compared, written canonically and read again.
pub fn policy(data: &[u8]) {
    let text = match std::str::from_utf8(data) {
        Ok(text) => text,
        Err(_) => {
            assert!(reading(data, b"").is_none());
            return;
        }
    };
    let table = b"id,parent,addresses,down_ceil\na,,10.0.0.1,1mbit\nb,x,10.0.0.2;2001:db8::/56,\n";
    let Some(first) = reading(data, table) else { return };
    check(&first);
    if let Ok(neat) = format(text)
        && let Some(second) = reading(neat.as_bytes(), table)
        && !first.plans.is_empty()
    {
        assert!(!second.plans.is_empty(), "the canonical form is at fault:\n{neat}");
        let changes = diff(&first.plans, &second.plans);
        assert!(changes.is_empty(), "the canonical form means something else: {changes:?}");
        assert_eq!(format(&neat).as_deref(), Ok(neat.as_str()), "canonical form of canonical form");
    }
}

/// Any table is read: bad rows are skipped, good ones count.
pub fn subscribers(data: &[u8]) {
    let text = b"[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"9tbit\"\nup = \"9tbit\"\n\
        [class.\"/s\"]\n[class.\"/s/t\"]\n[subscribers]\nfile = \"t\"\nunder = \"/s\"\n";
    if let Some(reading) = reading(text, data) {
        check(&reading);
        held(text, data, &reading);
        let rows = reading.problems.iter().filter_map(|p| p.rows.as_ref());
        let said: usize = rows.map(|rows| rows.count).sum();
        let counted = reading.policy.subscribers.as_ref().map_or(0, |s| s.skipped.count());
        assert_eq!(said, counted, "a row was skipped and not said");
        let kinds = reading.problems.iter().filter(|p| p.severity == Severity::Skipped);
        assert!(kinds.count() <= counted);
    }
}

/// Where rows hold that were good before, what is held is a file that says the same again.
fn held(text: &[u8], table: &[u8], before: &Reading) {
    let rows = before.policy.subscribers.as_ref().map_or(&[][..], |table| &table.rows);
    // the same rows, each second line with a mistake
    let mut bad = Vec::new();
    for (line, at) in table.split(|&byte| byte == b'\n').zip(0..) {
        bad.extend_from_slice(line);
        bad.extend_from_slice(if at % 2 == 1 { b"%\n" } else { b"\n" });
    }
    let over = |rows: &[_]| {
        read_over(Source::new("p", text), &mut |name| Ok(Source::new(name, &bad[..])), rows).ok()
    };
    let Some(after) = over(rows) else { return };
    check(&after);
    let Some(table) = &after.policy.subscribers else { return };
    let held = table.rows.iter().filter(|row| row.place.file == 2).count();
    assert!(held <= table.skipped.held() && table.skipped.held() <= table.skipped.count());
    let kept = after.sources.get(2).map_or_else(Vec::new, held_rows);
    assert!(kept.len() >= held, "what is held cannot be read again");
    if let Some(again) = over(&kept) {
        assert_eq!(again.plans, after.plans, "what was held is not what holds");
    }
}

fn reading(text: &[u8], table: &[u8]) -> Option<Reading> {
    read(Source::new("p", text), &mut |name| Ok(Source::new(name, table))).ok()
}

fn check(reading: &Reading) {
    for problem in &reading.problems {
        let source = &reading.sources[usize::from(problem.place.file)];
        assert!(problem.place.start <= problem.place.end && !problem.what.is_empty());
        assert!(problem.place.end as usize <= source.bytes().len() + 1, "{problem:?}");
        let _ = reading.position(problem.place);
    }
    for plan in &reading.plans {
        let paths: BTreeSet<&str> = plan.nodes.iter().map(|node| &*node.path).collect();
        assert_eq!(paths.len(), plan.nodes.len(), "two nodes have one path");
        for (node, id) in plan.nodes.iter().zip(0..) {
            assert!(node.parent < id || id == 0, "a parent comes first");
            for (_, shares) in node.shares.named() {
                assert!(shares.rate <= shares.ceil && shares.weight > 0, "{}", node.path);
            }
        }
        for asked in &plan.asked {
            assert!((asked.node as usize) < plan.nodes.len() && !asked.rules.is_empty());
            assert!(asked.within.is_none_or(|w| (w as usize) < plan.asked.len()));
        }
        assert!((plan.rest as usize) < plan.nodes.len());
    }
}
