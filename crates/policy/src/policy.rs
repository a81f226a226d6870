//! Reads a whole policy: every word, every problem, and one Plan per link.

use std::collections::BTreeMap;

use toml::de::DeTable;
use weir_units::limits;

use crate::addresses::{Groups, groups_of};
use crate::class::{self, Class};
use crate::held::{Before, Held, Want};
use crate::link::{self, LinkTable};
use crate::plan::Plan;
use crate::problem::{Position, Problem, Problems, Severity};
use crate::reader::{Entry, Table};
use crate::source::Source;
use crate::subscribers::{self, Subscriber, Subscribers};
use crate::tariff::{self, Tariff};
use crate::tree::{Tree, by_path};
use crate::{entrance, reach, resolve, silent, syntax, tokens};

/// A policy in the operator's words.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The links, in the order of the file.
    pub links: Vec<LinkTable>,
    /// The named groups of addresses.
    pub groups: Groups,
    /// The classes, in the order of the file.
    pub classes: Vec<Class>,
    /// The plans that subscribers are on, sorted by name.
    pub tariffs: Vec<Tariff>,
    /// The table of subscribers.
    pub subscribers: Option<Subscribers>,
}

impl Policy {
    /// The plan of this name.
    pub(crate) fn tariff(&self, name: &str) -> Option<&Tariff> {
        let at = self.tariffs.binary_search_by(|tariff| tariff.name.as_str().cmp(name)).ok()?;
        self.tariffs.get(at)
    }
}

/// Everything that reading a policy gave.
#[derive(Debug)]
pub struct Reading {
    /// The files: the policy, then its table of subscribers, then the rows of an earlier table that
    /// hold because theirs were skipped.
    pub sources: Vec<Source>,
    /// The words.
    pub policy: Policy,
    /// One plan per link; empty when there are errors.
    pub plans: Vec<Plan>,
    /// What is wrong, in the order of the files.
    pub problems: Vec<Problem>,
}

impl Reading {
    /// Whether something is at fault (warnings and notes are not faults).
    #[must_use]
    pub fn is_at_fault(&self) -> bool {
        self.problems.iter().any(|p| matches!(p.severity, Severity::Error | Severity::Skipped))
    }

    /// `file:line:column` of a place.
    #[must_use]
    pub fn position(&self, place: Position) -> String {
        match self.sources.get(usize::from(place.file)) {
            Some(source) => source.position(place),
            None => String::new(),
        }
    }
}

/// Brings another file that the policy names, or says in words why that is not possible.
pub type Load<'l> = dyn FnMut(&str) -> Result<Source, String> + 'l;

/// Reads the policy in `source`; `load` brings the table of subscribers.
///
/// # Errors
/// The file is not text; the offset of the first byte that is not.
pub fn read(source: Source, load: &mut Load<'_>) -> Result<Reading, usize> {
    read_over(source, load, &[])
}

/// The same; a subscriber whose row has a mistake keeps the row that is among those `before`.
///
/// # Errors
/// The file is not text; the offset of the first byte that is not.
pub fn read_over(
    source: Source,
    load: &mut Load<'_>,
    before: &[Subscriber],
) -> Result<Reading, usize> {
    let mut problems = Problems::default();
    let mut sources = vec![source];
    let (mut policy, top) = {
        let text = sources[0].text()?;
        if !tokens::are_few(text, &mut problems) {
            let (policy, plans) = (Policy::default(), Vec::new());
            return Ok(Reading { sources, policy, plans, problems: problems.into_list() });
        }
        let (document, errors) = DeTable::parse_recoverable(text);
        let torn = syntax::check(&errors, text, &mut problems);
        let mark = problems.mark();
        let words = words(document.get_ref(), text, &mut problems);
        torn.forget_since(mark, text, &mut problems);
        words
    };
    let mark = problems.mark();
    let tree = Tree::new(&policy.classes, &policy.links, &mut problems);
    if problems.is_torn {
        problems.forget_since(mark);
    }
    let before = Before::new(before);
    let mut held = Held::default();
    if let Some(table) = &mut policy.subscribers {
        sources.extend(rows(table, &policy.classes, load, (&before, &mut held), &mut problems));
    }
    if policy.links.is_empty() && top {
        let help = "add [link.office] with lan, wan, down and up";
        problems.missing(Position::default(), "the policy has no link", help);
    }
    let mark = problems.mark();
    // what cannot be read may be what makes the rest right
    let mut plans = match problems.is_torn {
        true => Vec::new(),
        false => plans(&policy, &tree, &sources[0], &mut problems),
    };
    if fit(&mut policy, &before, &mut held, &mut problems) {
        problems.forget_since(mark);
        plans = self::plans(&policy, &tree, &sources[0], &mut problems);
        fit(&mut policy, &Before::new(&[]), &mut held, &mut problems);
    }
    if problems.has_errors() || policy.links.is_empty() {
        plans.clear();
    }
    if let Some(table) = &mut policy.subscribers {
        table.skipped = problems.skipped.clone();
        sources.extend(held.into_source().filter(|_| sources.len() == 2));
    }
    Ok(Reading { sources, policy, plans, problems: problems.into_list() })
}

