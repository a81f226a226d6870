//! Two sets of figures side by side: what differs, and which differences are more than chance.

use crate::result::{Figure, Figures};

/// Two sets of figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Keys that both have, in the order of the first.
    pub differences: Vec<Difference>,
    /// Keys that only the first has.
    pub only_first: Vec<String>,
    /// Keys that only the second has.
    pub only_second: Vec<String>,
}

/// One key in both.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The key.
    pub key: String,
    /// What the first has.
    pub first: Figure,
    /// What the second has.
    pub second: Figure,
}

impl Comparison {
    /// Of two policies, or two runs of one.
    #[must_use]
    pub fn of(first: &Figures, second: &Figures) -> Comparison {
        let lacks = |figures: &Figures, (key, _): &(&str, Figure)| figures.get(key).is_none();
        let keys = |(key, _): (&str, Figure)| key.to_owned();
        let both = |(key, figure)| {
            let second = second.get(key)?;
            Some(Difference { key: key.to_owned(), first: figure, second })
        };
        Comparison {
            differences: first.iter().filter_map(both).collect(),
            only_first: first.iter().filter(|entry| lacks(second, entry)).map(keys).collect(),
            only_second: second.iter().filter(|entry| lacks(first, entry)).map(keys).collect(),
        }
    }

    /// How many differences are beyond the spread.
    #[must_use]
    pub fn beyond(&self) -> usize {
        self.differences.iter().filter(|one| one.beyond() == Some(true)).count()
    }
}

impl Difference {
    /// The second less the first.
    #[must_use]
    pub fn change(&self) -> f64 {
        self.second.mean - self.first.mean
    }

    /// The change as a share of the first; none where that is zero.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.first.mean != 0.0).then(|| self.change() / self.first.mean.abs())
    }

    /// Whether it is more than twice the deviation that the difference of two single runs has. None
    /// where a spread is not known, because there was one seed.
    #[must_use]
    pub fn beyond(&self) -> Option<bool> {
        let spread = self.first.sd?.hypot(self.second.sd?);
        Some(self.change().abs() > 2.0 * spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::over_seeds;

    fn beyond(first: &[f64], second: &[f64]) -> Option<bool> {
        let figures = |of: &[f64]| {
            let runs: Vec<_> = of.iter().map(|number| vec![("a", *number)]).collect();
            over_seeds(&runs)
        };
        Comparison::of(&figures(first), &figures(second)).differences[0].beyond()
    }

    #[test]
    fn a_difference_counts_if_the_spread_does_not_explain_it() {
        assert_eq!(beyond(&[1.0, 2.0], &[2.0, 3.0]), Some(false));
        assert_eq!(beyond(&[1.0, 2.0], &[4.0, 5.0]), Some(true));
        assert_eq!(beyond(&[1.0, 1.0], &[1.0, 1.0]), Some(false));
        assert_eq!(beyond(&[1.0, 1.0], &[1.1, 1.1]), Some(true));
        assert_eq!(beyond(&[1.0], &[9.0, 9.0]), None);
    }

    #[test]
    fn keys_of_one_side_are_listed() {
        let first = over_seeds(&[vec![("a", 0.0), ("b", 2.0)]]);
        let second = over_seeds(&[vec![("b", 1.0), ("c", 3.0)]]);
        let found = Comparison::of(&first, &second);
        assert_eq!((&found.only_first[0], &found.only_second[0]), (&"a".into(), &"c".into()));
        assert_eq!(found.differences[0].share(), Some(-0.5));
        assert_eq!(found.beyond(), 0);
    }
}
