//! How large a window a connection is shown: what its rate and its round trip ask for and a little
//! more, so that the leaf has something to send, in whole segments. What a sender was once told
//! that it may send, it may send: the right edge never moves back.

use weir_packet::{Headers, Net, edit};

use crate::connection::{Half, NO_SCALE};
use crate::segment::{Segment, is_after};

/// Bytes of headers that go with each segment at the least: a window counts what a rate does not.
const HEADERS: u64 = 40;
/// Segments that wait in the box or stand still at the receiver, beyond what is on its way.
const SLACK: u64 = 2;
/// Microseconds that a retransmission timer waits beyond the round trip, at the least.
const PATIENCE: u32 = 200_000;
/// A segment where nobody said how large (RFC 9293, section 3.7.1), over IPv4 and over IPv6.
const USUAL_MSS: u16 = 536;
const USUAL_MSS_V6: u16 = 1_220;
/// None is smaller, whatever somebody says: every host takes a packet of 68 bytes (RFC 791).
const SMALLEST_MSS: u16 = 28;

/// Bytes that may be under way at `rate` bits per second, where the shortest round trip and the
/// last one took so many microseconds. It grows no faster than the sender learns that its
/// segments take longer: by no more than what the leaf carries in two of the last round trips and
/// the time that any host waits beyond what it has seen.
pub(crate) fn target(rate: u64, shortest: u32, last: u32, mss: u16, least: u8) -> u32 {
    let mss = u64::from(mss.max(SMALLEST_MSS));
    let carried = |time: u32| rate.saturating_mul(u64::from(time)) / 8_000_000;
    let sent = mss + HEADERS;
    let wanted = (carried(shortest).div_ceil(sent) + SLACK).max(u64::from(least));
    let learnt = (carried(last.saturating_mul(2).saturating_add(PATIENCE)) / sent).max(SLACK);
    let segments = wanted.min(learnt);
    u32::try_from(segments * mss).unwrap_or(1 << 30).min(1 << 30)
}

/// How large the segments may be that a host takes, from what it said in its SYN.
pub(crate) fn segment_size(said: Option<u16>, net: Net) -> u16 {
    match (said, net) {
        (Some(mss @ 1..), _) => mss,
        (_, Net::V6) => USUAL_MSS_V6,
        _ => USUAL_MSS,
    }
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
    let Some(their_edge) = edge(segment, shift) else { return false };
    let wanted = segment.ack.wrapping_add(target);
    let wanted = match half.known_edge() {
        Some(edge) if is_after(edge, wanted) => edge,
        _ => wanted,
    };
    if !is_after(their_edge, wanted) {
        half.grant(their_edge);
        return false;
    }
    // their own window is larger, so that this fits where it stood
    let field = wanted.wrapping_sub(segment.ack).div_ceil(1 << shift);
    let field = u16::try_from(field).unwrap_or(segment.window);
    half.grant(segment.ack.wrapping_add(u32::from(field) << shift));
    field < segment.window && edit::set_tcp_window(bytes, headers, field)
}

/// Lets a window through as it is; the sender knows it then.
pub(crate) fn pass(half: &mut Half, segment: &Segment, shift: u8) {
    if let Some(edge) = edge(segment, shift) {
        half.grant(edge);
    }
}

/// The right edge that a segment tells, if it is known how.
fn edge(segment: &Segment, shift: u8) -> Option<u32> {
    (shift != NO_SCALE).then(|| segment.ack.wrapping_add(u32::from(segment.window) << shift))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_rate_carries_and_two_segments() {
        // 1 Mbit/s and 80 ms: 10 000 bytes are 6.7 segments with their headers
        assert_eq!(target(1_000_000, 80_000, 80_000, 1_460, 4), 9 * 1_460);
        assert_eq!(target(1_000_000, 1, 1_000_000, 1_460, 4), 4 * 1_460);
        assert_eq!(target(1_000_000, 1, 1_000_000, 1_460, 0), 2 * 1_460);
    }

    #[test]
    fn it_grows_with_the_last_round_trip() {
        let with = |last: u32| target(1_000_000, 800_000, last, 1_000, 4) / 1_000;
        assert_eq!([with(0), with(8_000), with(20_000), with(48_000)], [24, 25, 28, 35]);
        assert_eq!(with(u32::MAX), 99);
        assert_eq!(target(16_000, 0, 0, 1_000, 4), 2_000);
    }

    #[test]
    fn segments_nobody_named_and_tiny_ones_have_a_size() {
        for said in [None, Some(0)] {
            assert_eq!(segment_size(said, Net::V4), 536);
            assert_eq!(segment_size(said, Net::V6), 1_220);
        }
        assert_eq!(segment_size(Some(1_000), Net::V6), 1_000);
        assert_eq!([0, 1].map(|mss| target(1_000, 0, 0, mss, 0)), [2 * 28; 2]);
    }

    #[test]
    fn no_rate_and_no_time_is_too_large() {
        assert_eq!(target(u64::MAX, u32::MAX, u32::MAX, u16::MAX, 255), 1 << 30);
        assert_eq!(target(0, u32::MAX, u32::MAX, 1_000, 4), 2_000);
    }
}
