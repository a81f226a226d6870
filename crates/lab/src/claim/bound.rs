//! A bound on figures, in words: comparisons in a chain, or one value near another.
//!
//! ```text
//! fairness <= 0.02
//! mean.ep1 >= mean.ep2 > mean.ep3
//! mean.ep1 + mean.ep2 within 2% of 0.8 * sum
//! goodput.* >= 0.98 * none:goodput.*
//! ```
//!
//! Words stand apart by blanks. A key is a figure of our own profile unless another stands before a
//! colon. A `*` stands for the same text in all keys; the bound must hold for each that the first
//! such key finds, and for at least one.

use serde::Deserialize;

use super::{OURS, Printed};
use crate::number::{show, stable};
use crate::result::Figures;

/// A bound on figures.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Bound {
    first: Sum,
    rest: Rest,
}

#[derive(Clone, Debug, PartialEq)]
enum Rest {
    Chain(Vec<(Order, Sum)>),
    /// Not further away than this, or than this share of the other.
    Near {
        by: f64,
        is_share: bool,
        of: Sum,
    },
}

type Sum = Vec<Limit>;

/// A number, or a figure times a number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Limit {
    factor: f64,
    key: Option<Key>,
}

impl Limit {
    pub(crate) fn of_number(number: f64) -> Limit {
        Limit { factor: number, key: None }
    }

    pub(crate) fn part_of(factor: f64, key: Key) -> Limit {
        Limit { factor, key: Some(key) }
    }
}

/// A figure of a profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    profile: String,
    key: String,
}

impl Key {
    pub(crate) fn new(profile: &str, key: &str) -> Key {
        Key { profile: profile.to_owned(), key: key.to_owned() }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    Less,
    AtMost,
    Equal,
    AtLeast,
    More,
}

const ORDERS: [(&str, Order); 5] = [
    ("<", Order::Less),
    ("<=", Order::AtMost),
    ("=", Order::Equal),
    (">=", Order::AtLeast),
    (">", Order::More),
];

/// What checking a bound gives.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) holds: bool,
    pub(crate) measured: Option<Printed>,
    pub(crate) note: Option<String>,
}

/// One comparison of a case.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// What the `*` stands for.
    pub(crate) case: String,
    /// How far the value is past the limit; below zero, how far it is from it.
    pub(crate) over: f64,
    /// How far a value may be away, where that is said.
    pub(crate) band: Option<f64>,
    /// The limit.
    pub(crate) limit: f64,
}

impl Step {
    fn ordered(case: &str, order: Order, (a, b): (f64, f64)) -> Step {
        let over = match order {
            Order::Less | Order::AtMost => a - b,
            Order::Equal => (a - b).abs(),
            Order::AtLeast | Order::More => b - a,
        };
        Step { case: case.to_owned(), over, band: None, limit: b }
    }

    fn near(case: &str, (a, b): (f64, f64), most: f64) -> Step {
        Step { case: case.to_owned(), over: (a - b).abs() - most, band: Some(most), limit: b }
    }
}

/// One case: whether it holds, and how much room there is, as a share of what is compared.
struct Case {
    holds: bool,
    room: f64,
    measured: Printed,
}

impl Bound {
    /// A figure is not above this.
    pub(crate) fn at_most(figure: Key, most: Limit) -> Bound {
        Bound::compared(figure, Order::AtMost, most)
    }

    /// A figure is not below this.
    pub(crate) fn at_least(figure: Key, least: Limit) -> Bound {
        Bound::compared(figure, Order::AtLeast, least)
    }

    /// A figure is not further away from this.
    pub(crate) fn near(figure: Key, by: f64, of: Limit) -> Bound {
        let first = vec![Limit::part_of(1.0, figure)];
        Bound { first, rest: Rest::Near { by, is_share: false, of: vec![of] } }
    }

    fn compared(figure: Key, order: Order, other: Limit) -> Bound {
        let first = vec![Limit::part_of(1.0, figure)];
        Bound { first, rest: Rest::Chain(vec![(order, vec![other])]) }
    }

