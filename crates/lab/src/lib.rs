#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod claim;
pub mod metrics;
mod named;
mod number;
mod result;

pub use claim::{Bound, Claim, Expected, Holds, Judged, Printed};
pub use named::Named;
pub use result::{
    Driver, Extreme, Figure, Figures, Outcome, Profile, Series, over_seeds, read, write,
    write_group,
};
