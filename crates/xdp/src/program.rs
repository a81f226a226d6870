//! The program itself, and the words it shares with the daemon. It says of each frame: up to the
//! daemon, or past it to the kernel as if weir were not there. Whatever is not plainly for the
//! daemon goes to the kernel, so traffic keeps flowing, unshaped, if the daemon is stopped, starved
//! or dead.

use weir_units::limits::{
    STALE_MS, XDP_ASKED_PER_SEC, XDP_OWN_ADDRESSES, XDP_TO_BOX_PER_SEC, XSK_QUEUES,
};

use crate::assembler::Reg::{R0, R1, R2, R3, R4, R5, R6, R7, R8, R9};
use crate::assembler::{Assembler, Do, Instruction, Reg, When, Width};

/// The page that program and daemon share: 64-bit words, those of the daemon on cache lines of
/// their own, then two lines for each queue, so that no two cores write to one line.
pub(crate) mod word {
    use weir_units::limits::XDP_OWN_ADDRESSES;

    /// When the daemon's last turn was: nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) const BEAT: usize = 0;
    /// 0: pass all frames to the kernel; 1: take them.
    pub(crate) const TAKE: usize = 1;
    /// The box's own MAC address as the program reads one from a frame; 0: none.
    pub(crate) const OWN: usize = 2;
    /// The box's own IPv4 addresses as the program reads one from a frame; 0: none.
    pub(crate) const OWN_IPV4: usize = 3;
    /// The box's own IPv6 addresses, two words each, likewise.
    pub(crate) const OWN_IPV6: usize = 8;
    /// The groups that neighbours ask for those, as [`OWN`]; 0: none.
    pub(crate) const OWN_GROUPS: usize = OWN_IPV6 + 2 * XDP_OWN_ADDRESSES;
    /// The first queue's counters.
    pub(crate) const QUEUES: usize = 24;
    pub(crate) const PER_QUEUE: usize = 16;

    /// A queue's counters, as offsets in its lines.
    pub(crate) const TAKEN: usize = 0;
    pub(crate) const ASIDE: usize = 1;
    pub(crate) const STALE: usize = 2;
    pub(crate) const TO_BOX: usize = 3;
    pub(crate) const NO_SOCKET: usize = 4;
    pub(crate) const ARP: usize = 5;
    pub(crate) const NEIGHBOUR: usize = 6;
    pub(crate) const ASKED_TOO_OFTEN: usize = 7;
    /// When the second began in which ARP requests are counted, and how many passed in it.
    pub(crate) const ARP_SECOND: usize = 8;
    /// The same of neighbour solicitations.
    pub(crate) const NEIGHBOUR_SECOND: usize = 10;
    /// The same of packets to the box.
    pub(crate) const BOX_SECOND: usize = 12;

    const _: () = assert!(OWN_IPV4 + XDP_OWN_ADDRESSES <= OWN_IPV6);
    const _: () = assert!(OWN_GROUPS + XDP_OWN_ADDRESSES <= QUEUES);
}

pub(crate) const PAGE_WORDS: usize = word::QUEUES + XSK_QUEUES * word::PER_QUEUE;

