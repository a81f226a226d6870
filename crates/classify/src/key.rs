//! What makes two frames the same connection's, the same for both directions because it is told
//! from the LAN's side, and its seeded hash: folded multiplications, so that nobody who does not
//! know the seed can pile up connections in one bucket.

use weir_packet::{Headers, Net, Side, tcp};

use crate::facts::Facts;
use crate::rules::UNTAGGED;

/// Protocols with ports besides TCP.
pub(crate) const UDP: u8 = 17;
/// Protocols with ports besides TCP.
pub(crate) const SCTP: u8 = 132;

/// Protocol number of the authentication header.
pub(crate) const AH: u8 = 51;

/// Where the hash begins; it should be drawn at random at start, and be fixed in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64, u64);

/// A connection's identity, in words that are compared and hashed without being taken apart.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Key {
    lan: u128,
    wan: u128,
    /// Port of the LAN host, of the other (0 and 0 where there are none), and the index of ESP, AH
    /// or an ICMP echo.
    ends: u64,
    /// VLAN, protocol, whether there is AH before it, and whether it is IPv4.
    kind: u64,
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        let ([a, b], [c, d]) = (halves(self.lan), halves(self.wan));
        let ([e, f], [g, h]) = (halves(other.lan), halves(other.wan));
        // one jump in the end instead of six
        let differ = (a ^ e) | (b ^ f) | (c ^ g) | (d ^ h);
        differ | (self.ends ^ other.ends) | (self.kind ^ other.kind) == 0
    }
}

impl Seed {
    /// A seed from any 128 bits.
    #[must_use]
    pub const fn new(bits: u128) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bits.to_be_bytes();
        let high = u64::from_be_bytes([a, b, c, d, e, f, g, h]);
        let low = u64::from_be_bytes([i, j, k, l, m, n, o, p]);
        Seed(spread(high ^ 0x9e37_79b9_7f4a_7c15), spread(low ^ 0xd1b5_4a32_d192_ed03))
    }

    /// Tells this seed from another one without giving it away.
    pub(crate) fn mark(self) -> u64 {
        self.hash([0x7765_6972, 1, 2, 3, 4])
    }

    #[inline]
    pub(crate) fn hash(self, [a, b, c, d, e]: [u64; 5]) -> u64 {
        let one = fold(a ^ self.0, b ^ self.1);
        let two = fold(c ^ self.1.rotate_left(17), d ^ self.0.rotate_left(31));
        fold(one ^ e, two ^ self.0.rotate_left(47)) ^ self.1
    }

    /// What stands for a host: nobody outside can tell which two of them are taken for one.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "half of the bits are enough")]
    pub(crate) fn host(self, address: u128) -> u32 {
        let [a, b] = halves(address);
        (fold(a ^ self.0, b ^ self.1) >> 16) as u32
    }
}

