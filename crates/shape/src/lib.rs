#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod fifo;
mod layer;
pub mod tree;

pub use fifo::{Fifo, Waiting};
pub use layer::{Layer, Link};
