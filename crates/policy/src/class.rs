//! `[class."/path"]`: one node of the tree, in the operator's words.

use weir_units::{ByWay, Priority, Rate, limits};

use crate::addresses::Groups;
use crate::amount::{Amount, Burst, both, says};
use crate::each::{self, Each};
use crate::leaf::{self, LeafWords};
use crate::matching::{self, Match};
use crate::problem::{At, Position, Problems};
use crate::reader::{Entry, Table};
use crate::silent;

/// A class as the operator wrote it.
#[derive(Clone, Debug)]
pub struct Class {
    /// Its path, which is its name: `/office/backup`.
    pub path: String,
    /// Where its table starts.
    pub place: Position,
    /// The one link it belongs to; all links when it does not say.
    pub link: Option<At<String>>,
    /// What it may carry; any one is enough.
    pub matches: Vec<Match>,
    /// Whether it says a match at all, readable or not.
    pub says_match: bool,
    /// Whether a line of its match could not be read.
    pub match_at_fault: bool,
    /// The guaranteed rate.
    pub rate: ByWay<Option<At<Amount>>>,
    /// Whether it says a rate at all, readable or not.
    pub says_rate: ByWay<bool>,
    /// What it may borrow up to.
    pub ceil: ByWay<Option<At<Amount>>>,
    /// Its part among its siblings.
    pub weight: Option<At<Weight>>,
    /// How much may leave at once.
    pub burst: ByWay<Option<At<Burst>>>,
    /// Who goes first within what each may have.
    pub priority: Option<Priority>,
    /// Queue, AQM, sessions, TCP, marks.
    pub leaf: LeafWords,
    /// A leaf for each host.
    pub each: Option<Each>,
    /// Who holds it to its rates.
    pub enforce: Option<At<Enforce>>,
    /// The path it had before.
    pub was: Option<At<String>>,
    /// Words that say nothing without queues, and where they stand.
    pub(crate) said: Vec<At<&'static str>>,
}

/// A part among siblings: a number, or a rate to be compared with the others' rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// So many parts.
    Parts(u64),
    /// As much as a class of this rate has by default.
    Rate(Rate),
}

/// The words for [`Priority`].
pub const PRIORITY: [(&str, Priority); 4] = [
    ("realtime", Priority::REALTIME),
    ("interactive", Priority::INTERACTIVE),
    ("normal", Priority::NORMAL),
    ("bulk", Priority::BULK),
];

/// Who holds a subtree to its rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enforce {
    /// weir chooses.
    #[default]
    Auto,
    /// Queues in the engine.
    Queue,
    /// weir's queue-less allocator.
    Weir,
    /// The HSDBA allocator.
    Hsdba,
}

/// The words for [`Enforce`].
pub(crate) const ENFORCE: [(&str, Enforce); 4] = [
    ("auto", Enforce::Auto),
    ("queue", Enforce::Queue),
    ("weir", Enforce::Weir),
    ("hsdba", Enforce::Hsdba),
];

/// The words of a class in the order `weir fmt` gives them.
pub(crate) const WORDS: [&str; 10] =
    ["link", "was", "match", "each", "rate", "ceil", "weight", "priority", "burst", "enforce"];

/// All words of a class.
pub(crate) fn words() -> Vec<&'static str> {
    WORDS.into_iter().chain(leaf::WORDS).collect()
}

pub(crate) const RATE: &str =
    "a rate such as \"20kbit\" or \"1.5mbit\", or a percentage such as \"40%\"";

pub(crate) const BURST: &str = "an amount such as \"15kb\" or a time such as \"10ms\"";

