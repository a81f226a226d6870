//! What the measurements of the page must show. The figures are those of the policies that the page
//! has the reader write: 100 Mbit/s down, of which 97 % are used, 20 Mbit/s up, 5 for backups.
//! Upper bounds are those; lower ones leave room for a busy machine, because here it matters that
//! traffic passes and is shaped. How exactly is the matter of `cargo x live accuracy`.

use std::ops::RangeInclusive;

use super::page::Item;

/// A bound of one command.
pub(super) struct Bound {
    /// The heading that the command stands under; the same line measures something else elsewhere.
    section: &'static str,
    line: &'static str,
    /// The figure, or why it is wrong.
    pub(super) judge: fn(&str) -> Result<String, String>,
}

const UP: &str = "iperf3 --client 192.0.2.1 --time 5";
const DOWN: &str = "iperf3 --client 192.0.2.1 --time 5 --reverse";

pub(super) const BOUNDS: [Bound; 12] = [
    // nothing is shaped yet; what a machine forwards unshaped is its own business
    Bound { section: "Observe", line: UP, judge: |text| rate(text, 110.0..=f64::MAX) },
    Bound { section: "Observe", line: DOWN, judge: |text| rate(text, 110.0..=f64::MAX) },
    Bound { section: "Observe", line: "ping -c 5 192.0.2.1", judge: |text| lost(text, 0) },
    Bound { section: "Shape", line: UP, judge: |text| rate(text, 12.0..=20.0) },
    Bound { section: "Shape", line: DOWN, judge: |text| rate(text, 60.0..=97.0) },
    Bound {
        section: "Shape",
        line: "iperf3 --client 192.0.2.1 --port 873 --time 5",
        judge: |text| rate(text, 3.0..=5.0),
    },
    // beside four uploads that fill the link: the queue is in weir, and ping has none
    Bound {
        section: "Verify",
        line: "ping -c 20 -i 0.2 192.0.2.1",
        judge: |text| mean(text, 50.0),
    },
    Bound {
        section: "Verify",
        line: "ps -C weir,weir-helper -o rss,cputime,comm",
        judge: |text| memory(text, 256.0),
    },
    // killed with packet sockets: within 100 ms the bridge forwards, and a restart cuts as long
    Bound { section: "Verify", line: "ping -c 50 -i 0.1 192.0.2.1 &", judge: |text| lost(text, 4) },
    Bound { section: "Verify", line: "ping -c 20 -i 0.1 192.0.2.1", judge: |text| lost(text, 4) },
    Bound { section: "Undo", line: "ping -c 3 -i 0.2 192.0.2.1", judge: |text| lost(text, 0) },
    Bound {
        section: "Verify",
        line: "iperf3 --client 192.0.2.1 --time 10 --parallel 4 &",
        judge: |text| rate(text, 10.0..=20.0),
    },
];

impl Bound {
    pub(super) fn is_for(&self, section: &str, line: &str) -> bool {
        self.section == section && self.line == line
    }
}

/// A bound of a command that the page has no more would hold for ever.
pub(super) fn are_all_on(items: &[Item]) -> Result<(), String> {
    for bound in &BOUNDS {
        let is_on = items.iter().any(|item| {
            matches!(item, Item::Command { section, line, .. } if bound.is_for(section, line))
        });
        if !is_on {
            return Err(format!("the page has no \"{}\" under {}", bound.line, bound.section));
        }
    }
    Ok(())
}

/// What iperf3 says that the receiver got, in Mbit/s.
fn rate(text: &str, bound: RangeInclusive<f64>) -> Result<String, String> {
    let mut lines = text.lines().filter(|line| line.trim_end().ends_with("receiver"));
    // of several connections the sum comes last
    let line = lines.next_back().ok_or("iperf3 names no receiver")?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let unit = words.iter().position(|word| word.ends_with("bits/sec")).unwrap_or(0);
    let scale = match words.get(unit) {
        Some(&"Gbits/sec") => 1_000.0,
        Some(&"Mbits/sec") => 1.0,
        _ => 0.0,
    };
    let number: f64 =
        words.get(unit.wrapping_sub(1)).and_then(|word| word.parse().ok()).unwrap_or(0.0);
    within(number * scale, "Mbit/s", &bound)
}

