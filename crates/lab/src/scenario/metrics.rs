//! What is measured: a figure of each run, in words.

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_units::{Instant, Rate, Span};

use super::flows::Flow;
use super::links::Wire;
use super::{SPAN, Times, find};

/// A figure of each run.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its key in the results.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Of which case of a sweep; without one, the first.
    pub case: usize,
    /// When what arrives counts for it, if not when the scenario says.
    pub during: Option<Window>,
}

/// From when, and up to when.
pub type Window = (Instant, Instant);

/// What a metric is. Flows and links are named by their places.
#[derive(Clone, Debug)]
pub enum Kind {
    /// Payload that arrived of all these flows together, in kbit/s.
    Goodput(Vec<usize>),
    /// The same at the IP layer, in Mbit/s.
    Rate(Vec<usize>),
    /// The mean of these flows, each in Mbit/s at the IP layer.
    Mean(Vec<usize>),
    /// Payload that arrived of all these flows together, in bytes.
    Bytes(Vec<usize>),
    /// Goodput by a rate.
    Accuracy(Vec<usize>, Rate),
    /// Deviation by mean of the goodputs of each flow.
    Cov(Vec<usize>),
    /// Jain's index of the goodputs of each flow.
    Jain(Vec<usize>),
    /// Retransmitted packets by sent ones.
    Retransmission(Vec<usize>),
    /// Delay at this percentile (100: the longest; 0: the mean), in ms.
    Delay(Vec<usize>, u32),
    /// RFC 3550 jitter, the worst of the flows, in ms.
    Jitter(Vec<usize>),
    /// How long answers took to come back at this percentile, as for delays, in seconds.
    Answer(Vec<usize>, u32),
    /// The same in ms.
    AnswerMs(Vec<usize>, u32),
    /// The part of these flows that got an answer.
    Answered(Vec<usize>),
    /// From when a flow may start to its first byte at the other end, in seconds; the worst.
    StartDelay(Vec<usize>),
    /// Packets that did not arrive, by those sent.
    Loss(Vec<usize>),
    /// Mean opinion score of G.729A calls with a play-out buffer of 60 ms; the worst.
    Mos(Vec<usize>),
    /// R of the same; the worst.
    RFactor(Vec<usize>),
    /// The part of listeners that does not call the worst of these calls poor or worse (G.107).
    Legibility(Vec<usize>),
    /// Least and most goodput of bins, in Mbit/s at the IP layer.
    Extreme(Vec<usize>, Side),
    /// Deviation by mean of the bins of all these flows together.
    BinCov(Vec<usize>),
    /// Most bytes that waited before a link, from its first node to its second or back.
    QueueBytes(usize, Side),
    /// Most bytes that waited in a class of a box, in either direction.
    ClassQueue(String),
    /// How long frames waited in a class of a box in the mean, of the direction that carried more,
    /// in ms.
    ClassWait(String),
    /// The longest delay less the shortest, in ms.
    Queueing(Vec<usize>),
    /// Mean wait before a link, beyond the frame's own time, in ms.
    QueueMs(usize, Side),
    /// Frames that the queue before a link or the path behind it lost, by those that came.
    Dropped(usize, Side),
    /// What the allocators alone have shown under this name.
    Share(String),
    /// The worst wait that the box itself added, in ms.
    BoxMs,
    /// Bytes that the boxes dropped of those that came from the LAN (there) or the WAN (back), by
    /// those that came.
    BoxDropped(Side),
    /// How much more these flows get than before, by what the others had had then.
    Taken(Vec<usize>, Vec<usize>, Window),
    /// How long all these flows together were below so many percent of a rate, in whole bins, in
    /// ms.
    Dent(Vec<usize>, Rate, u32),
    /// Deviation by mean of the bins of each of these flows; the worst.
    SessionCov(Vec<usize>),
    /// What all these flows together get beyond a rate, in Mbit/s at the IP layer; 0 below it.
    Excess(Vec<usize>, Rate),
    /// What all these flows together leave of a rate, as a part of it.
    Unused(Vec<usize>, Rate),
    /// What all these flows together have of a rate, as a part of it.
    Used(Vec<usize>, Rate),
    /// Deviation by mean, over the runs, of another metric.
    Stability(usize),
    /// Deviation, over the runs, of another metric.
    Spread(usize),
    /// One metric by another.
    Ratio(usize, usize),
    /// The greatest less the least of several metrics, by their mean.
    Apart(Vec<usize>),
    /// The least of several metrics.
    Lowest(Vec<usize>),
    /// The greatest of several metrics.
    Highest(Vec<usize>),
}

