//! An evening at home as a list of frames: no sender reacts to anything, so that the same frames
//! meet every policy. Sizes and rates are those of the applications; the times have a fixed beat.

use weir_packet::Build;
use weir_units::{Instant, Span};

/// Frames with the moment at which they arrive at the box.
pub(crate) fn evening(seconds: u64) -> Vec<(Instant, Vec<u8>)> {
    let mut frames = Vec::new();
    let end = seconds * 1_000;
    // G.711: 160 bytes of sound and 12 of RTP every 20 ms, both ways
    let call = udp("192.168.1.20:40000", "203.0.113.7:3478", 172);
    let answer = udp("203.0.113.7:3478", "192.168.1.20:40000", 172);
    every(&mut frames, (0, end), Span::from_ms(20), Span::from_us(1_100), &call);
    every(&mut frames, (0, end), Span::from_ms(20), Span::from_us(7_300), &answer);
    // a game: 30 small packets a second up, the world of it down
    let game = udp("192.168.1.21:50000", "203.0.113.9:27015", 80);
    let world = udp("203.0.113.9:27015", "192.168.1.21:50000", 300);
    every(&mut frames, (0, end), Span::from_us(33_333), Span::from_us(2_500), &game);
    every(&mut frames, (0, end), Span::from_us(33_333), Span::from_us(9_700), &world);
    // three pages of 2 MB each, at 80 Mbit/s, with an acknowledgement for every second segment
    let page = tcp("203.0.113.80:443", "192.168.1.22:51000", 1_460);
    let ack = tcp("192.168.1.22:51000", "203.0.113.80:443", 0);
    for start in [2_000, 8_000, 16_000] {
        every(&mut frames, (start, start + 200), Span::from_us(151), Span::from_us(100), &page);
        every(&mut frames, (start, start + 200), Span::from_us(302), Span::from_us(180), &ack);
    }
    // the backup: 24 Mbit/s into an uplink of 20
    let backup = tcp("192.168.1.30:50022", "198.51.100.9:22", 1_460);
    every(&mut frames, (5_000, 15_000), Span::from_us(505), Span::from_us(0), &backup);
    frames.sort_by_key(|(at, _)| *at);
    frames
}

/// The same frame again and again from `from` to `to` milliseconds.
fn every(
    frames: &mut Vec<(Instant, Vec<u8>)>,
    (from, to): (u64, u64),
    beat: Span,
    offset: Span,
    frame: &[u8],
) {
    let mut at = Instant::ZERO + Span::from_ms(from) + offset;
    while at < Instant::ZERO + Span::from_ms(to) {
        frames.push((at, frame.to_vec()));
        at += beat;
    }
}

fn udp(from: &str, to: &str, payload: usize) -> Vec<u8> {
    let build = Build::udp(address(from), address(to)).payload_len(payload);
    let is_call = payload == 172;
    if is_call { build.dscp(46).to_vec() } else { build.to_vec() }
}

fn tcp(from: &str, to: &str, payload: usize) -> Vec<u8> {
    Build::tcp(address(from), address(to)).payload_len(payload).to_vec()
}

fn address(text: &str) -> std::net::SocketAddr {
    text.parse().expect("the addresses above are addresses")
}