// enum xdp_action
pub(crate) const XDP_DROP: i32 = 1;
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
const NET: i16 = 14;
const TYPE_IPV4: i32 = wire16([0x08, 0x00]);
const TYPE_ARP: i32 = wire16([0x08, 0x06]);
const TYPE_IPV6: i32 = wire16([0x86, 0xdd]);
/// RFC 826: eight bytes, then MAC and IPv4 address of who asks, and of who is asked for.
const ARP_FOR_IPV4: i32 = 28;
const ARP_TARGET: i16 = NET + 8 + 6 + 4 + 6;
/// The shortest frame of Ethernet, with its check sequence if a driver leaves that on.
const ARP_BYTES_MAX: i32 = 64;
const IPV4_HEADER: i32 = 20;
/// Version 4 and a header without options: a route in the options leads on from the box.
const IPV4_PLAIN: i32 = 0x45;
const IPV4_TARGET: i16 = NET + 16;
const IPV6_HEADER: i32 = 40;
const IPV6_NEXT: i16 = NET + 6;
const IPV6_TARGET: i16 = NET + 24;
const ICMPV6: i32 = 58;
/// Hop-by-hop options, routing, options for the receiver: a route may stand in or behind them.
const LEADING_ON: [i32; 3] = [0, 43, 60];
const ICMPV6_KIND: i16 = NET + 40;
const SOLICITATION: i32 = 135;
const ADVERTISEMENT: i32 = 136;
/// RFC 4861, section 4.3: 24 bytes behind the header of IPv6, and one option; some room.
const SOLICITATION_BYTES_MAX: i32 = 96;
const SECOND_NS: i32 = 1_000_000_000;
const STALE_NS: i32 = fits(STALE_MS * 1_000_000);
const LAST_QUEUE: i32 = fits(XSK_QUEUES as u64 - 1);
const BYTES_PER_QUEUE_LOG2: i32 = 7;
const _: () = assert!(word::PER_QUEUE * 8 == 1 << BYTES_PER_QUEUE_LOG2);
const _: () = assert!(XSK_QUEUES.is_power_of_two());

/// What becomes of a frame that is not plainly for the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// It goes up to the daemon: the program of a port.
    Up,
    /// It goes nowhere: the program of the bridge that both ports are in, where what arrives has
    /// come to weir by the ports already, and the kernel would route it, or answer.
    Nowhere,
}

/// The program, over the page and the sockets (descriptors of maps).
pub(crate) fn program(page: i32, sockets: i32, last: Last) -> Vec<Instruction> {
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

    is_it_for_the_box(&mut at);

    match last {
        Last::Up => up(&mut at, sockets),
        Last::Nowhere => nowhere(&mut at),
    }
    for (label, counter) in [("aside", word::ASIDE), ("stale", word::STALE)] {
        at.label(label);
        count(&mut at, counter).alu(Do::Set, R0, XDP_PASS).exit();
    }
    at.finish()
}

fn up(at: &mut Assembler, sockets: i32) {
    at.label("take")
        .map(R1, sockets)
        .alu(Do::Set, R2, R8)
        .alu(Do::Set, R3, XDP_PASS)
        .call(REDIRECT_MAP)
        .jump_if(R0, When::Equal, XDP_REDIRECT, "taken");
    count(at, word::NO_SOCKET).exit();
    at.label("taken");
    count(at, word::TAKEN).exit();
}

/// What is for everybody or for a group is for the box too (an announcement of its router, say), as
/// seldom as packets to it; a bridge without an address of its own needs none of it.
fn nowhere(at: &mut Assembler) {
    at.jump("nowhere").label("take");
    header(at, "nowhere");
    at.load(Width::W8, R1, R2, 0).alu(Do::And, R1, 1).jump_if(R1, When::Equal, 0, "nowhere");
    not_too_often(at, "same group second", "nowhere", word::BOX_SECOND, XDP_TO_BOX_PER_SEC);
    count(at, word::TO_BOX).alu(Do::Set, R0, XDP_PASS).exit();
    at.label("nowhere");
    count(at, word::TAKEN).alu(Do::Set, R0, XDP_DROP).exit();
}

