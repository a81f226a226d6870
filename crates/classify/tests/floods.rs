//! One host, or strangers, would like to have the whole flow table: a minute of 4 400 new
//! connections a second, beside another host that goes on as before.

use std::collections::VecDeque;
use std::net::SocketAddr;

use weir_classify::{Classifier, Index, Limits, Seed, Spec};
use weir_packet::{Build, Flow, Headers, Label, Side};
use weir_units::{Instant, Span};

/// Who floods the table, with four frames a connection.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// A host of the LAN that nobody answers.
    Unanswered,
    /// A host of the LAN whose peer answers each frame.
    Answered,
    /// The same from all addresses of a /64, behind a router.
    Block,
    /// A stranger, to one address of the LAN.
    Stranger,
    /// A stranger, to 65 536 addresses of the LAN.
    Everywhere,
}

const ATTACKER: [u8; 6] = [2, 7, 0, 0, 0, 1];
const GATEWAY: [u8; 6] = [2, 8, 0, 0, 0, 1];

struct Table {
    classifier: Classifier,
    now: Instant,
}

/// What became of the connections of the other host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    /// New ones that got no flow of their own.
    refused: u32,
    /// New ones that lost theirs within the second until their last frame.
    lost: u32,
    /// How often those that ran all the time got another flow, or none.
    moved: u32,
}

#[test]
fn a_host_that_nobody_answers_leaves_room_for_others() {
    assert_eq!(beside(Flood::Unanswered), Outcome::default());
}

#[test]
fn a_host_that_is_answered_leaves_room_for_others() {
    assert_eq!(beside(Flood::Answered), Outcome::default());
}

#[test]
fn all_addresses_of_a_block_leave_room_for_others() {
    assert_eq!(beside(Flood::Block), Outcome::default());
}

#[test]
fn strangers_leave_room_for_hosts() {
    assert_eq!(beside(Flood::Stranger), Outcome::default());
    assert_eq!(beside(Flood::Everywhere), Outcome::default());
}

/// Eight places that are all taken, and who gets one all the same.
#[test]
fn a_full_table_makes_room_for_those_who_have_less() {
    let index = Index::compile(&Spec::default());
    let limits = Limits { flows: 8, fragmented: 8 };
    let classifier = Classifier::new(limits, Seed::new(3), index);
    let mut table = Table { classifier, now: Instant::from_ns(1) };
    let far = SocketAddr::from(([192, 0, 2, 1], 443));
    let near = |host: u8, port: u16| SocketAddr::from(([10, 0, 0, host], port));
    let alive: Vec<Flow> = (0..7).map(|port| table.exchange([near(9, port), far]).flow).collect();
    let begun = table.frame(Side::Lan, near(1, 0), far).flow;
    let is_there = |table: &Table, flow| table.classifier.is_current(flow);

    // a stranger takes the place of no host, and a host that has its part none of another's
    assert!(table.frame(Side::Wan, far, near(2, 0)).flow.is_none());
    assert!(table.frame(Side::Lan, near(9, 8), far).flow.is_none());
    assert!(is_there(&table, begun) && alive.iter().all(|&flow| is_there(&table, flow)));

    // a host that has fewer: first of who is alive least, then the oldest of who has the most
    table.now += Span::from_ms(1);
    let second = table.exchange([near(2, 0), far]).flow;
    assert!(!is_there(&table, begun) && is_there(&table, second));
    table.now += Span::from_ms(1);
    for port in 0..7 {
        table.exchange([near(9, port), far]);
    }
    let third = table.exchange([near(3, 0), far]).flow;
    let gone = alive.iter().filter(|&&flow| !is_there(&table, flow)).count();
    assert!((gone, is_there(&table, second), is_there(&table, third)) == (1, true, true));

    // and who has more than its part gives up its own that have been silent for ten seconds
    assert!(table.exchange([near(9, 9), far]).flow.is_none());
    table.now += Span::from_secs(11);
    let own = table.exchange([near(9, 9), far]).flow;
    let gone = alive.iter().filter(|&&flow| !is_there(&table, flow)).count();
    assert!((gone, own.is_none(), is_there(&table, second)) == (2, false, true));
}

