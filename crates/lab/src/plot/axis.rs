//! Axes: where a value lies, and which values get a tick.

use crate::number::show;

/// An axis: `rate (Mbit/s)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures, and in which unit.
    pub name: String,
    /// How values lie on it.
    pub scale: Scale,
    /// From where to where; otherwise what the data need.
    pub range: Option<(f64, f64)>,
}

/// How values lie on an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; what is not above zero cannot be shown.
    Log,
}

impl Axis {
    /// With even values, as far as the data need.
    #[must_use]
    pub fn new(name: &str) -> Axis {
        Axis { name: name.to_owned(), ..Axis::default() }
    }

    /// The same with the logarithm.
    #[must_use]
    pub fn log(name: &str) -> Axis {
        Axis { scale: Scale::Log, ..Axis::new(name) }
    }
}

/// An axis laid out over pixels.
#[derive(Clone, Debug)]
pub(crate) struct Ruler {
    scale: Scale,
    values: (f64, f64),
    pixels: (f64, f64),
    pub(crate) ticks: Vec<(f64, String)>,
}

/// How an axis ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Where the data end.
    Data,
    /// At a tick, and at zero where that is not far.
    Ticks,
}

impl Ruler {
    pub(crate) fn new(
        axis: &Axis,
        data: impl Iterator<Item = f64>,
        pixels: (f64, f64),
        ends: Ends,
    ) -> Ruler {
        let visible = |x: &f64| x.is_finite() && (axis.scale == Scale::Linear || *x > 0.0);
        let none = (f64::INFINITY, f64::NEG_INFINITY);
        let found = data.filter(visible).fold(none, |(a, b), x| (a.min(x), b.max(x)));
        let found = axis.range.unwrap_or(if found.0 <= found.1 { found } else { (0.0, 1.0) });
        // room for a label takes more to the side than upwards
        let apart = if ends == Ends::Ticks { 45.0 } else { 90.0 };
        let count = ((pixels.1 - pixels.0).abs() / apart).max(2.0);
        let fixed = axis.range.is_some();
        let (values, ticks) = match axis.scale {
            Scale::Linear => linear(found, count, ends, fixed),
            Scale::Log => log(found, count, ends, fixed),
        };
        Ruler { scale: axis.scale, values, pixels, ticks }
    }

    /// The pixel of a value; none where it cannot be shown. What is beyond the ends stays at them.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let lies = |value: f64| match self.scale {
            Scale::Linear => value,
            Scale::Log => value.log10(),
        };
        if self.scale == Scale::Log && value <= 0.0 || !value.is_finite() {
            return None;
        }
        let (from, to) = (lies(self.values.0), lies(self.values.1));
        let share = ((lies(value) - from) / (to - from)).clamp(0.0, 1.0);
        Some(self.pixels.0 + share * (self.pixels.1 - self.pixels.0))
    }

    /// Where bars begin: at zero if it is on the axis.
    pub(crate) fn base(&self) -> f64 {
        self.place(0.0).unwrap_or(self.pixels.0)
    }
}

type Layout = ((f64, f64), Vec<(f64, String)>);