/// Which of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From the first to the second; the least.
    There,
    /// From the second to the first; the most.
    Back,
}

/// The kinds, and the words that each of them knows.
const KINDS: [(&str, &[&str]); 42] = [
    ("goodput", &["flows", "during"]),
    ("rate", &["flows", "during"]),
    ("mean", &["flows", "during"]),
    ("bytes", &["flows", "during"]),
    ("accuracy", &["flows", "rate", "during"]),
    ("cov", &["flows", "during"]),
    ("jain", &["flows", "during"]),
    ("retransmission", &["flows"]),
    ("delay", &["flows", "percent"]),
    ("answer", &["flows", "percent"]),
    ("answer-ms", &["flows", "percent"]),
    ("answered", &["flows"]),
    ("start-delay", &["flows"]),
    ("queueing", &["flows"]),
    ("jitter", &["flows"]),
    ("loss", &["flows"]),
    ("mos", &["flows"]),
    ("r", &["flows"]),
    ("legibility", &["flows"]),
    ("least", &["flows", "during"]),
    ("most", &["flows", "during"]),
    ("bin-cov", &["flows", "during"]),
    ("session-cov", &["flows", "during"]),
    ("dent", &["flows", "rate", "percent", "during"]),
    ("taken", &["flows", "freed", "before", "during"]),
    ("excess", &["flows", "rate", "during"]),
    ("unused", &["flows", "rate", "during"]),
    ("used", &["flows", "rate", "during"]),
    ("queue-bytes", &["link", "way"]),
    ("queue-ms", &["link", "way"]),
    ("dropped", &["link", "way"]),
    ("class-queue", &["class"]),
    ("class-wait", &["class"]),
    ("share", &["figure"]),
    ("box-dropped", &["way"]),
    ("box-ms", &[]),
    ("stability", &["of"]),
    ("spread", &["of"]),
    ("ratio", &["of", "by"]),
    ("apart", &["of"]),
    ("lowest", &["of"]),
    ("highest", &["of"]),
];
const WAYS: [(&str, Side); 2] = [("there", Side::There), ("back", Side::Back)];

/// What a metric may speak of.
pub(super) struct About<'a> {
    pub(super) flows: &'a [Flow],
    pub(super) wires: &'a [Wire],
    pub(super) times: &'a Times,
    pub(super) case: usize,
}

/// Metrics are read in rounds: those of what runs have shown, those of one or two of these, and
/// those that choose among all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Plain,
    OfOthers,
    Choosing,
}

pub(super) const ROUNDS: [Round; 3] = [Round::Plain, Round::OfOthers, Round::Choosing];

