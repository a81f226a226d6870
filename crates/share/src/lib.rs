#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod estimate;
pub mod exact;
mod fate;
mod scale;
mod tree;
mod weir;

pub use fate::Fate;
pub use tree::{LINK, Node, Place, Places, Unfit};
pub use weir::{Event, Gone, Options, Weir};
