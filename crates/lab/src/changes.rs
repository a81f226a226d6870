//! Whether claims can fail: changes of a scenario, kept beside it in `changes.toml`, under which
//! each of its claims must fail, and by how much it may.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::claim::Step;
use crate::{Claim, Holds, Outcome};

/// What is changed in a scenario, one change after the other.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changes {
    /// With how many seeds a run with a change is judged.
    #[serde(default = "one")]
    pub seeds: u32,
    /// The changes.
    #[serde(default, rename = "change")]
    pub list: Vec<Change>,
}

fn one() -> u32 {
    1
}

/// As many as a scenario may have.
const MOST_SEEDS: u32 = 1_000;

/// A change under which claims should fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Short and lasting.
    pub id: String,
    /// What is wrong with it.
    pub about: String,
    /// What is written in the scenario instead of what.
    #[serde(default)]
    pub edit: BTreeMap<String, String>,
    /// Which profiles run with it; none is all.
    #[serde(default)]
    pub profiles: Vec<String>,
    /// Which profile has the figures of which other one, without a run.
    #[serde(default)]
    pub like: BTreeMap<String, String>,
}

impl Changes {
    /// Reads a list of changes.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn read(text: &str) -> Result<Changes, String> {
        let changes: Changes = toml::from_str(text).map_err(|error| error.to_string())?;
        let ids: Vec<&str> = changes.list.iter().map(|change| change.id.as_str()).collect();
        if let Some((_, id)) = ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)) {
            return Err(format!("two changes are called \"{id}\""));
        }
        if !(1..=MOST_SEEDS).contains(&changes.seeds) {
            return Err(format!("\"seeds\" is {}: write 1 to {MOST_SEEDS}", changes.seeds));
        }
        match changes.list.iter().find(|change| change.edit.is_empty() == change.like.is_empty()) {
            Some(Change { id, .. }) => Err(format!("\"{id}\": write either \"edit\" or \"like\"")),
            None => Ok(changes),
        }
    }
}

impl Change {
    /// The text of a scenario with this change.
    ///
    /// # Errors
    ///
    /// Something that is to be changed is not there.
    pub fn of(&self, scenario: &str) -> Result<String, String> {
        self.edit.iter().try_fold(scenario.to_owned(), |text, (old, new)| {
            match text.contains(old.as_str()) {
                true => Ok(text.replace(old.as_str(), new)),
                false => Err(format!("change \"{}\": the scenario has no text {old:?}", self.id)),
            }
        })
    }

    /// The figures of a run, where some profiles have been run with this change.
    ///
    /// # Errors
    ///
    /// It names a profile that is not there.
    pub fn figures(&self, unchanged: &Outcome, ran: Option<&Outcome>) -> Result<Outcome, String> {
        let mut outcome = unchanged.clone();
        for (profile, figures) in ran.into_iter().flat_map(Outcome::each_profile) {
            outcome.set(profile, figures.clone());
        }
        for (profile, other) in &self.like {
            let of = |name| unchanged.figures(name).ok_or(name);
            let both = of(profile).and_then(|_| of(other));
            let figures = both.map_err(|name| {
                format!("change \"{}\": there is no profile \"{name}\"", self.id)
            })?;
            outcome.set(profile, figures.clone());
        }
        Ok(outcome)
    }
}

/// How a claim stood up to the changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The claim.
    pub id: String,
    /// What there is to say of it.
    pub verdict: Verdict,
    /// Where it fails.
    pub failures: Vec<Failure>,
}

/// A claim that fails under a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The change.
    pub change: String,
    /// How far past its limit it is.
    pub past: f64,
    /// By how much it holds without the change; nothing for what must be exactly so.
    pub margin: f64,
}

impl Failure {
    /// Whether the figure is shifted by no more than twice its margin.
    #[must_use]
    pub fn is_narrow(&self) -> bool {
        self.past <= self.margin
    }
}

/// What there is to say of a claim after all changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It fails when it should, under a small change too if it has a margin.
    Fails,
    /// It waits for something.
    Pending,
    /// It is known not to hold, of a model of another system.
    Differs,
    /// It fails only under changes of more than twice its margin.
    OnlyLarge,
    /// It holds under every change.
    Survives,
    /// It does not hold without any change, or one that is said not to hold does.
    Wrong,
}

