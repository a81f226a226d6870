#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod ahead;
mod classifier;
mod cores;
mod crowds;
mod entry;
mod facts;
mod fields;
mod flows;
mod fragments;
mod hosts;
mod index;
mod key;
mod parts;
mod ranges;
mod rules;
mod sets;
mod settled;
mod spec;
mod steps;

pub use classifier::{Arrival, Classifier, Counters, Explained, FlowState, Limits};
pub use cores::{Homes, core_of};
pub use hosts::{Event, MadeLeaf, Owner};
pub use index::Index;
pub use key::Seed;
pub use spec::{Class, Each, Rule, Spec, Target, When};
pub use weir_units::{By, Origin, Raw};
