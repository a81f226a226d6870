//! Which rules can never be reached, and where rules of different classes overlap. The first rule
//! in the order of asking wins; a rule that an earlier one covers wholly is a mistake, and a frame
//! that two classes want is worth a word.

use crate::matching::When;
use crate::plan::{Plan, Rule, Target};
use crate::problem::{Problems, Severity};
use crate::source::Source;
use weir_units::limits;

/// Classes that one note names before the rest is only counted.
const NAMED: usize = 6;

struct Flat<'p> {
    asked: usize,
    rule: &'p Rule,
}

/// How the frames of a later rule lie to those of an earlier one.
#[derive(PartialEq, Eq)]
enum Relation {
    Apart,
    /// The earlier one takes them all.
    Covered,
    /// The later one takes what the earlier leaves: the special before the general.
    General,
    /// They speak of the same thing and share a part of it.
    Partly,
    /// They speak of different things.
    Crossing,
}

pub(crate) fn check(plan: &Plan, source: &Source, problems: &mut Problems) {
    if plan.asked.iter().map(|a| a.rules.len()).sum::<usize>() > limits::RULES {
        // has been said; comparing every pair of so many would take minutes
        return;
    }
    let flat: Vec<Flat<'_>> = plan
        .asked
        .iter()
        .enumerate()
        .filter(|(_, asked)| asked.target != Target::Subscriber)
        .flat_map(|(asked, a)| a.rules.iter().map(move |rule| Flat { asked, rule }))
        .collect();
    let mut crossing: Vec<(usize, usize)> = Vec::new();
    for (at, later) in flat.iter().enumerate() {
        for earlier in flat[..at].iter().rev() {
            let covers_frames = sees_all(plan, earlier.asked, later.asked);
            if !covers_frames && is_within(plan, earlier.asked, later.asked) {
                // a child takes its part of what its parent matches: that is what children are for
                continue;
            }
            let relation = relation(&earlier.rule.when, &later.rule.when);
            if !matches!(relation, Relation::Apart | Relation::General)
                && earlier.asked != later.asked
                && !classes_meet(plan, earlier, later)
            {
                continue;
            }
            match relation {
                Relation::Apart | Relation::General => {}
                Relation::Covered if covers_frames => {
                    unreachable(plan, earlier, later, source, problems);
                    break;
                }
                Relation::Partly if earlier.asked != later.asked => {
                    partly(plan, earlier, later, problems);
                }
                _ if earlier.asked != later.asked => crossing.push((earlier.asked, later.asked)),
                _ => {}
            }
        }
    }
    crossing.sort_unstable();
    crossing.dedup();
    tell_crossing(plan, &crossing, problems);
}

/// Whether a frame can satisfy the conditions above both rules: classes in different VLANs have no
/// frame in common, whatever their children say.
fn classes_meet(plan: &Plan, earlier: &Flat<'_>, later: &Flat<'_>) -> bool {
    let above = |flat: &Flat<'_>| {
        let mut next = plan.asked[flat.asked].within;
        std::iter::from_fn(move || {
            let class = &plan.asked[next? as usize];
            next = class.within;
            Some(class)
        })
    };
    let meet = |a: &Rule, b: &Rule| fields(&a.when, &b.when).iter().all(|f| f.meets);
    let any = |rules: &[Rule], rule: &Rule| rules.iter().any(|r| meet(r, rule));
    above(earlier).all(|class| any(&class.rules, later.rule))
        && above(later).all(|class| any(&class.rules, earlier.rule))
        && above(earlier)
            .all(|a| above(later).all(|b| b.rules.iter().any(|rule| any(&a.rules, rule))))
}

/// Whether `inner` lies within `outer` in the tree.
fn is_within(plan: &Plan, inner: usize, outer: usize) -> bool {
    let mut within = plan.asked[inner].within;
    while let Some(above) = within {
        if above as usize == outer {
            return true;
        }
        within = plan.asked[above as usize].within;
    }
    false
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
        (what, "take it out".to_owned())
    } else {
        let what = format!(
            "\"{}\" is never reached: \"{}\" of \"{}\" in line {line} takes all of it",
            later.rule.text,
            earlier.rule.text,
            path(earlier)
        );
        (what, format!("move \"{}\" before \"{}\", or take it out", path(later), path(earlier)))
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
    problems.warning(later.rule.place, what, "make them apart, or put the more special one first");
}

