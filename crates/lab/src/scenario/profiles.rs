//! What the boxes do: a policy for the engine, or nothing (then a box forwards unshaped). A profile
//! may also change the description of links, such as a provider's queue.

use weir_policy::reader::Entry;
use weir_policy::{Plan, Position, Problems, Severity, Source};

use super::flows::Flow;
use super::links::{self, Wire, Words};
use super::{Load, find, shared};
use crate::sharing::{self, Enforce, Scale};

/// One way to run the scenario.
#[derive(Debug)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// What it stands for, in a sentence.
    pub about: String,
    /// What each box does; without one, a box forwards unshaped.
    pub plan: Option<Plan>,
    /// The same as it is written.
    pub policy: Option<String>,
    /// What it does with packets where only allocators are.
    pub law: Option<Enforce>,
    /// The link and the pace of its law or engine, where these are not those of all.
    pub scale: Scale,
    /// The most leaves that its law is run with; cases with more of them are left out.
    pub leaves: usize,
    /// Links that are otherwise: the place of the link; both directions, there, back.
    pub links: Vec<(usize, [Words; 3])>,
    /// Flows that stay away, by their places.
    pub without: Vec<usize>,
}

/// What profiles may speak of.
pub(super) struct About<'a> {
    pub(super) shared: Option<shared::Shared<'a>>,
    pub(super) wires: &'a [Wire],
    pub(super) flows: &'a [Flow],
}

const WORDS: [&str; 16] = [
    "about",
    "system",
    "put",
    "policy",
    "policy-file",
    "link",
    "without",
    "law",
    "engine",
    "rate",
    "slower",
    "told",
    "tilted",
    "frames",
    "constant",
    "leaves",
];

pub(super) fn read(
    name: &str,
    entry: Entry<'_>,
    about: &About<'_>,
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<Profile> {
    let mut table = entry.table(&format!("profile \"{name}\""), problems)?;
    let sentence = table.take("about").and_then(|e| e.text("about", "a sentence", problems));
    let filled = shared::filled(&mut table, about.shared.as_ref(), problems);
    let away = table.take("without").map_or_else(Vec::new, |list| list.list());
    let names = about.flows.iter().map(|flow| flow.name.as_str());
    let away = away.into_iter().filter_map(|e| find(e, "without", "flow", names.clone(), problems));
    let without = away.collect();
    let law = sharing::law(&mut table, problems);
    let (scale, leaves) = sharing::scale(&mut table, problems);
    let inline = table.take("policy");
    let file = table.take("policy-file");
    let mut changes = Vec::new();
    if let Some(entry) = table.take("link")
        && let Some(table) = entry.table("\"link\"", problems)
    {
        for (link, entry) in table.all() {
            changes.extend(change(link, entry, about.wires, load, problems));
        }
    }
    table.finish(&WORDS, problems);
    let system_about = filled.as_ref().and_then(|filled| filled.about);
    let own = inline.or(file);
    let policy = match (inline, file) {
        _ if filled.is_some() && own.is_some() => {
            let help = "keep \"policy\", or \"system\" and \"put\", which fill in that of all";
            let place = own.map_or(entry.place, |own| own.key);
            problems.error(place, "the profile has two policies", help);
            None
        }
        (Some(entry), None) => {
            let text = entry.text("policy", "a policy", problems)?;
            plan(name, entry, text, problems)
        }
        (None, Some(entry)) => {
            let path = entry.text("policy-file", "the name of a file", problems)?;
            match load(path) {
                Ok(text) => plan(path, entry, &text, problems),
                Err(why) => {
                    let help = "the name counts from the scenario's folder";
                    problems.error(entry.place, format!("cannot read {path}: {why}"), help);
                    None
                }
            }
        }
        (Some(_), Some(entry)) => {
            let help = "keep \"policy\" or \"policy-file\"";
            problems.error(entry.place, "the profile has two policies", help);
            None
        }
        (None, None) => filled.and_then(|filled| plan(name, filled.entry, &filled.text, problems)),
    };
    let about = sentence.or(system_about).unwrap_or_default().to_owned();
    let (plan, policy) = policy.unzip();
    let (name, links) = (name.to_owned(), changes);
    Some(Profile { name, about, plan, policy, law, scale, leaves, links, without })
}

fn change(
    link: &str,
    entry: Entry<'_>,
    wires: &[Wire],
    load: &mut Load<'_>,
    problems: &mut Problems,
) -> Option<(usize, [Words; 3])> {
    let Some(at) = wires.iter().position(|wire| wire.name == link) else {
        let known: Vec<&str> = wires.iter().map(|w| w.name.as_str()).collect();
        let help = format!("there are {}", known.join(", "));
        problems.error(entry.key, format!("there is no link \"{link}\""), help);
        return None;
    };
    let mut table = entry.table(&format!("link \"{link}\""), problems)?;
    let words = links::ways(&mut table, load, problems);
    table.finish(&links::WORDS[1..], problems);
    Some((at, words))
}

/// The plan of a policy, and its text; its problems are those of the scenario.
fn plan(
    name: &str,
    entry: Entry<'_>,
    text: &str,
    problems: &mut Problems,
) -> Option<(Plan, String)> {
    let source = Source::new(name, text.to_owned());
    let reading = weir_policy::read(source, &mut |_| Err("no table here".to_owned())).ok()?;
    // where the policy stands in the scenario as it is, its problems have places there
    let raw = entry.text.get(entry.place.start as usize..entry.place.end as usize);
    let begin = raw.and_then(|raw| raw.find(text)).and_then(|at| u32::try_from(at).ok());
    for problem in &reading.problems {
        if matches!(problem.severity, Severity::Error | Severity::Skipped) {
            let what = format!("the policy of {name}: {}", problem.what);
            let at = begin.filter(|_| problem.place.file == 0).map_or(entry.place, |begin| {
                let begin = entry.place.start + begin;
                let Position { start, end, .. } = problem.place;
                Position { start: begin + start, end: begin + end, ..entry.place }
            });
            problems.error(at, what, problem.help.clone());
        }
    }
    Some((reading.plans.into_iter().next()?, text.to_owned()))
}

/// A name among profiles.
pub(super) fn named(entry: Entry<'_>, all: &[Profile], problems: &mut Problems) -> Option<usize> {
    find(entry, "profile", "profile", all.iter().map(|p| p.name.as_str()), problems)
}
