//! How long a packet takes: a fixed part, and a part that varies, with memory if asked for.

use weir_units::{Instant, Span};

use crate::random::{Chance, Random, times};

/// How the delay varies around its fixed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jitter {
    /// By how much, and how that is spread.
    pub shape: Shape,
    /// How much a packet's deviation has in common with the one before: a first-order
    /// autoregression that leaves mean and deviation as they are.
    pub correlation: Chance,
}

/// How deviations are spread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Evenly, up to so much earlier or later.
    Uniform(Span),
    /// A bell curve with this deviation.
    Normal(Span),
    /// Later only, with a heavy tail: `scale` x Lomax, whose mean is scale / (shape - 1).
    Pareto {
        /// The unit.
        scale: Span,
        /// The exponent, in tenths: 30 is 3.
        shape_tenths: u32,
    },
    /// Later only, with this mean.
    Exponential(Span),
    /// Drawn from a table, with this deviation.
    Table(Table, Span),
}

/// An empirical distribution: values in units of 1/8192 of the deviation, each as likely as any
/// other. This is the form of netem's `.dist` files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Vec<i16>);

impl Table {
    /// Reads a `.dist` file: numbers, and comments from `#` to the end of the line.
    ///
    /// # Errors
    /// What is wrong in which line, in words.
    pub fn read(text: &str) -> Result<Table, String> {
        let mut values = Vec::new();
        for (n, line) in text.lines().enumerate() {
            let numbers = line.split('#').next().unwrap_or_default();
            for word in numbers.split_whitespace() {
                let value = word.parse().map_err(|_| {
                    format!("line {}: \"{word}\" is no number from -32768 to 32767", n + 1)
                })?;
                values.push(value);
            }
        }
        Table::new(values)
    }

    /// A table of these values.
    ///
    /// # Errors
    /// There must be at least one.
    pub fn new(values: Vec<i16>) -> Result<Table, String> {
        if values.is_empty() {
            Err("the table has no values".to_owned())
        } else {
            Ok(Table(values))
        }
    }
}

/// The delay of a path with its memory.
#[derive(Clone, Debug)]
pub(crate) struct Delays {
    fixed: Span,
    jitter: Option<Jitter>,
    overtake: bool,
    /// The deviation of the packet before, from the mean of its distribution.
    before: f64,
    latest: Instant,
}

impl Delays {
    pub(crate) fn new(fixed: Span, jitter: Option<Jitter>, overtake: bool) -> Delays {
        Delays { fixed, jitter, overtake, before: 0.0, latest: Instant::ZERO }
    }

    /// Without jitter.
    pub(crate) fn fixed(&self) -> Span {
        self.fixed
    }

    /// When a packet arrives that starts at `out`.
    pub(crate) fn arrives(&mut self, out: Instant, random: &mut Random) -> Instant {
        let Some(jitter) = &self.jitter else { return self.in_order(out + self.fixed) };
        let (unit, mean, value) = jitter.shape.draw(random);
        let memory = jitter.correlation.part();
        // x' = c x + sqrt(1 - c^2) e keeps the deviation
        let own = (1.0 - memory * memory).sqrt() * (value - mean);
        self.before = memory * self.before + own;
        let by = self.before + mean;
        let at = out + self.fixed;
        let at = if by < 0.0 {
            // never before it was sent
            Instant::from_ns((at - times(unit, -by)).ns().max(out.ns()))
        } else {
            at + times(unit, by)
        };
        self.in_order(at)
    }

    fn in_order(&mut self, at: Instant) -> Instant {
        if self.overtake {
            return at;
        }
        self.latest = self.latest.max(at);
        self.latest
    }
}

