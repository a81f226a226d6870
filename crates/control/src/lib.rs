#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod answer;
mod client;
mod counters;
pub mod metrics;
mod named;
mod problem;
mod refused;
mod request;
mod revision;
pub mod shown;
mod status;
mod tree;

pub use answer::{Answer, Applied, Compared, Confirmed, Metrics, Moved, Observed, Stopped};
pub use answer::{line, pretty, read};
pub use client::{Client, FOLDER, Failure, path_of};
pub use counters::{Books, Both, Count, Counters, LeafBooks};
pub use named::Named;
pub use problem::{Problem, problems};
pub use refused::{Fault, Refused};
pub use request::{Apply, Request, VERSION};
pub use revision::{About, Confirm, History, How, Kept, Revision, RevisionState};
pub use status::{
    Mode, Packets, Port, PortCounters, Ports, RoundTrip, RoundTrips, Status, Stored, Subscribers,
};
pub use tree::{Asker, Direction, Now, Row, RowKind, Tree};
