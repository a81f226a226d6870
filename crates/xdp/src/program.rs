//! The program itself, and the words it shares with the daemon. It says of each frame: up to the
//! daemon, or past it to the kernel as if weir were not there. Whatever is not plainly for the
//! daemon goes to the kernel, so a daemon that is stopped, starved or dead is a wire.

use weir_units::limits::{STALE_MS, XSK_QUEUES};

use crate::assembler::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use crate::assembler::{Assembler, Do, Instruction, Reg, When, Width};

/// The page that program and daemon share: 64-bit words, those of the daemon on a cache line of
/// their own, then a line for each queue, so that no two cores write to one line.
pub(crate) mod word {
    /// When the daemon's last turn was: nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) const BEAT: usize = 0;
    /// 0: stand aside; 1: take.
    pub(crate) const TAKE: usize = 1;
    /// The box's own MAC address as the program reads one from a frame; 0: none.
    pub(crate) const OWN: usize = 2;
    /// The box's own IPv4 address as the program reads one from an ARP request; 0: none.
    pub(crate) const OWN_IPV4: usize = 3;
    /// The group that neighbours ask for the box's IPv6 address, as [`OWN`]; 0: none.
    pub(crate) const OWN_GROUP: usize = 4;
    /// The first queue's counters.
    pub(crate) const QUEUES: usize = 8;
    pub(crate) const PER_QUEUE: usize = 8;

    /// A queue's counters, as offsets in its line.
    pub(crate) const TAKEN: usize = 0;
    pub(crate) const ASIDE: usize = 1;
    pub(crate) const STALE: usize = 2;
    pub(crate) const TO_BOX: usize = 3;
    pub(crate) const NO_SOCKET: usize = 4;
}

pub(crate) const PAGE_WORDS: usize = word::QUEUES + XSK_QUEUES * word::PER_QUEUE;

// enum xdp_action
pub(crate) const XDP_PASS: i32 = 2;
pub(crate) const XDP_REDIRECT: i32 = 4;
// struct xdp_md
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const RX_QUEUE_INDEX: i16 = 16;
// enum bpf_func_id
/// `CLOCK_MONOTONIC` as of the last timer tick: 19 of 64 ns cheaper than the exact one (`cost` in
/// port.rs), and late by a tick at most.
const KTIME_GET_COARSE_NS: i32 = 160;
const REDIRECT_MAP: i32 = 51;

const ETHERNET_HEADER: i32 = 14;
const ETHERTYPE: i16 = 12;
/// RFC 826: eight bytes, then MAC and IPv4 address of who asks, and of who is asked for.
const ARP_FOR_IPV4: i32 = 28;
const ARP_TARGET: i16 = 14 + 8 + 6 + 4 + 6;
const STALE_NS: i32 = fits(STALE_MS * 1_000_000);
const LAST_QUEUE: i32 = fits(XSK_QUEUES as u64 - 1);
const BYTES_PER_QUEUE_LOG2: i32 = 6;
const _: () = assert!(word::PER_QUEUE * 8 == 1 << BYTES_PER_QUEUE_LOG2);
const _: () = assert!(XSK_QUEUES.is_power_of_two());

