//! Figures by key: a mean over seeds with its deviation. In a file they are flat, the deviation
//! beside its mean under the same key and `.sd`.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

use crate::metrics::{deviation, mean};
use crate::named::Named;
use crate::number::stable;

/// A mean, and how far the seeds lie apart.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The mean over the seeds.
    pub mean: f64,
    /// The deviation of the population of seeds; none of a single one.
    pub sd: Option<f64>,
}

/// Figures by key, in the order in which the experiment gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(Named<Figure>);

/// Which of several cases stands for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The least is the worst.
    Least,
    /// The greatest is the worst.
    Greatest,
}

/// The figures of several runs, one list of keys and numbers for each seed. A key that a seed
/// lacks, or has no finite number for, is left out: a mean over the others would look better than
/// it is.
#[must_use]
pub fn over_seeds<K: AsRef<str>>(runs: &[Vec<(K, f64)>]) -> Figures {
    let mut figures = Figures::default();
    for (key, _) in runs.first().into_iter().flatten() {
        let key = key.as_ref();
        let of = |run: &Vec<(K, f64)>| {
            let found = run.iter().find(|(other, _)| other.as_ref() == key);
            found.map(|(_, number)| *number)
        };
        let numbers: Option<Vec<f64>> = runs.iter().map(of).collect();
        let Some(numbers) = numbers else { continue };
        let sd = deviation(&numbers).filter(|_| numbers.len() > 1);
        if let Some(mean) = mean(&numbers) {
            figures.set(key, Figure { mean, sd });
        }
    }
    figures
}

impl Figures {
    /// Sets a figure. What is no number is left out.
    pub fn set(&mut self, key: &str, figure: Figure) {
        if figure.mean.is_finite() {
            let sd = figure.sd.filter(|sd| sd.is_finite()).map(stable);
            self.0.set(key, Figure { mean: stable(figure.mean), sd });
        }
    }

    /// Sets `key` to the worst of its cases `key.*`, if there are any.
    pub fn set_worst(&mut self, key: &str, worst: Extreme) {
        let case = format!("{key}.");
        let cases = self.iter().filter(|(key, _)| key.starts_with(&case)).map(|(_, case)| case);
        let found = match worst {
            Extreme::Least => cases.min_by(|a, b| a.mean.total_cmp(&b.mean)),
            Extreme::Greatest => cases.max_by(|a, b| a.mean.total_cmp(&b.mean)),
        };
        if let Some(found) = found {
            self.set(key, found);
        }
    }

    /// The figure of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Figure> {
        self.0.get(key).copied()
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Figure)> + Clone {
        self.0.iter().map(|(key, figure)| (key, *figure))
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let flat = self.iter().flat_map(|(key, Figure { mean, sd })| {
            let sd = sd.map(|sd| (format!("{key}.sd"), sd));
            [Some((key.to_owned(), mean)), sd].into_iter().flatten()
        });
        to.collect_map(flat)
    }
}

impl<'de> Deserialize<'de> for Figures {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Figures, D::Error> {
        let flat: Named<f64> = Named::deserialize(from)?;
        let mut figures = Figures::default();
        for (key, number) in flat.iter() {
            match key.strip_suffix(".sd").filter(|stem| flat.get(stem).is_some()) {
                Some(_) => {}
                None => {
                    let sd = flat.get(&format!("{key}.sd")).copied();
                    figures.set(key, Figure { mean: *number, sd });
                }
            }
        }
        Ok(figures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_one_seed_lacks_is_left_out() {
        let runs = [vec![("a", 1.0), ("b", 2.0), ("c", 3.0)], vec![("a", 3.0), ("b", f64::NAN)]];
        let figures = over_seeds(&runs);
        assert_eq!(figures.get("a"), Some(Figure { mean: 2.0, sd: Some(1.0) }));
        assert_eq!(figures.iter().count(), 1);
        assert_eq!(over_seeds(&[vec![("a", 1.0)]]).get("a").unwrap().sd, None);
        assert_eq!(over_seeds::<&str>(&[]), Figures::default());
    }

    #[test]
    fn the_worst_case_stands_for_all() {
        let mut figures = over_seeds(&[vec![("jain.a", 0.9), ("jain.b", 0.7), ("jainx", 0.1)]]);
        figures.set_worst("jain", Extreme::Least);
        assert_eq!(figures.get("jain").unwrap().mean, 0.7);
        figures.set_worst("loss", Extreme::Greatest);
        assert_eq!(figures.get("loss"), None);
    }
}
