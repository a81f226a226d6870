//! What a path does to packets beside carrying them: a word for each thing that `weir_sim::impair`
//! can do, but for delay and rate, which every link has.

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_sim::Chance;
use weir_sim::impair::{
    self, Impairments, Jitter, Limit, Loss, Outage, Reorder, Service, Shape, Shift, Trace,
};
use weir_units::{Instant, Span};

use super::{Load, SPAN, figure};

/// What may be said of a path; `None`: nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Path {
    /// And whether it may let a packet overtake another.
    jitter: Option<(Jitter, bool)>,
    /// And whether a packet is marked instead, if it can be.
    loss: Option<(Loss, bool)>,
    outage: Option<Outage>,
    duplicate: Option<Chance>,
    corrupt: Option<Chance>,
    reorder: Option<Reorder>,
    pub(super) trace: Option<Trace>,
}

const PART: &str = "a part as in \"0.5%\"";

pub(super) fn read(table: &mut Table<'_>, load: &mut Load<'_>, problems: &mut Problems) -> Path {
    let mut path = Path {
        jitter: table.take("jitter").and_then(|e| jitter(e, load, problems)),
        loss: table.take("loss").and_then(|e| loss(e, problems)),
        outage: table.take("outage").and_then(|e| outage(e, problems)),
        duplicate: part(table, "duplicate", problems),
        corrupt: part(table, "corrupt", problems),
        reorder: table.take("reorder").and_then(|e| reorder(e, problems)),
        trace: table.take("trace").and_then(|e| file(e, "trace", Trace::read, load, problems)),
    };
    if let Some(entry) = table.take("periodic-loss") {
        if path.loss.is_some() {
            let help = "keep \"loss\" or \"periodic-loss\"";
            problems.error(entry.place, "the link has two rules of loss", help);
        }
        let every = every(entry, problems).filter(|every| *every > 0);
        path.loss = every.map(|every| (Loss::Periodic { every, phase: 0 }, false)).or(path.loss);
    }
    path
}

/// `100`, or the `"1%"` that it amounts to; 0: none.
fn every(entry: Entry<'_>, problems: &mut Problems) -> Option<u64> {
    if entry.value.as_str().is_none() {
        return entry.number("periodic-loss", 2..=u64::from(u32::MAX), problems);
    }
    let percent = percent(entry, "periodic-loss", problems)?;
    if percent > 50.0 {
        let what = format!("\"periodic-loss\" cannot be {percent}%");
        problems.error(entry.place, what, "every second packet is the most: 50%");
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "2 to 10^9")]
    let every = if percent < 1e-7 { 0 } else { (100.0 / percent) as u64 };
    Some(every)
}

/// `"5ms"`, or a table with the shape.
fn jitter(
    entry: Entry<'_>,
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<(Jitter, bool)> {
    if entry.value.as_table().is_none() {
        let by = entry.read("jitter", SPAN, problems)?;
        return Some((Jitter { shape: Shape::Uniform(by), correlation: Chance::NEVER }, false));
    }
    let mut table = entry.table("\"jitter\"", problems)?;
    let kind = table.take("shape").map_or(Some(0), |e| e.word("shape", &SHAPES, problems));
    let by: Option<Span> = needed(&mut table, entry, "by", "by = \"5ms\"", problems)
        .and_then(|e| e.read("by", SPAN, problems));
    let correlation = part(&mut table, "correlation", problems).unwrap_or_default();
    let overtake = table.take("overtake").and_then(|e| e.yes_no("overtake", problems));
    let mut known = vec!["by", "shape", "correlation", "overtake"];
    let mut exponent = 3.0;
    let mut values = None;
    match kind {
        Some(PARETO) => {
            known.push("exponent");
            if let Some(entry) = table.take("exponent") {
                exponent = figure(entry, "exponent", problems).unwrap_or(exponent);
                if !(1.1..=100.0).contains(&exponent) {
                    let what = format!("\"exponent\" cannot be {exponent}");
                    problems.error(entry.place, what, "write a number from 1.1 to 100");
                }
                exponent = exponent.clamp(1.1, 100.0);
            }
        }
        Some(TABLE) => {
            known.push("file");
            values = needed(&mut table, entry, "file", "file = \"wifi.dist\"", problems)
                .and_then(|e| file(e, "file", impair::Table::read, load, problems));
        }
        _ => {}
    }
    table.finish(&known, problems);
    let by = by?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "11 to 1000")]
    let shape = match kind? {
        0 => Shape::Uniform(by),
        1 => Shape::Normal(by),
        2 => Shape::Exponential(by),
        PARETO => Shape::Pareto { scale: by, shape_tenths: (exponent * 10.0).round() as u32 },
        _ => Shape::Table(values?, by),
    };
    Some((Jitter { shape, correlation }, overtake.unwrap_or(false)))
}

