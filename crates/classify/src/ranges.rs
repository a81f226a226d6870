//! Blocks of addresses, flattened: nested blocks become neighbouring ranges, each with one value,
//! so that a look-up is a search for the last range that begins at or before the address. A direct
//! index on the leading bits of the part that is really in use leaves few ranges to search.

use std::net::IpAddr;

use weir_packet::Net;
use weir_units::Prefix;

/// Ranges of both families.
#[derive(Debug)]
pub(crate) struct Ranges {
    v4: Family<u32>,
    v6: Family<u128>,
}

/// Ranges of one family.
#[derive(Debug)]
struct Family<A> {
    /// Where each range begins; the first begins at 0.
    starts: Box<[A]>,
    values: Box<[u32]>,
    /// The range in which each of the equal parts between `low` and the last start begins.
    direct: Box<[u32]>,
    low: A,
    shift: u32,
}

/// An address as a number.
trait Address: Copy + Ord {
    fn from_bits(bits: u128) -> Self;
    /// How many times `1 << shift` it lies behind `low`.
    fn part(self, low: Self, shift: u32) -> usize;
}

impl Address for u32 {
    #[expect(clippy::cast_possible_truncation, reason = "IPv4 stands in the low 32 bits")]
    #[inline]
    fn from_bits(bits: u128) -> u32 {
        bits as u32
    }

    #[inline]
    fn part(self, low: u32, shift: u32) -> usize {
        ((self - low) >> shift) as usize
    }
}

impl Address for u128 {
    #[inline]
    fn from_bits(bits: u128) -> u128 {
        bits
    }

    #[inline]
    fn part(self, low: u128, shift: u32) -> usize {
        ((self - low) >> shift) as usize
    }
}

impl Ranges {
    /// Flattens blocks with a number each. `join` makes the value within a block from the value
    /// around it and the numbers of all entries with that very block, in their order.
    pub(crate) fn new(
        blocks: impl Iterator<Item = (Prefix, u32)>,
        outside: u32,
        mut join: impl FnMut(u32, &[u32]) -> u32,
    ) -> Self {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for (block, number) in blocks {
            let bits = |width: u32| width - u32::from(block.len());
            match block.address() {
                IpAddr::V4(ip) => v4.push(Block::new(ip.to_bits().into(), bits(32), number)),
                IpAddr::V6(ip) => v6.push(Block::new(ip.to_bits(), bits(128), number)),
            }
        }
        Ranges {
            v4: Family::new(&flatten(v4, u32::MAX.into(), outside, &mut join)),
            v6: Family::new(&flatten(v6, u128::MAX, outside, &mut join)),
        }
    }

    #[inline]
    pub(crate) fn v4(&self, address: u128) -> u32 {
        self.v4.find(u32::from_bits(address))
    }

    #[inline]
    pub(crate) fn v6(&self, address: u128) -> u32 {
        self.v6.find(address)
    }

    /// Looks at where the search for an address begins, so that it is in the cache.
    #[inline]
    pub(crate) fn peek(&self, net: Net, address: u128) -> u32 {
        match net {
            Net::V4 => self.v4.peek(u32::from_bits(address)),
            Net::V6 => self.v6.peek(address),
            Net::None | Net::Arp => 0,
        }
    }
}

#[derive(Clone, Copy)]
struct Block {
    first: u128,
    last: u128,
    number: u32,
}

impl Block {
    fn new(first: u128, free_bits: u32, number: u32) -> Self {
        let last = first | !u128::MAX.checked_shl(free_bits).unwrap_or(0);
        Block { first, last, number }
    }
}

/// Starts and values of the ranges, from blocks that are nested or apart.
fn flatten(
    mut blocks: Vec<Block>,
    end: u128,
    outside: u32,
    join: &mut impl FnMut(u32, &[u32]) -> u32,
) -> Vec<(u128, u32)> {
    // outer blocks before the inner ones that begin with them; the sort keeps the order of equals
    blocks.sort_by(|a, b| a.first.cmp(&b.first).then(b.last.cmp(&a.last)));
    let mut ranges = vec![(0, outside)];
    let mut open = vec![(end, outside)];
    let mut numbers = Vec::new();
    for same in blocks.chunk_by(|a, b| (a.first, a.last) == (b.first, b.last)) {
        let Block { first, last, .. } = same[0];
        close(&mut open, &mut ranges, first);
        numbers.clear();
        numbers.extend(same.iter().map(|block| block.number));
        let around = open.last().map_or(outside, |&(_, value)| value);
        let value = join(around, &numbers);
        open.push((last, value));
        begin(&mut ranges, first, value);
    }
    close(&mut open, &mut ranges, end);
    ranges
}

/// Ends the open blocks that lie before `next`: the value around them begins again.
fn close(open: &mut Vec<(u128, u32)>, ranges: &mut Vec<(u128, u32)>, next: u128) {
    while let [.., (_, around), (last, _)] = open[..] {
        if last >= next {
            return;
        }
        open.pop();
        begin(ranges, last + 1, around);
    }
}

/// Begins a range, in place of one that begins at the same address.
fn begin(ranges: &mut Vec<(u128, u32)>, start: u128, value: u32) {
    if let Some(last) = ranges.last_mut().filter(|last| last.0 == start) {
        last.1 = value;
    } else {
        ranges.push((start, value));
    }
}

