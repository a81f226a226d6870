//! Fixed-size looks into a frame: one bounds check for a whole header, and big-endian numbers from
//! it.

/// The `N` bytes from `at` on.
#[inline]
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

/// The `N` bytes from `at` on, to change them.
#[inline]
pub(crate) fn array_mut<const N: usize>(bytes: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    bytes.get_mut(at..)?.first_chunk_mut()
}

/// The 16 bits at `at` of a header that is known to hold them.
#[inline]
pub(crate) const fn be16<const N: usize>(header: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([header[at], header[at + 1]])
}

/// The 32 bits at `at` of a header that is known to hold them.
#[inline]
pub(crate) const fn be32<const N: usize>(header: &[u8; N], at: usize) -> u32 {
    u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

/// An offset into a frame as the headers keep it: the parser never looks behind 65 535 bytes.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the parser cuts frames to 65 535 bytes")]
pub(crate) const fn offset(at: usize) -> u16 {
    at as u16
}
