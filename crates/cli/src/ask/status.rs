//! How a running link is, in words.

use serde_json::Value;
use weir_lab::grouped;
use weir_units::{Rate, Span};

use super::{list, number, text};
use crate::run::date;

/// What `weir status` says.
pub(super) fn lines(answer: &Value) -> Vec<String> {
    let mut lines = vec![head(answer)];
    if answer["confirm"].is_object() {
        lines.push(format!(
            "  revision {} comes back in {} s unless you type: weir confirm",
            number(answer, "/confirm/goes_back_to"),
            number(answer, "/confirm/left_s")
        ));
    }
    for (side, toward) in [("lan", "LAN"), ("wan", "WAN")] {
        lines.push(port(&answer["ports"][side], toward));
    }
    lines.push(packets(&answer["packets"]));
    lines.push(match answer["bypass"].as_str() {
        Some(bridge) => format!("when weir is away, the bridge {bridge} carries the traffic"),
        None => "when weir is away, nothing carries the traffic".to_owned(),
    });
    lines.extend(ways(answer));
    lines.push(format!("{} connections are known", grouped(number(answer, "/flows"))));
    lines.push(format!(
        "{} revisions are kept in {}",
        number(answer, "/history/kept"),
        text(answer, "/history/folder")
    ));
    lines.push(format!(
        "up for {}; weir {}, started with {}",
        long(number(answer, "/uptime_s")),
        text(answer, "/version"),
        text(answer, "/file")
    ));
    let trouble = list(answer, "/trouble").iter().filter_map(Value::as_str);
    lines.extend(trouble.map(|what| format!("trouble: {what}")));
    lines
}

/// What was found out about the line and the ways beyond it.
fn ways(answer: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for (found, side) in [("found_down", "LAN"), ("found_up", "WAN")] {
        if let Some(found) = answer[found].as_u64() {
            let found = Rate::from_bps(found);
            lines.push(format!(
                "towards the {side} weir shapes to {found} now, and follows the line"
            ));
        }
    }
    let mean = |side: &str| answer.pointer(&format!("/round_trips/{side}/mean_us"))?.as_u64();
    for (side, name) in [("lan", "LAN"), ("wan", "WAN")] {
        if let Some(mean) = mean(side) {
            lines.push(format!("TCP to the {name} and back takes {}", Span::from_us(mean)));
        }
    }
    lines
}

fn head(answer: &Value) -> String {
    let mode = match text(answer, "/mode") {
        "observe" => "only observes",
        _ => "shapes",
    };
    let comment = text(answer, "/revision/comment");
    let comment = if comment.is_empty() { String::new() } else { format!(": {comment}") };
    format!(
        "link {} {mode}; revision {} by {} of {}{comment}",
        text(answer, "/link"),
        number(answer, "/revision/number"),
        text(answer, "/revision/author"),
        date(number(answer, "/revision/time")),
    )
}

/// `LAN eth1: up; 12 frames came, 11 left`, and what was lost there.
fn port(port: &Value, toward: &str) -> String {
    let mut line = format!("{toward} {}: {}", text(port, "/interface"), text(port, "/state"));
    if port["counters"].is_object() {
        let count = |word: &str| grouped(number(&port["counters"], &format!("/{word}")));
        line +=
            &format!("; {} frames came, {} left", count("received_frames"), count("sent_frames"));
        for (word, lost) in [
            ("dropped_by_kernel", "dropped by the kernel"),
            ("no_buffer", "dropped for want of a buffer"),
            ("too_long", "too long"),
            ("not_sent", "not sent"),
        ] {
            if count(word) != "0" {
                line += &format!(", {} {lost}", count(word));
            }
        }
    }
    line
}

fn packets(packets: &Value) -> String {
    let without = number(packets, "/without_port");
    let without = if without == 0 {
        String::new()
    } else {
        format!(", {} frames had no port to go to", grouped(without))
    };
    if packets["alive"] != true {
        return format!("the packet thread has ended{without}");
    }
    format!(
        "the packet thread turns, last {} ms ago; {} late, the longest by {}{without}",
        number(packets, "/last_turn_ms"),
        match number(packets, "/gaps") {
            1 => "1 turn".to_owned(),
            gaps => format!("{} turns", grouped(gaps)),
        },
        Span::from_us(number(packets, "/longest_gap_us"))
    )
}

/// `3 d 4 h`, to two places.
fn long(seconds: u64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let places = units.iter().scan(seconds, |left, (size, unit)| {
        let count = *left / size;
        *left %= size;
        Some((count, unit))
    });
    let said: Vec<String> = places
        .skip_while(|(count, _)| *count == 0)
        .take(2)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if said.is_empty() { "0 s".to_owned() } else { said.join(" ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_times_have_two_places() {
        let times = [0, 59, 60, 3_661, 90_000, 86_400 * 400];
        let said = times.map(long);
        assert_eq!(said, ["0 s", "59 s", "1 m 0 s", "1 h 1 m", "1 d 1 h", "400 d 0 h"]);
    }

    #[test]
    fn what_is_wrong_is_said() {
        let counters = json!({ "received_frames": 1_234, "sent_frames": 1, "not_sent": 2 });
        let answer = json!({
            "link": "l", "mode": "observe", "version": "1", "file": "p.toml", "uptime_s": 61,
            "revision": { "number": 7, "author": "anna", "time": 0, "comment": "why" },
            "confirm": { "left_s": 42, "goes_back_to": 6 },
            "ports": {
                "lan": { "interface": "eth1", "state": "up", "counters": counters },
                "wan": { "interface": "eth2", "state": "gone", "counters": null },
            },
            "packets": { "alive": true, "last_turn_ms": 3, "longest_gap_us": 9_500, "gaps": 1,
                         "without_port": 5 },
            "bypass": "weir-l", "flows": 12, "history": { "folder": "/x", "kept": 7 },
            "trouble": ["history could not be written: /x: it is full"],
        });
        assert_eq!(
            lines(&answer),
            [
                "link l only observes; revision 7 by anna of 1970-01-01 00:00:00 UTC: why",
                "  revision 6 comes back in 42 s unless you type: weir confirm",
                "LAN eth1: up; 1 234 frames came, 1 left, 2 not sent",
                "WAN eth2: gone",
                "the packet thread turns, last 3 ms ago; 1 turn late, the longest by 9.5ms, \
             5 frames had no port to go to",
                "when weir is away, the bridge weir-l carries the traffic",
                "12 connections are known",
                "7 revisions are kept in /x",
                "up for 1 m 1 s; weir 1, started with p.toml",
                "trouble: history could not be written: /x: it is full",
            ]
        );
    }
}