/// What the box needs to be found and reached while it shapes goes to "to the box", and nothing
/// that could use it as a way around: what the kernel would forward is for the daemon.
fn is_it_for_the_box(at: &mut Assembler) {
    header(at, "take");
    // R3: its destination; R4: scratch; R0: its type
    at.load(Width::W32, R3, R2, 0)
        .load(Width::W16, R4, R2, 4)
        .alu(Do::ShiftLeft, R4, 32)
        .alu(Do::Or, R3, R4)
        .jump_if(R3, When::Equal, 0, "take")
        .load(Width::W16, R0, R2, ETHERTYPE)
        .jump_if(R0, When::Equal, TYPE_ARP, "arp")
        .jump_if(R0, When::Equal, TYPE_IPV6, "ipv6")
        .jump_if(R0, When::NotEqual, TYPE_IPV4, "take");

    at.jump_if(R3, When::NotEqual, R1, "take");
    reaches(at, IPV4_HEADER);
    at.load(Width::W8, R1, R2, NET).jump_if(R1, When::NotEqual, IPV4_PLAIN, "take");
    own_ipv4(at, IPV4_TARGET, "to the box");

    // everyone's or the box's: R1 is still its MAC
    at.label("arp").jump_if(R3, When::Equal, R1, "arp to whom it may concern");
    at.alu(Do::Set, R1, -1)
        .alu(Do::ShiftRight, R1, 16)
        .jump_if(R3, When::NotEqual, R1, "take")
        .label("arp to whom it may concern");
    reaches(at, ARP_FOR_IPV4);
    ends_by(at, ARP_BYTES_MAX);
    own_ipv4(at, ARP_TARGET, "asked by arp");

    ipv6_for_the_box(at);

    for (label, same, second, counter, most) in [
        ("asked by arp", "same arp second", word::ARP_SECOND, word::ARP, XDP_ASKED_PER_SEC),
        (
            "asked by a neighbour",
            "same second",
            word::NEIGHBOUR_SECOND,
            word::NEIGHBOUR,
            XDP_ASKED_PER_SEC,
        ),
        // the box may be made to answer to the other side, by who writes an address from there
        ("to the box", "same box second", word::BOX_SECOND, word::TO_BOX, XDP_TO_BOX_PER_SEC),
    ] {
        at.label(label);
        not_too_often(at, same, "asked too often", second, most);
        count(at, counter).alu(Do::Set, R0, XDP_PASS).exit();
    }
    at.label("asked too often");
    count(at, word::ASKED_TOO_OFTEN);
}

/// The same of IPv6: R1 is still the box's MAC.
fn ipv6_for_the_box(at: &mut Assembler) {
    at.label("ipv6");
    reaches(at, IPV6_HEADER + 1);
    at.jump_if(R3, When::Equal, R1, "ipv6 to the box's MAC");
    for group in 0..XDP_OWN_ADDRESSES {
        at.load(Width::W64, R1, R7, offset(word::OWN_GROUPS + group));
        at.jump_if(R3, When::Equal, R1, "to a group of the box");
    }
    at.jump("take").label("to a group of the box");
    ends_by(at, SOLICITATION_BYTES_MAX);
    at.load(Width::W8, R1, R2, IPV6_NEXT)
        .jump_if(R1, When::NotEqual, ICMPV6, "take")
        .load(Width::W8, R1, R2, ICMPV6_KIND)
        .jump_if(R1, When::Equal, SOLICITATION, "asked by a neighbour")
        .jump("take");

    at.label("ipv6 to the box's MAC").load(Width::W8, R1, R2, IPV6_NEXT);
    for header in LEADING_ON {
        at.jump_if(R1, When::Equal, header, "take");
    }
    // answers to the box's own questions go to addresses that only its link knows, too
    at.jump_if(R1, When::NotEqual, ICMPV6, "packet for the box?");
    at.load(Width::W8, R1, R2, ICMPV6_KIND)
        .jump_if(R1, When::Equal, SOLICITATION, "neighbour")
        .jump_if(R1, When::NotEqual, ADVERTISEMENT, "packet for the box?")
        .label("neighbour")
        .alu(Do::Set, R4, R2)
        .alu(Do::Add, R4, SOLICITATION_BYTES_MAX)
        .jump_if(R5, When::Greater, R4, "packet for the box?")
        .jump("asked by a neighbour")
        .label("packet for the box?");
    own_ipv6(at);
}

/// Goes on if the frame has so many bytes behind the Ethernet header.
fn reaches(at: &mut Assembler, bytes: i32) {
    reaches_or(at, bytes, "take");
}