/// A metric, if this is its round; what is wrong with its kind is said in the first.
pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    about: &About<'_>,
    (round, before): (Round, &[Metric]),
    problems: &mut Problems,
) -> Option<Metric> {
    let mut quiet = Problems::default();
    let said = if round == Round::Plain { &mut *problems } else { &mut quiet };
    let mut table = entry.table(&format!("metric \"{name}\""), said)?;
    let Some(word) = table.take("kind") else {
        said.error(entry.key, "the metric does not say its kind", "write kind = \"goodput\"");
        return None;
    };
    let names: Vec<(&'static str, usize)> =
        KINDS.iter().enumerate().map(|(at, (name, _))| (*name, at)).collect();
    let (kind, words) = KINDS[word.word("kind", &names, said)?];
    let its = match kind {
        "lowest" | "highest" | "apart" => Round::Choosing,
        _ if words.contains(&"of") => Round::OfOthers,
        _ => Round::Plain,
    };
    if its != round {
        return None;
    }
    let mut read = Reader { table, metric: entry, about, problems };
    let during = if words.contains(&"during") { read.window("during") } else { None };
    let kind = match words.first().copied() {
        Some("of") => read.of_others(kind, before),
        Some("flows") => read.of_flows(kind),
        Some("link") => read.of_link(kind),
        Some("class") => read.of_class(kind),
        Some("figure") => read.of_share(),
        Some(_) => Some(Kind::BoxDropped(read.way())),
        None => Some(Kind::BoxMs),
    };
    let words: Vec<&str> = ["kind"].into_iter().chain(words.iter().copied()).collect();
    read.table.finish(&words, problems);
    Some(Metric { name: name.to_owned(), kind: kind?, case: about.case, during })
}

struct Reader<'r, 't> {
    table: Table<'t>,
    metric: Entry<'t>,
    about: &'r About<'r>,
    problems: &'r mut Problems,
}

impl<'t> Reader<'_, 't> {
    fn needed(&mut self, word: &str, help: &str) -> Option<Entry<'t>> {
        let entry = self.table.take(word);
        if entry.is_none() {
            let what = format!("the metric does not say \"{word}\"");
            self.problems.error(self.metric.key, what, help);
        }
        entry
    }

    fn of_others(&mut self, kind: &str, before: &[Metric]) -> Option<Kind> {
        let mut find = |word: &str, is_list: bool| {
            let entry = self.needed(word, "write the name of a metric")?;
            let list = if is_list { entry.list() } else { vec![entry] };
            let names = before.iter().map(|m| m.name.as_str());
            let each =
                list.into_iter().map(|e| find(e, word, "metric", names.clone(), self.problems));
            // all are looked at, so that all that is wrong is said
            let found: Vec<Option<usize>> = each.collect();
            found.into_iter().collect::<Option<Vec<usize>>>()
        };
        let is_list = matches!(kind, "lowest" | "highest" | "apart");
        let of = find("of", is_list);
        let by = if kind == "ratio" { find("by", false)? } else { Vec::new() };
        let of = of?;
        let first = of.first().copied();
        Some(match kind {
            "stability" => Kind::Stability(first?),
            "spread" => Kind::Spread(first?),
            "apart" => Kind::Apart(of),
            "lowest" => Kind::Lowest(of),
            "highest" => Kind::Highest(of),
            _ => Kind::Ratio(first?, by.first().copied()?),
        })
    }

    fn of_link(&mut self, kind: &str) -> Option<Kind> {
        let entry = self.needed("link", "write link = \"wan\"");
        let way = self.way();
        let names = self.about.wires.iter().map(|w| w.name.as_str());
        let at = find(entry?, "link", "link", names, self.problems)?;
        Some(match kind {
            "queue-bytes" => Kind::QueueBytes(at, way),
            "queue-ms" => Kind::QueueMs(at, way),
            _ => Kind::Dropped(at, way),
        })
    }

    fn of_class(&mut self, kind: &str) -> Option<Kind> {
        let entry = self.needed("class", "write class = \"/office\"")?;
        let path = entry.text("class", "the path of a class", self.problems)?;
        let path = path.to_owned();
        Some(if kind == "class-wait" { Kind::ClassWait(path) } else { Kind::ClassQueue(path) })
    }

    fn of_share(&mut self) -> Option<Kind> {
        let entry = self.needed("figure", "write figure = \"dev_mean\"")?;
        let figure = entry.text("figure", "the name of a figure", self.problems)?;
        Some(Kind::Share(figure.to_owned()))
    }

    fn way(&mut self) -> Side {
        let way = self.table.take("way").and_then(|e| e.word("way", &WAYS, self.problems));
        way.unwrap_or(Side::There)
    }

    fn of_flows(&mut self, kind: &str) -> Option<Kind> {
        let flows = self.flows("flows");
        let rate = match kind {
            "accuracy" | "dent" | "excess" | "unused" | "used" => self.rate(),
            _ => Some(Rate::ZERO),
        };
        let usual = if kind == "dent" { 95 } else { 99 };
        let percent = match kind {
            "delay" | "dent" | "answer" | "answer-ms" => self.percent(usual),
            _ => Some(usual),
        };
        let freed = if kind == "taken" { self.taken_from() } else { None };
        let (found, rate, percent) = (flows?, rate?, percent?);
        Some(match kind {
            "goodput" => Kind::Goodput(found),
            "rate" => Kind::Rate(found),
            "mean" => Kind::Mean(found),
            "bytes" => Kind::Bytes(found),
            "answer" => Kind::Answer(found, percent),
            "answer-ms" => Kind::AnswerMs(found, percent),
            "answered" => Kind::Answered(found),
            "start-delay" => Kind::StartDelay(found),
            "legibility" => Kind::Legibility(found),
            "accuracy" => Kind::Accuracy(found, rate),
            "cov" => Kind::Cov(found),
            "jain" => Kind::Jain(found),
            "retransmission" => Kind::Retransmission(found),
            "delay" => Kind::Delay(found, percent),
            "queueing" => Kind::Queueing(found),
            "jitter" => Kind::Jitter(found),
            "loss" => Kind::Loss(found),
            "mos" => Kind::Mos(found),
            "r" => Kind::RFactor(found),
            "least" => Kind::Extreme(found, Side::There),
            "most" => Kind::Extreme(found, Side::Back),
            "session-cov" => Kind::SessionCov(found),
            "dent" => Kind::Dent(found, rate, percent),
            "excess" => Kind::Excess(found, rate),
            "unused" => Kind::Unused(found, rate),
            "used" => Kind::Used(found, rate),
            "taken" => {
                let (freed, before) = freed?;
                Kind::Taken(found, freed, before)
            }
            _ => Kind::BinCov(found),
        })
    }

    fn taken_from(&mut self) -> Option<(Vec<usize>, Window)> {
        let freed = self.flows("freed");
        let before = self.window("before");
        if before.is_none() {
            self.needed("before", "write before = [\"10s\", \"15s\"]");
        }
        Some((freed?, before?))
    }

    fn flows(&mut self, word: &str) -> Option<Vec<usize>> {
        let entry = self.needed(word, &format!("write {word} = [\"NAME\"]"))?;
        let names = self.about.flows.iter().map(|f| f.name.as_str());
        let each = entry.list().into_iter();
        let found: Vec<Option<usize>> =
            each.map(|e| find(e, word, "flow", names.clone(), self.problems)).collect();
        found.into_iter().collect()
    }

    fn rate(&mut self) -> Option<Rate> {
        let entry = self.needed("rate", "write rate = \"20kbit\"")?;
        entry.read::<Rate>("rate", "a rate as in \"20kbit\"", self.problems)
    }

    fn percent(&mut self, usual: u32) -> Option<u32> {
        let Some(entry) = self.table.take("percent") else { return Some(usual) };
        let percent = entry.number("percent", 0..=100, self.problems)?;
        u32::try_from(percent).ok()
    }

    /// A part of the run, in whole bins.
    fn window(&mut self, word: &str) -> Option<Window> {
        let entry = self.table.take(word)?;
        let help = format!("write {word} = [\"10s\", \"15s\"]");
        let ends = entry.list();
        let [from, to] = ends[..] else {
            let what = format!("\"{word}\" has {} ends", ends.len());
            self.problems.error(entry.place, what, help);
            return None;
        };
        let mut read = |e: Entry<'_>| e.read::<Span>(word, SPAN, self.problems);
        let (from, to) = (read(from), read(to));
        let (from, to) = (from?, to?);
        let Times { run, bin, .. } = *self.about.times;
        if from >= to || to > run {
            let what = format!("\"{word}\" is from {from} to {to} of a run of {run}");
            self.problems.error(entry.place, what, help);
            return None;
        }
        if [from, to].iter().any(|at| at.ns() % bin.ns().max(1) != 0) {
            let what = format!("\"{word}\" does not begin and end with a bin of {bin}");
            self.problems.error(entry.place, what, "bins begin with the run, one after the other");
            return None;
        }
        Some((Instant::ZERO + from, Instant::ZERO + to))
    }
}

/// How long a call may be delayed by its play-out buffer.
pub const PLAY_OUT: Span = Span::from_ms(60);
