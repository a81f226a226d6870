#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

pub mod dscp;
pub mod limits;
mod names;
mod pace;
mod parse;
mod prefix;
pub mod protocol;
mod rate;
mod size;
mod terms;
mod time;
mod way;

pub use pace::Pace;
pub use parse::Unreadable;
pub use prefix::Prefix;
pub use rate::Rate;
pub use size::Bytes;
pub use terms::{By, Layer, Origin, Priority, Raw};
pub use time::{Instant, Span};
pub use way::{ByWay, Way};