impl Verdict {
    /// Whether the claim is as it should be.
    #[must_use]
    pub fn is_fine(self) -> bool {
        matches!(self, Verdict::Fails | Verdict::Pending | Verdict::Differs)
    }
}

/// What each change does to each claim.
#[must_use]
pub fn try_all(
    claims: &[Claim],
    unchanged: &Outcome,
    changed: &[(&Change, Outcome)],
) -> Vec<Tried> {
    claims.iter().map(|claim| try_one(claim, unchanged, changed)).collect()
}

fn try_one(claim: &Claim, unchanged: &Outcome, changed: &[(&Change, Outcome)]) -> Tried {
    let tried = |verdict| Tried { id: claim.id.clone(), verdict, failures: Vec::new() };
    let holds = |outcome: &Outcome| claim.judge(outcome, None).map(|judged| judged.holds);
    let first = holds(unchanged);
    if claim.pending.is_some() {
        return tried(Verdict::Pending);
    }
    match (first, claim.differs.is_some()) {
        (Some(Holds::Yes), false) => {}
        (Some(Holds::No), true) => return tried(Verdict::Differs),
        _ => return tried(Verdict::Wrong),
    }
    let margins = margins(&steps(claim, unchanged));
    let failing = changed.iter().filter(|(_, outcome)| holds(outcome) == Some(Holds::No));
    // where a figure is gone, the claim says nothing of it
    let failures: Vec<Failure> = failing
        .filter_map(|(change, outcome)| {
            let past = steps(claim, outcome).into_iter().filter(|step| step.over >= 0.0);
            let past = past.filter_map(|step| Some((step.over, *margins.get(&step.case)?)));
            let (past, margin) = past.min_by(|a, b| (a.0 * b.1).total_cmp(&(b.0 * a.1)))?;
            Some(Failure { change: change.id.clone(), past, margin })
        })
        .collect();
    let has_margin = margins.values().any(|margin| *margin > 0.0);
    let verdict = match failures.is_empty() {
        true => Verdict::Survives,
        false if has_margin && !failures.iter().any(Failure::is_narrow) => Verdict::OnlyLarge,
        false => Verdict::Fails,
    };
    Tried { failures, ..tried(verdict) }
}

fn steps(claim: &Claim, outcome: &Outcome) -> Vec<Step> {
    claim.bound.steps(&|profile| outcome.figures(profile)).unwrap_or_default()
}

/// By how much a claim holds, by case and comparison. A shift of no more than twice that is past
/// the limit by no more than once.
fn margins(steps: &[Step]) -> BTreeMap<String, f64> {
    let mut margins = BTreeMap::new();
    for step in steps {
        let margin = step.band.unwrap_or_else(|| match -step.over {
            // what holds by a hair is past its limit by more than that under any change
            room if room > 0.0 => room.max(LEAST * step.limit.abs()),
            _ => 0.0,
        });
        let least = margins.entry(step.case.clone()).or_insert(margin);
        *least = margin.min(*least);
    }
    margins
}

