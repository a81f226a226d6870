//! A capture as a stream of records. The two formats differ in where a record's time, length and
//! link stand; this file is what they share: one buffer, the count of records, and how a stream
//! ends.

mod error;
mod link;
mod pcap;
mod pcapng;
mod source;
mod write;

use std::io::Read;

use weir_units::Instant;
use weir_units::limits::CAPTURE_RECORD_BYTES;

pub use error::{CaptureError, Fault};
pub use link::{LinkType, to_ethernet};
pub use write::PcapWriter;

use source::{Source, Stop};

/// A capture that is being read.
#[derive(Debug)]
pub struct Capture<R> {
    source: Source<R>,
    format: Format,
    buffer: Vec<u8>,
    records: u64,
    ended: bool,
    truncated: Option<CaptureError>,
}

/// One recorded packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'c> {
    /// When it was recorded, in nanoseconds since 1970; zero where the file does not say.
    pub at: Instant,
    /// Which interface of its section recorded it, from 0.
    pub interface: u32,
    /// What its bytes start with.
    pub link: LinkType,
    /// How long it was on the wire; `bytes` may be less of it.
    pub original_len: u32,
    /// What was recorded of it.
    pub bytes: &'c [u8],
}

#[derive(Debug)]
enum Format {
    Pcap(pcap::File),
    Pcapng(pcapng::Section),
}

/// A record without its bytes, which are in the buffer.
struct Head {
    at: Instant,
    interface: u32,
    link: LinkType,
    original_len: u32,
}

impl<R: Read> Capture<R> {
    /// Reads as far as it takes to know what kind of file this is.
    ///
    /// # Errors
    ///
    /// When it is no capture, or one of a kind that weir does not read; the message says what it
    /// seems to be and what to do.
    pub fn open(reader: R) -> Result<Self, CaptureError> {
        let mut source = Source::new(reader);
        let format = open(&mut source).map_err(|stop| source.error(stop, 0))?;
        Ok(Capture {
            source,
            format,
            buffer: Vec::new(),
            records: 0,
            ended: false,
            truncated: None,
        })
    }

    /// The next record, or `None` at the end. After an error, or when the last record was cut off
    /// (see [`Capture::truncated`]), the end has come.
    ///
    /// # Errors
    ///
    /// When the file cannot be read on or makes no sense from there on.
    #[expect(clippy::should_implement_trait, reason = "it lends its buffer, an Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        if self.ended {
            return Ok(None);
        }
        self.source.mark();
        let head = match &mut self.format {
            Format::Pcap(file) => file.next(&mut self.source, &mut self.buffer),
            Format::Pcapng(section) => section.next(&mut self.source, &mut self.buffer),
        };
        match head {
            Ok(head) => {
                self.records += 1;
                let Head { at, interface, link, original_len } = head;
                Ok(Some(Record { at, interface, link, original_len, bytes: &self.buffer }))
            }
            Err(stop) => {
                self.ended = true;
                if matches!(stop, Stop::End) {
                    return Ok(None);
                }
                let error = self.source.error(stop, self.records + 1);
                if matches!(error.fault(), Fault::CutOff) {
                    self.truncated = Some(error);
                    return Ok(None);
                }
                Err(error)
            }
        }
    }

    /// That the file ends within a record, once the end has come. The records before it count.
    #[must_use]
    pub fn truncated(&self) -> Option<&CaptureError> {
        self.truncated.as_ref()
    }

    /// How many records were read so far.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }
}

fn open<R: Read>(source: &mut Source<R>) -> Result<Format, Stop> {
    let mut start = [0; 64];
    let seen = source.some(&mut start[..4])?;
    let magic = [start[0], start[1], start[2], start[3]];
    if seen == 4 {
        if let Some((order, nanoseconds)) = pcap::magic(magic) {
            return pcap::File::open(source, order, nanoseconds).map(Format::Pcap);
        }
        if magic == pcapng::SECTION {
            return pcapng::Section::open(source).map(Format::Pcapng);
        }
    }
    let more = if seen == 4 { source.some(&mut start[4..])? } else { 0 };
    Err(Stop::Fault(Fault::of_start(&start[..seen + more])))
}

/// Refills the buffer with the bytes of a record that claims to have `len`.
fn fill<R: Read>(source: &mut Source<R>, buffer: &mut Vec<u8>, len: u32) -> Result<(), Stop> {
    let size = usize::try_from(len).unwrap_or(usize::MAX);
    if size > CAPTURE_RECORD_BYTES {
        return Err(Stop::Fault(Fault::TooLong { claimed: len }));
    }
    buffer.resize(size, 0);
    source.exact(buffer)
}

#[cfg(test)]
mod tests;
