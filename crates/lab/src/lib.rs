#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod changes;
mod claim;
mod compare;
pub mod figures;
mod grid;
mod histories;
pub mod library;
pub mod metrics;
mod named;
mod number;
pub mod outcome;
mod plot;
mod report;
mod result;
pub mod run;
pub mod scenario;
mod sharing;
mod summary;
pub mod systems;
pub mod tables;

pub use claim::{Bound, Claim, Expected, Holds, Judged, Printed};
pub use compare::{Comparison, Difference};
pub use grid::Grid;
pub use named::Named;
pub use number::grouped;
pub use report::{Block, Drawing, Logarithm, PlotKind, Report, Section};
pub use result::{Driver, Figure, Figures, Outcome, Profile, Series, read, write, write_group};
pub use summary::{summary, tally};
