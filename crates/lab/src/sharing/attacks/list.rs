//! The attacks: which policy, which way, how many honest hosts stand for the attacker, and what he
//! sends.

use weir_packet::Side;

use super::kinds;
use super::world::World;

/// A policy, and the rows of its subscribers.
pub(super) type Policy = (&'static str, &'static str);

pub(super) struct Attack {
    pub(super) name: &'static str,
    /// The policy, with LINE for what the link carries, and the rows of its subscribers.
    pub(super) policy: Policy,
    /// What the link carries each way, in bit/s.
    pub(super) rate: u64,
    /// What the victim's bulk flow wants; zero: there is none.
    pub(super) wanted: u64,
    /// From where the victim's frames come, and mostly the attacker's.
    pub(super) from: Side,
    /// Seconds of attack before the victim comes.
    pub(super) before: u64,
    /// Hosts in the attacker's place in the undisturbed world.
    pub(super) honest: u8,
    /// The largest frame.
    pub(super) frame: usize,
    pub(super) send: fn(&Attack, &mut World),
}

const MBIT: u64 = 1_000_000;

/// What most have in common: a link without a class, of 10 Mbit/s, and the victim wants all of it.
const USUAL: Attack = Attack {
    name: "",
    policy: (PLAIN, ""),
    rate: 10 * MBIT,
    wanted: 10 * MBIT,
    from: Side::Lan,
    before: 0,
    honest: 1,
    frame: 1_514,
    send: kinds::spray,
};

const PLAIN: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n";

/// One queue for all, as long as such queues are.
pub(super) const FIFO: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n\
    [class.\"/all\"]\nmatch = \"any\"\nqueue = \"fifo\"\naqm = \"none\"\nlimit = \"500 frames\"\n";

const EACH: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n\
    [class.\"/hosts\"]\nmatch = \"any\"\neach = \"lan-host\"\n";

/// Few leaves, and a ceiling for each.
const FEW: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n\
    [class.\"/hosts\"]\nmatch = \"any\"\n\
    each = { by = \"lan-host\", count = 8, ceil = \"2mbit\" }\n";

const SUBSCRIBERS: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n\
    [subscribers]\nfile = \"rows\"\nunder = \"/\"\n";

const ROWS: &str = "id,name,parent,addresses,down_rate,down_ceil,up_rate,up_ceil\n\
    1,victim,,10.0.0.2,1mbit,5mbit,1mbit,5mbit\n\
    2,honest,,10.0.0.10,1mbit,5mbit,1mbit,5mbit\n\
    3,attacker,,10.0.0.66,1mbit,5mbit,1mbit,5mbit\n";

const CALLS: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"LINE\"\nup = \"LINE\"\n\
    [class.\"/calls\"]\nmatch = \"udp lan port 7002\"\n\
    session = { min = \"64kbit\", count = 10, next = \"reject\" }\n";

pub(super) const ATTACKS: [Attack; 21] = [
    // who sprays connections of one frame: 30 Mbit/s, the victim wants 2.57
    Attack { name: "spray", wanted: 2_570_000, ..USUAL },
    Attack { name: "spray-each", policy: (EACH, ""), wanted: 2_570_000, ..USUAL },
    Attack { name: "spray-subscribers", policy: (SUBSCRIBERS, ROWS), wanted: 2_570_000, ..USUAL },
    // who looks like many calls
    Attack { name: "flows-120", rate: 5 * MBIT, wanted: 5 * MBIT, send: kinds::flows_120, ..USUAL },
    Attack {
        name: "flows-400",
        rate: 20 * MBIT,
        wanted: 20 * MBIT,
        send: kinds::flows_400,
        ..USUAL
    },
    Attack { name: "imitate", send: kinds::imitate, ..USUAL },
    // who sends what is large, much, or odd
    Attack { name: "jumbo", frame: 9_014, send: kinds::jumbo, ..USUAL },
    Attack { name: "acks", send: kinds::acks, ..USUAL },
    Attack { name: "ping", send: kinds::ping, ..USUAL },
    Attack { name: "fragments", send: kinds::fragments, ..USUAL },
    Attack { name: "syn", send: kinds::syn, ..USUAL },
    Attack { name: "bursts", send: kinds::bursts, ..USUAL },
    Attack { name: "herd", send: kinds::herd, ..USUAL },
    // who fills tables before the victim comes
    Attack { name: "table-lan", before: 40, send: kinds::table, ..USUAL },
    Attack { name: "table-wan", from: Side::Wan, before: 40, send: kinds::table, ..USUAL },
    Attack { name: "table-waits", before: 40, send: kinds::table_waits, ..USUAL },
    Attack {
        name: "sessions",
        policy: (CALLS, ""),
        wanted: 0,
        from: Side::Wan,
        before: 10,
        send: kinds::sessions,
        ..USUAL
    },
    Attack {
        name: "unused",
        policy: (FEW, ""),
        // less than an eighth of the link, and more than an eighth of a leaf
        wanted: MBIT,
        from: Side::Wan,
        before: 10,
        honest: 7,
        send: kinds::unused,
        ..USUAL
    },
    // who has more addresses than one
    Attack { name: "addresses", policy: (EACH, ""), send: kinds::addresses, ..USUAL },
    Attack { name: "prefix", policy: (EACH, ""), send: kinds::prefix, ..USUAL },
    Attack { name: "spoof", send: kinds::spoof, ..USUAL },
];
