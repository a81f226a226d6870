//! Captures of each variety, made by hand.

use super::source::Order;
use super::*;

/// Writes numbers in one byte order.
struct Maker {
    order: Order,
    bytes: Vec<u8>,
}

impl Maker {
    fn new(order: Order) -> Maker {
        Maker { order, bytes: Vec::new() }
    }

    fn u16(mut self, n: u16) -> Maker {
        self.bytes.extend(match self.order {
            Order::Little => n.to_le_bytes(),
            Order::Big => n.to_be_bytes(),
        });
        self
    }

    fn u32(mut self, n: u32) -> Maker {
        self.bytes.extend(match self.order {
            Order::Little => n.to_le_bytes(),
            Order::Big => n.to_be_bytes(),
        });
        self
    }

    fn raw(mut self, bytes: &[u8]) -> Maker {
        self.bytes.extend(bytes);
        self
    }

    fn pcap(order: Order, magic: u32, link: u32) -> Maker {
        let maker = Maker::new(order).u32(magic).u16(2).u16(4).u32(0).u32(0);
        maker.u32(65_535).u32(link)
    }

    fn record(self, secs: u32, fraction: u32, original: u32, bytes: &[u8]) -> Maker {
        let len = u32::try_from(bytes.len()).unwrap();
        self.u32(secs).u32(fraction).u32(len).u32(original).raw(bytes)
    }

    fn block(self, kind: u32, body: impl FnOnce(Maker) -> Maker) -> Maker {
        let mut inside = body(Maker::new(self.order)).bytes;
        inside.resize(inside.len().next_multiple_of(4), 0);
        let total = u32::try_from(inside.len()).unwrap() + 12;
        self.u32(kind).u32(total).raw(&inside).u32(total)
    }

    fn section(self) -> Maker {
        let body = |m: Maker| m.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
        self.block(0x0a0d_0d0a, body)
    }

    fn interface(self, link: u16, longest: u32, options: impl FnOnce(Maker) -> Maker) -> Maker {
        self.block(1, |m| options(m.u16(link).u16(0).u32(longest)))
    }

    fn packet(self, interface: u32, ticks: u32, original: u32, bytes: &[u8]) -> Maker {
        let len = u32::try_from(bytes.len()).unwrap();
        self.block(6, |m| m.u32(interface).u32(0).u32(ticks).u32(len).u32(original).raw(bytes))
    }
}

type Flat = (u64, u32, LinkType, u32, Vec<u8>);

/// Every record, and the error that ended the stream, if one did.
fn all(bytes: &[u8]) -> (Vec<Flat>, Option<String>) {
    let mut capture = match Capture::open(bytes) {
        Ok(capture) => capture,
        Err(error) => return (Vec::new(), Some(error.to_string())),
    };
    let mut records = Vec::new();
    loop {
        match capture.next() {
            Ok(Some(r)) => {
                records.push((r.at.ns(), r.interface, r.link, r.original_len, r.bytes.to_vec()));
            }
            Ok(None) => return (records, capture.truncated().map(ToString::to_string)),
            Err(error) => {
                let said = error.to_string();
                assert!(capture.next().unwrap().is_none(), "after an error comes the end");
                return (records, Some(said));
            }
        }
    }
}

#[test]
fn pcap_of_both_orders_and_both_resolutions() {
    for order in [Order::Little, Order::Big] {
        for (magic, ns) in [(0xa1b2_c3d4, 5_000), (0xa1b2_3c4d, 5)] {
            let file = Maker::pcap(order, magic, 1).record(2, 5, 60, b"abc").record(3, 0, 1, b"d");
            let (records, error) = all(&file.bytes);
            assert_eq!(error, None);
            assert_eq!(
                records[0],
                (2_000_000_000 + ns, 0, LinkType::Ethernet, 60, b"abc".to_vec())
            );
            assert_eq!(records[1].4, b"d");
        }
    }
}

#[test]
fn the_upper_half_of_the_link_is_not_its_number() {
    let file = Maker::pcap(Order::Little, 0xa1b2_c3d4, 0x2400_0065).record(0, 0, 1, b"E");
    assert_eq!(all(&file.bytes).0[0].2, LinkType::RawIp);
}

#[test]
fn pcapng_with_interfaces_and_sections_of_both_orders() {
    let nanoseconds = |m: Maker| m.u16(2).u16(3).raw(b"lan\0").u16(9).u16(1).raw(&[9, 0, 0, 0]);
    let shifted =
        |m: Maker| m.u16(14).u16(8).raw(&[0, 0, 0, 0, 0, 0, 0, 7]).u16(0).u16(0).raw(b"junk");
    let file = Maker::new(Order::Little)
        .section()
        .interface(1, 0, |m| m)
        .interface(101, 0, nanoseconds)
        .block(5, |m| m.raw(b"statistics"))
        .packet(1, 77, 1_500, b"abcde")
        .packet(0, 77, 4, b"wxyz");
    let big = Maker::new(Order::Big).section().interface(276, 0, shifted).packet(0, 1, 2, b"st");
    let (records, error) = all(&file.raw(&big.bytes).bytes);
    assert_eq!(error, None);
    assert_eq!(records[0], (77, 1, LinkType::RawIp, 1_500, b"abcde".to_vec()));
    assert_eq!(records[1], (77_000, 0, LinkType::Ethernet, 4, b"wxyz".to_vec()));
    assert_eq!(records[2], (7_000_001_000, 0, LinkType::LinuxCooked2, 2, b"st".to_vec()));
}