pub(crate) fn read(
    path: &str,
    entry: Entry<'_>,
    groups: &Groups,
    problems: &mut Problems,
) -> Option<Class> {
    let what = format!("class \"{path}\"");
    let good_path = check_path(path, entry.key, problems);
    let mut table = entry.table(&what, problems)?;
    let said = silent::said(&table);
    let link = take_text(&mut table, "link", "a link's name", problems);
    let was = take_text(&mut table, "was", "the path it had before", problems);
    if let Some(was) = &was {
        check_path(&was.value, was.place, problems);
    }
    let lines = table.take("match");
    let misspells = lines.is_none() && table.misspells("match", &words());
    let lines = lines.map_or_else(Vec::new, |e| e.list());
    let matches: Vec<Match> =
        lines.iter().filter_map(|m| matching::read(m, groups, problems)).collect();
    let rate = table.take("rate");
    let class = Class {
        path: path.to_owned(),
        place: entry.key,
        link,
        says_match: !lines.is_empty() || misspells,
        match_at_fault: matches.len() < lines.len(),
        matches,
        rate: both(rate, "rate", RATE, problems),
        says_rate: says(rate),
        ceil: both(table.take("ceil"), "ceil", RATE, problems),
        weight: table.take("weight").and_then(|e| weight(e, problems)),
        burst: both(table.take("burst"), "burst", BURST, problems),
        priority: table.take("priority").and_then(|e| e.word("priority", &PRIORITY, problems)),
        each: table.take("each").and_then(|e| each::read(e, groups, problems)),
        enforce: table.take("enforce").and_then(|e| enforce(e, problems)),
        leaf: leaf::read(&mut table, problems),
        was,
        said,
    };
    table.finish(&words(), problems);
    good_path.then_some(class)
}

fn take_text(
    table: &mut Table<'_>,
    word: &str,
    expected: &str,
    problems: &mut Problems,
) -> Option<At<String>> {
    let entry = table.take(word)?;
    let text = entry.text(word, expected, problems)?;
    Some(entry.at(text.to_owned()))
}

/// Whether `path` can name a class; says why not.
pub(crate) fn check_path(path: &str, place: Position, problems: &mut Problems) -> bool {
    let Some(inner) = path.strip_prefix('/') else {
        let what =
            format!("a class is named by its path, and \"{path}\" does not start with \"/\"");
        problems.error(place, what, format!("write \"/{path}\""));
        return false;
    };
    if inner.is_empty() {
        let help = "settings of the whole link belong in [link.NAME]; name a class below it";
        problems.error(place, "\"/\" is the link itself, not a class", help);
        return false;
    }
    if let Some(bad) = inner.split('/').find(|s| !is_segment(s)) {
        let what = if bad.is_empty() {
            format!("the path \"{path}\" has an empty part")
        } else {
            format!(
                "the part \"{bad}\" of the path \"{path}\" has a character that names cannot have"
            )
        };
        problems.error(place, what, "names consist of letters, digits and - _ . : @ +");
        return false;
    }
    let depth = inner.split('/').count();
    if depth > limits::TREE_DEPTH {
        let what = format!("\"{path}\" is {depth} levels below the link");
        problems.error(place, what, format!("a tree has at most {} levels", limits::TREE_DEPTH));
        return false;
    }
    true
}

/// Whether `text` can be one part of a path.
pub(crate) fn is_segment(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && text.chars().all(|c| c.is_alphanumeric() || "-_.:@+".contains(c))
}

pub(crate) fn weight(entry: Entry<'_>, problems: &mut Problems) -> Option<At<Weight>> {
    let weight = if entry.value.is_str() {
        let rate: Rate = entry.read("weight", "a number or a rate", problems)?;
        if rate == Rate::ZERO {
            let what = "\"weight\" is zero: the class would get nothing";
            problems.error(entry.place, what, "write a number from 1, or a rate above zero");
            return None;
        }
        Weight::Rate(rate)
    } else {
        Weight::Parts(entry.number("weight", 1..=1_000_000, problems)?)
    };
    Some(entry.at(weight))
}

fn enforce(entry: Entry<'_>, problems: &mut Problems) -> Option<At<Enforce>> {
    if let Some(lab @ ("hcsfq" | "ahab")) = entry.value.as_str() {
        let what = format!("\"{lab}\" exists in the laboratory only, for comparison");
        problems.error(entry.place, what, "write enforce = \"weir\" or \"queue\"");
        return None;
    }
    Some(entry.at(entry.word("enforce", &ENFORCE, problems)?))
}
