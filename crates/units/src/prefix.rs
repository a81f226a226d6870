//! A block of addresses: `10.0.0.0/8`, `2001:db8::/32`, or a single address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::parse::Unreadable;

/// A block of IPv4 or IPv6 addresses; the bits behind its length are always zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    address: IpAddr,
    len: u8,
}

impl Prefix {
    /// The block of `len` leading bits around `address`; a length that is too long means the host.
    #[must_use]
    pub fn around(address: IpAddr, len: u8) -> Self {
        match address {
            IpAddr::V4(v4) => {
                let len = len.min(32);
                let mask = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
                Prefix { address: Ipv4Addr::from_bits(v4.to_bits() & mask).into(), len }
            }
            IpAddr::V6(v6) => {
                let len = len.min(128);
                let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
                Prefix { address: Ipv6Addr::from_bits(v6.to_bits() & mask).into(), len }
            }
        }
    }

    /// The block that is one host.
    #[must_use]
    pub fn host(address: IpAddr) -> Self {
        Prefix::around(address, 128)
    }

    /// The first address of the block.
    #[must_use]
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many leading bits are fixed.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a block is never empty")]
    pub const fn len(&self) -> u8 {
        self.len
    }

    /// Whether the block is a single host.
    #[must_use]
    pub const fn is_host(&self) -> bool {
        self.len == if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Whether `address` lies in the block.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4()
            && Prefix::around(address, self.len).address == self.address
    }

    /// Whether all of `other` lies in this block.
    #[must_use]
    pub fn covers(&self, other: &Prefix) -> bool {
        self.len <= other.len && self.contains(other.address)
    }

    /// Whether the two have an address in common.
    #[must_use]
    pub fn overlaps(&self, other: &Prefix) -> bool {
        self.covers(other) || other.covers(self)
    }
}

impl FromStr for Prefix {
    type Err = Unreadable;
    fn from_str(text: &str) -> Result<Prefix, Unreadable> {
        const EXPECTED: &str =
            "an address or block such as \"10.0.0.5\", \"10.0.0.0/8\" or \"2001:db8::/32\"";
        let (address, len) = match text.split_once('/') {
            Some((address, len)) => (address, Some(len)),
            None => (text, None),
        };
        let address: IpAddr = address
            .parse()
            .map_err(|_| Unreadable::new(text, "the address cannot be read", EXPECTED))?;
        let Some(len) = len else { return Ok(Prefix::host(address)) };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let len = match len.parse::<u8>() {
            Ok(len) if len <= most && !text.contains("/+") => len,
            _ => {
                let why = format!("the length behind the slash is not 0 to {most}");
                return Err(Unreadable::new(text, why, EXPECTED));
            }
        };
        let block = Prefix::around(address, len);
        if block.address != address {
            let why = "bits are set behind the length";
            return Err(Unreadable::new(text, why, EXPECTED).meaning(Some(block.to_string())));
        }
        Ok(block)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_host() {
            f.pad(&self.address.to_string())
        } else {
            f.pad(&format!("{}/{}", self.address, self.len))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_host_bit_behind_the_length_is_named_with_its_cure() {
        let error = "10.0.0.5/24".parse::<Prefix>().unwrap_err().to_string();
        assert!(error.contains("10.0.0.0/24"), "{error}");
    }

    #[test]
    fn the_empty_prefix_holds_everything_of_its_family() {
        let all: Prefix = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.1.2.3".parse().unwrap()));
        assert!(!all.contains("::1".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn text_reads_back(bits in any::<u128>(), len in 0u8..=128, v4 in any::<bool>()) {
            #[expect(clippy::cast_possible_truncation, reason = "any 32 bits will do")]
            let address: IpAddr = if v4 {
                Ipv4Addr::from_bits(bits as u32).into()
            } else {
                Ipv6Addr::from_bits(bits).into()
            };
            let prefix = Prefix::around(address, len);
            prop_assert!(prefix.contains(address));
            prop_assert_eq!(prefix.to_string().parse::<Prefix>().unwrap(), prefix);
        }
    }
}
