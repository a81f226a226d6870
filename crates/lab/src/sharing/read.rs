//! The words of `[sharing]`, and of a profile's `law`.

use weir_policy::reader::{Entry, Table};
use weir_policy::{Position, Problems};
use weir_share::{LINK, Node};
use weir_units::{Rate, Span};

use super::words::{ASKS, ENGINES, LAWS, Said, pairs};
use super::{Enforce, Gaps, Load, MILLION, Scale, Sharing, Told, bits, whole};
use crate::scenario::figure;

const WORDS: [&str; 15] = [
    "ask", "case", "rate", "bytes", "unit", "tree", "weights", "load", "row", "gaps", "jitter",
    "begins", "lasts", "peaks", "floors",
];
const SPAN: &str = "a time as in \"20ms\" or \"60s\"";
const RATE: &str = "a rate as in \"10gbit\"";
/// What a law may be told of a rate or a weight, as a part of what is right.
const PARTS: std::ops::RangeInclusive<f64> = 0.01..=100.0;
/// More leaves than an experiment has.
const LEAVES: usize = 1 << 16;

pub(crate) fn read(entry: Entry<'_>, run: Span, problems: &mut Problems) -> Option<Sharing> {
    let mut table = entry.table("[sharing]", problems)?;
    let ask = table.take("ask").and_then(|e| e.word("ask", &pairs(&ASKS), problems));
    let rate = table.take("rate").and_then(|e| e.read::<Rate>("rate", RATE, problems));
    let span = |word: &str, table: &mut Table<'_>, problems: &mut Problems| {
        table.take(word).and_then(|e| e.read::<Span>(word, SPAN, problems))
    };
    let unit = span("unit", &mut table, problems).unwrap_or(run);
    let begins = span("begins", &mut table, problems).unwrap_or(Span::ZERO);
    let lasts = span("lasts", &mut table, problems).unwrap_or(run);
    let jitter = table.take("jitter").and_then(|e| e.number("jitter", 0..=99, problems));
    let jitter = u32::try_from(jitter.unwrap_or(20)).unwrap_or(20);
    let all = [
        ("cbr", Gaps::Jitter(0.0)),
        ("jitter", Gaps::Jitter(f64::from(jitter) / 100.0)),
        ("poisson", Gaps::Poisson),
    ];
    let gaps = table.take("gaps").and_then(|e| e.word("gaps", &all, problems));
    let gaps = gaps.unwrap_or(all[1].1);
    let case = table.take("case").and_then(|e| e.text("case", "a word", problems)).unwrap_or("");
    let mut number = |word: &str, most: u64, problems: &mut Problems| {
        let said = chosen(table.take(word), case, problems);
        said.and_then(|e| e.number(word, 1..=most, problems))
    };
    let bytes = number("bytes", 9_000, problems).unwrap_or(1_024);
    let row = number("row", LEAVES as u64, problems).unwrap_or(1);
    let tree_words = chosen(table.take("tree"), case, problems);
    let widths = numbers(tree_words, "tree", problems);
    let weights = chosen(table.take("weights"), case, problems);
    let weights = weights.map_or_else(Vec::new, |e| e.list());
    let weights: Vec<Vec<u32>> =
        weights.into_iter().map(|e| numbers(Some(e), "weights", problems)).collect();
    let mut some = |word: &str, problems: &mut Problems| {
        rates(chosen(table.take(word), case, problems), word, problems)
    };
    let loads = some("load", problems);
    let (peaks, floors) = (some("peaks", problems), some("floors", problems));
    table.finish(&WORDS, problems);
    let Some((ask, rate)) = ask.zip(rate) else {
        let help = "write ask = \"fair\" and rate = \"10gbit\"";
        problems.error(entry.place, "[sharing] does not say what is asked of which link", help);
        return None;
    };
    let mut nodes = vec![Node::link(rate)];
    let first = tree(&mut nodes, &widths, &weights, entry.place, problems)?;
    promise(&mut nodes, first, &peaks, &floors);
    let begin = |at: u64| begins.ns().saturating_mul(at);
    let loads = (0_u64..).zip(first..nodes.len()).map(|(number, node)| Load {
        node: u32::try_from(node).unwrap_or(0),
        rate: loads
            .get(usize::try_from(number / row).unwrap_or(0) % loads.len().max(1))
            .map_or(0.0, |rate| bits(*rate)),
        gaps,
        sizes: None,
        times: (begin(number), (begin(number) + lasts.ns()).min(run.ns())),
    });
    let bytes = u32::try_from(bytes).unwrap_or(1_024).max(64);
    Some(Sharing {
        ask,
        loads: loads.collect(),
        nodes,
        unit,
        run,
        bytes,
        slower: 1,
        told: Told::RIGHT,
    })
}

