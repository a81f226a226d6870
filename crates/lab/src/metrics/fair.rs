//! How evenly something was shared.

use super::spread::mean;

/// Jain's index: 1 where all have the same, 1/n where one has everything. None where nobody has
/// anything.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let squares: Vec<f64> = shares.iter().map(|x| x * x).collect();
    let (middle, square) = (mean(shares)?, mean(&squares)?);
    (square > 0.0).then(|| middle * middle / square)
}

/// Jain's index of shares by weight. None if there are not as many weights, or one is not positive.
#[must_use]
pub fn jain_weighted(shares: &[f64], weights: &[f64]) -> Option<f64> {
    let right = shares.len() == weights.len() && weights.iter().all(|w| *w > 0.0);
    let each: Vec<f64> = shares.iter().zip(weights).map(|(x, w)| x / w).collect();
    right.then(|| jain(&each)).flatten()
}

/// How much of the whole lies elsewhere than where the fair shares put it.
#[must_use]
pub fn max_min_error(shares: &[f64], fair: &[f64]) -> Option<f64> {
    let whole: f64 = fair.iter().sum();
    let away: f64 = shares.iter().zip(fair).map(|(x, f)| (x - f).abs()).sum();
    (shares.len() == fair.len() && whole > 0.0).then(|| away / whole)
}

#[cfg(test)]
mod tests {
    use super::super::cov;
    use super::*;

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
    fn shares_by_weight_are_fair() {
        assert_eq!(jain_weighted(&[1.0, 2.0, 4.0], &[1.0, 2.0, 4.0]), Some(1.0));
        assert!(jain_weighted(&[1.0, 1.0, 1.0], &[1.0, 2.0, 4.0]).unwrap() < 0.9);
        assert_eq!(jain_weighted(&[1.0], &[]), None);
        assert_eq!(jain_weighted(&[1.0], &[0.0]), None);
    }

    #[test]
    fn what_is_missing_at_one_and_too_much_at_another_counts_twice() {
        assert_eq!(max_min_error(&[10.0, 30.0], &[20.0, 20.0]), Some(0.5));
        assert_eq!(max_min_error(&[1.0], &[1.0, 2.0]), None);
    }
}
