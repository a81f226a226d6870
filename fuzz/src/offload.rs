//! What a kernel left undone of a frame.

use weir_io::offload::{self, Splitter, UNDONE_BYTES, Undone};
use weir_packet::Headers;

/// Any frame with any header before it is finished or refused; the parts of one that is cut are
/// readable and add up.
pub fn offload(data: &[u8]) {
    let Some((header, frame)) = data.split_first_chunk::<UNDONE_BYTES>() else { return };
    let undone = Undone::read(header);
    let mut frame = frame.to_vec();
    if let Some(checksum) = undone.checksum {
        let _ = offload::complete(&mut frame, checksum);
    }
    let splitter = undone.large.and_then(|large| Splitter::new(&frame, large));
    let Some(mut splitter) = splitter else { return };
    let (headers, mut part, mut payload) = (Headers::parse(&frame), [0; 2_048], 0);
    while let Some(len) = splitter.write_next(&frame, &mut part) {
        let got = Headers::parse(&part[..len]);
        assert_eq!((got.fault, got.protocol), (None, headers.protocol));
        payload += got.payload_len();
    }
    assert!(!splitter.is_done() || payload == headers.payload_len());
}