/// Makes every bit depend on every other (the finalizer of splitmix64).
const fn spread(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Both halves of the product.
#[inline]
const fn fold(a: u64, b: u64) -> u64 {
    let [high, low] = halves(a as u128 * b as u128);
    high ^ low
}

/// The high and the low 64 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
pub(crate) const fn halves(bits: u128) -> [u64; 2] {
    [(bits >> 64) as u64, bits as u64]
}

impl Key {
    /// The connection that a frame belongs to, if it is an IP packet.
    pub(crate) fn of(facts: &Facts) -> Option<Key> {
        facts.headers.is_ip().then(|| Key::of_ip(facts))
    }

    /// The connection that an IP packet belongs to.
    #[inline]
    pub(crate) fn of_ip(facts: &Facts) -> Key {
        let h = facts.headers;
        let vlan = u64::from(h.vlan().unwrap_or(UNTAGGED));
        let flags = (u64::from(h.ah) << 1) | u64::from(h.net == Net::V4);
        Key {
            lan: facts.lan(),
            wan: facts.wan(),
            ends: (u64::from(facts.ports()) << 32) | u64::from(h.spi),
            kind: (vlan << 16) | (u64::from(h.protocol) << 8) | flags,
        }
    }

    /// The connection that a host has who writes another's addresses and ports.
    pub(crate) fn of_other(self, host: u32) -> Key {
        // neither a VLAN nor a protocol stands there
        Key { kind: self.kind | u64::from(host) << 32 | 1 << 31, ..self }
    }

    #[inline]
    pub(crate) fn hash(&self, seed: Seed) -> u64 {
        let ([a, b], [c, d]) = (halves(self.lan), halves(self.wan));
        seed.hash([a, b, c, d, self.ends ^ self.kind.rotate_left(35)])
    }

    #[inline]
    pub(crate) const fn protocol(&self) -> u8 {
        self.kind.to_be_bytes()[6]
    }

    /// A connection's identity in plain words: the addresses of the LAN host and of the other, the
    /// ends, the kind.
    pub(crate) const fn words(&self) -> (u128, u128, u64, u64) {
        (self.lan, self.wan, self.ends, self.kind)
    }

    /// The identity that [`Key::words`] told.
    pub(crate) const fn from_words(lan: u128, wan: u128, ends: u64, kind: u64) -> Key {
        Key { lan, wan, ends, kind }
    }

    /// Whether a host has it that writes another's addresses and ports.
    pub(crate) const fn is_of_other(&self) -> bool {
        self.kind & 1 << 31 != 0
    }

    /// What the host on the LAN side has of addresses, as [`Facts::address_behind`] has it.
    pub(crate) const fn lan_address(&self) -> u128 {
        if self.kind & 1 != 0 { self.lan } else { self.lan & u128::MAX << 64 }
    }

    /// The headers of a frame from one side, as far as they are the connection's.
    pub(crate) fn headers(&self, side: Side) -> Headers {
        let (net, vlan) = (self.kind & 1, self.kind >> 16 & 0x7fff);
        let (source, target) = match side {
            Side::Lan => (self.lan, self.wan),
            Side::Wan => (self.wan, self.lan),
        };
        let tci = u16::try_from(vlan).ok().filter(|_| vlan != u64::from(UNTAGGED));
        let headers = Headers {
            net: if net != 0 { Net::V4 } else { Net::V6 },
            source,
            target,
            tags: u8::from(tci.is_some()),
            tci: tci.unwrap_or(0) & 0xfff,
            // rules ask only whether there is a header
            transport_at: 1,
            ..Headers::EMPTY
        };
        self.rest().fill_in(side, &headers)
    }

    /// What a first fragment says and later ones do not.
    pub(crate) const fn rest(&self) -> Rest {
        Rest { ends: self.ends, kind: self.kind }
    }
}

/// What of a connection's identity only the first fragment of a packet says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rest {
    ends: u64,
    kind: u64,
}

impl Rest {
    /// The headers of a later fragment with what only the first one said: the protocol, which in
    /// IPv6 may stand behind more extension headers, the ports and the index.
    pub(crate) const fn fill_in(&self, side: Side, headers: &Headers) -> Headers {
        let [a, b, c, d, e, f, g, h] = self.ends.to_be_bytes();
        let (lan, wan) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (source_port, target_port) = match side {
            Side::Lan => (lan, wan),
            Side::Wan => (wan, lan),
        };
        let spi = u32::from_be_bytes([e, f, g, h]);
        let ah = headers.ah || self.kind & 2 != 0;
        Headers { protocol: self.protocol(), spi, source_port, target_port, ah, ..*headers }
    }

    /// Whether its protocol has ports.
    pub(crate) const fn has_ports(&self) -> bool {
        matches!(self.protocol(), tcp::NUMBER | UDP | SCTP)
    }

    const fn protocol(&self) -> u8 {
        self.kind.to_be_bytes()[6]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_spread_as_by_splitmix64() {
        // what it draws first, and next, when it begins with 0 (Vigna's reference)
        let step = 0x9e37_79b9_7f4a_7c15_u64;
        assert_eq!(spread(step), 0xe220_a839_7b1d_cdaf);
        assert_eq!(spread(step.wrapping_mul(2)), 0x6e78_9e6a_a1b9_65f4);
    }
}
