//! Which rules can never be reached, and where rules of different classes overlap. The first rule
//! in the order of asking wins; a rule that an earlier one covers wholly is a mistake, and a frame
//! that two classes want is worth a word.

mod relation;

use std::collections::BTreeSet;

use weir_units::limits;

use crate::plan::{NodeId, Plan, Rule, Target};
use crate::policy::Policy;
use crate::problem::{Problems, Severity};
use crate::source::Source;
use relation::{Relation, meet, relation};

/// Classes that one note names before the rest is only counted.
const NAMED: usize = 6;

struct Flat<'p> {
    asked: usize,
    rule: &'p Rule,
}

pub(crate) fn check(plan: &Plan, policy: &Policy, source: &Source, problems: &mut Problems) {
    if plan.asked.iter().map(|a| a.rules.len()).sum::<usize>() > limits::RULES {
        // has been said; comparing every pair of so many would take minutes
        return;
    }
    let flat = judged(plan, policy);
    let mut meetings = Meetings::new(plan, flat.len());
    let mut crossing: Vec<(usize, usize)> = Vec::new();
    let mut covered: Vec<Option<usize>> = vec![None; flat.len()];
    for (at, later) in flat.iter().enumerate() {
        for (before, earlier) in flat[..at].iter().enumerate().rev() {
            let covers_frames = sees_all(plan, earlier.asked, later.asked);
            if !covers_frames && is_within(plan, earlier.asked, later.asked) {
                // a child takes its part of what its parent matches: that is what children are for
                continue;
            }
            let relation = relation(&earlier.rule.when, &later.rule.when);
            if !matches!(relation, Relation::Apart | Relation::General)
                && earlier.asked != later.asked
                && !meetings.classes_meet((before, earlier), (at, later))
            {
                continue;
            }
            match relation {
                Relation::Apart | Relation::General => {}
                Relation::Covered if covers_frames => {
                    covered[at] = Some(before);
                    break;
                }
                Relation::Partly if earlier.asked != later.asked => {
                    partly(plan, earlier, later, problems);
                }
                _ if earlier.asked != later.asked => {
                    let pair = (later.asked, earlier.asked);
                    if crossing.last() != Some(&pair) {
                        crossing.push(pair);
                    }
                }
                _ => {}
            }
        }
    }
    tell_covered(plan, &flat, &covered, source, problems);
    crossing.sort_unstable();
    crossing.dedup();
    tell_crossing(plan, &crossing, problems);
}

/// A line that is several rules (`port 500,4500`) is reached while one of them is.
fn tell_covered(
    plan: &Plan,
    flat: &[Flat<'_>],
    covered: &[Option<usize>],
    source: &Source,
    problems: &mut Problems,
) {
    let is_one_line = |a: &(&Flat<'_>, &Option<usize>), b: &(&Flat<'_>, &Option<usize>)| {
        (a.0.asked, a.0.rule.place) == (b.0.asked, b.0.rule.place)
    };
    let all: Vec<_> = flat.iter().zip(covered).collect();
    for line in all.chunk_by(is_one_line) {
        let mut by = line.iter().filter_map(|(later, by)| Some((*later, &flat[(**by)?])));
        let Some((later, earlier)) = by.next() else { continue };
        if by.count() + 1 == line.len() {
            unreachable(plan, earlier, later, source, problems);
        } else if earlier.asked != later.asked {
            partly(plan, earlier, later, problems);
        }
    }
}

/// The rules that can be judged. Where a line of a class could not be read, nobody knows what comes
/// to the classes below it.
fn judged<'p>(plan: &'p Plan, policy: &Policy) -> Vec<Flat<'p>> {
    let at_fault = policy.classes.iter().filter(|class| class.match_at_fault);
    let at_fault: BTreeSet<&str> = at_fault.map(|class| &*class.path).collect();
    let known = |node: NodeId| {
        at_fault.is_empty() || !plan.way_up(node).skip(1).any(|n| at_fault.contains(&*n.path))
    };
    let asked = plan.asked.iter().enumerate();
    asked
        .filter(|(_, asked)| asked.target != Target::Subscriber && known(asked.node))
        .flat_map(|(asked, a)| a.rules.iter().map(move |rule| Flat { asked, rule }))
        .collect()
}

/// Whether classes and rules have frames in common; each answer is worked out once.
struct Meetings<'p> {
    plan: &'p Plan,
    rules: usize,
    /// By class and rule.
    with_rule: Vec<Option<bool>>,
    /// By class and class.
    with_class: Vec<Option<bool>>,
}

