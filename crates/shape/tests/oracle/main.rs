//! The scheduler against what DESIGN promises of it: an exact solver that shares nothing with it,
//! and the bounds of ceilings, guarantees, the line and the order. Random trees, random demands,
//! random sizes of frames, virtual time.
//!
//! A failure prints its smallest case and stores the seed in `tests/proptest-regressions/`; the
//! same command runs it again first. Large trees are made from a `Plan` (a seed and a few numbers),
//! so that a failing one is small to read as well.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "an oracle computes with floats, that is what makes it another implementation"
)]

mod case;
mod ceilings;
mod changes;
mod dice;
mod freed;
mod lag;
mod line_time;
mod priorities;
mod shares;
mod solver;
mod tally;
mod watch;
mod world;