const PARETO: u8 = 3;
const TABLE: u8 = 4;
const SHAPES: [(&str, u8); 5] =
    [("uniform", 0), ("normal", 1), ("exponential", 2), ("pareto", PARETO), ("table", TABLE)];

/// `"1%"`, or a table with one of five rules.
fn loss(entry: Entry<'_>, problems: &mut Problems) -> Option<(Loss, bool)> {
    if entry.value.as_table().is_none() {
        let chance = chance(entry, "loss", problems)?;
        return Some((Loss::Random { chance, correlation: Chance::NEVER }, false));
    }
    let mut table = entry.table("\"loss\"", problems)?;
    let mark = table.take("mark").and_then(|e| e.yes_no("mark", problems));
    let rules = RULES.map(|(first, _)| table.take(first));
    let mut said = rules.iter().enumerate().filter_map(|(at, e)| Some((at, (*e)?)));
    let (Some((at, first)), None) = (said.next(), said.next()) else {
        let help = "write one of chance, every, packets, worse (with better), p13 (with p31)";
        problems.error(entry.place, "\"loss\" has one rule", help);
        return None;
    };
    let (name, known) = RULES[at];
    let mut other = |word: &str, usual: Option<Chance>| match (usual, table.take(word)) {
        (_, Some(entry)) => chance(entry, word, problems),
        (Some(usual), None) => Some(usual),
        (None, None) => {
            let what = format!("\"loss\" says \"{name}\" and not \"{word}\"");
            problems.error(entry.place, what, format!("write {word} = \"20%\""));
            None
        }
    };
    let never = Some(Chance::NEVER);
    let more = match at {
        0 => [other("correlation", never), never, never, never],
        3 => {
            let (good, bad) = (other("in-good", never), other("in-bad", Some(Chance::ALWAYS)));
            [other("better", None), good, bad, never]
        }
        4 => [other("p31", None), other("p32", never), other("p23", never), other("p14", never)],
        _ => [never; 4],
    };
    let phase = if at == 1 { table.take("phase") } else { None };
    let phase = phase.map_or(Some(0), |e| e.number("phase", 0..=u64::from(u32::MAX), problems));
    let all: Vec<&str> = [&["mark", name], known].concat();
    table.finish(&all, problems);
    let [a, b, c, d] = more;
    let (a, b, c, d) = (a?, b?, c?, d?);
    let rule = match at {
        0 => Loss::Random { chance: chance(first, name, problems)?, correlation: a },
        1 => Loss::Periodic {
            every: first.number(name, 2..=u64::from(u32::MAX), problems)?,
            phase: phase?,
        },
        2 => Loss::List(packets(first, problems)?),
        3 => {
            Loss::Bursts { worse: chance(first, name, problems)?, better: a, in_good: b, in_bad: c }
        }
        _ => {
            Loss::FourStates { p13: chance(first, name, problems)?, p31: a, p32: b, p23: c, p14: d }
        }
    };
    Some((rule, mark.unwrap_or(false)))
}

/// The word that tells a rule of loss, and what else it takes.
const RULES: [(&str, &[&str]); 5] = [
    ("chance", &["correlation"]),
    ("every", &["phase"]),
    ("packets", &[]),
    ("worse", &["better", "in-good", "in-bad"]),
    ("p13", &["p31", "p32", "p23", "p14"]),
];

fn packets(entry: Entry<'_>, problems: &mut Problems) -> Option<Vec<u64>> {
    let numbers: Option<Vec<u64>> = (entry.list().into_iter())
        .map(|e| e.number("packets", 1..=u64::from(u32::MAX), problems))
        .collect();
    let numbers = numbers?;
    if !numbers.is_sorted_by(|a, b| a < b) {
        let help = "write them in rising order: packets = [1, 4, 5]";
        problems.error(entry.place, "the packets to be lost do not rise", help);
        return None;
    }
    Some(numbers)
}

/// `{ up = "3s", down = "1s" }`, or times: `["10s", "20s"]`, or a list of such.
fn outage(entry: Entry<'_>, problems: &mut Problems) -> Option<Outage> {
    if entry.value.as_table().is_some() {
        let mut table = entry.table("\"outage\"", problems)?;
        let [up, down]: [Option<Span>; 2] = ["up", "down"].map(|word| {
            needed(&mut table, entry, word, &format!("{word} = \"3s\""), problems)
                .and_then(|e| e.read(word, SPAN, problems))
        });
        table.finish(&["up", "down"], problems);
        return Some(Outage::Random { up: up?, down: down? });
    }
    let listed = entry.list();
    let is_one = listed.first().is_none_or(|first| first.value.as_array().is_none());
    let all = if is_one { vec![entry] } else { listed };
    let mut times: Vec<(Instant, Instant)> = Vec::new();
    for pair in all {
        let ends = pair.list();
        let help = "write outage = [\"10s\", \"20s\"], or a list of such, one after the other";
        let [from, to] = &ends[..] else {
            problems.error(pair.place, "an outage has a begin and an end", help);
            return None;
        };
        let from: Span = from.read("outage", SPAN, problems)?;
        let to: Span = to.read("outage", SPAN, problems)?;
        let (from, to) = (Instant::ZERO + from, Instant::ZERO + to);
        if to <= from || times.last().is_some_and(|(_, before)| from < *before) {
            problems.error(pair.place, "the times of the outage do not rise", help);
            return None;
        }
        times.push((from, to));
    }
    Some(Outage::Scheduled(times))
}

