#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod change;
mod driver;
mod enforce;
mod engine;
mod explain;
mod export;
mod ledger;
mod limits;
mod lower;
mod margin;
mod names;
mod planner;
mod report;
mod turn;
mod watch;

pub use change::{Change, Layout};
pub use driver::{Driver, Exchange, Single};
pub use engine::{Config, Engine, LINK, LeafBooks, Snapshot};
pub use explain::Trace;
pub use export::{
    Cursor, Exported, FlowRecord, Imported, LeafName, LeafRecord, TcpRecord, Unreadable,
};
pub use ledger::{Count, Counters, Delay};
pub use limits::Demand;
pub use lower::why_queues;
pub use margin::{Look, Margin};
pub use planner::{NoRoom, Planner};
pub use report::{Asker, Books, Report, Row};
pub use watch::{RoundTrip, RoundTrips, Uploads, WatchState};
