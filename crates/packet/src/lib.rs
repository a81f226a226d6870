#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod arp;
mod build;
mod burst;
pub mod checksum;
pub mod edit;
pub mod ethernet;
mod fault;
mod frame;
mod headers;
mod icmp;
mod ipsec;
mod ipv4;
mod ipv6;
mod label;
mod memory;
mod pool;
mod pppoe;
mod read;
mod ring;
mod sctp;
mod show;
mod side;
mod spares;
pub mod tcp;
mod udp;
mod verdict;
pub mod vlan;
mod words;

pub use build::Build;
pub use burst::Burst;
pub use fault::Fault;
pub use frame::Frame;
pub use headers::{Fragment, Headers, Net};
pub use label::{Flow, FrameKind, Label, precedence};
pub use memory::MemoryId;
pub use pool::Pool;
pub use ring::{Consumer, Producer, ring};
pub use show::{Show, show};
pub use side::{BySide, Member, Side};
pub use spares::Spares;
pub use verdict::{Reason, Verdict};
pub use words::Wrong;
