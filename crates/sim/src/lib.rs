#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod events;
pub mod flow;
mod frames;
pub mod impair;
pub mod link;
pub mod random;
mod second;
pub mod tcp;
mod wire;
mod world;

pub use flow::{Files, FlowSpec, Source};
pub use impair::{Impair, Impairments};
pub use link::{LinkSpec, Queue};
pub use random::{Chance, Random};
pub use tcp::TcpSpec;
pub use world::{FlowId, LinkId, NodeId, Tap, World};
