#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
#[expect(unsafe_code, reason = "memory that the kernel shares")]
mod umem;
#[expect(unsafe_code, reason = "system calls, and rings that the kernel shares")]
mod xsk;

pub use capture::{Capture, CaptureError, Fault, Link, PcapWriter, Record, to_ethernet};
pub use umem::{FrameSize, Umem};
pub use xsk::{XskCounters, XskError, XskPort, XskSpec};
