//! Figures by key: a mean over seeds with its deviation. In a file they are flat, the deviation
//! beside its mean under the same key and `.sd`.

use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

#[cfg(test)]
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

impl Figures {
    /// Sets a figure. What is no number is left out.
    pub fn set(&mut self, key: &str, figure: Figure) {
        if figure.mean.is_finite() {
            let sd = figure.sd.filter(|sd| sd.is_finite()).map(stable);
            self.0.set(key, Figure { mean: stable(figure.mean), sd });
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

/// Means over runs, one list of keys and numbers each, with deviations where there are several.
#[cfg(test)]
pub(crate) fn over_seeds<K: AsRef<str>>(runs: &[Vec<(K, f64)>]) -> Figures {
    let mut figures = Figures::default();
    for (at, (key, _)) in runs[0].iter().enumerate() {
        let numbers: Vec<f64> = runs.iter().map(|run| run[at].1).collect();
        let sd = deviation(&numbers).filter(|_| numbers.len() > 1);
        figures.set(key.as_ref(), Figure { mean: mean(&numbers).unwrap(), sd });
    }
    figures
}