    /// Whether the figures are within it; of several cases the worst is given.
    pub(crate) fn check<'a>(&self, figures: &dyn Fn(&str) -> Option<&'a Figures>) -> Found {
        let cases = match self.cases(figures) {
            Ok(cases) => cases,
            Err(why) => return Found { holds: false, measured: None, note: Some(why) },
        };
        let judged = cases.into_iter().map(|(name, values)| (self.judged(&values), name));
        let worst = judged.reduce(|worst, next| {
            let rank = |(case, _): &(Case, &str)| (case.holds, case.room);
            if rank(&next) < rank(&worst) { next } else { worst }
        });
        match worst {
            Some((Case { holds, measured, .. }, name)) => {
                let note = (!name.is_empty()).then(|| format!("worst at {name}"));
                Found { holds, measured: Some(measured), note }
            }
            None => Found { holds: false, measured: None, note: None },
        }
    }

    /// How far the figures are past each limit, by case.
    ///
    /// # Errors
    ///
    /// Which figure is missing.
    pub(crate) fn steps<'a>(
        &self,
        figures: &dyn Fn(&str) -> Option<&'a Figures>,
    ) -> Result<Vec<Step>, String> {
        let cases = self.cases(figures)?;
        let steps = cases.into_iter().flat_map(|(name, values)| {
            let pairs = values.windows(2).map(|pair| (pair[0], pair[1]));
            let steps: Vec<Step> = match &self.rest {
                Rest::Chain(chain) => {
                    let steps = chain.iter().zip(pairs);
                    steps.map(|((order, _), pair)| Step::ordered(name, *order, pair)).collect()
                }
                Rest::Near { .. } => {
                    let most = self.band(values[1]);
                    pairs.map(|pair| Step::near(name, pair, most)).collect()
                }
            };
            steps
        });
        Ok(steps.collect())
    }

    /// What is compared, by case: what the `*` stands for, and the values in their order.
    fn cases<'a>(
        &self,
        figures: &dyn Fn(&str) -> Option<&'a Figures>,
    ) -> Result<Vec<(&'a str, Vec<f64>)>, String> {
        let Some(pattern) = self.keys().find(|key| key.key.contains('*')) else {
            return Ok(vec![("", self.values("", figures)?)]);
        };
        let keys = figures(&pattern.profile).into_iter().flat_map(Figures::iter);
        let names = keys.filter_map(|(key, _)| matched(&pattern.key, key));
        let cases = names.map(|name| Ok((name, self.values(name, figures)?)));
        let cases: Vec<_> = cases.collect::<Result<_, String>>()?;
        match cases.is_empty() {
            true => Err(format!("not measured: {}", pattern.key)),
            false => Ok(cases),
        }
    }

    /// The profiles that it is about.
    pub(crate) fn profiles(&self) -> impl Iterator<Item = &str> {
        self.keys().map(|key| key.profile.as_str())
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        self.sums().flatten().filter_map(|product| product.key.as_ref())
    }

    fn sums(&self) -> impl Iterator<Item = &Sum> {
        let rest: Vec<&Sum> = match &self.rest {
            Rest::Chain(chain) => chain.iter().map(|(_, sum)| sum).collect(),
            Rest::Near { of, .. } => vec![of],
        };
        std::iter::once(&self.first).chain(rest)
    }

    fn values<'a>(
        &self,
        name: &str,
        figures: &dyn Fn(&str) -> Option<&'a Figures>,
    ) -> Result<Vec<f64>, String> {
        let value = |sum: &Sum| {
            sum.iter().try_fold(0.0, |all, product| {
                Ok(all
                    + product.factor
                        * product.key.as_ref().map_or(Ok(1.0), |key| {
                            let full = key.key.replace('*', name);
                            let found =
                                figures(&key.profile).and_then(|figures| figures.get(&full));
                            found.map(|figure| figure.mean).ok_or(format!("not measured: {full}"))
                        })?)
            })
        };
        let values: Result<Vec<f64>, String> = self.sums().map(value).collect();
        // to the digits that a file keeps: 0.25 is within 0.01 of 0.24
        Ok(values?.into_iter().map(stable).collect())
    }

    fn judged(&self, values: &[f64]) -> Case {
        let (holds, room) = match &self.rest {
            Rest::Chain(chain) => {
                let steps = chain.iter().zip(values.windows(2));
                let steps = steps.map(|((order, _), pair)| order.check(pair[0], pair[1]));
                steps.fold((true, f64::INFINITY), |(all, least), (holds, room)| {
                    (all && holds, least.min(room))
                })
            }
            Rest::Near { .. } => {
                let most = self.band(values[1]);
                let away = (values[0] - values[1]).abs();
                (stable(away) <= stable(most), share(most - away, values[0], values[1]))
            }
        };
        Case { holds, room, measured: self.measured(values) }
    }

    /// How far from `of` a figure may be.
    fn band(&self, of: f64) -> f64 {
        match &self.rest {
            Rest::Near { by, is_share: true, .. } => by * of.abs(),
            Rest::Near { by, .. } => *by,
            Rest::Chain(_) => 0.0,
        }
    }

    /// The one value that is measured, or all of them as they are compared.
    fn measured(&self, values: &[f64]) -> Printed {
        let is_measured = |sum: &Sum| sum.iter().any(|product| product.key.is_some());
        let measured: Vec<f64> = self
            .sums()
            .zip(values)
            .filter_map(|(sum, value)| is_measured(sum).then_some(*value))
            .collect();
        if let [only] = measured[..] {
            return Printed::Number(only);
        }
        let parted = if matches!(self.rest, Rest::Near { .. }) { " of " } else { ", " };
        let shown: Vec<String> = values.iter().map(|value| show(*value)).collect();
        Printed::Words(shown.join(parted))
    }
}

