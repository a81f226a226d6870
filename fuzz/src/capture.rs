//! Captures: hostile files that claim anything.

use weir_io::{Capture, PcapWriter, to_ethernet};
use weir_units::limits::CAPTURE_RECORD_BYTES;

/// A capture is read to its end: no record is longer than the file, and what was read, written
/// anew, reads back the same.
pub fn capture(data: &[u8]) {
    let Ok(mut capture) = Capture::open(data) else { return };
    let mut writer = PcapWriter::new(Vec::new()).expect("a vector takes all bytes");
    let mut frame = Vec::new();
    let mut written = Vec::new();
    let error = loop {
        match capture.next() {
            Ok(Some(record)) => {
                assert!(record.bytes.len() <= data.len(), "a record longer than its file");
                if to_ethernet(record.link, record.bytes, &mut frame).is_some() {
                    writer
                        .write(record.at, record.original_len, &frame)
                        .expect("a vector takes all bytes");
                    frame.truncate(CAPTURE_RECORD_BYTES);
                    written.push((record.original_len, frame.clone()));
                }
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    if let Some(error) = error {
        assert!(!error.to_string().is_empty() && error.offset() <= data.len() as u64);
    }
    assert!(matches!(capture.next(), Ok(None)), "the end stays the end");

    let file = writer.finish().expect("a vector takes all bytes");
    let mut again = Capture::open(&file[..]).expect("what weir writes, weir reads");
    for (original_len, bytes) in &written {
        let record = again.next().expect("what weir writes, weir reads");
        let record = record.expect("as many records as were written");
        assert_eq!((record.original_len, record.bytes), (*original_len, &bytes[..]));
    }
    assert!(matches!(again.next(), Ok(None)), "no more records than were written");
}
