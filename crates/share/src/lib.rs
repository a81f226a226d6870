#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

pub mod ahab;
mod allocator;
mod estimate;
pub mod exact;
mod fate;
mod flows;
pub mod hcsfq;
pub mod hsdba;
mod level;
pub mod members;
mod plain;
mod published;
mod scale;
mod tree;
mod weir;

pub use ahab::Ahab;
pub use allocator::{Allocator, Law};
pub use fate::Fate;
pub use flows::{AHEAD, Flows, Who};
pub use hcsfq::Hcsfq;
pub use hsdba::Hsdba;
pub use level::tried as levels_tried;
pub use published::{Core, Published, Settling};
pub use tree::{LINK, Node, Place, Places, Unfit};
pub use weir::{Behind, Event, Gone, Options, Weir};
