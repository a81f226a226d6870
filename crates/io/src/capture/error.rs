//! What can be wrong with a capture, in words for who has to do with the file.

use std::fmt;
use std::io;

use weir_units::limits::{CAPTURE_INTERFACES, CAPTURE_RECORD_BYTES};

/// A fault with its place.
#[derive(Debug)]
pub struct CaptureError {
    fault: Fault,
    record: u64,
    offset: u64,
}

/// What is wrong.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The system could not read on.
    Unreadable(io::Error),
    /// There is nothing in the file.
    Empty,
    /// It is packed: by what, and what unpacks it.
    Packed {
        /// The format.
        name: &'static str,
        /// The program that unpacks it.
        cure: &'static str,
    },
    /// It is text.
    Text,
    /// It starts like no capture that weir knows: its first bytes.
    Unknown([u8; 4]),
    /// It is a capture, but of a version that weir does not know.
    Version {
        /// Before the point.
        major: u16,
        /// Behind it.
        minor: u16,
    },
    /// A section says its byte order in neither of the two ways.
    ByteOrder,
    /// The file ends within a record.
    CutOff,
    /// A record claims more bytes than one may have.
    TooLong {
        /// What it claims.
        claimed: u32,
    },
    /// A block cannot be as long as it says.
    BlockLength {
        /// What it says.
        total: u32,
    },
    /// A block ends before what is in it does.
    BlockTooShort {
        /// How long it says it is.
        total: u32,
    },
    /// A block says another length after it than before it.
    BlockEnd {
        /// The length before.
        before: u32,
        /// The length after.
        after: u32,
    },
    /// A packet refers to an interface that its section does not have.
    NoInterface {
        /// Its number, from 0.
        number: u32,
    },
    /// A section has more interfaces than one may have.
    TooManyInterfaces,
}

impl CaptureError {
    pub(super) fn new(fault: Fault, record: u64, offset: u64) -> Self {
        CaptureError { fault, record, offset }
    }

    /// What is wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.fault
    }

    /// The number of the record, from 1; 0 when the file does not get as far as records.
    #[must_use]
    pub fn record(&self) -> u64 {
        self.record
    }

    /// Where the record, or the block, starts in the file.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Fault {
    /// What a file seems to be that does not start like a capture.
    pub(super) fn of_start(start: &[u8]) -> Fault {
        const PACKED: [(&[u8], &str, &str); 5] = [
            (&[0x1f, 0x8b], "gzip", "gunzip"),
            (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "unzstd"),
            (&[0xfd, 0x37, 0x7a, 0x58, 0x5a], "xz", "unxz"),
            (b"BZh", "bzip2", "bunzip2"),
            (&[0x04, 0x22, 0x4d, 0x18], "lz4", "unlz4"),
        ];
        if start.is_empty() {
            return Fault::Empty;
        }
        if let Some((_, name, cure)) = PACKED.iter().find(|(magic, ..)| start.starts_with(magic)) {
            return Fault::Packed { name, cure };
        }
        let is_text = |b: &u8| b.is_ascii_graphic() || b.is_ascii_whitespace() || *b >= 0x80;
        if start.iter().all(is_text) && start.iter().any(u8::is_ascii) {
            return Fault::Text;
        }
        let mut first = [0; 4];
        for (to, from) in first.iter_mut().zip(start) {
            *to = *from;
        }
        Fault::Unknown(first)
    }

    fn is_before_records(&self) -> bool {
        matches!(
            self,
            Fault::Empty
                | Fault::Packed { .. }
                | Fault::Text
                | Fault::Unknown(_)
                | Fault::Version { .. }
        )
    }
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.record > 0 {
            write!(f, "record {} at byte {}: ", self.record, self.offset)?;
        } else if !self.fault.is_before_records() {
            write!(f, "the header at byte {}: ", self.offset)?;
        }
        self.fault.fmt(f)?;
        match (&self.fault, self.record) {
            (Fault::CutOff, 0) => write!(f, "; record it again"),
            (Fault::CutOff, 1) => write!(f, "; no record before it, record it again"),
            (Fault::CutOff, n) => write!(f, "; the {} before it are whole", n - 1),
            (fault, 2..) if fault.is_damage() => {
                let whole = self.record - 1;
                write!(f, "; keep what is whole with: editcap -r IN OUT 1-{whole}")
            }
            (fault, _) if fault.is_damage() => write!(f, "; the file is damaged, record it again"),
            _ => Ok(()),
        }
    }
}

impl Fault {
    fn is_damage(&self) -> bool {
        matches!(
            self,
            Fault::ByteOrder
                | Fault::TooLong { .. }
                | Fault::BlockLength { .. }
                | Fault::BlockTooShort { .. }
                | Fault::BlockEnd { .. }
                | Fault::NoInterface { .. }
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const READS: &str = "pcap and pcapng are read";
        match self {
            Fault::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Fault::Empty => write!(f, "the file is empty; was the recording stopped too early?"),
            Fault::Packed { name, cure } => {
                write!(f, "the file is packed with {name}; unpack it first: {cure} FILE")
            }
            Fault::Text => write!(
                f,
                "this is text, not a capture ({READS}); record one with: tcpdump -i PORT -w FILE"
            ),
            Fault::Unknown([a, b, c, d]) => write!(
                f,
                "this is no capture that weir knows, it starts with {a:02x} {b:02x} {c:02x} \
                 {d:02x} ({READS}); if Wireshark opens it: editcap -F pcapng IN OUT"
            ),
            Fault::Version { major, minor } => write!(
                f,
                "the capture is of version {major}.{minor}, which weir does not read; convert it: \
                 editcap -F pcapng IN OUT"
            ),
            Fault::ByteOrder => write!(f, "the section does not say its byte order"),
            Fault::CutOff => write!(f, "the file ends within it"),
            Fault::TooLong { claimed } => {
                write!(f, "it claims {claimed} bytes, at most {CAPTURE_RECORD_BYTES} are read")
            }
            Fault::BlockLength { total } => write!(f, "no block can be {total} bytes long"),
            Fault::BlockTooShort { total } => {
                write!(f, "what is in the block does not fit its {total} bytes")
            }
            Fault::BlockEnd { before, after } => {
                write!(f, "the block starts with the length {before} and ends with {after}")
            }
            Fault::NoInterface { number } => {
                write!(f, "it refers to interface {number}, which the section does not have")
            }
            Fault::TooManyInterfaces => write!(
                f,
                "the section has more than {CAPTURE_INTERFACES} interfaces; record fewer at once"
            ),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            Fault::Unreadable(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(bytes: &[u8]) -> String {
        CaptureError::new(Fault::of_start(bytes), 0, 0).to_string()
    }

    #[test]
    fn a_file_that_is_none_is_named_with_its_cure() {
        assert!(start(b"").contains("empty"));
        assert!(start(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
        assert!(start(b"[link.office]\nlan = ").contains("text"));
        assert!(start(b"ab").contains("text"));
        assert!(start(&[0, 1, 2, 0xff, 9]).contains("00 01 02 ff"));
    }

    #[test]
    fn a_fault_names_record_byte_and_what_can_be_kept() {
        let error = CaptureError::new(Fault::TooLong { claimed: 300_000 }, 3, 1_204).to_string();
        assert!(error.starts_with("record 3 at byte 1204: it claims 300000 bytes"), "{error}");
        assert!(error.ends_with("1-2"), "{error}");
    }
}