#[test]
fn simple_and_old_packets() {
    let file = Maker::new(Order::Big)
        .section()
        .interface(1, 3, |m| m)
        .block(3, |m| m.u32(9).raw(b"abc"))
        .block(2, |m| m.u16(0).u16(5).u32(0).u32(8).u32(2).u32(2).raw(b"de"));
    let (records, error) = all(&file.bytes);
    assert_eq!(error, None);
    assert_eq!(records[0], (0, 0, LinkType::Ethernet, 9, b"abc".to_vec()));
    assert_eq!(records[1], (8_000, 0, LinkType::Ethernet, 2, b"de".to_vec()));
}

#[test]
fn a_file_cut_off_anywhere_gives_the_records_before() {
    let pcap = Maker::pcap(Order::Little, 0xa1b2_c3d4, 1);
    let pcap = pcap.record(1, 0, 3, b"abc").record(2, 0, 4, b"defg");
    let ng = Maker::new(Order::Little).section().interface(1, 0, |m| m);
    let ng = ng.packet(0, 1, 3, b"abc").packet(0, 2, 4, b"defg");
    for file in [pcap.bytes, ng.bytes] {
        let second = file.len() - 4 - if file[0] == 0x0a { 32 } else { 16 };
        for end in second + 1..file.len() {
            let (records, error) = all(&file[..end]);
            assert_eq!(records.len(), 1, "cut at {end} of {}", file.len());
            let error = error.unwrap();
            assert!(error.starts_with(&format!("record 2 at byte {second}: ")), "{error}");
            assert!(error.contains("1 before it"), "{error}");
        }
        assert_eq!(all(&file[..second]).1, None);
        assert!(all(&file[..7]).1.unwrap().contains("header"));
    }
}

#[test]
fn a_record_that_claims_too_much_is_named() {
    let file = Maker::pcap(Order::Little, 0xa1b2_c3d4, 1).record(1, 0, 3, b"abc");
    let file = file.u32(2).u32(0).u32(u32::MAX).u32(9);
    let (records, error) = all(&file.bytes);
    assert_eq!(records.len(), 1);
    assert!(error.unwrap().starts_with("record 2 at byte 43: it claims 4294967295 bytes"));
}

#[test]
fn a_block_that_contradicts_itself_is_named() {
    let start = || Maker::new(Order::Little).section().interface(1, 0, |m| m);
    for (file, word) in [
        (start().u32(6).u32(13), "13 bytes long"),
        (start().u32(6).u32(8), "8 bytes long"),
        (start().block(6, |m| m.u32(0).u32(0).u32(0).u32(5).u32(5)), "does not fit"),
        (start().block(6, |m| m.u32(0)), "does not fit"),
        (start().packet(4, 0, 1, b"a"), "interface 4"),
        (start().u32(77).u32(12).u32(16), "length 12 and ends with 16"),
        (start().raw(&[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 1, 2, 3, 4]), "byte order"),
    ] {
        let error = all(&file.bytes).1.unwrap();
        assert!(error.starts_with("record 1 at byte 48: "), "{error}");
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn interfaces_are_bounded() {
    let mut file = Maker::new(Order::Little).section();
    for _ in 0..=weir_units::limits::CAPTURE_INTERFACES {
        file = file.interface(1, 0, |m| m);
    }
    assert!(all(&file.bytes).1.unwrap().contains("interfaces"));
}

#[test]
fn another_version_is_named() {
    let file = Maker::new(Order::Little).u32(0xa1b2_c3d4).u16(7).u16(1);
    let error = all(&file.bytes).1.unwrap();
    assert!(error.contains("version 7.1"), "{error}");
}

#[test]
fn a_reader_that_fails_is_told_with_its_reason() {
    #[derive(Debug)]
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let error = Capture::open(Broken).unwrap_err().to_string();
    assert!(error.contains("the disk is gone"), "{error}");
}

#[test]
fn a_reader_that_hesitates_and_gives_a_byte_at_a_time_is_read_all_the_same() {
    #[derive(Debug)]
    struct Slow<'b>(&'b [u8], bool);
    impl Read for Slow<'_> {
        fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(std::io::ErrorKind::Interrupted.into());
            }
            let n = out.len().min(1);
            self.0.read(&mut out[..n])
        }
    }
    let file = Maker::pcap(Order::Little, 0xa1b2_c3d4, 1).record(2, 5, 60, b"abc");
    let mut capture = Capture::open(Slow(&file.bytes, false)).unwrap();
    assert_eq!(capture.next().unwrap().unwrap().bytes, b"abc");
    assert!(capture.next().unwrap().is_none());
}
