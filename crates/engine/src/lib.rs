#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod change;
mod driver;
mod enforce;
mod engine;
mod explain;
mod ledger;
mod lower;
mod margin;
mod planner;
mod report;
mod turn;
mod watch;

pub use change::{Change, Layout};
pub use driver::{Driver, Exchange, Single};
pub use engine::{Config, Demand, Engine, LINK, LeafBooks, Snapshot};
pub use explain::Trace;
pub use ledger::{Count, Counters, Delay};
pub use lower::why_queues;
pub use margin::{Look, Margin};
pub use planner::{NoRoom, Planner};
pub use report::{Asker, Books, Report, Row};
pub use watch::{RoundTrip, RoundTrips, Uploads};
