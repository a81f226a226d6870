//! Writing a capture: nanosecond pcap of Ethernet frames, which every tool reads.

use std::io::{self, Write};

use weir_units::Instant;
use weir_units::limits::CAPTURE_RECORD_BYTES;

/// A capture that is being written. Wrap a file in a `BufWriter`.
#[derive(Debug)]
pub struct PcapWriter<W> {
    writer: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn new(mut writer: W) -> io::Result<Self> {
        writer.write_all(&0xa1b2_3c4d_u32.to_le_bytes())?;
        writer.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        writer.write_all(&saturate(CAPTURE_RECORD_BYTES as u64).to_le_bytes())?;
        writer.write_all(&1_u32.to_le_bytes())?;
        Ok(PcapWriter { writer })
    }

    /// Writes one frame of which `original_len` bytes were on the wire. What is longer than a
    /// record may be is cut, and a moment after February 2106 is written as that.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn write(&mut self, at: Instant, original_len: u32, bytes: &[u8]) -> io::Result<()> {
        let bytes = &bytes[..bytes.len().min(CAPTURE_RECORD_BYTES)];
        let fraction = saturate(at.ns() % 1_000_000_000);
        for number in [
            saturate(at.ns() / 1_000_000_000),
            fraction,
            saturate(bytes.len() as u64),
            original_len,
        ] {
            self.writer.write_all(&number.to_le_bytes())?;
        }
        self.writer.write_all(bytes)
    }

    /// Hands the writer back, with everything written.
    ///
    /// # Errors
    ///
    /// When the writer fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.writer.flush()?;
        Ok(self.writer)
    }
}

fn saturate(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
