#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
pub mod netns;

pub use capture::{Capture, CaptureError, Fault, Link, PcapWriter, Record, to_ethernet};
