//! Bytes from front to back, counted, so that an error can name the place.

use std::io::{BufReader, ErrorKind, Read};

use super::error::{CaptureError, Fault};

const READ_AHEAD: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Source<R> {
    reader: BufReader<R>,
    offset: u64,
    /// Where the present record or block starts.
    mark: u64,
}

/// Why there is no further record.
#[derive(Debug)]
pub(super) enum Stop {
    /// The file ends where it may.
    End,
    Fault(Fault),
}

impl<R: Read> Source<R> {
    pub(super) fn new(reader: R) -> Self {
        Source { reader: BufReader::with_capacity(READ_AHEAD, reader), offset: 0, mark: 0 }
    }

    /// A record or block starts here.
    pub(super) fn mark(&mut self) {
        self.mark = self.offset;
    }

    /// As much as there is, up to the whole of `bytes`.
    pub(super) fn some(&mut self, bytes: &mut [u8]) -> Result<usize, Stop> {
        let mut got = 0;
        while got < bytes.len() {
            match self.reader.read(&mut bytes[got..]) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Fault(Fault::Unreadable(error))),
            }
        }
        self.offset += got as u64;
        Ok(got)
    }

    /// The whole of `bytes`; the file may not end before.
    pub(super) fn exact(&mut self, bytes: &mut [u8]) -> Result<(), Stop> {
        if self.some(bytes)? < bytes.len() { Err(Stop::Fault(Fault::CutOff)) } else { Ok(()) }
    }

    /// The next `N` bytes; the file may not end before.
    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        self.exact(&mut bytes)?;
        Ok(bytes)
    }

    /// The next `N` bytes; the file may end here, but not within them.
    pub(super) fn take_or_end<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let mut bytes = [0; N];
        match self.some(&mut bytes)? {
            0 => Err(Stop::End),
            n if n < N => Err(Stop::Fault(Fault::CutOff)),
            _ => Ok(bytes),
        }
    }

    /// Passes over `n` bytes.
    pub(super) fn skip(&mut self, n: u32) -> Result<(), Stop> {
        let mut scratch = [0; 4_096];
        let mut left = usize::try_from(n).unwrap_or(usize::MAX);
        while left > 0 {
            let step = left.min(scratch.len());
            self.exact(&mut scratch[..step])?;
            left -= step;
        }
        Ok(())
    }

    /// The stop in words, at the present mark. `record` is 0 before the first.
    pub(super) fn error(&self, stop: Stop, record: u64) -> CaptureError {
        let fault = match stop {
            Stop::End => Fault::CutOff,
            Stop::Fault(fault) => fault,
        };
        CaptureError::new(fault, record, self.mark)
    }
}

/// Which byte of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

impl Order {
    pub(super) fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Order::Little => u16::from_le_bytes(bytes),
            Order::Big => u16::from_be_bytes(bytes),
        }
    }

    pub(super) fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Order::Little => u32::from_le_bytes(bytes),
            Order::Big => u32::from_be_bytes(bytes),
        }
    }

    pub(super) fn i64(self, bytes: [u8; 8]) -> i64 {
        match self {
            Order::Little => i64::from_le_bytes(bytes),
            Order::Big => i64::from_be_bytes(bytes),
        }
    }
}
