//! `weir tree`: what each class gets now, by what it was told at two moments a second apart.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use serde_json::{Value, json};
use weir_lab::{Grid, grouped};
use weir_packet::Reason;
use weir_units::{Bytes, Rate, Span};

use super::line::Line;
use super::{TreeArgs, list, number, text};
use crate::out::Out;
use crate::replay;
use crate::run::protocol::Request;

/// Columns of a terminal that are used.
const WIDTH: usize = 100;

pub(super) fn run(args: &TreeArgs) -> Result<ExitCode, ExitCode> {
    let mut line = Line::open(&args.whom)?;
    let request = Request::Tree { all: args.all };
    let mut before = line.ask(&request)?;
    let clears = args.watch && !args.json && std::io::stdout().is_terminal();
    let mut out = Out::new();
    loop {
        #[expect(clippy::disallowed_methods, reason = "a rate is what happens in a second")]
        std::thread::sleep(Duration::from_secs(1));
        let mut after = line.ask(&request)?;
        with_rates(&before, &mut after);
        match (args.json, args.watch) {
            (true, true) => out.line(&after.to_string()),
            (true, false) => out.line(&format!("{after:#}")),
            _ => {
                out.text(if clears { "\x1b[H\x1b[2J" } else { "" });
                lines(&after).iter().for_each(|line| out.line(line));
            }
        }
        out.flush();
        if !args.watch || !out.is_read() {
            return Ok(out.end());
        }
        before = after;
    }
}

/// Adds to each class, as `now`, what it got and lost per second between two answers.
fn with_rates(before: &Value, after: &mut Value) {
    let span = number(after, "/time_ns").saturating_sub(number(before, "/time_ns"));
    let known: BTreeMap<&str, &Value> =
        list(before, "/rows").iter().map(|row| (text(row, "/class"), row)).collect();
    let rows = after.pointer_mut("/rows").and_then(Value::as_array_mut).into_iter().flatten();
    for row in rows {
        // a class that was silent before is not in the answer before
        let was = known.get(text(row, "/class")).copied().unwrap_or(&Value::Null);
        for way in ["down", "up"] {
            let now = rates(&was[way], &row[way], span);
            row[way]["now"] = now;
        }
    }
}

fn rates(was: &Value, is: &Value, span: u64) -> Value {
    let more = |pointer: &str| number(is, pointer).saturating_sub(number(was, pointer));
    let per_second = |count: u64| {
        let count = u128::from(count) * 1_000_000_000 / u128::from(span.max(1));
        u64::try_from(count).unwrap_or(u64::MAX)
    };
    let (frames, delay) = (more("/sent/frames"), more("/delay_ns_sum"));
    let dropped: serde_json::Map<String, Value> = Reason::all()
        .map(|reason| (reason.name(), more(&format!("/dropped/{}/frames", reason.name()))))
        .filter(|(_, frames)| *frames > 0)
        .map(|(name, frames)| (name.to_owned(), Value::from(per_second(frames))))
        .collect();
    json!({
        "bits": per_second(more("/sent/bytes").saturating_mul(8)),
        "frames": per_second(frames),
        "marked": per_second(more("/marked/frames")),
        "dropped": dropped,
        "delay_ns_mean": delay / frames.max(1),
    })
}

/// The answer as a table of two rows a class.
fn lines(tree: &Value) -> Vec<String> {
    let head = [
        "class", "", "now", "at most", "sure", "waits", "delay ms", "most", "drop/s", "mark/s",
        "again", "late",
    ];
    let mut table = Grid::new(2, &head);
    let mut names = Names::default();
    for row in list(tree, "/rows") {
        let name = names.of(row, text(tree, "/link"));
        for (way, shown) in [("down", name.as_str()), ("up", "")] {
            let mut cells = vec![shown.to_owned(), way.to_owned()];
            cells.extend(figures(&row[way]));
            table.rows.push(cells);
        }
    }
    fit(&mut table);
    let mut lines = table.lines();
    if text(tree, "/mode") == "observe" {
        lines.push("the link only observes: nothing is held to its rates".to_owned());
    }
    for row in list(tree, "/rows").iter().filter(|row| text(row, "/kind") != "class") {
        lines.extend(["down", "up"].iter().flat_map(|way| drops(row, way)));
    }
    for asker in list(tree, "/askers") {
        let (class, who) = (text(asker, "/class"), text(asker, "/who"));
        lines.push(format!(
            "{class}: {who} asks for a leaf; add it to \"known\" to let it have one"
        ));
    }
    let mut more = |count: u64, what: &str| {
        lines.extend((count > 0).then(|| format!("({} {what})", grouped(count))));
    };
    more(number(tree, "/silent"), "classes never got a frame; --all shows them");
    more(number(tree, "/left_out"), "more are left out");
    lines
}

fn figures(way: &Value) -> Vec<String> {
    let shown = |bits: u64| if bits == 0 { "-".to_owned() } else { short(bits) };
    let ms = |ns: u64| format!("{}.{}", ns / 1_000_000, ns / 100_000 % 10);
    let moved = number(way, "/sent/frames") > 0;
    let some = |count: u64| if count == 0 { "-".to_owned() } else { grouped(count) };
    let dropped = way.pointer("/now/dropped").and_then(Value::as_object);
    let dropped = dropped.map_or(0, |d| d.values().filter_map(Value::as_u64).sum());
    vec![
        shown(number(way, "/now/bits")),
        way["ceil"].as_u64().map_or("-".to_owned(), short),
        shown(number(way, "/rate")),
        match number(way, "/waiting/bytes") {
            0 => "-".to_owned(),
            bytes => Bytes::new(bytes).to_string(),
        },
        match number(way, "/now/frames") {
            0 => "-".to_owned(),
            _ => ms(number(way, "/now/delay_ns_mean")),
        },
        if moved { ms(number(way, "/delay_ns_max")) } else { "-".to_owned() },
        some(dropped),
        some(number(way, "/now/marked")),
        some(number(way, "/again/frames")),
        some(number(way, "/late/frames")),
    ]
}

