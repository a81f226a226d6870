//! The ring that the kernel fills (`TPACKET_V2`): slots of one size in memory that both sides see.
//! A word at the head of each says whose it is; we walk them in order, and hand each back once its
//! bytes are copied.

use crate::kernel::mapped::Mapped;
use crate::offload::{UNDONE_BYTES, Undone};

/// The slot is ours.
const OURS: u32 = 1;
/// The whole frame waits in the socket, because it is longer than a slot.
const COPIED: u32 = 1 << 1;
/// There was a VLAN tag, which the kernel took off.
const TAGGED: u32 = 1 << 4;
/// The type of that tag is known.
const TAG_TYPE_KNOWN: u32 = 1 << 6;

/// The slots, and which is next.
#[derive(Debug)]
pub(super) struct Ring {
    memory: Mapped,
    slots: usize,
    slot_bytes: usize,
    next: usize,
}

/// A frame in its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    /// Bytes of the frame that are in the slot.
    pub(super) held: usize,
    /// Bytes of the frame, without its tag.
    pub(super) len: usize,
    /// The whole of it waits in the socket.
    pub(super) copied: bool,
    /// The VLAN tag that was taken off, as it stood.
    pub(super) tag: Option<[u8; 4]>,
    /// What the sender left undone, by offsets without the tag.
    pub(super) undone: Undone,
    at: usize,
}

impl Ring {
    pub(super) fn new(memory: Mapped, slots: usize, slot_bytes: usize) -> Self {
        Ring { memory, slots: slots.max(1), slot_bytes, next: 0 }
    }

    /// The frame in the next slot, if the kernel has filled it.
    #[inline]
    pub(super) fn peek(&self) -> Option<Arrived> {
        let slot = self.next * self.slot_bytes;
        let status = self.memory.load(slot);
        if status & OURS == 0 {
            return None;
        }
        // struct tpacket2_hdr: status, len, held: u32; frame at, net at: u16; seconds,
        // nanoseconds: u32; tag, type of the tag: u16
        let head: [u8; 32] = self.memory.read(slot);
        let word =
            |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let offset = usize::from(half(12));
        let tag = (status & TAGGED != 0).then(|| {
            let kind = if status & TAG_TYPE_KNOWN == 0 { CUSTOMER } else { half(26) };
            let ([a, b], [c, d]) = (kind.to_be_bytes(), half(24).to_be_bytes());
            [a, b, c, d]
        });
        let undone = slot + offset.saturating_sub(UNDONE_BYTES);
        Some(Arrived {
            held: (word(8) as usize).min(self.slot_bytes.saturating_sub(offset)),
            len: word(4) as usize,
            copied: status & COPIED != 0,
            tag,
            undone: Undone::read(&self.memory.read(undone)),
            at: slot + offset,
        })
    }

    /// Copies a part of the frame that [`Ring::peek`] has shown.
    #[inline]
    pub(super) fn copy(&self, frame: &Arrived, from: usize, into: &mut [u8]) -> bool {
        from + into.len() <= frame.held && self.memory.copy(frame.at + from, into)
    }

    /// Hands the slot back to the kernel and goes on to the next.
    #[inline]
    pub(super) fn advance(&mut self) {
        self.memory.store(self.next * self.slot_bytes, 0);
        self.next += 1;
        if self.next == self.slots {
            self.next = 0;
        }
    }
}

const CUSTOMER: u16 = weir_packet::vlan::CUSTOMER;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::Checksum;

    const SLOT: usize = 2_048;
    const FRAME_AT: u16 = 90;

    /// Plays the kernel: puts a frame in a slot.
    fn put(ring: &Ring, slot: usize, bytes: &[u8], status: u32, tag: (u16, u16)) {
        let base = slot * SLOT;
        let mut head = [0_u8; 32];
        head[4..8].copy_from_slice(&u32::try_from(bytes.len()).unwrap().to_ne_bytes());
        head[8..12].copy_from_slice(&u32::try_from(bytes.len()).unwrap().to_ne_bytes());
        head[12..14].copy_from_slice(&FRAME_AT.to_ne_bytes());
        head[24..26].copy_from_slice(&tag.0.to_ne_bytes());
        head[26..28].copy_from_slice(&tag.1.to_ne_bytes());
        assert!(ring.memory.write(base, &head));
        assert!(ring.memory.write(base + usize::from(FRAME_AT), bytes));
        ring.memory.store(base, status);
    }

    fn ring(slots: usize) -> Ring {
        Ring::new(Mapped::new(None, slots * SLOT).unwrap(), slots, SLOT)
    }

    #[test]
    fn slots_are_walked_in_order_and_around() {
        let mut ring = ring(3);
        assert_eq!(ring.peek(), None);
        for n in 0..7_u8 {
            put(&ring, usize::from(n) % 3, &[n; 60], OURS, (0, 0));
            let arrived = ring.peek().unwrap();
            let mut bytes = [0; 60];
            assert!(ring.copy(&arrived, 0, &mut bytes));
            assert_eq!((bytes, arrived.len, arrived.tag), ([n; 60], 60, None));
            ring.advance();
            assert_eq!(ring.memory.load(usize::from(n) % 3 * SLOT), 0, "the slot is the kernel's");
            assert_eq!(ring.peek(), None);
        }
    }

    #[test]
    fn a_tag_that_the_kernel_took_off_is_told() {
        let mut ring = ring(2);
        put(&ring, 0, &[0; 60], OURS | TAGGED, (0x2007, 0));
        assert_eq!(ring.peek().unwrap().tag, Some([0x81, 0x00, 0x20, 0x07]));
        ring.advance();
        put(&ring, 1, &[0; 60], OURS | TAGGED | TAG_TYPE_KNOWN, (5, 0x88a8));
        assert_eq!(ring.peek().unwrap().tag, Some([0x88, 0xa8, 0, 5]));
    }

    #[test]
    fn what_is_undone_stands_before_the_frame() {
        let ring = ring(1);
        put(&ring, 0, &[0; 60], OURS | COPIED, (0, 0));
        let mut undone = [0; UNDONE_BYTES];
        undone[0] = 1;
        undone[6..8].copy_from_slice(&34_u16.to_ne_bytes());
        undone[8..10].copy_from_slice(&6_u16.to_ne_bytes());
        assert!(ring.memory.write(usize::from(FRAME_AT) - UNDONE_BYTES, &undone));
        let arrived = ring.peek().unwrap();
        assert_eq!(arrived.undone.checksum, Some(Checksum { start: 34, offset: 6 }));
        assert!(arrived.copied);
    }

    #[test]
    fn a_slot_that_claims_more_than_it_has_gives_no_bytes() {
        let ring = ring(1);
        put(&ring, 0, &[0; 60], 0, (0, 0));
        ring.memory.write(8, &u32::MAX.to_ne_bytes());
        ring.memory.write(12, &u16::MAX.to_ne_bytes());
        ring.memory.store(0, OURS);
        let arrived = ring.peek().unwrap();
        assert_eq!(arrived.held, 0);
        assert!(!ring.copy(&arrived, 0, &mut [0; 1]));
    }
}
