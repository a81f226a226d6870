//! What the allocators promise, held to the exact answer with packets from a deterministic source.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "tests; the exact answer is compared in floats"
)]

mod fair;
mod guarantees;
mod others;
mod published;
mod quick;
mod scarce;
mod traffic;
mod trees;