/// How many echoes ping misses.
fn lost(text: &str, most: u32) -> Result<String, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let before = |word: &str| -> Option<u32> {
        words[words.iter().position(|w| w.starts_with(word))?.checked_sub(1)?].parse().ok()
    };
    // "50 packets transmitted, 49 received, 2% packet loss"
    let (Some(sent), Some(came)) = (before("packets"), before("received,")) else {
        return Err("ping counts nothing".to_owned());
    };
    let lost = sent.saturating_sub(came);
    let figure = format!("{lost} of {sent} lost");
    if lost <= most { Ok(figure) } else { Err(format!("{figure}; {most} is the bound")) }
}

/// The mean of ping's round trips, in ms, of which none is lost.
fn mean(text: &str, most: f64) -> Result<String, String> {
    lost(text, 0)?;
    // "rtt min/avg/max/mdev = 0.1/0.2/0.3/0.1 ms"
    let figures = text.lines().find_map(|line| line.strip_prefix("rtt ")?.split(" = ").nth(1));
    let mean = figures.and_then(|figures| figures.split('/').nth(1)?.parse().ok());
    within(mean.ok_or("ping names no round trips")?, "ms", &(0.0..=most))
}

/// What the processes that ps lists have resident, in MiB.
fn memory(text: &str, most: f64) -> Result<String, String> {
    let first = |line: &str| line.split_whitespace().next()?.parse::<f64>().ok();
    let kib: Vec<f64> = text.lines().filter_map(first).collect();
    if kib.len() < 2 {
        return Err("ps does not list weir and its helper".to_owned());
    }
    within((kib.iter().sum::<f64>() / 1_024.0).round(), "MiB", &(0.0..=most))
}

fn within(figure: f64, unit: &str, bound: &RangeInclusive<f64>) -> Result<String, String> {
    if bound.contains(&figure) {
        return Ok(format!("{figure} {unit}"));
    }
    Err(format!("{figure} {unit}; the bound is {} to {}", bound.start(), bound.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iperf3_is_read_at_the_receiver() {
        let text = "[  5]   0.00-5.00   sec  11.9 MBytes  20.9 Mbits/sec    5             sender\n\
                    [  5]   0.00-5.00   sec  10.9 MBytes  19.1 Mbits/sec           receiver\n\
                    \niperf Done.\n";
        assert_eq!(rate(text, 17.0..=20.0), Ok("19.1 Mbit/s".to_owned()));
        assert!(rate(text, 20.0..=30.0).is_err() && rate(text, 4.0..=19.0).is_err());
        assert!(rate("unable to connect", 0.0..=100.0).is_err());
        assert_eq!(
            rate(&text.replace("Mbits", "Gbits"), 110.0..=f64::MAX),
            Ok("19100 Mbit/s".into())
        );
    }

    #[test]
    fn memory_is_that_of_both_processes() {
        let text = "  RSS     TIME COMMAND\n178024 00:00:04 weir\n 6268 00:00:00 weir-helper\n";
        assert_eq!(memory(text, 256.0), Ok("180 MiB".to_owned()));
        assert!(memory(text, 100.0).is_err() && memory("  RSS COMMAND\n", 100.0).is_err());
    }

    #[test]
    fn ping_is_read_by_what_is_lost_and_by_the_mean() {
        let text = "50 packets transmitted, 49 received, 2% packet loss, time 4900ms\n\
                    rtt min/avg/max/mdev = 0.117/7.285/20.621/0.237 ms\n";
        assert_eq!(lost(text, 1), Ok("1 of 50 lost".to_owned()));
        assert!(lost(text, 0).is_err() && mean(text, 50.0).is_err());
        let whole = text.replace("49 received", "50 received");
        assert_eq!(mean(&whole, 20.0), Ok("7.285 ms".to_owned()));
        assert!(mean(&whole, 7.0).is_err() && lost("connect: unreachable", 5).is_err());
    }
}
