#![forbid(unsafe_code)]

pub mod figures;
pub mod library;
pub mod metrics;
pub mod run;
pub mod scenario;
