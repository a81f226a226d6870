#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod layer;
pub mod tree;

pub use layer::{Layer, Link};
