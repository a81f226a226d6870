//! What is computed from what was seen. Each is a plain function of numbers; what cannot be said
//! (the mean of nothing, a share of zero) is `None`, so that no claim holds for want of data.

mod delay;
mod fair;
mod loss;
mod outcome;
mod response;
mod session;
mod spread;
pub mod voice;

pub use delay::{Jitter, JitterCount, Variation, variation};
pub use fair::{jain, jain_weighted, max_min_error};
pub use loss::{Arrivals, burst_ratio, late};
pub use outcome::{Latency, Quality, Requirement, quality};
pub use response::{Foreign, responsiveness, trimmed_mean};
pub use session::{Class, goodput_kbit, retransmission};
pub use spread::{cov, deviation, mean, percentile};