fn linear((from, to): (f64, f64), count: f64, ends: Ends, fixed: bool) -> Layout {
    let (mut from, mut to) = (from, to);
    if ends == Ends::Ticks && !fixed {
        // an axis that does not start at zero makes small differences look large
        if from > 0.0 && from < 0.6 * to {
            from = 0.0;
        }
        if to < 0.0 && to > 0.6 * from {
            to = 0.0;
        }
    }
    if to - from <= from.abs().max(to.abs()) * 1e-9 {
        let room = if from == 0.0 { 1.0 } else { from.abs() * 0.1 };
        (from, to) = (from - if from == 0.0 { 0.0 } else { room }, to + room);
    }
    let step = round_step((to - from) / count);
    if ends == Ends::Ticks && !fixed {
        from = (from / step + 1e-9).floor() * step;
        to = (to / step - 1e-9).ceil() * step;
    }
    let first = (from / step - 1e-9).ceil();
    let places = (-step.log10().floor()).clamp(0.0, 12.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 12")]
    let places = places as usize;
    let ticks = (0..100).map(|at| (first + f64::from(at)) * step);
    let ticks = ticks.take_while(|value| *value <= to + step * 1e-6);
    let label = |value: f64| match value {
        value if value.abs() >= 10_000.0 || value == 0.0 => show(value),
        value => format!("{value:.places$}"),
    };
    ((from, to), ticks.map(|value| (value, label(value))).collect())
}

/// The least of 1, 2 and 5 times a power of ten that is not below.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

fn log((from, to): (f64, f64), count: f64, ends: Ends, fixed: bool) -> Layout {
    let from = if from > 0.0 { from } else { to / 1e3 };
    let (from, to) = if from > 0.0 && to > from { (from, to) } else { (1.0, 10.0) };
    let span = (to / from).log10();
    let times: &[f64] = match span {
        span if span < count / 3.0 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let every = (span / count).ceil().max(1.0);
    #[expect(clippy::cast_possible_truncation, reason = "powers of ten of a float")]
    let (low, high) = (from.log10().floor() as i32, to.log10().ceil() as i32);
    let powers = (low..=high).filter(|power| f64::from(*power).rem_euclid(every) == 0.0);
    let rounds: Vec<f64> =
        powers.flat_map(|power| times.iter().map(move |x| x * 10_f64.powi(power))).collect();
    let (mut start, mut end) = (from, to);
    if ends == Ends::Ticks && !fixed {
        let below = rounds.iter().copied().filter(|x| *x <= from * (1.0 + 1e-9));
        start = below.fold(f64::NAN, f64::max).min(from);
        let above = rounds.iter().copied().filter(|x| *x >= to * (1.0 - 1e-9));
        end = above.fold(f64::NAN, f64::min).max(to);
    }
    let inside = |x: &f64| *x >= start * (1.0 - 1e-9) && *x <= end * (1.0 + 1e-9);
    let ticks = rounds.into_iter().filter(inside).map(|x| (x, show(x))).collect();
    ((start, end), ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: &Axis, data: &[f64], ends: Ends) -> Vec<String> {
        let ruler = Ruler::new(axis, data.iter().copied(), (0.0, 270.0), ends);
        ruler.ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new("x");
        let up = |data: &[f64]| ticks(&axis, data, Ends::Ticks);
        assert_eq!(up(&[0.13, 0.97]), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(up(&[0.96, 0.975]), ["0.960", "0.965", "0.970", "0.975"]);
        assert_eq!(up(&[-3.0, 8.0]), ["-4", "-2", "0", "2", "4", "6", "8"]);
        assert_eq!(
            up(&[0.0, 120_000.0]),
            ["0", "20 000", "40 000", "60 000", "80 000", "100 000", "120 000"]
        );
        assert_eq!(ticks(&axis, &[3.0, 247.0], Ends::Data), ["100", "200"]);
    }

    #[test]
    fn strange_data_still_have_an_axis() {
        let axis = Axis::new("x");
        assert_eq!(ticks(&axis, &[], Ends::Ticks), ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        for data in [&[0.0, 0.0][..], &[7.0], &[-7.0], &[f64::NAN, 1e-300], &[1e300, -1e300]] {
            for axis in [Axis::new("x"), Axis::log("x")] {
                for ends in [Ends::Data, Ends::Ticks] {
                    let ruler = Ruler::new(&axis, data.iter().copied(), (0.0, 270.0), ends);
                    assert!(ruler.ticks.len() < 100, "{data:?}");
                    let place = ruler.place(data[0]);
                    assert!(place.is_none_or(|at| (0.0..=270.0).contains(&at)), "{data:?}");
                }
            }
        }
    }

    #[test]
    fn a_logarithm_has_decades_or_parts_of_them() {
        let axis = Axis::log("x");
        assert_eq!(ticks(&axis, &[3.0, 40.0], Ends::Ticks), ["2", "5", "10", "20", "50"]);
        assert_eq!(
            ticks(&axis, &[0.5, 9e4], Ends::Ticks),
            ["0.1", "1", "10", "100", "1000", "10 000", "100 000"]
        );
        let ruler = Ruler::new(&axis, [1.0, 100.0].into_iter(), (0.0, 200.0), Ends::Data);
        assert_eq!((ruler.place(10.0), ruler.place(0.0)), (Some(100.0), None));
    }
}