impl Order {
    fn check(self, a: f64, b: f64) -> (bool, f64) {
        match self {
            Order::Less => (a < b, share(b - a, a, b)),
            Order::AtMost => (a <= b, share(b - a, a, b)),
            #[expect(clippy::float_cmp, reason = "counts that must be the same")]
            Order::Equal => (a == b, -share((a - b).abs(), a, b)),
            Order::AtLeast => (a >= b, share(a - b, a, b)),
            Order::More => (a > b, share(a - b, a, b)),
        }
    }
}

fn share(room: f64, a: f64, b: f64) -> f64 {
    room / a.abs().max(b.abs()).max(f64::MIN_POSITIVE)
}

/// What the `*` of a pattern stands for in a key.
pub(crate) fn matched<'k>(pattern: &str, key: &'k str) -> Option<&'k str> {
    let (before, after) = pattern.split_once('*')?;
    key.strip_prefix(before)?.strip_suffix(after).filter(|name| !name.is_empty())
}

impl TryFrom<String> for Bound {
    type Error = String;

    fn try_from(text: String) -> Result<Bound, String> {
        text.parse()
    }
}

impl std::str::FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Bound, String> {
        let mut words = text.split_whitespace().peekable();
        let mut first = None;
        let mut chain = Vec::new();
        let mut order = None;
        loop {
            let sum = sum(&mut words).map_err(|why| format!("\"{text}\": {why}"))?;
            match order {
                None => first = Some(sum),
                Some(order) => chain.push((order, sum)),
            }
            let Some(word) = words.next() else { break };
            if word == "within" && chain.is_empty() {
                let near = near(&mut words).map_err(|why| format!("\"{text}\": {why}"))?;
                return Bound::with(first, near, text);
            }
            let found = ORDERS.iter().find(|(sign, _)| *sign == word).map(|(_, order)| *order);
            let expected = "expected one of < <= = >= > within";
            order = Some(found.ok_or(format!("\"{text}\": \"{word}\": {expected}"))?);
        }
        if chain.is_empty() {
            return Err(format!("\"{text}\": compares with nothing"));
        }
        Bound::with(first, Rest::Chain(chain), text)
    }
}

impl Bound {
    fn with(first: Option<Sum>, rest: Rest, text: &str) -> Result<Bound, String> {
        let bound = Bound { first: first.unwrap_or_default(), rest };
        let compares = bound.keys().next().is_some();
        compares.then_some(bound).ok_or(format!("\"{text}\": compares no figure"))
    }
}

type Words<'w> = std::iter::Peekable<std::str::SplitWhitespace<'w>>;

fn near(words: &mut Words) -> Result<Rest, String> {
    let word = words.next().unwrap_or_default();
    let (digits, is_share) = word.strip_suffix('%').map_or((word, false), |rest| (rest, true));
    let by = number(digits).ok_or(format!("\"{word}\" is no distance, expected 0.01 or 1%"))?;
    let by = if is_share { by / 100.0 } else { by };
    match words.next() {
        Some("of") => {}
        _ => return Err("\"of\" is missing after the distance".to_owned()),
    }
    let of = sum(words)?;
    match words.next() {
        None => Ok(Rest::Near { by, is_share, of }),
        Some(word) => Err(format!("\"{word}\": nothing may follow")),
    }
}

fn sum(words: &mut Words) -> Result<Sum, String> {
    let mut sum = vec![product(words)?];
    while words.next_if_eq(&"+").is_some() {
        sum.push(product(words)?);
    }
    Ok(sum)
}

fn product(words: &mut Words) -> Result<Limit, String> {
    let word = words.next().ok_or("a figure or a number is missing at the end")?;
    let Some(factor) = number(word) else {
        return Ok(Limit::part_of(1.0, key(word)?));
    };
    if words.next_if_eq(&"*").is_none() {
        return Ok(Limit::of_number(factor));
    }
    let word = words.next().ok_or("a figure is missing after \"*\"")?;
    Ok(Limit::part_of(factor, key(word)?))
}

fn number(word: &str) -> Option<f64> {
    let digit = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    word.parse().ok().filter(|number: &f64| digit && number.is_finite())
}

fn key(word: &str) -> Result<Key, String> {
    let (profile, key) = word.split_once(':').unwrap_or((OURS, word));
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let right = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.matches('*').count() <= 1
        && key.chars().all(|c| fits(c) || c == '*')
        && !profile.is_empty()
        && profile.chars().all(fits);
    right
        .then(|| Key::new(profile, key))
        .ok_or(format!("\"{word}\" is neither a figure nor a number"))
}

#[cfg(test)]
#[path = "bound_tests.rs"]
mod tests;
