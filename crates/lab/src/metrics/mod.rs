//! What is computed from what was seen. Each is a plain function of numbers; what cannot be said
//! (the mean of nothing, a share of zero) is `None`, so that no claim holds for want of data.

mod spread;
pub mod voice;

pub(crate) use spread::{cov, deviation, jain, mean, percentile};
