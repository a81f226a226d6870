#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod conditioner;
mod connection;
mod holds;
mod lane;
pub mod meter;
mod pacing;
pub mod police;
mod segment;
mod told;
mod turn;
mod window;

pub use conditioner::{Conditioner, Counters, Pacing};
pub use connection::{ClaimState, ConnectionState, HalfState};
pub use lane::{Lane, LaneState};
pub use told::{Edit, Leaf, Loss, Memory, RoundTrip, Spec, Told};
