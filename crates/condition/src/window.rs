//! How large a window a connection is shown: what its rate and its round trip ask for and a little
//! more, so that the leaf has something to send, in whole segments. What a sender was once told
//! that it may send, it may send: the right edge never moves back.

use weir_packet::{Headers, edit};

use crate::connection::{Half, NO_SCALE};
use crate::segment::{Segment, is_after};

/// Segments that wait in the box or stand still at the receiver, beyond what is on its way.
const SLACK: u64 = 2;
/// Microseconds that a retransmission timer waits beyond the round trip, at the least.
const PATIENCE: u32 = 200_000;
/// A segment where nobody said how large.
const USUAL_MSS: u16 = 1_460;

/// Bytes that may be under way at `rate` bits per second, where the shortest round trip and the
/// last one took so many microseconds. It grows no faster than the sender learns that its
/// segments take longer: by no more than what the leaf carries in two of the last round trips and
/// the time that any host waits beyond what it has seen.
pub(crate) fn target(rate: u64, shortest: u32, last: u32, mss: u16, least: u8) -> u32 {
    let mss = u64::from(if mss == 0 { USUAL_MSS } else { mss });
    let carried = |time: u32| rate.saturating_mul(u64::from(time)) / 8_000_000;
    let wanted = (carried(shortest).div_ceil(mss) + SLACK).max(u64::from(least));
    let learnt = (carried(last.saturating_mul(2).saturating_add(PATIENCE)) / mss).max(SLACK);
    let segments = wanted.min(learnt);
    u32::try_from(segments * mss).unwrap_or(1 << 30).min(1 << 30)
}

/// Sizes the window of an acknowledgement for the data of `half`; returns whether it was changed.
pub(crate) fn size(
    bytes: &mut [u8],
    headers: &Headers,
    half: &mut Half,
    segment: &Segment,
    shift: u8,
    target: u32,
) -> bool {
    let theirs = u32::from(segment.window) << shift;
    let their_edge = segment.ack.wrapping_add(theirs);
    // a closed window is the receiver's own business, and so is one it takes back
    if shift == NO_SCALE || theirs == 0 {
        return false;
    }
    let wanted = segment.ack.wrapping_add(target);
    let wanted = match half.known_edge() {
        Some(edge) if is_after(edge, wanted) => edge,
        _ => wanted,
    };
    if !is_after(their_edge, wanted) {
        half.grant(their_edge);
        return false;
    }
    let field = wanted.wrapping_sub(segment.ack).div_ceil(1 << shift).max(1);
    let Ok(field) = u16::try_from(field) else {
        half.grant(their_edge);
        return false;
    };
    half.grant(segment.ack.wrapping_add(u32::from(field) << shift));
    field < segment.window && edit::set_tcp_window(bytes, headers, field)
}