/// A rate to three digits.
fn short(bits: u64) -> String {
    if bits < 8 {
        Rate::from_bps(bits).to_string()
    } else {
        replay::rate(bits / 8, Span::from_secs(1))
    }
}

/// What a leaf lost in the last second, and why.
fn drops<'r>(row: &'r Value, way: &'r str) -> impl Iterator<Item = String> + 'r {
    let dropped = row[way].pointer("/now/dropped").and_then(Value::as_object);
    dropped.into_iter().flatten().map(move |(name, frames)| {
        let reason = Reason::all().find(|reason| reason.name() == name);
        format!(
            "{} {way}: {} frames/s dropped, {name}: {}",
            text(row, "/class"),
            grouped(frames.as_u64().unwrap_or(0)),
            reason.map_or("", Reason::meaning)
        )
    })
}

/// Shortens the first column until the table fits.
fn fit(table: &mut Grid) {
    let widest = table.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let first = |row: &Vec<String>| row.first().map_or(0, |cell| cell.chars().count());
    let name = table.rows.iter().map(first).max().unwrap_or(0);
    let Some(over) = widest.checked_sub(WIDTH).filter(|over| *over > 0) else { return };
    let room = name.saturating_sub(over).max(12);
    for row in &mut table.rows {
        let cell = &mut row[0];
        if cell.chars().count() > room {
            let kept: String = cell.chars().take(room - 2).collect();
            *cell = format!("{kept}..");
        }
    }
}

/// What a class is called below the one above it.
#[derive(Default)]
struct Names {
    /// The paths of those above, by their depth.
    above: Vec<String>,
}

impl Names {
    fn of(&mut self, row: &Value, link: &str) -> String {
        let depth = usize::try_from(number(row, "/depth")).unwrap_or(0);
        let path = text(row, "/class");
        self.above.truncate(depth);
        let above = self.above.last().map_or("", |above| above.trim_end_matches('/'));
        let own = path.strip_prefix(above).unwrap_or(path).trim_start_matches('/');
        let name = if depth == 0 { format!("link {link}") } else { own.to_owned() };
        // where one above was left out as silent, the depth is still its own
        self.above.resize(depth, above.to_owned());
        self.above.push(path.to_owned());
        format!("{}{name}", "  ".repeat(depth))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str, depth: u64, bytes: u64, dropped: u64) -> Value {
        let way = json!({
            "rate": 2_000_000, "ceil": 100_000_000,
            "sent": { "frames": bytes / 100, "bytes": bytes },
            "waiting": { "frames": 2, "bytes": 3_000 }, "marked": { "frames": 0, "bytes": 0 },
            "delay_ns_sum": bytes * 10_000, "delay_ns_max": 12_340_000,
            "dropped": { "crowded": { "frames": dropped, "bytes": dropped } },
        });
        json!({ "class": class, "depth": depth, "kind": "leaf", "down": way, "up": way })
    }

    fn tree(at: u64, rows: &[Value]) -> Value {
        json!({ "link": "l", "mode": "shape", "time_ns": at * 1_000_000_000, "rows": rows,
                "silent": 3, "left_out": 0 })
    }

    #[test]
    fn a_rate_is_what_came_in_between() {
        let deep = "/a/very-long-name-of-a-customer-who-has-many/10.0.0.0/24";
        let before = tree(1, &[row("/", 0, 1_000, 0)]);
        let mut after = tree(
            3,
            &[
                row("/", 0, 251_000, 8),
                row("/a", 1, 250_000, 8),
                row("/a/very-long-name-of-a-customer-who-has-many", 2, 250_000, 0),
                row(deep, 3, 250_000, 0),
            ],
        );
        with_rates(&before, &mut after);
        let now = &after["rows"][0]["down"]["now"];
        assert_eq!((now["bits"].as_u64(), now["frames"].as_u64()), (Some(1_000_000), Some(1_250)));
        assert_eq!(
            (&now["delay_ns_mean"], &now["dropped"]["crowded"]),
            (&json!(1_000_000), &json!(4))
        );
        let lines = lines(&after);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        let figures = "1mbit  100mbit  2mbit    3kb       1.0  12.3       4       -      -     -";
        let head = "now  at most   sure  waits  delay ms  most  drop/s  mark/s  again  late";
        assert!(lines[0].starts_with("class") && lines[0].ends_with(head), "{lines:#?}");
        assert!(lines[1].starts_with("link l") && lines[1].ends_with(figures), "{lines:#?}");
        assert!(lines[2].starts_with("   ") && lines[2].ends_with(figures), "{lines:#?}");
        let lines = lines.join("\n");
        assert!(
            lines.contains("\n      10.0.0.0/24  ") && lines.contains("\n    very-long-"),
            "{lines}"
        );
        assert!(lines.contains("/a up: 4 frames/s dropped, crowded: all queues"), "{lines}");
        assert!(lines.contains("(3 classes never got a frame"), "{lines}");
    }
}
