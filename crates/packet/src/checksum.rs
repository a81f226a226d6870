//! The Internet checksum: computed when a frame is built, and repaired from the words that changed
//! when it is edited (RFC 1624, equation 3), so that an edit costs the same whatever the frame's
//! length.

/// The one's complement sum of `bytes` from the sum before it; an odd last byte counts as the high
/// one.
#[must_use]
pub fn sum(before: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let odd = rest.first().map_or(0, |&byte| u64::from(byte) << 8);
    words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum::<u64>() + before + odd
}

/// The checksum that a sum gives.
#[must_use]
pub const fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    #[expect(clippy::cast_possible_truncation, reason = "the loop ends below 2^16")]
    let sum = sum as u16;
    !sum
}

/// The checksum of `bytes`.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    fold(sum(0, bytes))
}

/// The checksum after a 16-bit word changed from `old` to `new`.
#[inline]
#[must_use]
pub const fn repair16(checksum: u16, old: u16, new: u16) -> u16 {
    fold(!checksum as u64 + !old as u64 + new as u64)
}

/// A checksum as UDP writes it: 0 would mean that there is none.
#[inline]
#[must_use]
pub const fn for_udp(checksum: u16) -> u16 {
    if checksum == 0 { u16::MAX } else { checksum }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1624_comes_out() {
        // section 4: header checksum 0xdd2f, a field goes from 0x5555 to 0x3285
        assert_eq!(repair16(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(of(&bytes), !0xddf2);
        assert_eq!(of(&[0xab]), !0xab00);
    }

    #[test]
    fn a_repair_is_a_new_sum() {
        let mut bytes = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc];
        let before = of(&bytes);
        bytes[2..4].copy_from_slice(&0xff00_u16.to_be_bytes());
        assert_eq!(repair16(before, 0x5678, 0xff00), of(&bytes));
    }
}