/// One note per later class; of a class and its children only the class is named.
fn tell_crossing(plan: &Plan, pairs: &[(usize, usize)], problems: &mut Problems) {
    let path = |asked: usize| &*plan.node(plan.asked[asked].node).path;
    let mut later: Vec<usize> = pairs.iter().map(|(_, later)| *later).collect();
    later.sort_unstable();
    later.dedup();
    for class in later {
        let all: Vec<&str> =
            pairs.iter().filter(|(_, l)| *l == class).map(|(earlier, _)| path(*earlier)).collect();
        let below = |p: &str| {
            all.iter().any(|q| p.strip_prefix(q).is_some_and(|rest| rest.starts_with('/')))
        };
        let mut names: Vec<String> =
            all.iter().filter(|p| !below(p)).map(|p| format!("\"{p}\"")).collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let what = format!(
            "\"{}\" overlaps with {}{more}: a frame that both match goes to the class that is \
             asked first, which is not this one",
            path(class),
            names.join(", ")
        );
        problems.add(Severity::Note, plan.node(plan.asked[class].node).place, what, "");
    }
}

/// How one condition of the later rule lies to the same condition of the earlier.
struct Field {
    /// The earlier holds for all that the later holds for.
    covers: bool,
    /// The later holds for all that the earlier holds for.
    covered: bool,
    /// They have something in common.
    meets: bool,
    /// Both say something.
    both: bool,
}

fn field<T>(
    earlier: Option<&T>,
    later: Option<&T>,
    covers: impl Fn(&T, &T) -> bool,
    meets: impl Fn(&T, &T) -> bool,
) -> Field {
    match (earlier, later) {
        (None, None) => Field { covers: true, covered: true, meets: true, both: false },
        (None, Some(_)) => Field { covers: true, covered: false, meets: true, both: false },
        (Some(_), None) => Field { covers: false, covered: true, meets: true, both: false },
        (Some(e), Some(l)) => {
            Field { covers: covers(e, l), covered: covers(l, e), meets: meets(e, l), both: true }
        }
    }
}

fn relation(earlier: &When, later: &When) -> Relation {
    let (mut covers, mut covered, mut partly, mut crossing) = (true, true, false, false);
    for field in fields(earlier, later) {
        if !field.meets {
            return Relation::Apart;
        }
        covers &= field.covers;
        covered &= field.covered;
        partly |= field.both && !field.covers && !field.covered;
        crossing |= !field.both && field.covers != field.covered;
    }
    match (covers, covered) {
        (true, _) => Relation::Covered,
        (false, true) => Relation::General,
        _ if partly && !crossing => Relation::Partly,
        _ => Relation::Crossing,
    }
}

fn fields(e: &When, l: &When) -> Vec<Field> {
    let within = |a: &(u16, u16), b: &(u16, u16)| a.0 <= b.0 && a.1 >= b.1;
    let meet = |a: &(u16, u16), b: &(u16, u16)| a.0 <= b.1 && b.0 <= a.1;
    let mut fields = Vec::with_capacity(16);
    for (e, l) in [(&e.lan, &l.lan), (&e.wan, &l.wan), (&e.host, &l.host)] {
        fields.push(field(e.as_ref(), l.as_ref(), |a, b| a.covers(b), |a, b| a.overlaps(b)));
    }
    for (e, l) in [
        (&e.lan_port, &l.lan_port),
        (&e.wan_port, &l.wan_port),
        (&e.port, &l.port),
        (&e.vlan, &l.vlan),
        (&e.length, &l.length),
    ] {
        fields.push(field(e.as_ref(), l.as_ref(), within, meet));
    }
    for (e, l) in [(&e.protocol, &l.protocol), (&e.dscp, &l.dscp)] {
        fields.push(field(e.as_ref(), l.as_ref(), PartialEq::eq, PartialEq::eq));
    }
    for (e, l) in [(&e.lan_mac, &l.lan_mac), (&e.wan_mac, &l.wan_mac), (&e.mac, &l.mac)] {
        fields.push(field(e.as_ref(), l.as_ref(), PartialEq::eq, PartialEq::eq));
    }
    fields.push(field(e.ethertype.as_ref(), l.ethertype.as_ref(), PartialEq::eq, PartialEq::eq));
    fields.push(field(e.toward.as_ref(), l.toward.as_ref(), PartialEq::eq, PartialEq::eq));
    // different bytes may still be in one frame
    fields.push(field(e.raw.as_ref(), l.raw.as_ref(), PartialEq::eq, |_, _| true));
    let tag = |w: &When| w.untagged.then_some(());
    fields.push(field(tag(e).as_ref(), tag(l).as_ref(), |(), ()| true, |(), ()| true));
    fields
}
