//! What the command prints of an outcome.

use crate::claim::{Expected, Holds, Judged};
use crate::grid::Grid;
use crate::result::Outcome;

/// Profiles that stand beside each other before the table goes on below.
pub(crate) const ABREAST: usize = 5;

/// An outcome for the terminal: figures beside those of the paper, then the claims.
#[must_use]
pub fn summary(outcome: &Outcome, expected: &Expected) -> Vec<String> {
    let mut lines = vec![heading(outcome)];
    let profiles: Vec<&str> = outcome.each_profile().map(|(name, _)| name).collect();
    for some in profiles.chunks(ABREAST) {
        lines.push(String::new());
        lines.extend(Grid::figures(outcome, expected, some).lines());
    }
    if !outcome.claims.is_empty() {
        lines.push(String::new());
        lines.extend(Grid::claims(&outcome.claims).lines());
        lines.push(String::new());
        lines.push(tally(&outcome.claims));
    }
    if !expected.slips.is_empty() {
        lines.push(String::new());
        lines.extend(expected.slips.iter().map(|slip| format!("a slip of the paper: {slip}")));
    }
    lines
}

/// What ran, in one line.
pub(crate) fn heading(outcome: &Outcome) -> String {
    let Outcome { experiment, driver, seeds, .. } = outcome;
    let seeds = if *seeds == 1 { "one seed".to_owned() } else { format!("{seeds} seeds") };
    let size = if outcome.is_full { ", the paper's size" } else { "" };
    format!("{experiment}: {} driver, {seeds}{size}", driver.name())
}

/// How many claims hold and do not: `3 claims: 2 hold, 1 pending`.
#[must_use]
pub fn tally<'a>(claims: impl IntoIterator<Item = &'a Judged>) -> String {
    let claims: Vec<Holds> = claims.into_iter().map(|claim| claim.holds).collect();
    let count = |what| claims.iter().filter(|holds| **holds == what).count();
    let parts = [
        (count(Holds::Yes), "holds", "hold"),
        (count(Holds::No), "does not hold", "do not hold"),
        (count(Holds::Pending), "pending", "pending"),
        (count(Holds::Void), "void", "void"),
    ];
    let part = |(count, one, several): &(usize, &str, &str)| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        count => Some(format!("{count} {several}")),
    };
    let parts: Vec<String> = parts.iter().filter_map(part).collect();
    match claims.len() {
        0 => "no claims".to_owned(),
        1 => format!("1 claim: {}", parts.join(", ")),
        all => format!("{all} claims: {}", parts.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Comparison;
    use crate::result::{Driver, over_seeds};

    fn expected() -> Expected {
        Expected::read(
            "[paper]\nsum = 0.242\n\"none:sum\" = 0.252\n\"none:mean.ep1\" = 0.089\n\
             [[claim]]\nid = \"order\"\ntext = \"the first is not below the second\"\n\
             bound = \"mean.ep1 >= mean.ep2\"\npaper = \"0.102, 0.093\"\n\
             [[claim]]\nid = \"sum\"\ntext = \"control costs nothing\"\npaper = 0.96\n\
             bound = \"sum >= 0.99 * none:sum\"\n\
             [[claim]]\nid = \"late\"\ntext = \"acknowledgements are paced\"\nbound = \"x <= 1\"\n\
             pending = \"TCP rate control\"\n",
        )
        .unwrap()
    }

    fn outcome() -> Outcome {
        let mut outcome = Outcome::new("edge-upstream", Driver::Virtual, 2, "weir");
        let run = |sum, one, two| vec![("sum", sum), ("mean.ep1", one), ("mean.ep2", two)];
        let ours = [run(0.244, 0.101, 0.094), run(0.24, 0.103, 0.094)];
        outcome.set("weir", over_seeds(&ours));
        outcome.set("none", over_seeds(&[run(0.252, 0.085, 0.083)]));
        outcome.judge(&expected().claims, None);
        outcome
    }

    #[test]
    fn what_the_command_prints() {
        insta::assert_snapshot!(summary(&outcome(), &expected()).join("\n"));
    }

    #[test]
    fn many_profiles_go_on_below() {
        let mut outcome = Outcome::new("x", Driver::Virtual, 1, "weir");
        (0..6).for_each(|at| outcome.set(&format!("p{at}"), over_seeds(&[vec![("a", 1.0)]])));
        let lines = summary(&outcome, &Expected::default());
        assert_eq!(lines.iter().filter(|line| line.starts_with("figure")).count(), 2);
        assert_eq!(lines[0], "x: virtual driver, one seed");
    }

    #[test]
    fn two_profiles_side_by_side() {
        let outcome = outcome();
        let none = outcome.figures("none").unwrap();
        let found = Comparison::of(none, &outcome.metrics);
        insta::assert_snapshot!(Grid::differences(&found, "none", "weir").lines().join("\n"));
    }
}