/// The least margin, as a part of the limit.
const LEAST: f64 = 0.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::over_seeds;
    use crate::{Driver, Expected};

    fn outcome(loss: f64) -> Outcome {
        let mut outcome = Outcome::new("x", Driver::Virtual, 1, "weir");
        outcome.set("weir", over_seeds(&[vec![("loss", loss)]]));
        outcome.set("none", over_seeds(&[vec![("loss", 0.5)]]));
        outcome
    }

    fn tried(lines: &str, changed: &[f64]) -> Tried {
        let text = format!("[[claim]]\nid = \"1\"\ntext = \"t\"\n{lines}\n");
        let claims = Expected::read(&text).unwrap().claims;
        let change =
            Changes::read("[[change]]\nid = \"c\"\nabout = \"\"\nlike = { weir = \"none\" }\n");
        let change = &change.unwrap().list[0];
        let changed: Vec<_> = changed.iter().map(|loss| (change, outcome(*loss))).collect();
        try_all(&claims, &outcome(0.02), &changed).remove(0)
    }

    #[test]
    fn a_claim_must_fail_under_a_small_change() {
        let verdict = |lines, changed: &[f64]| tried(lines, changed).verdict;
        let below = "bound = \"loss <= 0.03\"";
        // .02 of .03: twice the margin is .04
        assert_eq!(verdict(below, &[0.01, 0.03]), Verdict::Survives);
        assert_eq!(verdict(below, &[0.5]), Verdict::OnlyLarge);
        assert_eq!(verdict(below, &[0.5, 0.0399]), Verdict::Fails);
        let near = "bound = \"loss within 0.01 of 0.025\"";
        assert_eq!(verdict(near, &[0.034]), Verdict::Survives);
        assert_eq!(verdict(near, &[0.046]), Verdict::OnlyLarge);
        assert_eq!(verdict(near, &[0.006]), Verdict::Fails);
        // what must be exactly so has no margin
        assert_eq!(verdict("bound = \"loss <= 0.02\"", &[0.5]), Verdict::Fails);
    }

    #[test]
    fn what_holds_by_a_hair_has_a_twentieth_of_its_limit() {
        let verdict = |changed| tried("bound = \"loss <= 0.02001\"", &[changed]).verdict;
        assert_eq!(verdict(0.0209), Verdict::Fails);
        assert_eq!(verdict(0.0212), Verdict::OnlyLarge);
    }

    #[test]
    fn a_figure_that_is_gone_is_no_failure() {
        let claims =
            Expected::read("[[claim]]\nid = \"1\"\ntext = \"t\"\nbound = \"loss <= 0.02\"\n");
        let claims = claims.unwrap().claims;
        let text = "[[change]]\nid = \"c\"\nabout = \"\"\nlike = { weir = \"none\" }\n";
        let change = &Changes::read(text).unwrap().list[0];
        let mut gone = outcome(0.5);
        gone.set("weir", over_seeds(&[vec![("other", 1.0)]]));
        let tried = try_all(&claims, &outcome(0.02), &[(change, gone)]);
        assert_eq!(tried[0].verdict, Verdict::Survives);
    }

    #[test]
    fn what_is_excused_must_not_hold() {
        let verdict = |lines: &str| tried(lines, &[0.5]).verdict;
        let differs = "differs = \"why\"";
        assert_eq!(verdict(&format!("bound = \"loss <= 0.01\"\n{differs}")), Verdict::Differs);
        assert_eq!(verdict(&format!("bound = \"loss <= 0.03\"\n{differs}")), Verdict::Wrong);
        assert_eq!(verdict("bound = \"loss <= 0.01\""), Verdict::Wrong);
        assert_eq!(verdict("bound = \"loss <= 0.01\"\npending = \"x\""), Verdict::Pending);
    }

    #[test]
    fn a_change_is_written_or_borrowed() {
        let text = "[[change]]\nid = \"c\"\nabout = \"\"\nedit = { 'a = 1' = 'a = 2' }\n";
        let change = Changes::read(text).unwrap().list.remove(0);
        assert_eq!(change.of("x\na = 1\n").unwrap(), "x\na = 2\n");
        assert!(change.of("a = 3").unwrap_err().contains("no text \"a = 1\""));
        let like = |other: &str| Change {
            like: [("weir".to_owned(), other.to_owned())].into(),
            ..change.clone()
        };
        let loss = |outcome: Outcome| outcome.figures("weir").unwrap().get("loss").unwrap().mean;
        assert_eq!(loss(like("none").figures(&outcome(0.02), None).unwrap()), 0.5);
        assert!(like("nobody").figures(&outcome(0.02), None).unwrap_err().contains("nobody"));
        assert_eq!(loss(change.figures(&outcome(0.02), Some(&outcome(0.1))).unwrap()), 0.1);
        for wrong in ["", "edit = { a = 'b' }\nlike = { a = 'b' }"] {
            let text = format!("[[change]]\nid = \"c\"\nabout = \"\"\n{wrong}\n");
            assert!(Changes::read(&text).unwrap_err().contains("write either"), "{wrong}");
        }
        assert!(Changes::read(&text.repeat(2)).unwrap_err().contains("two changes"));
        let seeds = |seeds: u32| Changes::read(&format!("seeds = {seeds}\n{text}"));
        assert!(seeds(0).unwrap_err().contains("1 to 1000") && seeds(1_001).is_err());
        assert_eq!(seeds(1_000).unwrap().seeds, 1_000);
    }
}