/// Makes the plan of each link.
fn plans(policy: &Policy, tree: &Tree, source: &Source, problems: &mut Problems) -> Vec<Plan> {
    let stand_in = policy.links.is_empty().then(link::placeholder);
    let links = policy.links.iter().chain(&stand_in);
    let one = |link| {
        let plan = resolve::resolve(policy, tree, link, problems);
        resolve::check_size(&plan, link.place, problems);
        reach::check(&plan, policy, source, problems);
        silent::check(&plan, policy, problems);
        entrance::check(&plan, problems);
        plan
    };
    links.map(one).collect()
}

/// Takes out the rows that no class has room for. Returns whether earlier rows hold in their place,
/// which need a plan of their own.
fn fit(policy: &mut Policy, before: &Before<'_>, held: &mut Held, problems: &mut Problems) -> bool {
    let Some(table) = &mut policy.subscribers else { return false };
    let unfit = std::mem::take(&mut problems.unfit);
    if unfit.is_empty() {
        return false;
    }
    held.let_go(&unfit, problems);
    let rows = table.rows.iter().filter(|row| unfit.contains(&row.place) && row.place.file == 1);
    let skips: BTreeMap<Position, usize> =
        problems.skipped.all().zip(0..).map(|((row, ..), at)| (row.place, at)).collect();
    let wants: Vec<Want> =
        rows.filter_map(|row| Some(Want::of(row, *skips.get(&row.place)?))).collect();
    table.rows.retain(|row| !unfit.contains(&row.place));
    held.hold(table, before, &wants, &by_path(&policy.classes), problems)
}

