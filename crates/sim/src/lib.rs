#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod impair;
pub mod random;

pub use impair::{Impair, Impairments};
pub use random::{Chance, Random};
