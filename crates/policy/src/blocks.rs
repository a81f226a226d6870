//! Addresses as people write them: an address, a block, a range. A range becomes the blocks that it
//! consists of when it is read, so that nothing else knows of ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_units::{Prefix, Unreadable};

use crate::nearest::instead;

/// Why a text is no address, and the cure.
pub(crate) type Wrong = (String, String);

/// The blocks that `text` means.
pub(crate) fn blocks(text: &str) -> Result<Vec<Prefix>, Wrong> {
    match text.split_once('-') {
        Some((first, last)) if first.contains(['.', ':']) => range(text, first.trim(), last.trim()),
        _ => block(text).map(|block| vec![block]),
    }
}

/// The same, or a name that is none of `groups`.
pub(crate) fn blocks_or_group<'k>(
    text: &str,
    groups: impl Iterator<Item = &'k str> + Clone,
) -> Result<Vec<Prefix>, Wrong> {
    if text.contains(['.', ':', '/']) || text.parse::<Prefix>().is_ok() {
        return blocks(text);
    }
    let help = match groups.clone().next() {
        None => format!("define it: [group] {text} = [\"10.0.0.0/24\"]"),
        Some(_) => instead(text, groups),
    };
    Err((format!("there is no group \"{text}\""), help))
}

fn block(text: &str) -> Result<Prefix, Wrong> {
    let block = text.parse::<Prefix>().map_err(|error| not_a_block(text, &error))?;
    match of_v4(&block) {
        None => Ok(block),
        Some(meant) => {
            let what = format!("\"{text}\" is IPv4 written as IPv6, and no packet carries that");
            Err((what, format!("write \"{meant}\"")))
        }
    }
}

/// The IPv4 block that an IPv6 one stands for (`::ffff:10.0.0.1`).
fn of_v4(block: &Prefix) -> Option<Prefix> {
    let IpAddr::V6(address) = block.address() else { return None };
    let v4 = address.to_ipv4_mapped()?;
    Some(Prefix::around(v4.into(), block.len().checked_sub(96)?))
}

fn not_a_block(text: &str, error: &Unreadable) -> Wrong {
    let what = format!("\"{text}\" is not {}: {}", error.expected(), error.why());
    if let Some(meant) = error.meant() {
        return (what, format!("did you mean \"{meant}\"?"));
    }
    let (address, mask) = text.split_once('/').unwrap_or((text, ""));
    if let (Ok(address), Ok(mask)) = (address.parse::<Ipv4Addr>(), mask.parse::<Ipv4Addr>()) {
        let len = mask.to_bits().leading_ones();
        if mask.to_bits() == u32::MAX.checked_shl(32 - len).unwrap_or(0) {
            let block = Prefix::around(address.into(), u8::try_from(len).unwrap_or(32));
            return (what, format!("write \"{block}\""));
        }
    }
    if text.chars().all(|c| c.is_alphanumeric() || c == '.' || c == '-')
        && text.contains(char::is_alphabetic)
    {
        let help = format!("weir does not resolve names: write what `getent ahosts {text}` prints");
        return (what, help);
    }
    (what, String::new())
}

/// The blocks from the first to the last address.
fn range(text: &str, first: &str, last: &str) -> Result<Vec<Prefix>, Wrong> {
    let (from, to) = (first.parse::<IpAddr>(), last.parse::<IpAddr>());
    match (from, to) {
        (Ok(IpAddr::V4(from)), Ok(IpAddr::V4(to))) => {
            let blocks = between(from.to_bits().into(), to.to_bits().into(), 32);
            ordered(text, (first, last), blocks)
        }
        (Ok(IpAddr::V6(from)), Ok(IpAddr::V6(to))) => {
            if from.to_ipv4_mapped().is_some() || to.to_ipv4_mapped().is_some() {
                let plain = |ip: Ipv6Addr| ip.to_canonical();
                let what =
                    format!("\"{text}\" is IPv4 written as IPv6, and no packet carries that");
                return Err((what, format!("write \"{}-{}\"", plain(from), plain(to))));
            }
            ordered(text, (first, last), between(from.to_bits(), to.to_bits(), 128))
        }
        (Ok(IpAddr::V4(from)), Err(_)) if last.parse::<u8>().is_ok() => {
            let [a, b, c, _] = from.octets();
            let what = format!("\"{text}\" is not a range: its end is not an address");
            Err((what, format!("write \"{from}-{a}.{b}.{c}.{last}\"")))
        }
        (Ok(_), Ok(_)) => {
            let what = format!("\"{text}\" is not a range: one end is IPv4 and the other IPv6");
            Err((what, "write two ranges, such as \"10.0.0.10-10.0.0.20\"".to_owned()))
        }
        (from, _) => {
            let end = if from.is_err() { first } else { last };
            let what = format!("\"{text}\" is not a range: \"{end}\" is not an address");
            Err((what, "write both ends in full, as in \"10.0.0.10-10.0.0.20\"".to_owned()))
        }
    }
}

