//! `weir tree`: the rates of each class, from two responses one second apart.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::time::Duration;

use weir_control::{Count, Direction, Mode, Request, Row, RowKind, Tree};
use weir_lab::{Grid, grouped};
use weir_packet::Reason;
use weir_units::{Bytes, Rate, Span};

use super::TreeArgs;
use super::line::Line;
use crate::out::Out;
use crate::replay;

/// Width of the table where standard output is not a terminal.
const WIDTH: usize = 132;

/// The class is cut to this width before a column is omitted: customers are known by their ids.
const LEAST_NAME: usize = 28;

const HEAD: [&str; 12] = [
    "class",
    "",
    "rate",
    "ceiling",
    "guaranteed",
    "backlog",
    "delay",
    "max delay",
    "drop/s",
    "mark/s",
    "retrans",
    "reorder",
];

/// What the columns mean, below `weir tree --help`.
pub(super) const LEGEND: &str = "\
Columns, with a row per direction (down: towards the LAN, up: towards the WAN):
  rate        sent in the last second
  ceiling     the rate up to which the class may borrow
  guaranteed  the rate that the class gets whenever it has enough to send
  backlog     queued now
  delay       mean queueing delay of the frames sent in the last second
  max delay   maximum queueing delay of a frame since weir was started
  drop/s      frames dropped in the last second; the reasons follow below the table
  mark/s      frames sent with an ECN congestion mark in the last second
  retrans     frames of TCP data that weir had forwarded before, since weir was started
  reorder     frames of TCP data that fill a gap in the sequence, since weir was started

If the terminal is too narrow for all columns, the last ones are omitted.";

pub(super) fn run(args: &TreeArgs) -> Result<ExitCode, ExitCode> {
    let mut line = Line::open(&args.whom)?;
    let (path, filter) = (args.path.clone(), args.filter.clone());
    let request = Request::Tree { all: args.all, path, filter };
    let sort = args.sort.or(args.top.map(|_| Sort::Rate));
    let mut before: Tree = line.ask(&request)?;
    let clears = args.watch && !args.json && std::io::stdout().is_terminal();
    let mut out = Out::new();
    loop {
        #[expect(clippy::disallowed_methods, reason = "a rate is what happens in a second")]
        std::thread::sleep(Duration::from_secs(1));
        let mut after: Tree = line.ask(&request)?;
        with_rates(&before, &mut after);
        if let Some(sort) = sort {
            sorted(&mut after, sort, args.top.map_or(usize::MAX, |top| top as usize));
        }
        match (args.json, args.watch) {
            (true, true) => out.line(weir_control::line(&Ok(&after)).trim_end()),
            (true, false) => out.line(&weir_control::pretty(&after)),
            _ => {
                out.text(if clears { "\x1b[H\x1b[2J" } else { "" });
                lines(&after, width(), sort.is_some()).iter().for_each(|line| out.line(line));
            }
        }
        out.flush();
        if !args.watch || !out.is_read() {
            return Ok(out.end());
        }
        if sort.is_some() {
            // of another order, and not all: what the next second is compared with is asked anew
            before = line.ask(&request)?;
            continue;
        }
        before = after;
    }
}

/// What the leaves are sorted by: the higher of the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sort {
    /// Sent in the last second
    Rate,
    /// Queued now
    Backlog,
    /// Mean queueing delay in the last second
    Delay,
    /// Maximum queueing delay since the start
    MaxDelay,
    /// Dropped in the last second
    Drops,
}

impl Sort {
    fn of(self, direction: &Direction) -> u64 {
        let now = direction.now.as_ref();
        let counters = &direction.counters;
        match self {
            Sort::Rate => now.map_or(0, |now| now.bits),
            Sort::Backlog => counters.backlog.bytes,
            Sort::Delay => now.filter(|now| now.frames > 0).map_or(0, |now| now.delay_ns_mean),
            Sort::MaxDelay => counters.delay_ns_max,
            Sort::Drops => now.map_or(0, |now| now.dropped.iter().map(|(_, n)| *n).sum()),
        }
    }
}

/// Only the leaves, the highest first, and at most `top` of them.
fn sorted(tree: &mut Tree, sort: Sort, top: usize) {
    tree.rows.retain(|row| matches!(row.kind, RowKind::Leaf | RowKind::Made));
    let value = |row: &Row| sort.of(&row.down).max(sort.of(&row.up));
    tree.rows.sort_by_key(|row| std::cmp::Reverse(value(row)));
    let more = tree.rows.len().saturating_sub(top);
    tree.rows.truncate(top);
    tree.left_out += more;
}

/// The width of the terminal.
fn width() -> usize {
    match rustix::termios::tcgetwinsize(std::io::stdout()) {
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col),
        _ => WIDTH,
    }
}

