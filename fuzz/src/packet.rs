//! Frames: hostile bytes from the wire, and lines that describe a packet.

use weir_packet::{Build, Headers, checksum, edit, show, tcp};

/// Any bytes are read without a panic; an edit changes nothing but what it says and leaves the
/// checksums as right or wrong as they were.
pub fn packet(data: &[u8]) {
    let headers = Headers::parse(data);
    assert!(usize::from(headers.net_at) <= data.len());
    assert!(usize::from(headers.transport_at) <= data.len());
    assert!(usize::from(headers.payload_at) <= data.len().min(usize::from(u16::MAX)));
    let _ = show(data).to_string();
    if let Some(segment) = tcp::Tcp::of(data, &headers) {
        let _ = segment.options().count();
    }
    let ip_sum = |bytes: &[u8]| {
        let at = usize::from(headers.net_at);
        let is_v4 = headers.net == weir_packet::Net::V4;
        let header = usize::from(bytes.get(at).copied().unwrap_or(0) & 15) * 4;
        is_v4.then(|| bytes.get(at..at + header).map(checksum::of)).flatten()
    };
    let mut changed = data.to_vec();
    let before = ip_sum(data).map(is_right);
    edit::set_dscp(&mut changed, &headers, 46);
    edit::set_ecn(&mut changed, &headers, 3);
    edit::set_tcp_window(&mut changed, &headers, 1_000);
    edit::clamp_mss(&mut changed, &headers, 536);
    assert_eq!(ip_sum(&changed).map(is_right), before, "an edit broke the header's checksum");
    let again = Headers::parse(&changed);
    let kept = Headers { traffic_class: headers.traffic_class, ..again };
    assert_eq!(kept, headers, "an edit changed what it must not");
}

/// A header whose checksum is right sums up to nothing (of which there are two ways to write).
fn is_right(sum: u16) -> bool {
    sum == 0 || sum == 0xffff
}

/// Any line is read or refused with a reason; a frame that was built reads back the same.
pub fn words(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match text.parse::<Build>() {
        Ok(build) => {
            let bytes = build.to_vec();
            let line = show(&bytes).to_string();
            let again = line.parse::<Build>().map(|build| build.to_vec());
            if let Ok(again) = again {
                assert_eq!(show(&again).to_string(), line, "the line reads back as another frame");
            }
        }
        Err(wrong) => assert!(!wrong.to_string().is_empty()),
    }
}
