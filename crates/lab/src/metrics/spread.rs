//! Means, how far samples lie from them, and how evenly something is shared. The deviation is that
//! of the population (divided by n), as the papers use it.

/// The mean; none of nothing.
#[expect(clippy::cast_precision_loss, reason = "there are not 2^53 samples")]
pub(crate) fn mean(samples: &[f64]) -> Option<f64> {
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    (!samples.is_empty()).then_some(mean)
}

/// The standard deviation of a population; none of nothing.
pub(crate) fn deviation(samples: &[f64]) -> Option<f64> {
    let middle = mean(samples)?;
    let squares: Vec<f64> = samples.iter().map(|x| (x - middle) * (x - middle)).collect();
    mean(&squares).map(f64::sqrt)
}

/// The coefficient of variation: the deviation as a share of the mean; none where that is zero.
pub(crate) fn cov(samples: &[f64]) -> Option<f64> {
    let middle = mean(samples).filter(|mean| *mean != 0.0)?;
    Some(deviation(samples)? / middle)
}

/// Jain's index: 1 where all have the same, 1/n where one has everything. None where nobody has
/// anything.
pub(crate) fn jain(shares: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = shares.iter().map(|x| x * x).collect();
    let (middle, square) = (mean(shares)?, mean(&squares)?);
    (square > 0.0).then(|| middle * middle / square)
}

/// The least sample that at least `percent` of all do not exceed (nearest rank).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rank is between 1 and the count, or refused below"
)]
pub(crate) fn percentile(samples: &[f64], percent: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    // 99.9 % of 1 000 samples are 999, although 0.999 * 1 000 is a little more
    let rank = (sorted.len() as f64 * percent / 100.0 - 1e-9).ceil().max(1.0);
    sorted.get(rank as usize - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_surveys_worked_example() {
        // it prints a mean of 19, and 2.4 as the coefficient of variation, which its numbers do
        // not give
        let flows = [14.0, 7.0, 30.0, 5.0, 39.0];
        assert_eq!(mean(&flows), Some(19.0));
        assert_eq!(format!("{:.1}", deviation(&flows).unwrap()), "13.3");
        assert_eq!(format!("{:.2}", cov(&flows).unwrap()), "0.70");
    }

    #[test]
    fn jain_is_what_the_variation_says() {
        for shares in [&[14.0, 7.0, 30.0, 5.0, 39.0][..], &[1.0, 0.0, 0.0], &[2.5; 7]] {
            let by_cov = 1.0 / (1.0 + cov(shares).unwrap().powi(2));
            assert!((jain(shares).unwrap() - by_cov).abs() < 1e-12);
        }
        assert_eq!(jain(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn of_nothing_there_is_nothing_to_say() {
        assert_eq!(mean(&[]), None);
        assert_eq!(deviation(&[]), None);
        assert_eq!(cov(&[0.0, 0.0]), None);
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<f64> = (1..=1000).rev().map(f64::from).collect();
        assert_eq!(percentile(&samples, 0.0), Some(1.0));
        assert_eq!(percentile(&samples, 50.0), Some(500.0));
        assert_eq!(percentile(&samples, 99.9), Some(999.0));
        assert_eq!(percentile(&samples, 100.0), Some(1000.0));
    }
}
