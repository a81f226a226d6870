#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

mod capture;
mod kernel;
#[cfg(test)]
mod live;
mod memory;
pub mod netdev;
pub mod netns;
pub mod notify;
pub mod offload;
mod packet;
#[expect(unsafe_code, reason = "memory that two processes share")]
pub mod page;
mod port;
pub mod privileges;
#[expect(unsafe_code, reason = "signals are waited for by a system call")]
pub mod signals;
mod tap;
#[expect(unsafe_code, reason = "memory that the kernel shares")]
mod umem;
pub mod wait;
#[expect(unsafe_code, reason = "system calls, and rings that the kernel shares")]
mod xsk;

pub use capture::{Capture, CaptureError, Fault, LinkType, PcapWriter, Record, to_ethernet};
pub use memory::{MemoryPort, MemoryWire};
pub use packet::{PacketPort, PacketSockets};
pub use port::{OpenError, Port, PortCounters, PortState};
pub use tap::TapPort;
pub use umem::{FrameSize, Umem};
pub use xsk::{XskCounters, XskError, XskPort, XskSpec, bare_sockets};
