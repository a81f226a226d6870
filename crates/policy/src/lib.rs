#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod addresses;
mod amount;
mod blocks;
mod class;
mod columns;
mod csv;
mod diff;
mod each;
mod entrance;
mod format;
mod held;
mod leaf;
mod link;
mod matching;
mod nearest;
mod observe;
pub mod plan;
mod police;
mod policy;
mod problem;
mod reach;
pub mod reader;
mod resolve;
mod rest;
pub mod say;
mod silent;
mod skipped;
mod source;
mod subscribers;
mod syntax;
mod tariff;
mod tokens;
mod tree;
mod weights;

pub use addresses::{Addresses, Groups};
pub use amount::{Amount, Burst};
pub use class::{Class, Enforce, PRIORITY, Weight};
pub use diff::{Change, diff};
pub use each::{Each, Known, Unknown};
pub use format::format;
pub use held::held_rows;
pub use leaf::{
    Aqm, AqmKind, LeafWords, Limit, Mark, Mss, Next, Queue, Session, Tcp, TcpClock, TcpLoss,
    TcpRate,
};
pub use link::{COUNTS, LinkTable};
pub use matching::{Match, Toward, When};
pub use nearest::instead;
pub use plan::Plan;
pub use police::Police;
pub use policy::{Load, Policy, Reading, read, read_over};
pub use problem::{At, Position, Problem, Problems, Severity};
pub use rest::Rest;
pub use skipped::{Rows, Skipped, SkippedRows};
pub use source::Source;
pub use subscribers::{More, Subscriber, Subscribers};
pub use tariff::Tariff;
