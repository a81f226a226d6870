#![forbid(unsafe_code)]

mod claim;
pub mod figures;
pub mod library;
pub mod metrics;
mod named;
mod number;
pub mod outcome;
mod result;
pub mod run;
pub mod scenario;

pub use claim::{Bound, Claim, Expected, Holds, Judged, Printed};
pub use named::Named;
pub use result::{
    Driver, Extreme, Figure, Figures, Outcome, Profile, Series, over_seeds, read, write,
    write_group,
};