impl<'p> Meetings<'p> {
    fn new(plan: &'p Plan, rules: usize) -> Meetings<'p> {
        let classes = plan.asked.len();
        let (with_rule, with_class) = (vec![None; classes * rules], vec![None; classes * classes]);
        Meetings { plan, rules, with_rule, with_class }
    }

    /// Whether a frame can satisfy the conditions above both rules: classes in different VLANs have
    /// no frame in common, whatever their children say.
    fn classes_meet(
        &mut self,
        (before, earlier): (usize, &Flat<'p>),
        (at, later): (usize, &Flat<'p>),
    ) -> bool {
        let plan = self.plan;
        let mut above_later = above(plan, later.asked);
        above(plan, earlier.asked).all(|class| self.meets_rule(class, (at, later.rule)))
            && above_later.all(|class| self.meets_rule(class, (before, earlier.rule)))
            && above(plan, earlier.asked)
                .all(|a| above(plan, later.asked).all(|b| self.meets_class(a, b)))
    }

    fn meets_rule(&mut self, class: usize, (number, rule): (usize, &Rule)) -> bool {
        let rules = &self.plan.asked[class].rules;
        *self.with_rule[class * self.rules + number]
            .get_or_insert_with(|| rules.iter().any(|r| meet(&r.when, &rule.when)))
    }

    fn meets_class(&mut self, a: usize, b: usize) -> bool {
        let asked = &self.plan.asked;
        *self.with_class[a * asked.len() + b].get_or_insert_with(|| {
            let meets = |x: &Rule| asked[b].rules.iter().any(|y| meet(&x.when, &y.when));
            asked[a].rules.iter().any(meets)
        })
    }
}

/// The asked classes above one, the nearest first.
fn above(plan: &Plan, asked: usize) -> impl Iterator<Item = usize> {
    let step = |asked: &usize| plan.asked[*asked].within.map(|above| above as usize);
    std::iter::successors(step(&asked), step)
}

/// Whether `inner` lies within `outer` in the tree.
fn is_within(plan: &Plan, inner: usize, outer: usize) -> bool {
    above(plan, inner).any(|class| class == outer)
}

/// Whether every frame that comes to the later class would have passed the conditions above the
/// earlier.
fn sees_all(plan: &Plan, earlier: usize, later: usize) -> bool {
    match plan.asked[earlier].within {
        None => true,
        Some(above) => is_within(plan, later, above as usize),
    }
}

fn unreachable(
    plan: &Plan,
    earlier: &Flat<'_>,
    later: &Flat<'_>,
    source: &Source,
    problems: &mut Problems,
) {
    let path = |flat: &Flat<'_>| &plan.node(plan.asked[flat.asked].node).path;
    let (line, _) = source.line_column(earlier.rule.place.start as usize);
    let (what, help) = if earlier.asked == later.asked {
        let what = format!(
            "\"{}\" adds nothing: line {line} of the same class has it already",
            later.rule.text
        );
        (what, "remove it".to_owned())
    } else {
        let what = format!(
            "\"{}\" can never match: \"{}\" of \"{}\" in line {line} matches all of its frames \
             first",
            later.rule.text,
            earlier.rule.text,
            path(earlier)
        );
        (what, format!("move \"{}\" before \"{}\", or remove it", path(later), path(earlier)))
    };
    problems.error(later.rule.place, what, help);
}

fn partly(plan: &Plan, earlier: &Flat<'_>, later: &Flat<'_>, problems: &mut Problems) {
    let path = |flat: &Flat<'_>| &plan.node(plan.asked[flat.asked].node).path;
    let what = format!(
        "\"{}\" overlaps with \"{}\" of \"{}\", which comes first and wins",
        later.rule.text,
        earlier.rule.text,
        path(earlier)
    );
    problems.warning(later.rule.place, what, "separate them, or put the more specific one first");
}

/// One note per later class; of a class and its children only the class is named. The pairs are
/// sorted, the later class first.
fn tell_crossing(plan: &Plan, pairs: &[(usize, usize)], problems: &mut Problems) {
    for pairs in pairs.chunk_by(|a, b| a.0 == b.0) {
        let later = plan.node(plan.asked[pairs[0].0].node);
        let nodes = || pairs.iter().map(|(_, earlier)| plan.asked[*earlier].node);
        let all: BTreeSet<&str> = nodes().map(|node| &*plan.node(node).path).collect();
        let is_below =
            |node: NodeId| plan.way_up(node).skip(1).any(|above| all.contains(&*above.path));
        let mut names: Vec<String> = nodes()
            .filter(|node| !is_below(*node))
            .map(|node| format!("\"{}\"", plan.node(node).path))
            .collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let goes = match &names[..] {
            [one] if more.is_empty() => format!("match both go to {one}, which comes earlier"),
            _ => "match several of these go to the one that comes first".to_owned(),
        };
        let names = names.join(", ");
        let what = format!("\"{}\" overlaps with {names}{more}: frames that {goes}", later.path);
        problems.add(Severity::Note, later.place, what, "");
    }
}
