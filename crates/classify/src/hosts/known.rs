//! Who may have a leaf of its own without asking: everybody, or those of a list.

use std::net::IpAddr;

use weir_units::Prefix;

use super::{Owner, Who};

/// First and last of neighbours, IPv4 or not; sorted, and none meets another.
#[derive(Debug)]
pub(super) struct Known(Option<Box<[(bool, u128, u128)]>>);

impl Known {
    pub(super) fn of(list: Option<Vec<Owner>>) -> Known {
        let Some(list) = list else { return Known(None) };
        let mut ranges: Vec<(bool, u128, u128)> = list.into_iter().map(range).collect();
        ranges.sort_unstable();
        let mut apart: Vec<(bool, u128, u128)> = Vec::with_capacity(ranges.len());
        for (v4, from, to) in ranges {
            match apart.last_mut() {
                Some(last) if last.0 == v4 && from <= last.2 => last.2 = last.2.max(to),
                _ => apart.push((v4, from, to)),
            }
        }
        Known(Some(apart.into()))
    }

    pub(super) fn is_everybody(&self) -> bool {
        self.0.is_none()
    }

    #[inline]
    pub(super) fn has(&self, who: Who) -> bool {
        let Some(ranges) = &self.0 else { return true };
        let behind = ranges.partition_point(|&(v4, from, _)| (v4, from) <= (who.v4, who.bits));
        let before = behind.checked_sub(1).map(|at| ranges[at]);
        before.is_some_and(|(v4, _, to)| v4 == who.v4 && who.bits <= to)
    }
}

fn range(owner: Owner) -> (bool, u128, u128) {
    match owner {
        Owner::Host(address) => range(Owner::Block(Prefix::host(address))),
        Owner::Block(block) => {
            let (v4, width, bits) = match block.address() {
                IpAddr::V4(address) => (true, 32, u128::from(address.to_bits())),
                IpAddr::V6(address) => (false, 128, address.to_bits()),
            };
            let free = u128::MAX.checked_shl(width - u32::from(block.len()));
            let hosts = !free.unwrap_or(0);
            (v4, bits & !hosts, bits | hosts)
        }
        Owner::Mac([a, b, c, d, e, f]) => {
            let bits = u128::from(u64::from_be_bytes([0, 0, a, b, c, d, e, f]));
            (false, bits, bits)
        }
        Owner::Vlan(vlan) => (false, vlan.into(), vlan.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(address: &str) -> Who {
        match address.parse().unwrap() {
            IpAddr::V4(v4) => Who { bits: v4.to_bits().into(), v4: true },
            IpAddr::V6(v6) => Who { bits: v6.to_bits(), v4: false },
        }
    }

    #[test]
    fn a_list_knows_its_blocks_to_the_last_address() {
        let block = |text: &str| Owner::Block(text.parse().unwrap());
        let known = Known::of(Some(vec![
            block("10.0.1.0/24"),
            block("10.0.1.128/25"),
            block("2001:db8::/32"),
            Owner::Host("10.0.3.7".parse().unwrap()),
        ]));
        for (address, has) in [
            ("10.0.0.255", false),
            ("10.0.1.0", true),
            ("10.0.1.255", true),
            ("10.0.2.0", false),
            ("10.0.3.7", true),
            ("10.0.3.8", false),
            ("2001:db8:ffff::1", true),
            ("2001:db9::", false),
            // an IPv6 address that is an IPv4 one by number
            ("::10.0.1.1", false),
        ] {
            assert_eq!(known.has(who(address)), has, "{address}");
        }
        assert!(Known::of(Some(vec![block("0.0.0.0/0")])).has(who("255.255.255.255")));
        assert!(Known::of(None).has(who("::1")) && !Known::of(Some(vec![])).has(who("::1")));
    }
}
