//! Words that say nothing where they stand: a branch that is held to its shares without queues has
//! none that frames of different connections could wait in, and one plain queue for all of it. Only
//! `queue` says something in weir's: who shares in a leaf. HSDBA knows leaves and no flows.

use crate::class::Enforce;
use crate::plan::{NodeKind, Plan};
use crate::policy::Policy;
use crate::problem::{At, Problems, Severity};
use crate::reader::Table;
use crate::say;

/// What says how frames wait among others: nothing, wherever a branch has no queues.
const QUEUES: [&str; 3] = ["queue", "aqm", "session"];
/// What the top of such a branch means for its one queue, and what is below it does not.
const OF_THE_TOP: [&str; 3] = ["priority", "burst", "limit"];

/// Those of these words that a table says, and where.
pub(crate) fn said(table: &Table<'_>) -> Vec<At<&'static str>> {
    let words = QUEUES.into_iter().chain(OF_THE_TOP);
    words.filter_map(|word| Some(table.peek(word)?.named(word))).collect()
}

/// Warns of each that says nothing.
pub(crate) fn check(plan: &Plan, policy: &Policy, problems: &mut Problems) {
    let tops = tops(plan);
    if tops.iter().all(Option::is_none) {
        return;
    }
    let link = policy.links.iter().find(|link| link.name == plan.name);
    let of_link = link.filter(|link| link.enforce == Enforce::Hsdba).map(|l| ("/", l.place));
    let of_classes = policy.classes.iter().filter_map(|class| match class.enforce {
        Some(At { value: Enforce::Hsdba, place }) => Some((&*class.path, place)),
        _ => None,
    });
    for (path, place) in of_link.into_iter().chain(of_classes) {
        if plan.find(path).is_some() {
            let what = format!(
                "\"{path}\" shares between its leaves, and not inside one: HSDBA drops at random, \
                 so a flow that does not slow down displaces those that do"
            );
            let help = "write enforce = \"weir\", which shares inside leaves too";
            problems.add(Severity::Note, place, what, help);
        }
    }
    let classes = policy.classes.iter().map(|class| (&*class.path, &class.said));
    let all = classes.chain(link.map(|link| ("/", &link.said)));
    for (path, words) in all.filter(|(_, words)| !words.is_empty()) {
        let Some(id) = plan.find(path) else { continue };
        let Some(top) = tops[id as usize] else { continue };
        let (is_top, held) = (top == id, plan.node(top));
        let is_weirs = plan.node(id).enforce == Enforce::Weir;
        let says = |word: &str| word == "queue" && is_weirs || is_top && OF_THE_TOP.contains(&word);
        for word in words.iter().filter(|word| !says(word.value)) {
            let law = say::enforce(plan.node(id).enforce);
            let what =
                format!("\"{}\" has no effect here: enforce = \"{law}\" has no queues", word.value);
            let help = match (is_top || QUEUES.contains(&word.value), top) {
                (true, _) => {
                    "remove it, or set enforce = \"queue\" where frames are to be queued".into()
                }
                (false, 0) if word.value != "limit" => "remove it: the link has one queue".into(),
                (false, 0) => "set it in the link, which has one queue for all".into(),
                (false, _) => format!("set it in \"{}\", which has one queue for all", held.path),
            };
            problems.warning(word.place, what, help);
        }
    }
}

/// By node, the top of the branch without queues that it lies in: no leaf below that one has any.
fn tops(plan: &Plan) -> Vec<Option<u32>> {
    let mut is_whole = vec![true; plan.nodes.len()];
    for (at, node) in plan.nodes.iter().enumerate().rev() {
        let is_held = matches!(node.enforce, Enforce::Weir | Enforce::Hsdba);
        is_whole[at] &= node.kind == NodeKind::Interior || is_held;
        is_whole[node.parent as usize] &= is_whole[at];
    }
    let mut tops: Vec<Option<u32>> = Vec::with_capacity(plan.nodes.len());
    for (id, node) in (0..).zip(&plan.nodes) {
        let above = if id == 0 { None } else { tops[node.parent as usize] };
        tops.push(is_whole[id as usize].then_some(above.unwrap_or(id)));
    }
    tops
}

#[cfg(test)]
mod tests {
    use crate::{Severity, Source, read};

    fn warnings(link: &str, classes: &str) -> Vec<String> {
        let line = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"";
        let text = format!("{line}\n{link}\n{classes}");
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).unwrap();
        let all = reading.problems.iter().filter(|p| p.severity == Severity::Warning);
        let place = |p: &crate::Problem| reading.sources[0].position(p.place).to_string();
        all.map(|p| format!("{} {} ({})", place(p), p.what, p.help)).collect()
    }

    const BRANCH: &str = "[class.\"/a\"]\n\
        enforce = \"weir\"\nrate = \"10mbit\"\npriority = \"bulk\"\n\
        [class.\"/a/b\"]\nmatch = \"lan 10.0.0.1\"\npriority = \"realtime\"\naqm = \"codel\"\n\
        [class.\"/c\"]\nmatch = \"any\"\npriority = \"bulk\"\naqm = \"codel\"\n";

    #[test]
    fn words_about_queues_say_nothing_where_there_are_none() {
        let said = warnings("", BRANCH);
        assert_eq!(said.len(), 2, "{said:#?}");
        assert!(said[0].contains("\"priority\" has no effect here") && said[0].contains("\"/a\""));
        assert!(said[1].contains("\"aqm\" has no effect here"), "{said:#?}");
        assert!(said[1].contains("enforce = \"queue\""), "{said:#?}");
        // the places are those of the words
        assert!(said[0].starts_with("p:13:1 "), "{said:#?}");
    }

    #[test]
    fn a_leaf_with_queues_below_makes_them_mean_something() {
        let within = BRANCH
            .replace("aqm = \"codel\"\n[class.\"/c\"]", "enforce = \"queue\"\n[class.\"/c\"]");
        let rest = "[class.\"/a\"]\n";
        let with_words = within.replace(rest, &format!("{rest}queue = \"fair\"\n"));
        assert_eq!(warnings("", &with_words), [""; 0]);
    }

    #[test]
    fn who_shares_in_a_leaf_is_said_to_weirs_allocator_and_not_to_hsdba() {
        let branch = |law: &str| {
            format!(
                "[class.\"/a\"]\nenforce = \"{law}\"\nqueue = \"fair-host\"\n\
                 [class.\"/a/b\"]\nmatch = \"any\"\nqueue = \"fifo\"\n"
            )
        };
        assert_eq!(warnings("", &branch("weir")), [""; 0]);
        assert_eq!(warnings("", &branch("hsdba")).len(), 2);
        let line = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"\n";
        let text = format!("{line}{}", branch("hsdba"));
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).unwrap();
        let notes = reading.problems.iter().filter(|p| p.severity == Severity::Note);
        assert_eq!(notes.filter(|p| p.what.contains("not inside one")).count(), 1);
    }

    #[test]
    fn a_link_without_queues_is_a_branch_too() {
        let said = warnings("enforce = \"hsdba\"\nqueue = \"fair\"\nlimit = \"20ms\"", BRANCH);
        // the link's queue; priority of three classes, aqm of two
        assert_eq!(said.len(), 6, "{said:#?}");
        // a link has no priority that could be said instead
        assert!(said.iter().all(|line| !line.contains("say it of")), "{said:#?}");
    }
}
