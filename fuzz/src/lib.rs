//! Fuzz targets. Each is a function that takes any bytes and panics where a promise does not hold.
//! A new one is a function and a line of `TARGETS`; `fuzz_targets/` and `Cargo.toml` have its entry
//! for libFuzzer, `seeds/` its first inputs.
#![forbid(unsafe_code)]

mod capture;
mod condition;
mod control;
mod engine;
mod export;
mod offload;
mod packet;
mod policy;
mod share;

pub use capture::capture;
pub use condition::condition;
pub use control::control;
pub use engine::engine;
pub use export::export;
pub use offload::offload;
pub use packet::{packet, words};
pub use policy::{policy, subscribers};
pub use share::share;

/// A target: its name, which is also that of its folder of seeds, and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("packet", packet),
    ("words", words),
    ("policy", policy),
    ("subscribers", subscribers),
    ("capture", capture),
    ("engine", engine),
    ("condition", condition),
    ("share", share),
    ("offload", offload),
    ("control", control),
    ("export", export),
];
