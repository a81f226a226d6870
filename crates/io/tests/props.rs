//! What is written reads back the same, and no bytes at all make the reader panic.

use proptest::prelude::*;
use weir_io::{Capture, LinkType, PcapWriter, to_ethernet};
use weir_units::Instant;

const MAGICS: [[u8; 4]; 5] = [
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x0a, 0x0d, 0x0d, 0x0a],
];

/// Words that a pcapng file is made of, so that random ones get somewhere.
const WORDS: [u32; 10] = [0x0a0d_0d0a, 0x1a2b_3c4d, 1, 2, 3, 6, 12, 20, 28, 32];

/// The first moment that a pcap cannot hold, in nanoseconds since 1970.
const BEYOND: u64 = (1 << 32) * 1_000_000_000;

/// Reads to the end; how many records there were.
fn drain(bytes: &[u8]) -> u64 {
    let Ok(mut capture) = Capture::open(bytes) else { return 0 };
    let mut frame = Vec::new();
    while let Ok(Some(record)) = capture.next() {
        assert!(record.bytes.len() <= bytes.len());
        let _ = to_ethernet(record.link, record.bytes, &mut frame);
    }
    capture.records()
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        records in prop::collection::vec(
            (0..BEYOND, any::<u32>(), prop::collection::vec(any::<u8>(), 0..200)),
            0..20,
        ),
    ) {
        let mut writer = PcapWriter::new(Vec::new()).unwrap();
        for (at, original, bytes) in &records {
            writer.write(Instant::from_ns(*at), *original, bytes).unwrap();
        }
        let file = writer.finish().unwrap();
        let mut capture = Capture::open(&file[..]).unwrap();
        for (at, original, bytes) in &records {
            let record = capture.next().unwrap().unwrap();
            prop_assert_eq!(record.at.ns(), *at);
            prop_assert_eq!(record.original_len, *original);
            prop_assert_eq!(record.bytes, &bytes[..]);
            prop_assert_eq!(record.link, LinkType::Ethernet);
        }
        prop_assert!(capture.next().unwrap().is_none());
        prop_assert!(capture.truncated().is_none());
    }

    #[test]
    fn no_bytes_make_it_panic(
        magic in prop::sample::select(&MAGICS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        drain(&bytes);
        drain(&[&magic[..], &bytes].concat());
    }

    #[test]
    fn no_blocks_make_it_panic(
        little in any::<bool>(),
        words in prop::collection::vec(
            prop_oneof![prop::sample::select(&WORDS[..]), any::<u32>()],
            0..60,
        ),
    ) {
        let words = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, 0, 0, 28].into_iter().chain(words);
        let bytes: Vec<u8> = words
            .flat_map(|word| if little { word.to_le_bytes() } else { word.to_be_bytes() })
            .collect();
        drain(&bytes);
    }
}

#[test]
fn a_frame_longer_than_a_record_may_be_is_cut() {
    let long = vec![7; 300_000];
    let mut writer = PcapWriter::new(Vec::new()).unwrap();
    writer.write(Instant::MAX, 300_000, &long).unwrap();
    let file = writer.finish().unwrap();
    let mut capture = Capture::open(&file[..]).unwrap();
    let record = capture.next().unwrap().unwrap();
    assert_eq!((record.original_len, record.bytes.len()), (300_000, 256 << 10));
    assert_eq!(record.at.ns() / 1_000_000_000, u64::from(u32::MAX));
}