fn beside(flood: Flood) -> Outcome {
    let routers = if matches!(flood, Flood::Block) { vec![ATTACKER] } else { vec![] };
    let index = Index::compile(&Spec { routers, ..Spec::default() });
    let classifier = Classifier::new(Limits::default(), Seed::new(3), index);
    let mut table = Table { classifier, now: Instant::from_ns(1) };
    let mut outcome = Outcome::default();
    let mut running: Vec<(u16, Flow)> =
        (0..50).map(|port| (port, table.exchange(victim(port)).flow)).collect();
    let mut recent = VecDeque::new();
    let mut floods = 0_u32;
    for ms in 0..60_000_u32 {
        table.now += Span::from_ms(1);
        while floods < ms * 44 / 10 {
            floods += 1;
            table.flood(flood, floods);
        }
        table.classifier.age(table.now, |_| true);
        if ms % 20 == 0 {
            // 50 a second, so that no port comes again within the minute
            let port = 1_000 + u16::try_from(ms / 20).unwrap_or(0);
            let flow = table.exchange(victim(port)).flow;
            outcome.refused += u32::from(flow.is_none());
            recent.push_back((port, flow));
        }
        if recent.len() > 50
            && let Some((port, flow)) = recent.pop_front()
        {
            outcome.lost += u32::from(table.exchange(victim(port)).flow != flow);
        }
        if ms % 500 == 499 {
            for (port, flow) in &mut running {
                let now = table.exchange(victim(*port)).flow;
                outcome.moved += u32::from(std::mem::replace(flow, now) != now);
            }
        }
    }
    outcome
}

fn victim(port: u16) -> [SocketAddr; 2] {
    [SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([192, 0, 2, 1], 443))]
}

impl Table {
    /// A frame from the LAN and its answer.
    fn exchange(&mut self, [near, far]: [SocketAddr; 2]) -> Label {
        self.frame(Side::Lan, near, far);
        self.frame(Side::Wan, far, near)
    }

    /// One more connection, of four frames and perhaps four answers.
    fn flood(&mut self, flood: Flood, n: u32) {
        let [a, b, c, d] = n.to_be_bytes();
        let far = SocketAddr::from(([198, 51, c, d], u16::from_be_bytes([a, b]).max(1)));
        let near = |host: [u8; 4]| SocketAddr::from((host, 7));
        let frames = match flood {
            Flood::Unanswered => vec![(Side::Lan, near([10, 0, 0, 9]), far)],
            Flood::Answered => both_ways(near([10, 0, 0, 9]), far),
            Flood::Block => {
                let [high, low] = [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])];
                let host = [0x2001, 0xdb8, 0, 0, 0, 0, high, low];
                both_ways(SocketAddr::from((host, 7)), SocketAddr::from(([0x2001; 8], 7)))
            }
            Flood::Stranger => vec![(Side::Wan, far, near([10, 0, 0, 9]))],
            Flood::Everywhere => vec![(Side::Wan, far, near([10, 1, c, d]))],
        };
        for (side, from, to) in frames {
            let build = Build::udp(from, to);
            let build = match (flood, side) {
                (Flood::Everywhere, _) => build,
                (_, Side::Lan) => build.macs(ATTACKER, GATEWAY),
                (_, Side::Wan) => build.macs(GATEWAY, ATTACKER),
            };
            let bytes = build.to_vec();
            for _ in 0..4 {
                self.classifier.one(self.now, side, &Headers::parse(&bytes), &bytes);
            }
        }
    }

    fn frame(&mut self, side: Side, from: SocketAddr, to: SocketAddr) -> Label {
        let bytes = Build::udp(from, to).to_vec();
        self.classifier.one(self.now, side, &Headers::parse(&bytes), &bytes)
    }
}

fn both_ways(near: SocketAddr, far: SocketAddr) -> Vec<(Side, SocketAddr, SocketAddr)> {
    vec![(Side::Lan, near, far), (Side::Wan, far, near)]
}
