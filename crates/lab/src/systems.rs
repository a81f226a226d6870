//! Tables 1 and 2 of the survey, made from the profiles: which techniques a system has, and what it
//! can do. What a profile's policies show is read from them; what the paper prints stands behind
//! it where that is something else.

use std::collections::BTreeMap;

use serde::Deserialize;
use weir_policy::plan::{Node, NodeKind};
use weir_policy::{AqmKind, LeafWords, Mss, Plan, Queue};

use crate::grid::Grid;
use crate::scenario::Scenario;

/// The text that the binary carries.
const SURVEY: &str = include_str!("../../../experiments/survey.toml");

/// Systems that stand beside each other before the table goes on below.
const ABREAST: usize = 4;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Systems {
    system: Vec<System>,
}

/// A system that the survey has, or ours.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct System {
    profile: String,
    name: String,
    /// As Table 1 prints them.
    #[serde(default)]
    techniques: String,
    /// What the tables print, by row.
    #[serde(default)]
    paper: BTreeMap<String, String>,
    /// What it can do though no profile shows it.
    #[serde(default)]
    can: BTreeMap<String, String>,
}

const TECHNIQUES: [(&str, &str); 5] = [
    ("cbq", "class-based queueing"),
    ("pfq", "a queue for each flow"),
    ("red", "random early detection"),
    ("tcr", "TCP rate control"),
    ("mss", "MSS-clamping"),
];

const FUNCTIONS: [(&str, &str); 7] = [
    ("link", "1: defines the link's rate"),
    ("cbq", "2: divides the link"),
    ("layer", "3: layer awareness"),
    ("tuples", "3: five tuples"),
    ("session", "4: guarantees a session's rate"),
    ("sessions", "4: sessions of a class borrow"),
    ("classes", "5: classes borrow"),
];

/// The tables with their titles, from the scenarios of the group.
///
/// # Errors
/// The text of the systems cannot be read.
pub fn tables<'s>(
    scenarios: impl IntoIterator<Item = &'s Scenario>,
) -> Result<Vec<(String, Grid)>, String> {
    let systems: Systems = toml::from_str(SURVEY).map_err(|error| error.to_string())?;
    let mut plans: BTreeMap<&str, Vec<&Plan>> = BTreeMap::new();
    for profile in scenarios.into_iter().flat_map(|scenario| &scenario.profiles) {
        plans.entry(&profile.name).or_default().extend(&profile.plan);
    }
    let techniques = "Table 1: techniques, as the profiles have them";
    let functions = "Table 2: functions, as the profiles show them";
    let rows = [(techniques, &TECHNIQUES[..]), (functions, &FUNCTIONS[..])];
    let mut tables = Vec::new();
    for (title, rows) in rows {
        // ours comes last, and beside all of the others
        let Some((ours, others)) = systems.system.split_last() else { continue };
        for (at, some) in others.chunks(ABREAST).enumerate() {
            let all: Vec<&System> = some.iter().chain([ours]).collect();
            let title = if at == 0 { title.to_owned() } else { format!("{title} (continued)") };
            tables.push((title, table(&all, rows, &plans)));
        }
    }
    Ok(tables)
}

fn table(all: &[&System], rows: &[(&str, &str)], plans: &BTreeMap<&str, Vec<&Plan>>) -> Grid {
    let names: Vec<&str> = all.iter().map(|system| system.profile.as_str()).collect();
    let mut grid = Grid::new(1 + all.len(), &[&[""], &names[..]].concat());
    let of = |head: &str, cell: &dyn Fn(&System) -> String| {
        std::iter::once(head.to_owned()).chain(all.iter().map(|system| cell(system))).collect()
    };
    if rows.len() == TECHNIQUES.len() {
        grid.rows.push(of("stands for", &|system| system.name.clone()));
        grid.rows.push(of("techniques, as printed", &|system| system.techniques.clone()));
    }
    for (row, title) in rows {
        grid.rows.push(of(title, &|system| cell(system, row, plans.get(&*system.profile))));
    }
    grid
}

/// What a profile does, and what the paper prints where that is something else.
fn cell(system: &System, row: &str, plans: Option<&Vec<&Plan>>) -> String {
    let paper = system.paper.get(row);
    let shown = plans.and_then(|plans| shown(plans, row));
    let can = system.can.get(row).filter(|_| shown.is_none_or(|word| WEAK.contains(&word)));
    let ours = match (plans, can, shown) {
        (None, ..) => "pending",
        (_, Some(can), _) => can,
        (_, None, Some(shown)) => shown,
        // no policy says it: what a profile can tell apart, all of them can
        (_, None, None) => return paper.map_or_else(String::new, |word| format!("paper: {word}")),
    };
    match paper {
        Some(paper) if paper != ours => format!("{ours} (paper: {paper})"),
        _ => ours.to_owned(),
    }
}

/// What a profile shows if it does not use what it can do.
const WEAK: [&str; 2] = ["no", "flat"];

/// What the policies of a profile show of a row; none of what no policy says.
fn shown(plans: &[&Plan], row: &str) -> Option<&'static str> {
    let leaves = || plans.iter().flat_map(|plan| leaves(plan));
    let yes = |is: bool| Some(if is { "yes" } else { "no" });
    let is_fair = |words: &LeafWords| words.queue.unwrap_or_default() != Queue::Fifo;
    let sizes = |words: &LeafWords| {
        words.tcp.is_some_and(|tcp| tcp.window == Some(true) || tcp.pace_acks == Some(true))
    };
    let depth = plans.iter().flat_map(|plan| classes(plan)).map(|class| class.depth).max();
    match row {
        "cbq" => Some(match depth.unwrap_or(0) {
            0 => "no",
            1 => "flat",
            _ => "hierarchical",
        }),
        "pfq" => yes(leaves().any(is_fair)),
        "red" => yes(leaves().any(|words| {
            words.aqm.is_some_and(|aqm| matches!(aqm.kind, AqmKind::Red | AqmKind::Wred))
        })),
        "tcr" => yes(leaves().any(sizes)),
        // what is not said is chosen by the link
        "mss" => yes(leaves()
            .any(|words| words.tcp.is_none_or(|tcp| tcp.mss.unwrap_or(Mss::Auto) != Mss::Keep))),
        "link" => yes(!plans.is_empty()),
        "session" => yes(leaves().any(|w| is_fair(w) || sizes(w) || w.session.is_some())),
        "sessions" => yes(depth.is_some()),
        "classes" => yes(plans.iter().flat_map(|plan| classes(plan)).any(|class| {
            let shares = &class.shares;
            shares.up.ceil > shares.up.rate
        })),
        _ => None,
    }
}

/// What the policy divides the link into; the leaf for frames that are nobody's is not among it.
fn classes(plan: &Plan) -> impl Iterator<Item = &Node> {
    let rest = usize::try_from(plan.rest).unwrap_or(0);
    let nodes = plan.nodes.iter().enumerate().skip(1);
    nodes.filter(move |(at, _)| *at != rest).map(|(_, node)| node)
}

fn leaves(plan: &Plan) -> impl Iterator<Item = &LeafWords> {
    let leaves = classes(plan).filter(|node| !matches!(node.kind, NodeKind::Interior));
    leaves.filter_map(|node| plan.words.get(usize::try_from(node.words).ok()?))
}