/// `"1%"`: so many come early; or a table.
fn reorder(entry: Entry<'_>, problems: &mut Problems) -> Option<Reorder> {
    if entry.value.as_table().is_none() {
        let chance = chance(entry, "reorder", problems)?;
        return Some(Reorder { gap: 1, chance, by: Shift::Early });
    }
    let mut table = entry.table("\"reorder\"", problems)?;
    let gap = table.take("gap").map(|e| e.number("gap", 1..=u64::from(u32::MAX), problems));
    let late = table.take("late").map(|e| e.read("late", SPAN, problems));
    let chance = part(&mut table, "chance", problems);
    if chance.is_none() && gap.is_none() {
        let help = "write chance = \"1%\", gap = 10, or both";
        problems.error(entry.place, "\"reorder\" does not say how many", help);
    }
    table.finish(&["chance", "gap", "late"], problems);
    let by = match late {
        Some(by) => Shift::Late(by?),
        None => Shift::Early,
    };
    let gap = gap.unwrap_or(Some(1))?;
    Some(Reorder { gap, chance: chance.unwrap_or(Chance::ALWAYS), by })
}

fn part(table: &mut Table<'_>, word: &str, problems: &mut Problems) -> Option<Chance> {
    table.take(word).and_then(|entry| chance(entry, word, problems))
}

fn chance(entry: Entry<'_>, word: &str, problems: &mut Problems) -> Option<Chance> {
    let part = percent(entry, word, problems)?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10^9")]
    Some(Chance::ppb((part * 1e7).round() as u32))
}

fn percent(entry: Entry<'_>, word: &str, problems: &mut Problems) -> Option<f64> {
    let text = entry.text(word, PART, problems)?;
    let part = text.strip_suffix('%').and_then(|n| n.parse::<f64>().ok());
    let part = part.filter(|p| (0.0..=100.0).contains(p));
    if part.is_none() {
        let what = format!("\"{word}\" cannot be \"{text}\"");
        problems.error(entry.place, what, format!("write {PART}"));
    }
    part
}

/// A word that must be there.
fn needed<'t>(
    table: &mut Table<'t>,
    of: Entry<'_>,
    word: &str,
    example: &str,
    problems: &mut Problems,
) -> Option<Entry<'t>> {
    let found = table.take(word);
    if found.is_none() {
        let what = format!("the word \"{word}\" is missing");
        problems.error(of.place, what, format!("write {example}"));
    }
    found
}

/// What a file beside the scenario says.
fn file<T>(
    entry: Entry<'_>,
    word: &str,
    read: impl Fn(&str) -> Result<T, String>,
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<T> {
    let name = entry.text(word, "the name of a file", problems)?;
    let said = match load(name) {
        Ok(text) => read(&text).map_err(|why| (format!("{name}: {why}"), FORMS)),
        Err(why) => {
            let help = "the name counts from the scenario's folder";
            Err((format!("cannot read {name}: {why}"), help))
        }
    };
    said.map_err(|(what, help)| problems.error(entry.place, what, help)).ok()
}

const FORMS: &str = "a trace is as mahimahi writes it, a table as netem's .dist files";

impl Path {
    /// These words, and those of `other` where these say nothing; but for the trace.
    pub(super) fn or(&self, other: &Path) -> Path {
        Path {
            jitter: self.jitter.clone().or_else(|| other.jitter.clone()),
            loss: self.loss.clone().or_else(|| other.loss.clone()),
            outage: self.outage.clone().or_else(|| other.outage.clone()),
            duplicate: self.duplicate.or(other.duplicate),
            corrupt: self.corrupt.or(other.corrupt),
            reorder: self.reorder.or(other.reorder),
            trace: self.trace.clone(),
        }
    }

    /// As plain data; `limit` is what may wait for a trace.
    pub(super) fn spec(&self, delay: Span, limit: Limit) -> Impairments {
        let service = self.trace.clone().map(|trace| Service::Trace { trace, limit });
        let (loss, mark) = self.loss.clone().unwrap_or_default();
        let (jitter, overtake) = self.jitter.clone().unzip();
        Impairments {
            outage: self.outage.clone().unwrap_or_default(),
            loss,
            mark,
            service: service.unwrap_or_default(),
            delay,
            jitter,
            overtake: overtake.unwrap_or(false),
            reorder: self.reorder,
            duplicate: self.duplicate.unwrap_or_default(),
            corrupt: self.corrupt.unwrap_or_default(),
        }
    }
}