/// Adds to each class, as `now`, what it sent and dropped per second between two responses.
fn with_rates(before: &Tree, after: &mut Tree) {
    let span = after.time_ns.saturating_sub(before.time_ns);
    let known: BTreeMap<&str, &Row> =
        before.rows.iter().map(|row| (row.class.as_str(), row)).collect();
    // a class that was silent before is not in the answer before
    let silent = Row::default();
    for row in &mut after.rows {
        let was = known.get(row.class.as_str()).copied().unwrap_or(&silent);
        row.down.now = Some(row.down.since(&was.down.counters, span));
        row.up.now = Some(row.up.since(&was.up.counters, span));
    }
}

/// The response as a table with two rows per class, no wider than `width` if possible.
fn lines(tree: &Tree, width: usize, is_flat: bool) -> Vec<String> {
    let mut table = Grid::new(2, &HEAD);
    let mut names = Names::default();
    for row in &tree.rows {
        let name = if is_flat { row.class.clone() } else { names.of(row, &tree.link) };
        for ((way, direction), shown) in row.directions().into_iter().zip([name.as_str(), ""]) {
            let mut cells = vec![shown.to_owned(), way.to_owned()];
            cells.extend(figures(direction));
            table.rows.push(cells);
        }
    }
    fit(&mut table, width);
    let mut lines = table.lines();
    if tree.mode == Mode::Observe {
        lines.push("the link is observing: it does not enforce rates".to_owned());
    }
    lines.extend(drops(tree));
    for asker in &tree.askers {
        let (class, who) = (&asker.class, &asker.who);
        lines.push(format!(
            "{class}: {who} waits for a leaf of its own; add it to \"known\" to approve it"
        ));
    }
    let mut more = |count: usize, what: &str| {
        lines.extend((count > 0).then(|| format!("({} {what})", grouped(count as u64))));
    };
    more(tree.silent, "classes never got a frame; --all shows them");
    more(tree.left_out, "further classes are omitted");
    lines
}

