#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
mod kernel;
#[cfg(test)]
mod live;
mod memory;
pub mod netdev;
pub mod notify;
pub mod offload;
mod packet;
mod port;
pub mod privileges;
mod tap;
pub mod wait;

pub use capture::{Capture, CaptureError, Fault, Link, PcapWriter, Record, to_ethernet};
pub use memory::{MemoryPort, MemoryWire};
pub use packet::PacketPort;
pub use port::{OpenError, Port, PortCounters, PortState};
pub use tap::TapPort;
