//! The policies of the live tests, written as an operator would write them.

use std::fmt::Write;

use super::world::lan_host;

/// The classes that [`edited`] leaves alone, whatever else it changes.
pub(crate) const NUMBERED: &str = "/numbered";

/// Ports that the classes of [`edited`] go by.
pub(crate) const CALL_PORT: u16 = 16_384;
pub(crate) const NUMBERED_PORT: u16 = 7_000;
pub(crate) const PING_PORT: u16 = 7_100;
pub(crate) const BULK_PORT: u16 = 7_200;

fn link(rate: &str) -> String {
    format!(
        "[link.live]\nlan = \"eth1\"\nwan = \"eth2\"\ndown = \"{rate}\"\nup = \"{rate}\"\n\
         counts = \"ip\"\n"
    )
}

/// A link whose rates weir finds, and no class.
pub(crate) fn found(rate: &str) -> String {
    format!("{}margin = {{ down = \"auto\", up = \"auto\" }}\n", link(rate))
}

/// A leaf with a ceiling for each of the first hosts.
pub(crate) fn ceilings(rates: &[(u64, &str)]) -> String {
    let mut text = link("1gbit");
    for ((bps, rate), host) in rates.iter().zip(0..) {
        // enough to stay busy while a host or the box is late, and gone before the next one counts
        let frames = (bps / 20_000).clamp(15, 500);
        let address = lan_host(host);
        let _ = write!(
            text,
            "\n[class.\"/{rate}\"]\nmatch = [\"lan {address}\"]\nceil = \"{rate}\"\n\
             queue = \"fifo\"\naqm = \"none\"\nlimit = \"{frames} frames\"\n"
        );
    }
    text
}

/// A call, a numbered stream and pings that stay below their shares, transfers, and other classes
/// that come, go and change with every edit.
pub(crate) fn edited(edit: u32) -> String {
    let mut text = link("100mbit");
    let _ = write!(
        text,
        "\n[class.\"/call\"]\nmatch = [\"dscp ef\"]\nrate = \"{}mbit\"\npriority = \"realtime\"\n\
         \n[class.\"{NUMBERED}\"]\nmatch = [\"udp port {NUMBERED_PORT}\", \
         \"udp port {PING_PORT}\"]\nrate = \"{}mbit\"\n\
         \n[class.\"/transfers\"]\nmatch = [\"tcp\"]\nweight = \"{}mbit\"\nceil = \"{}mbit\"\n",
        1 + edit % 3,
        8 + edit % 5,
        1 + edit % 11,
        40 + edit % 17,
    );
    // a branch whose leaves and names change
    let _ = write!(
        text,
        "\n[class.\"/rest\"]\nmatch = [\"any\"]\nrate = \"{}kbit\"\n",
        500 + edit % 97
    );
    for leaf in 0..edit % 7 {
        let number = (edit / 7 + leaf) % 23;
        let address = lan_host(100 + u16::try_from(number).unwrap_or(0));
        let _ = write!(
            text,
            "\n[class.\"/rest/{number}\"]\nmatch = [\"lan {address}\"]\nceil = \"{}mbit\"\n",
            1 + edit % 29
        );
    }
    text
}

/// One class whose TCP is steadied.
pub(crate) fn steadied(ceil: &str) -> String {
    format!(
        "{}\n[class.\"/steady\"]\nmatch = [\"tcp\"]\nceil = \"{ceil}\"\n\
         tcp = {{ window = true, pace-acks = true, mss = 1000 }}\n",
        link("100mbit")
    )
}

/// Many hosts with a leaf each, made as they appear, beside what [`edited`] has.
pub(crate) fn crowd(edit: u32) -> String {
    let rest = "\n[class.\"/rest\"]";
    let mut text = edited(edit);
    let at = text.find(rest).unwrap_or(text.len());
    text.truncate(at);
    text = text.replace("match = [\"tcp\"]", &format!("match = [\"tcp port {BULK_PORT}\"]"));
    let _ = write!(
        text,
        "\n[class.\"/hosts\"]\nmatch = [\"any\"]\nrate = \"{}mbit\"\n\
         each = {{ by = \"lan-host\", count = 256, age = \"5s\", ceil = \"{}mbit\" }}\n",
        10 + edit % 7,
        5 + edit % 13,
    );
    text
}

#[cfg(test)]
mod tests {
    use weir_policy::{Source, read};

    use super::*;

    fn is_fine(text: &str) {
        let mut none = |name: &str| Err(format!("no file {name}"));
        let reading = read(Source::new("p.toml", text.as_bytes().to_vec()), &mut none).unwrap();
        assert!(!reading.is_at_fault(), "{text}\n{:?}", reading.problems);
    }

    #[test]
    fn all_of_them_are_policies() {
        is_fine(&ceilings(&[(100_000, "100kbit"), (200_000_000, "200mbit")]));
        is_fine(&steadied("1mbit"));
        for edit in 0..200 {
            is_fine(&edited(edit));
            is_fine(&crowd(edit));
        }
    }

    #[test]
    fn two_edits_in_a_row_differ() {
        assert!((0..1_000).all(|edit| edited(edit) != edited(edit + 1)));
        assert!((0..1_000).all(|edit| crowd(edit) != crowd(edit + 1)));
    }
}