/// The program, over the page and the sockets (descriptors of maps).
pub(crate) fn program(page: i32, sockets: i32) -> Vec<Instruction> {
    let mut at = Assembler::default();
    at.alu(Do::Set, R6, R1)
        .map_value(R7, page)
        .load(Width::W32, R8, R6, RX_QUEUE_INDEX)
        // R9: this queue's counters; the mask is what tells the verifier that it stays inside
        .alu(Do::Set, R9, R8)
        .alu(Do::And, R9, LAST_QUEUE)
        .alu(Do::ShiftLeft, R9, BYTES_PER_QUEUE_LOG2)
        .alu(Do::Add, R9, i32::from(offset(word::QUEUES)))
        .alu(Do::Add, R9, R7);

    at.load(Width::W64, R1, R7, offset(word::TAKE)).jump_if(R1, When::Equal, 0, "aside");

    // signed, for a beat is mostly ahead of a clock that stands still between ticks
    at.call(KTIME_GET_COARSE_NS)
        .load(Width::W64, R1, R7, offset(word::BEAT))
        .alu(Do::Subtract, R0, R1)
        .jump_if(R0, When::SignedGreater, STALE_NS, "stale");

    at.load(Width::W64, R1, R7, offset(word::OWN))
        .jump_if(R1, When::Equal, 0, "take")
        .load(Width::W32, R2, R6, DATA)
        .load(Width::W32, R5, R6, DATA_END)
        .alu(Do::Set, R4, R2)
        .alu(Do::Add, R4, ETHERNET_HEADER)
        .jump_if(R4, When::Greater, R5, "take")
        .load(Width::W32, R3, R2, 0)
        .load(Width::W16, R4, R2, 4)
        .alu(Do::ShiftLeft, R4, 32)
        .alu(Do::Or, R3, R4)
        .jump_if(R3, When::Equal, R1, "to the box");

    // who asks for the box asks a group: the bridge answers, and lets the others hear it too
    at.load(Width::W64, R1, R7, offset(word::OWN_GROUP))
        .jump_if(R1, When::Equal, 0, "no group")
        .jump_if(R3, When::Equal, R1, "to the box")
        .label("no group")
        .load(Width::W16, R4, R2, ETHERTYPE)
        .jump_if(R4, When::NotEqual, i32::from(u16::from_ne_bytes([0x08, 0x06])), "take")
        .alu(Do::Set, R4, R2)
        .alu(Do::Add, R4, ETHERNET_HEADER + ARP_FOR_IPV4)
        .jump_if(R4, When::Greater, R5, "take")
        .load(Width::W64, R1, R7, offset(word::OWN_IPV4))
        .jump_if(R1, When::Equal, 0, "take")
        .load(Width::W32, R4, R2, ARP_TARGET)
        .jump_if(R4, When::Equal, R1, "to the box");

    at.label("take")
        .map(R1, sockets)
        .alu(Do::Set, R2, R8)
        .alu(Do::Set, R3, XDP_PASS)
        .call(REDIRECT_MAP)
        .jump_if(R0, When::Equal, XDP_REDIRECT, "taken");
    count(&mut at, word::NO_SOCKET).exit();
    at.label("taken");
    count(&mut at, word::TAKEN).exit();

    for (label, counter) in
        [("aside", word::ASIDE), ("stale", word::STALE), ("to the box", word::TO_BOX)]
    {
        at.label(label);
        count(&mut at, counter).alu(Do::Set, R0, XDP_PASS).exit();
    }
    at.finish()
}

/// A destination as the program reads it: four bytes and two, each in the machine's order.
pub(crate) fn address_word(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    let (first, last) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
    u64::from(first) | u64::from(last) << 32
}

/// One more in this queue's counter. Not atomic: a queue is served by one core at a time.
fn count(at: &mut Assembler, counter: usize) -> &mut Assembler {
    const COUNTER: Reg = R1;
    at.load(Width::W64, COUNTER, R9, offset(counter)).alu(Do::Add, COUNTER, 1).store(
        Width::W64,
        R9,
        offset(counter),
        COUNTER,
    )
}

#[expect(clippy::cast_possible_truncation, reason = "asserted above the cast")]
const fn offset(word: usize) -> i16 {
    assert!(word * 8 <= i16::MAX.cast_unsigned() as usize, "beyond what an instruction can say");
    (word * 8).cast_signed() as i16
}

#[expect(clippy::cast_possible_truncation, reason = "asserted above the cast")]
const fn fits(number: u64) -> i32 {
    assert!(number <= i32::MAX.cast_unsigned() as u64, "beyond what an instruction can say");
    number.cast_signed() as i32
}
