#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
mod kernel;
pub mod netdev;
pub mod notify;
pub mod offload;
pub mod privileges;
pub mod wait;

pub use capture::{Capture, CaptureError, Fault, Link, PcapWriter, Record, to_ethernet};