impl<A: Address> Family<A> {
    fn new(ranges: &[(u128, u32)]) -> Self {
        let mut merged: Vec<(u128, u32)> = Vec::with_capacity(ranges.len());
        for &range in ranges {
            if merged.last().is_none_or(|last| last.1 != range.1) {
                merged.push(range);
            }
        }
        let low = merged.get(1).map_or(0, |range| range.0);
        let high = merged.last().map_or(0, |range| range.0);
        let bits = (merged.len().ilog2() + 2).min(16);
        let shift = (128 - (high - low).leading_zeros()).saturating_sub(bits);
        let parts = (high - low) >> shift;
        let mut direct = Vec::new();
        let mut range = 0;
        for part in 0..=parts {
            let start = low + (part << shift);
            while merged.get(range + 1).is_some_and(|next| next.0 <= start) {
                range += 1;
            }
            direct.push(u32::try_from(range).unwrap_or(u32::MAX));
        }
        direct.push(u32::try_from(merged.len() - 1).unwrap_or(u32::MAX));
        Family {
            starts: merged.iter().map(|range| A::from_bits(range.0)).collect(),
            values: merged.iter().map(|range| range.1).collect(),
            direct: direct.into(),
            low: A::from_bits(low),
            shift,
        }
    }

    #[inline]
    fn peek(&self, address: A) -> u32 {
        let part = address.max(self.low).part(self.low, self.shift);
        let from = self.direct.get(part).copied().unwrap_or(0) as usize;
        self.values[from] ^ u32::from(self.starts[from] < address)
    }

    #[inline]
    fn find(&self, address: A) -> u32 {
        let last = self.starts.len() - 1;
        if address < self.low {
            return self.values[0];
        }
        if address >= self.starts[last] {
            return self.values[last];
        }
        let part = address.part(self.low, self.shift);
        let (from, to) = (self.direct[part] as usize, self.direct[part + 1] as usize);
        let behind = self.starts[from + 1..=to].partition_point(|start| *start <= address);
        self.values[from + behind]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn longest(blocks: &[(Prefix, u32)]) -> Ranges {
        Ranges::new(blocks.iter().copied(), 999, |_, numbers| numbers[0])
    }

    #[test]
    fn nested_blocks_and_the_ends_of_the_world_are_found() {
        let blocks = ["0.0.0.0/1", "10.0.0.0/8", "10.0.0.0/24", "255.255.255.255", "::/0", "::1"];
        let blocks: Vec<_> = (0..).zip(blocks).map(|(n, b)| (b.parse().unwrap(), n)).collect();
        let ranges = longest(&blocks);
        for (address, number) in [
            ("0.0.0.0", 0),
            ("9.255.255.255", 0),
            ("10.0.0.255", 2),
            ("10.0.1.0", 1),
            ("11.0.0.0", 0),
            ("128.0.0.0", 999),
            ("255.255.255.254", 999),
            ("255.255.255.255", 3),
        ] {
            let ip: std::net::Ipv4Addr = address.parse().unwrap();
            assert_eq!(ranges.v4(ip.to_bits().into()), number, "{address}");
        }
        assert_eq!((ranges.v6(0), ranges.v6(1), ranges.v6(2), ranges.v6(u128::MAX)), (4, 5, 4, 4));
    }

    #[test]
    fn without_blocks_everything_is_outside() {
        let ranges = longest(&[]);
        assert_eq!((ranges.v4(0), ranges.v4(7), ranges.v6(u128::MAX)), (999, 999, 999));
    }

    proptest! {
        #[test]
        fn the_longest_block_is_found(
            blocks in prop::collection::vec((any::<u8>(), any::<bool>(), 0u8..=32), 0..60),
            near in any::<u16>(),
        ) {
            let blocks: Vec<(Prefix, u32)> = (0u32..).zip(blocks).map(|(n, (bits, high, len))| {
                let factor = if high { 257 } else { 3 };
                let [a, b] = u16::from(bits).wrapping_mul(factor).to_be_bytes();
                (Prefix::around(std::net::Ipv4Addr::new(a, b, 0, a).into(), len), n)
            }).collect();
            let [a, b] = near.to_be_bytes();
            for low in [0u8, a, 255] {
                let address = std::net::Ipv4Addr::new(a, b, 0, low);
                let holds = blocks.iter().filter(|(block, _)| block.contains(address.into()));
                // of equal blocks the first: `max_by_key` takes the last
                let best = holds.rev().max_by_key(|(block, _)| block.len()).map_or(999, |b| b.1);
                prop_assert_eq!(longest(&blocks).v4(address.to_bits().into()), best);
            }
        }
    }

    #[test]
    fn the_index_of_many_ranges_stays_small() {
        let ranges: Vec<(u128, u32)> = (0..40_000_u32).map(|n| (u128::from(n) * 7, n)).collect();
        let family = Family::<u32>::new(&ranges);
        assert!(family.direct.len() <= 1 + (1 << 16), "{}", family.direct.len());
        assert!((0..40_000).all(|n| family.find(n * 7) == n && family.find(n * 7 + 6) == n));
    }
}