/// Reads the rows of the table of subscribers; returns their file. When nobody knows where they are
/// to hang, that is one problem and not one per row.
fn rows(
    table: &mut Subscribers,
    classes: &[Class],
    load: &mut Load<'_>,
    (before, held): (&Before<'_>, &mut Held),
    problems: &mut Problems,
) -> Option<Source> {
    let known = by_path(classes);
    let under = table.under();
    let hangs = under.is_empty() || known.contains_key(under);
    if let (false, Some(under)) = (hangs, &table.under) {
        let what = format!("there is no class \"{}\"", under.value);
        let mut help = crate::nearest::instead(&under.value, known.keys().copied());
        if help.is_empty() {
            help = format!("add [class.\"{}\"]", under.value);
        }
        problems.error(under.place, what, help);
    }
    let source = match load(&table.file.value) {
        Ok(source) => source,
        Err(why) => {
            let what = format!("the table \"{}\" cannot be read: {why}", table.file.value);
            let help = "the name is relative to the folder of the policy";
            problems.error(table.file.place, what, help);
            return None;
        }
    };
    if hangs {
        let wants = subscribers::read_rows(table, &source, 1, &known, problems);
        held.hold(table, before, &wants, &known, problems);
    }
    hidden_subscribers(table, classes, problems);
    Some(source)
}

/// Reads the words of the document; the flag tells whether a missing link is worth a word.
fn words(document: &DeTable<'_>, text: &str, problems: &mut Problems) -> (Policy, bool) {
    let mut top = Table::new("a policy", document, text);
    let groups = groups_of(&mut top, problems);
    let links = top.take("link");
    let nameless = links.and_then(|entry| unnamed(entry, "link", &link::words(), problems));
    let says_link = links.is_some_and(|e| e.value.as_table().is_none_or(|t| !t.is_empty()));
    let mut links = named(links, "[link]", problems);
    if let Some(entry) = nameless {
        // what is in it is read as that of a link with a name
        links.retain(|(_, entry)| entry.value.is_table());
        links.push(("link", entry));
    }
    let classes = top.take("class");
    let is_unnamed = classes.and_then(|e| unnamed(e, "class", &class::words(), problems)).is_some();
    let mut classes = named(classes, "[class]", problems);
    classes.retain(|(_, entry)| !is_unnamed || entry.value.is_table());
    let table = top.take("subscribers");
    let mut subscribers = table.and_then(|e| subscribers::read(e, problems));
    // which classes have customers is not known then
    problems.is_torn |= table.is_some() && subscribers.is_none();
    let plans = top.take("plan");
    if let (Some(entry), None) = (plans, &subscribers) {
        let help = "add [subscribers] with the table whose rows name their plan";
        problems.warning(entry.key, "[plan] has no effect: there are no subscribers", help);
    }
    let mut tariffs: Vec<Tariff> = named(plans, "[plan]", problems)
        .into_iter()
        .filter_map(|(name, entry)| tariff::read(name, entry, problems))
        .collect();
    tariffs.sort_by(|a, b| a.name.cmp(&b.name));
    tariff::check_weights(&tariffs, problems);
    if let Some(table) = &mut subscribers {
        table.plans = tariffs.iter().map(|tariff| tariff.name.clone()).collect();
    }
    top.finish(&["link", "group", "class", "plan", "subscribers"], problems);
    if classes.len() > limits::CLASSES {
        let what = format!("the policy has {} classes", classes.len());
        problems.error(
            Position::default(),
            what,
            format!("at most {} are possible", limits::CLASSES),
        );
    }
    let policy = Policy {
        links: links.iter().filter_map(|(name, e)| link::read(name, *e, problems)).collect(),
        classes: classes
            .iter()
            .filter_map(|(path, e)| class::read(path, *e, &groups, problems))
            .collect(),
        groups,
        tariffs,
        subscribers,
    };
    link::check_ports(&policy.links, problems);
    let missing = policy.links.is_empty() && !says_link;
    (policy, missing)
}

/// The entries of a table whose names are the operator's own.
fn named<'t>(
    entry: Option<Entry<'t>>,
    what: &str,
    problems: &mut Problems,
) -> Vec<(&'t str, Entry<'t>)> {
    entry.and_then(|e| e.table(what, problems)).map_or_else(Vec::new, |t| t.all().collect())
}

/// A table `[link]` or `[class]` with words in it that stand in tables with a name.
fn unnamed<'t>(
    entry: Entry<'t>,
    word: &str,
    words: &[&str],
    problems: &mut Problems,
) -> Option<Entry<'t>> {
    let table = entry.value.as_table()?;
    let mut own = table.iter().filter(|(_, value)| value.get_ref().as_table().is_none());
    if !own.any(|(key, _)| words.contains(&key.get_ref().as_ref())) {
        return None;
    }
    let (what, help) = match word {
        "link" => ("[link] needs a name", "write [link.office]"),
        _ => ("[class] needs a path", "write [class.\"/office\"]"),
    };
    problems.error(entry.key, what, help);
    Some(entry)
}

/// A class with rules above a subscriber would be a second condition that nobody wrote in the row.
fn hidden_subscribers(table: &Subscribers, classes: &[Class], problems: &mut Problems) {
    let under = table.under();
    for class in classes {
        let inside = class.path.strip_prefix(under).is_some_and(|rest| rest.starts_with('/'));
        if inside && !class.matches.is_empty() {
            let prefix = format!("{}/", class.path);
            let below = |p: &str| p == class.path || p.starts_with(&prefix);
            if table.rows.iter().any(|row| below(&row.parent)) {
                let what = format!("\"{}\" has a \"match\", and subscribers below it", class.path);
                let help = "their addresses decide which class a frame belongs to: remove the \
                    match";
                problems.error(class.matches[0].place, what, help);
            }
        }
    }
}
