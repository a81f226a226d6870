//! Active queue management: each algorithm against a plain model of its paper in floats, what it is
//! for in virtual time, and any input at all.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    clippy::cast_lossless,
    clippy::float_cmp,
    clippy::unwrap_used,
    reason = "a model computes with floats, that is what makes it another implementation; tests may
              stop"
)]

mod any_input;
mod cobalt;
mod codel;
mod held;
mod line;
mod pie;
mod red;