fn ordered(
    text: &str,
    (first, last): (&str, &str),
    blocks: Vec<Prefix>,
) -> Result<Vec<Prefix>, Wrong> {
    if blocks.is_empty() {
        let what = format!("the range \"{text}\" ends before it starts");
        return Err((what, format!("write \"{last}-{first}\"")));
    }
    Ok(blocks)
}

/// The fewest blocks that are all addresses from `first` to `last`; none if it ends before.
pub(crate) fn between(first: u128, last: u128, width: u32) -> Vec<Prefix> {
    let mut blocks = Vec::new();
    let mut at = first;
    while at <= last {
        // as large as its start and the rest of the range allow
        let room = last - at;
        let fits = if room == u128::MAX { 128 } else { (room + 1).ilog2() };
        let size = at.trailing_zeros().min(fits).min(width);
        let address = match u32::try_from(at) {
            Ok(at) if width == 32 => IpAddr::V4(Ipv4Addr::from_bits(at)),
            _ => IpAddr::V6(Ipv6Addr::from_bits(at)),
        };
        let len = u8::try_from(width - size).unwrap_or(128);
        blocks.push(Prefix::around(address, len));
        let next = 1u128.checked_shl(size).and_then(|size| at.checked_add(size));
        let Some(next) = next else { break };
        at = next;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        match blocks(text) {
            Ok(blocks) => blocks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err((what, help)) => format!("{what} ({help})"),
        }
    }

    #[test]
    fn a_range_is_its_blocks() {
        assert_eq!(said("10.0.0.10-10.0.0.20"), "10.0.0.10/31 10.0.0.12/30 10.0.0.16/30 10.0.0.20");
        assert_eq!(said("10.0.0.0-10.0.0.255"), "10.0.0.0/24");
        assert_eq!(said("10.0.0.7-10.0.0.7"), "10.0.0.7");
        assert_eq!(said("0.0.0.0-255.255.255.255"), "0.0.0.0/0");
        assert_eq!(said("2001:db8::-2001:db8::2"), "2001:db8::/127 2001:db8::2");
        assert_eq!(said("::1-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff").split(' ').count(), 128);
        for (first, last) in [(0, 0), (1, 6), (0, 255), (3, 250), (255, 255)] {
            let hosts = |n: u128| 1u128 << (32 - u32::from(between(n, n, 32)[0].len()));
            let blocks = between(first, last, 32);
            let size: u128 = blocks.iter().map(|b| 1u128 << (32 - u32::from(b.len()))).sum();
            assert_eq!((size, hosts(first)), (last - first + 1, 1), "{blocks:?}");
        }
    }

    #[test]
    fn what_is_no_range_has_its_cure() {
        assert!(said("10.0.0.10-20").contains("write \"10.0.0.10-10.0.0.20\""));
        assert!(said("10.0.0.20-10.0.0.10").contains("write \"10.0.0.10-10.0.0.20\""));
        assert!(said("10.0.0.20-::1").contains("one end is IPv4"));
        assert!(said("10.0.0.1-x").contains("\"x\" is not an address"));
        assert!(said("::ffff:10.0.0.1").contains("(write \"10.0.0.1\")"));
        assert!(said("::ffff:10.0.0.0/120").contains("(write \"10.0.0.0/24\")"));
        assert!(said("10.0.0.0/255.255.255.0").contains("(write \"10.0.0.0/24\")"));
        assert!(!said("10.0.0.0/255.0.255.0").contains("(write"));
        assert!(said("www.example.com").contains("does not resolve names"));
    }
}
