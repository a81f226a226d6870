//! The state of a running link, in words.

use weir_control::{Mode, Packets, Port, Status};
use weir_lab::grouped;
use weir_units::{Rate, Span};

use weir_daemon::date;

/// What `weir status` says.
pub(super) fn lines(status: &Status) -> Vec<String> {
    let mut lines = vec![head(status)];
    lines.extend(status.confirm.map(|confirm| {
        format!(
            "  revision {} will be restored in {} s unless you run: weir confirm",
            confirm.goes_back_to, confirm.left_s
        )
    }));
    lines.push(port(&status.ports.lan, "LAN"));
    lines.push(port(&status.ports.wan, "WAN"));
    lines.push(packets(&status.packets.unwrap_or_default()));
    lines.push(match &status.bypass {
        Some(bridge) => format!("if weir stops, bridge {bridge} forwards traffic unshaped"),
        None => "if weir stops, the link is cut".to_owned(),
    });
    lines.extend(ways(status));
    let before = status.taken_over.map_or_else(String::new, |taken| {
        format!(", {} taken over from the weir before", grouped(taken))
    });
    let known = grouped(status.flows.unwrap_or(0));
    lines.push(format!("{known} connections in the flow table{before}"));
    lines.extend(status.not_taken_over.iter().map(|why| format!("since the start: {why}")));
    lines.push(format!("{} revisions are kept in {}", status.history.kept, status.history.folder));
    lines.push(format!(
        "up for {}; weir {}, started with {}",
        long(status.uptime_s),
        status.version,
        status.file
    ));
    lines.extend(status.trouble.iter().map(|what| format!("trouble: {what}")));
    lines
}

/// What was found out about the line and the ways beyond it.
fn ways(status: &Status) -> Vec<String> {
    let mut lines = Vec::new();
    for (found, side) in [(status.found_down, "LAN"), (status.found_up, "WAN")] {
        lines.extend(found.map(|found| {
            let found = Rate::from_bps(found);
            format!("towards the {side} weir now shapes to {found}, the rate that it has found")
        }));
    }
    for (trip, name) in [(status.round_trips.lan, "LAN"), (status.round_trips.wan, "WAN")] {
        lines.extend(trip.map(|trip| {
            format!("TCP round-trip time to the {name}: {}", Span::from_us(trip.mean_us))
        }));
    }
    lines
}

fn head(status: &Status) -> String {
    let mode = match status.mode {
        Mode::Observe => "is observing",
        Mode::Shape => "is shaping",
    };
    let revision = &status.revision;
    let comment = match &*revision.comment {
        "" => String::new(),
        comment => format!(": {comment}"),
    };
    format!(
        "link {} {mode}; revision {} by {} of {}{comment}",
        status.link,
        revision.number,
        revision.author,
        date(revision.time),
    )
}

/// `LAN eth1: up; 12 frames received, 11 sent`, and what was lost there.
fn port(port: &Port, toward: &str) -> String {
    let mut line = format!("{toward} {}: {}", port.interface, port.state);
    if let Some(counters) = port.counters {
        let (came, left) = (grouped(counters.received_frames), grouped(counters.sent_frames));
        line += &format!("; {came} frames received, {left} sent");
        for (count, lost) in [
            (counters.dropped_by_kernel, "dropped by the kernel"),
            (counters.no_buffer, "dropped for lack of a buffer"),
            (counters.too_long, "too long"),
            (counters.not_sent, "not sent"),
        ] {
            if count > 0 {
                line += &format!(", {} {lost}", grouped(count));
            }
        }
    }
    line
}

fn packets(packets: &Packets) -> String {
    let without = match packets.without_port {
        0 => String::new(),
        frames => format!(", {} frames dropped because their port was down", grouped(frames)),
    };
    if !packets.alive {
        return format!("the packet thread has ended{without}");
    }
    format!(
        "the packet thread runs, last polled {} ms ago; {} late, at most by {}{without}",
        packets.last_turn_ms,
        match packets.gaps {
            1 => "1 iteration".to_owned(),
            gaps => format!("{} iterations", grouped(gaps)),
        },
        Span::from_us(packets.longest_gap_us)
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
            lines(&serde_json::from_value(answer).unwrap()),
            [
                "link l is observing; revision 7 by anna of 1970-01-01 00:00:00 UTC: why",
                "  revision 6 will be restored in 42 s unless you run: weir confirm",
                "LAN eth1: up; 1 234 frames received, 1 sent, 2 not sent",
                "WAN eth2: gone",
                "the packet thread runs, last polled 3 ms ago; 1 iteration late, at most by 9.5ms, \
             5 frames dropped because their port was down",
                "if weir stops, bridge weir-l forwards traffic unshaped",
                "12 connections in the flow table",
                "7 revisions are kept in /x",
                "up for 1 m 1 s; weir 1, started with p.toml",
                "trouble: history could not be written: /x: it is full",
            ]
        );
    }
}