impl Shape {
    /// The unit, the mean in units, and a value in units.
    fn draw(&self, random: &mut Random) -> (Span, f64, f64) {
        match self {
            Shape::Uniform(half) => (*half, 0.0, 2.0 * random.unit() - 1.0),
            Shape::Normal(deviation) => (*deviation, 0.0, random.normal()),
            Shape::Pareto { scale, shape_tenths } => {
                let shape = f64::from(*shape_tenths).max(11.0) / 10.0;
                (*scale, 1.0 / (shape - 1.0), random.pareto(shape))
            }
            Shape::Exponential(mean) => (*mean, 1.0, random.exponential()),
            Shape::Table(Table(values), deviation) => {
                let at = usize::try_from(random.below(values.len() as u64)).unwrap_or(0);
                (*deviation, 0.0, f64::from(values[at]) / 8_192.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN: Span = Span::from_ms(10);

    fn run(shape: Shape, correlation: Chance, n: usize) -> Vec<f64> {
        let jitter = Some(Jitter { shape, correlation });
        let mut delays = Delays::new(Span::from_ms(100), jitter, true);
        let mut random = Random::new(5, 9);
        #[expect(clippy::cast_precision_loss)]
        let ms = |at: Instant| at.ns() as f64 / 1e6;
        (0..n).map(|_| ms(delays.arrives(Instant::ZERO, &mut random))).collect()
    }

    #[expect(clippy::cast_precision_loss)]
    fn moments(delays: &[f64]) -> (f64, f64, f64) {
        let n = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / n;
        let variance = delays.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n;
        let product: f64 = delays.windows(2).map(|two| (two[0] - mean) * (two[1] - mean)).sum();
        (mean, variance.sqrt(), product / n / variance)
    }

    #[test]
    fn shapes_have_their_mean_and_deviation() {
        let cases = [
            (Shape::Uniform(TEN), 100.0, 10.0 / 3.0_f64.sqrt()),
            (Shape::Normal(TEN), 100.0, 10.0),
            (Shape::Exponential(TEN), 110.0, 10.0),
            (Shape::Table(Table(vec![-8192, 8192]), TEN), 100.0, 10.0),
        ];
        for (shape, mean, deviation) in cases {
            let (m, d, c) = moments(&run(shape.clone(), Chance::NEVER, 100_000));
            assert!((m - mean).abs() < 0.2 && (d - deviation).abs() < 0.2, "{shape:?} {m} {d}");
            assert!(c.abs() < 0.02, "{shape:?} {c}");
        }
        let pareto = Shape::Pareto { scale: TEN, shape_tenths: 40 };
        let (m, _, _) = moments(&run(pareto, Chance::NEVER, 100_000));
        assert!((m - 103.33).abs() < 0.2, "{m}");
    }

    #[test]
    fn correlation_is_what_it_says_and_leaves_the_deviation() {
        let (m, d, c) = moments(&run(Shape::Normal(TEN), Chance::percent(80), 200_000));
        assert!((m - 100.0).abs() < 0.3 && (d - 10.0).abs() < 0.3, "{m} {d}");
        assert!((c - 0.8).abs() < 0.02, "{c}");
    }

    #[test]
    fn order_is_kept_unless_overtaking_is_allowed() {
        let jitter = Some(Jitter { shape: Shape::Normal(TEN), correlation: Chance::NEVER });
        let mut random = Random::new(5, 9);
        for overtake in [false, true] {
            let mut delays = Delays::new(Span::from_ms(20), jitter.clone(), overtake);
            let at: Vec<_> = (0..1_000)
                .map(|n| delays.arrives(Instant::ZERO + Span::from_us(n), &mut random))
                .collect();
            assert_eq!(at.is_sorted(), !overtake);
        }
    }

    #[test]
    fn a_table_is_read_and_its_mistakes_are_named() {
        assert_eq!(Table::read("# a comment\n1 -2\n3 # end").unwrap(), Table(vec![1, -2, 3]));
        assert!(Table::read("1\nx").unwrap_err().contains("line 2"));
        assert!(Table::read("#").is_err());
    }
}
