//! What a link says for all its leaves, and what is done to TCP.

#[allow(dead_code)]
mod shared;

use shared::{LINK, plan, problems};
use weir_policy::{AqmKind, Mark, Mss, Queue, Tcp, TcpClock, TcpLoss, TcpRate};
use weir_units::{ByWay, Rate};

const CLASSES: &str = "[class.\"/a\"]\nqueue = \"fair-host\"\n\
    [class.\"/a/b\"]\nmatch = \"tcp\"\naqm = \"pie\"\n[class.\"/c\"]\nmatch = \"udp\"\n";

/// Nothing said.
const TCP: Tcp = Tcp {
    window: None,
    pace_acks: None,
    mss: None,
    least: None,
    loss: TcpLoss::Hold,
    round_trip: TcpClock::Fine,
    rate: TcpRate::Present,
};

#[test]
fn all_leaves_take_over_what_the_link_says_and_do_not_say_themselves() {
    let words = "queue = \"fifo\"\naqm = \"codel\"\nlimit = \"30 frames\"\necn = true\n\
        dscp = \"cs1\"\ntcp = { mss = 256 }\n";
    let plan = plan(&format!("{LINK}{words}{CLASSES}"), "");
    let of = |path: &str| plan.words_of(plan.find(path).expect(path)).clone();
    for (path, queue, aqm) in [
        ("/a/b", Queue::FairHost, AqmKind::Pie),
        ("/c", Queue::Fifo, AqmKind::Codel),
        ("/(rest)", Queue::Fifo, AqmKind::Codel),
    ] {
        let words = of(path);
        let said = (words.queue, words.aqm.map(|aqm| aqm.kind));
        assert_eq!(said, (Some(queue), Some(aqm)), "{path}");
        assert!(words.limit.is_some() && words.ecn == Some(true), "{path}");
        assert_eq!(words.dscp, Some(Mark::Set(8)), "{path}");
        assert_eq!(words.tcp, Some(Tcp { mss: Some(Mss::AtMost(256)), ..TCP }), "{path}");
    }
}

#[test]
fn a_link_promises_no_session_and_polices_nothing() {
    let words = "session = { min = \"1mbit\", count = 2 }\npolice = { rate = \"1mbit\" }\n";
    let said = problems(&format!("{LINK}{words}[class.\"/a\"]\nmatch = \"any\"\n"), "");
    let of = |line: u32, word: &str| {
        format!(
            "weir.toml:{line}:1 error: a link cannot have \"{word}\" \
             (write it in the class that it applies to)"
        )
    };
    assert_eq!(said, [of(7, "session"), of(8, "police")]);
}

#[test]
fn what_is_done_to_tcp_is_what_is_written() {
    let mbit = |n: u64| Some(Rate::from_bps(n * 1_000_000));
    let cases = [
        ("", TCP),
        ("window = true, pace-acks = false", {
            Tcp { window: Some(true), pace_acks: Some(false), ..TCP }
        }),
        ("mss = \"keep\"", Tcp { mss: Some(Mss::Keep), ..TCP }),
        ("mss = \"auto\"", Tcp { mss: Some(Mss::Auto), ..TCP }),
        ("mss = 1300, least = 1", Tcp { mss: Some(Mss::AtMost(1_300)), least: Some(1), ..TCP }),
        ("loss = \"release\"", Tcp { loss: TcpLoss::Release, ..TCP }),
        ("round-trip = \"coarse\"", Tcp { round_trip: TcpClock::Coarse, ..TCP }),
        ("rate = \"guaranteed\"", Tcp { rate: TcpRate::Guaranteed, ..TCP }),
        ("rate = \"2mbit\"", {
            Tcp { rate: TcpRate::At(ByWay { down: mbit(2), up: mbit(2) }), ..TCP }
        }),
        ("rate = { up = \"1mbit\" }", {
            Tcp { rate: TcpRate::At(ByWay { down: None, up: mbit(1) }), ..TCP }
        }),
    ];
    for (words, want) in cases {
        let text = format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\ntcp = {{ {words} }}\n");
        let plan = plan(&text, "");
        assert_eq!(plan.words_of(plan.find("/a").unwrap()).tcp, Some(want), "{words}");
    }
}

#[test]
fn what_is_wrong_with_it_is_said_at_its_place() {
    let tcp = "tcp = { window = 1, mss = \"small\", least = 0, loss = \"relase\", \
        round-trip = \"slow\", rate = \"2mb\", pace = true }\n";
    let said = problems(&format!("{LINK}[class.\"/a\"]\nmatch = \"any\"\n{tcp}"), "");
    let want: Vec<&str> = include_str!("shared/tcp-said.txt").lines().collect();
    assert_eq!(said, want);
}
