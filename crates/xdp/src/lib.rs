#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod assembler;
mod error;
mod heart;
#[expect(unsafe_code, reason = "system calls, and a page that the kernel shares")]
mod kernel;
mod port;
mod program;

pub use error::XdpError;
pub use heart::{Counts, Heart};
pub use port::{Attached, Mode, Program};