fn figures(direction: &Direction) -> Vec<String> {
    let counters = &direction.counters;
    let now = direction.now.clone().unwrap_or_default();
    let unless_zero = |count: u64, shown: fn(u64) -> String| match count {
        0 => "-".to_owned(),
        count => shown(count),
    };
    let ms = |ns: u64| format!("{}.{}ms", ns / 1_000_000, ns / 100_000 % 10);
    let delay = |frames: u64, ns: u64| if frames == 0 { "-".to_owned() } else { ms(ns) };
    let some = |Count { frames, .. }: Count| unless_zero(frames, grouped);
    vec![
        unless_zero(now.bits, short),
        direction.ceil.map_or("-".to_owned(), short),
        unless_zero(direction.rate, short),
        unless_zero(counters.backlog.bytes, |bytes| Bytes::new(bytes).to_string()),
        delay(now.frames, now.delay_ns_mean),
        delay(counters.sent.frames, counters.delay_ns_max),
        unless_zero(now.dropped.iter().map(|(_, frames)| frames).sum(), grouped),
        unless_zero(now.marked, grouped),
        some(counters.retransmitted),
        some(counters.reordered),
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

/// What each leaf dropped in the last second, then what the reasons mean, each one once.
fn drops(tree: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    let mut reasons = BTreeSet::new();
    for row in tree.rows.iter().filter(|row| row.kind != RowKind::Class) {
        for (way, direction) in row.directions() {
            for (name, frames) in direction.now.iter().flat_map(|now| now.dropped.iter()) {
                let (class, frames) = (&row.class, grouped(*frames));
                lines.push(format!("{class} {way}: {frames} frames/s dropped, {name}"));
                reasons.extend(Reason::all().find(|reason| reason.name() == name));
            }
        }
    }
    let meanings = reasons.iter().map(|reason| format!("{}: {}", reason.name(), reason.meaning()));
    lines.extend(meanings);
    lines
}

/// Cuts off the names of classes until the table fits, and then omits columns from the right.
fn fit(table: &mut Grid, width: usize) {
    loop {
        let widest = table.lines().iter().map(|line| line.chars().count()).max().unwrap_or(0);
        let over = widest.saturating_sub(width);
        let first = |row: &Vec<String>| row.first().map_or(0, |cell| cell.chars().count());
        let name = table.rows.iter().map(first).max().unwrap_or(0);
        if over == 0 {
            return;
        }
        if name > LEAST_NAME && (name - LEAST_NAME >= over || table.head.len() <= 3) {
            return cut(table, name.saturating_sub(over).max(LEAST_NAME));
        }
        if table.head.len() <= 3 {
            return;
        }
        table.head.pop();
        table.rows.iter_mut().for_each(|row| drop(row.pop()));
    }
}

/// Cuts names of classes that are longer than `room`, behind their indentation: names that begin
/// alike differ at their end.
fn cut(table: &mut Grid, room: usize) {
    for cell in table.rows.iter_mut().filter_map(|row| row.first_mut()) {
        if cell.chars().count() > room {
            let indent = cell.chars().take_while(|c| *c == ' ').count().min(room / 2);
            let skip = cell.chars().count() + 2 + indent - room;
            let kept: String = cell.chars().skip(skip).collect();
            *cell = format!("{}..{kept}", " ".repeat(indent));
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
    fn of(&mut self, row: &Row, link: &str) -> String {
        let (depth, path) = (usize::from(row.depth), row.class.as_str());
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

    fn row(class: &str, depth: u8, bytes: u64, dropped: u64) -> Row {
        let mut way =
            Direction { rate: 2_000_000, ceil: Some(100_000_000), ..Direction::default() };
        way.counters.sent = Count { frames: bytes / 100, bytes };
        way.counters.backlog = Count { frames: 2, bytes: 3_000 };
        way.counters.delay_ns_sum = bytes * 10_000;
        way.counters.delay_ns_max = 12_340_000;
        let count = Count { frames: dropped, bytes: dropped };
        way.counters.dropped = [("crowded", count)].into_iter().collect();
        Row { class: class.to_owned(), depth, kind: RowKind::Leaf, down: way.clone(), up: way }
    }

    fn tree(at: u64, rows: &[Row]) -> Tree {
        let time_ns = at * 1_000_000_000;
        Tree { link: "l".to_owned(), time_ns, rows: rows.to_vec(), silent: 3, ..Tree::default() }
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
        let now = after.rows[0].down.now.as_ref().unwrap();
        assert_eq!((now.bits, now.frames), (1_000_000, 1_250));
        assert_eq!((now.delay_ns_mean, now.dropped.get("crowded")), (1_000_000, Some(&4)));
        let lines = lines(&after, WIDTH, false);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{lines:#?}");
        let head = "rate  ceiling  guaranteed  backlog  delay  max delay  drop/s  mark/s  retrans  \
                    reorder";
        let figures = "1mbit  100mbit       2mbit      3kb  1.0ms     12.3ms       4       -  \
                       \x20     -        -";
        assert!(lines[0].starts_with("class") && lines[0].ends_with(head), "{lines:#?}");
        assert!(lines[1].starts_with("link l") && lines[1].ends_with(figures), "{lines:#?}");
        assert!(lines[2].starts_with("   ") && lines[2].ends_with(figures), "{lines:#?}");
        let lines = lines.join("\n");
        assert!(lines.contains("\n      10.0.0.0/24  ") && lines.contains("\n    .."), "{lines}");
        assert!(lines.contains("/a up: 4 frames/s dropped, crowded\n"), "{lines}");
        assert_eq!(lines.matches("\ncrowded: all queues").count(), 1, "{lines}");
        assert!(lines.contains("(3 classes never got a frame"), "{lines}");
    }
    #[test]
    fn the_busiest_leaves_come_first_with_their_whole_paths() {
        let class = Row { kind: RowKind::Class, ..row("/a", 1, 900_000, 0) };
        let rows =
            [row("/", 0, 0, 0), class, row("/a/C1001", 2, 5_000, 9), row("/a/C1002", 2, 70_000, 0)];
        let top = |sort, count| {
            let mut after = tree(2, &rows);
            with_rates(&tree(1, &[]), &mut after);
            sorted(&mut after, sort, count);
            let names: Vec<String> = after.rows.iter().map(|row| row.class.clone()).collect();
            (names.join(" "), after)
        };
        assert_eq!(top(Sort::Rate, 1).0, "/a/C1002");
        assert_eq!(top(Sort::Rate, 9).0, "/a/C1002 /a/C1001 /");
        assert_eq!(top(Sort::Drops, 1).0, "/a/C1001");
        let lines = lines(&top(Sort::Rate, 1).1, 80, true);
        assert!(lines[1].starts_with("/a/C1002  down"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("further classes are omitted")));
    }

    #[test]
    fn names_that_begin_alike_are_told_apart_in_a_narrow_terminal() {
        let rows: Vec<Row> = ["C1001", "C1002"]
            .map(|id| row(&format!("/sites/north/tower-with-a-long-name/{id}"), 4, 1, 0))
            .into();
        for width in [40, 60, 80] {
            let lines = lines(&tree(2, &rows), width, true);
            assert!(lines[1].contains("C1001") && lines[3].contains("C1002"), "{lines:#?}");
        }
    }

    #[test]
    fn the_table_is_no_wider_than_the_terminal() {
        let deep = "/a/very-long-name-of-a-customer-who-has-many/10.0.0.0/24";
        let mut after = tree(2, &[row("/", 0, 251_000, 0), row(deep, 1, 250_000, 0)]);
        with_rates(&tree(1, &[]), &mut after);
        for (width, last) in [(200, "reorder"), (132, "reorder"), (100, "drop/s"), (80, "delay")] {
            let lines = lines(&after, width, false);
            let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width && lines[0].ends_with(last), "{width}: {lines:#?}");
        }
        assert!(lines(&after, 10, false)[0].starts_with("class"));
        let shown = HEAD.iter().filter(|name| !["class", ""].contains(*name));
        assert!(shown.into_iter().all(|name| LEGEND.contains(&format!("\n  {name} "))));
    }
}
