#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

pub mod aqm;
mod layer;
pub mod tree;

pub use layer::FrameCost;
pub use weir_units::Layer;