/// Nodes level by level; where the leaves begin.
fn tree(
    nodes: &mut Vec<Node>,
    widths: &[u32],
    weights: &[Vec<u32>],
    place: Position,
    problems: &mut Problems,
) -> Option<usize> {
    let mut above = LINK as usize..LINK as usize + 1;
    for (level, &width) in widths.iter().enumerate() {
        let begin = nodes.len();
        let is_last = level + 1 == widths.len();
        let mut number = 0;
        for parent in above {
            let parent = u32::try_from(parent).unwrap_or(0);
            for _ in 0..width {
                let of_level = weights.get(level).map_or(&[][..], Vec::as_slice);
                let weight = of_level.get(number % of_level.len().max(1)).copied().unwrap_or(1);
                nodes.push(Node { is_leaf: is_last, ..Node::leaf(parent, weight) });
                number += 1;
            }
            if nodes.len() > LEAVES * 2 {
                problems.error(place, "the tree is too large", "leave some branches out");
                return None;
            }
        }
        above = begin..nodes.len();
    }
    Some(above.start.max(1))
}

/// Gives the leaves their peaks and guarantees, in turn; a rate of nothing is none. A node promises
/// what its children promise.
fn promise(nodes: &mut [Node], first: usize, peaks: &[Rate], floors: &[Rate]) {
    let in_turn = |rates: &[Rate], number: usize| {
        let rate = rates.get(number % rates.len().max(1)).copied();
        rate.filter(|rate| *rate > Rate::ZERO)
    };
    for (number, leaf) in nodes.iter_mut().skip(first).enumerate() {
        leaf.peak = in_turn(peaks, number).unwrap_or(Rate::MAX);
        leaf.floor = in_turn(floors, number).unwrap_or(Rate::ZERO);
    }
    for at in (1..nodes.len()).rev() {
        let (parent, floor) = (nodes[at].parent as usize, nodes[at].floor);
        if parent > 0 {
            nodes[parent].floor = nodes[parent].floor.plus(floor);
        }
    }
}

/// What an entry says of this case; it may be the same for all.
fn chosen<'t>(entry: Option<Entry<'t>>, case: &str, problems: &mut Problems) -> Option<Entry<'t>> {
    let entry = entry?;
    if entry.kind() != "a table" {
        return Some(entry);
    }
    let mut cases = entry.table("the cases", problems)?;
    let found = cases.take(case);
    if found.is_none() {
        problems.error(entry.place, format!("nothing is said of the case \"{case}\""), "");
    }
    found
}

fn numbers(entry: Option<Entry<'_>>, word: &str, problems: &mut Problems) -> Vec<u32> {
    let list = entry.map_or_else(Vec::new, |entry| entry.list());
    let each = list.into_iter().filter_map(|e| e.number(word, 1..=65_536, problems));
    each.filter_map(|number| u32::try_from(number).ok()).collect()
}

fn rates(entry: Option<Entry<'_>>, word: &str, problems: &mut Problems) -> Vec<Rate> {
    let list = entry.map_or_else(Vec::new, |entry| entry.list());
    list.into_iter().filter_map(|e| e.read::<Rate>(word, RATE, problems)).collect()
}

/// The link of a profile and its pace: `rate = "100mbit"`, `slower = 10`; what it is told amiss:
/// `told = 0.98` of all rates, `tilted = 0.98` of the weight of each first child; and the most
/// leaves that it is run with.
pub(crate) fn scale(table: &mut Table<'_>, problems: &mut Problems) -> (Scale, usize) {
    let rate = table.take("rate").and_then(|e| e.read::<Rate>("rate", RATE, problems));
    let slower = table.take("slower").and_then(|e| e.number("slower", 1..=1_000_000, problems));
    let leaves = table.take("leaves").and_then(|e| e.number("leaves", 1..=1 << 20, problems));
    let leaves = leaves.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
    let mut part = |word: &str, table: &mut Table<'_>| {
        let Some(entry) = table.take(word) else { return MILLION };
        let part = figure(entry, word, problems).unwrap_or(1.0);
        if !PARTS.contains(&part) {
            let what = format!("\"{word}\" is {part}");
            problems.error(entry.place, what, "write a part of what is right, 0.01 to 100");
            return MILLION;
        }
        super::number(part * whole(MILLION))
    };
    let (rates, first) = (part("told", table), part("tilted", table));
    let told = Told { rates, first };
    (Scale { rate, slower: slower.unwrap_or(1), told }, leaves)
}

/// What a profile does: `law = "weir"`, and what goes with it; or `engine = "weir"`.
pub(crate) fn law(table: &mut Table<'_>, problems: &mut Problems) -> Option<Enforce> {
    if let Some(entry) = table.take("engine") {
        return entry.word("engine", &pairs(&ENGINES), problems).map(Enforce::Engine);
    }
    let entry = table.take("law")?;
    let frames = table.take("frames").and_then(|e| e.number("frames", 1..=65_536, problems));
    let frames = frames.and_then(|frames| u32::try_from(frames).ok()).unwrap_or(64);
    let constant = table.take("constant");
    let constant = constant.and_then(|e| e.read::<Span>("constant", SPAN, problems));
    let said = Said { frames, constant: constant.unwrap_or(Span::from_ms(2)) };
    entry.word("law", &pairs(&LAWS), problems).map(|enforce| enforce(said))
}