fn reaches_or(at: &mut Assembler, bytes: i32, otherwise: &'static str) {
    at.alu(Do::Set, R4, R2).alu(Do::Add, R4, ETHERNET_HEADER + bytes);
    at.jump_if(R4, When::Greater, R5, otherwise);
}

/// R1: the box's own address, R2: the frame, R5: its end; to `otherwise` if the box has no address
/// or the frame no whole Ethernet header.
fn header(at: &mut Assembler, otherwise: &'static str) {
    at.load(Width::W64, R1, R7, offset(word::OWN))
        .jump_if(R1, When::Equal, 0, otherwise)
        .load(Width::W32, R2, R6, DATA)
        .load(Width::W32, R5, R6, DATA_END);
    reaches_or(at, 0, otherwise);
}

/// Goes on if the whole frame has at most so many.
fn ends_by(at: &mut Assembler, bytes: i32) {
    at.alu(Do::Set, R4, R2).alu(Do::Add, R4, bytes).jump_if(R5, When::Greater, R4, "take");
}

/// To `found` if the IPv4 address in the frame is the box's, else the frame is taken.
fn own_ipv4(at: &mut Assembler, target: i16, found: &'static str) {
    at.load(Width::W32, R4, R2, target).jump_if(R4, When::Equal, 0, "take");
    for own in 0..XDP_OWN_ADDRESSES {
        at.load(Width::W64, R1, R7, offset(word::OWN_IPV4 + own));
        at.jump_if(R4, When::Equal, R1, found);
    }
    at.jump("take");
}

/// The same of IPv6, by the destination.
fn own_ipv6(at: &mut Assembler) {
    const NEXT: [&str; XDP_OWN_ADDRESSES] = ["not first", "not second", "not third", "not fourth"];
    at.load(Width::W64, R3, R2, IPV6_TARGET)
        .load(Width::W64, R4, R2, IPV6_TARGET + 8)
        .alu(Do::Set, R1, R3)
        .alu(Do::Or, R1, R4)
        .jump_if(R1, When::Equal, 0, "take");
    for (own, next) in NEXT.into_iter().enumerate() {
        at.load(Width::W64, R1, R7, offset(word::OWN_IPV6 + 2 * own))
            .jump_if(R3, When::NotEqual, R1, next)
            .load(Width::W64, R1, R7, offset(word::OWN_IPV6 + 2 * own + 1))
            .jump_if(R4, When::Equal, R1, "to the box")
            .label(next);
    }
    at.jump("take");
}

/// Goes on so many times in a second, counted in two words of the queue.
fn not_too_often(
    at: &mut Assembler,
    same: &'static str,
    over: &'static str,
    second: usize,
    most: u64,
) {
    let (begun, passed) = (offset(second), offset(second + 1));
    at.call(KTIME_GET_COARSE_NS)
        .load(Width::W64, R1, R9, begun)
        .alu(Do::Set, R2, R0)
        .alu(Do::Subtract, R2, R1)
        .load(Width::W64, R1, R9, passed)
        .alu(Do::Set, R3, SECOND_NS)
        .jump_if(R3, When::Greater, R2, same)
        .store(Width::W64, R9, begun, R0)
        .alu(Do::Set, R1, 0)
        .label(same)
        .jump_if(R1, When::Greater, fits(most - 1), over)
        .alu(Do::Add, R1, 1)
        .store(Width::W64, R9, passed, R1);
}

/// A destination as the program reads it: four bytes and two, each in the machine's order.
pub(crate) fn address_word(mac: [u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = mac;
    let (first, last) = (u32::from_ne_bytes([a, b, c, d]), u16::from_ne_bytes([e, f]));
    u64::from(first) | u64::from(last) << 32
}

/// Two bytes of a frame as a 16-bit load reads them.
const fn wire16(bytes: [u8; 2]) -> i32 {
    u16::from_ne_bytes(bytes) as i32
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
