//! What a receiver saw of a numbered stream.

use weir_units::Instant;

use super::Delays;

/// Bytes of a datagram that carry its number and the moment it was sent.
pub(crate) const STAMP: usize = 16;

/// Numbers that are followed: an hour of 18 000 packets a second.
const NUMBERS: u64 = 1 << 26;

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    /// Different numbers that came.
    pub(crate) arrived: u64,
    pub(crate) doubled: u64,
    /// Came after one with a higher number.
    pub(crate) overtaken: u64,
    pub(crate) delays: Delays,
    highest: Option<u64>,
    seen: Vec<u64>,
}

impl Tally {
    pub(crate) fn see(&mut self, number: u64, sent: Instant, now: Instant) {
        if number >= NUMBERS {
            return;
        }
        let (word, bit) = (usize::try_from(number / 64).unwrap_or(0), 1 << (number % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.doubled += 1;
            return;
        }
        self.seen[word] |= bit;
        self.arrived += 1;
        if self.highest.is_some_and(|highest| number < highest) {
            self.overtaken += 1;
        }
        self.highest = self.highest.max(Some(number));
        self.delays.see(now.since(sent));
    }
}

/// Writes number and moment.
pub(crate) fn stamp(into: &mut [u8], number: u64, now: Instant) {
    if let Some((first, rest)) = into.split_first_chunk_mut::<8>() {
        *first = number.to_be_bytes();
        if let Some(second) = rest.first_chunk_mut::<8>() {
            *second = now.ns().to_be_bytes();
        }
    }
}

/// Number and moment of a datagram; none of one that is too short.
pub(crate) fn stamped(datagram: &[u8]) -> Option<(u64, Instant)> {
    let (number, rest) = datagram.split_first_chunk::<8>()?;
    let sent = rest.first_chunk::<8>()?;
    Some((u64::from_be_bytes(*number), Instant::from_ns(u64::from_be_bytes(*sent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_read_as_it_was_written() {
        let mut bytes = [0; STAMP];
        stamp(&mut bytes, 7, Instant::from_ns(9));
        assert_eq!(stamped(&bytes), Some((7, Instant::from_ns(9))));
        assert_eq!(stamped(&bytes[1..]), None);
    }

    #[test]
    fn late_and_double_ones_are_told_apart() {
        let mut tally = Tally::default();
        for number in [0, 1, 3, 2, 3, 200, u64::MAX] {
            tally.see(number, Instant::ZERO, Instant::ZERO);
        }
        assert_eq!((tally.arrived, tally.doubled, tally.overtaken), (5, 1, 1));
    }
}
