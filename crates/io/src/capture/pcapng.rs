//! The newer format: blocks, each with its kind and its length before and after. A section says the
//! byte order, interfaces say the link and the ticks of time, packets refer to an interface. All
//! other blocks are passed over.

use std::io::Read;

use weir_units::Instant;
use weir_units::limits::CAPTURE_INTERFACES;

use super::error::Fault;
use super::link::LinkType;
use super::source::{Order, Source, Stop};
use super::{Head, fill};

/// The kind of a section header, the same in both byte orders.
pub(super) const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const TICKS: u16 = 9;
const TIME_OFFSET: u16 = 14;
/// Kind and length before a block's body, length after it.
const FRAME: u32 = 12;

#[derive(Debug)]
pub(super) struct Section {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    /// 0 for no bound.
    longest: u32,
    ticks: Ticks,
    offset_secs: i64,
}

/// Parts of a second that time is counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ticks {
    Decimal(u32),
    Binary(u32),
}

/// A block that is being read.
struct Block {
    total: u32,
    left: u32,
}

impl Section {
    /// Reads on after the kind of the first block.
    pub(super) fn open<R: Read>(source: &mut Source<R>) -> Result<Section, Stop> {
        let length = source.take()?;
        Section::read(source, length)
    }

    fn read<R: Read>(source: &mut Source<R>, length: [u8; 4]) -> Result<Section, Stop> {
        let order = match source.take()? {
            [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
            [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
            _ => return Err(Stop::Fault(Fault::ByteOrder)),
        };
        let mut block = Block::new(order.u32(length))?;
        block.spend(4)?;
        let major = order.u16(block.take(source)?);
        let minor = order.u16(block.take(source)?);
        if major != 1 {
            return Err(Stop::Fault(Fault::Version { major, minor }));
        }
        block.end(source, order)?;
        Ok(Section { order, interfaces: Vec::new() })
    }

    pub(super) fn next<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Head, Stop> {
        loop {
            source.mark();
            let kind = source.take_or_end()?;
            let length = source.take()?;
            if kind == SECTION {
                *self = Section::read(source, length)?;
                continue;
            }
            let order = self.order;
            let mut block = Block::new(order.u32(length))?;
            let head = match order.u32(kind) {
                ENHANCED_PACKET | OLD_PACKET => {
                    let old = order.u32(kind) == OLD_PACKET;
                    Some(self.packet(source, &mut block, buffer, old)?)
                }
                SIMPLE_PACKET => Some(self.simple(source, &mut block, buffer)?),
                INTERFACE => {
                    self.interface(source, &mut block)?;
                    None
                }
                _ => None,
            };
            block.end(source, order)?;
            if let Some(head) = head {
                return Ok(head);
            }
        }
    }

    fn packet<R: Read>(
        &self,
        source: &mut Source<R>,
        block: &mut Block,
        buffer: &mut Vec<u8>,
        old: bool,
    ) -> Result<Head, Stop> {
        let number: [u8; 4] = block.take(source)?;
        let number = if old {
            u32::from(self.order.u16([number[0], number[1]]))
        } else {
            self.order.u32(number)
        };
        let interface = self.get(number)?;
        let high = self.order.u32(block.take(source)?);
        let low = self.order.u32(block.take(source)?);
        let len = self.order.u32(block.take(source)?);
        let original_len = self.order.u32(block.take(source)?);
        block.spend(len)?;
        fill(source, buffer, len)?;
        let at = interface.moment(u64::from(high) << 32 | u64::from(low));
        Ok(Head { at, interface: number, link: interface.link, original_len })
    }

    fn simple<R: Read>(
        &self,
        source: &mut Source<R>,
        block: &mut Block,
        buffer: &mut Vec<u8>,
    ) -> Result<Head, Stop> {
        let interface = self.get(0)?;
        let original_len = self.order.u32(block.take(source)?);
        let longest = if interface.longest == 0 { u32::MAX } else { interface.longest };
        let len = original_len.min(longest);
        block.spend(len)?;
        fill(source, buffer, len)?;
        Ok(Head { at: Instant::ZERO, interface: 0, link: interface.link, original_len })
    }

    fn get(&self, number: u32) -> Result<Interface, Stop> {
        let found = usize::try_from(number).ok().and_then(|at| self.interfaces.get(at));
        found.copied().ok_or(Stop::Fault(Fault::NoInterface { number }))
    }

    fn interface<R: Read>(
        &mut self,
        source: &mut Source<R>,
        block: &mut Block,
    ) -> Result<(), Stop> {
        if self.interfaces.len() == CAPTURE_INTERFACES {
            return Err(Stop::Fault(Fault::TooManyInterfaces));
        }
        let order = self.order;
        let link = LinkType::from_number(order.u16(block.take(source)?));
        let _reserved: [u8; 2] = block.take(source)?;
        let longest = order.u32(block.take(source)?);
        let ticks = Ticks::Decimal(6);
        let mut interface = Interface { link, longest, ticks, offset_secs: 0 };
        while block.left >= 4 {
            let code = order.u16(block.take(source)?);
            let len = order.u16(block.take(source)?);
            match (code, len) {
                (0, _) => break,
                (TICKS, 1) => {
                    let [ticks, ..]: [u8; 4] = block.take(source)?;
                    interface.ticks = Ticks::of(ticks);
                }
                (TIME_OFFSET, 8) => interface.offset_secs = order.i64(block.take(source)?),
                _ => block.skip(source, u32::from(len).next_multiple_of(4))?,
            }
        }
        self.interfaces.push(interface);
        Ok(())
    }
}

impl Interface {
    /// A count of ticks as nanoseconds since 1970, at the edge where it lies beyond.
    fn moment(self, ticks: u64) -> Instant {
        let ns = self.ticks.ns(ticks) + i128::from(self.offset_secs) * 1_000_000_000;
        let edge = if ns < 0 { 0 } else { u64::MAX };
        Instant::from_ns(u64::try_from(ns).unwrap_or(edge))
    }
}

impl Ticks {
    fn of(byte: u8) -> Ticks {
        let power = u32::from(byte & 0x7f);
        if byte & 0x80 == 0 { Ticks::Decimal(power) } else { Ticks::Binary(power) }
    }

    fn ns(self, ticks: u64) -> i128 {
        let ticks = i128::from(ticks);
        match self {
            Ticks::Decimal(power @ 0..=9) => ticks * 10_i128.pow(9 - power),
            // what is finer than a count of 64 bits can hold gives no time at all
            Ticks::Decimal(power) => 10_i128.checked_pow(power - 9).map_or(0, |size| ticks / size),
            Ticks::Binary(power) => (ticks * 1_000_000_000) >> power,
        }
    }
}

impl Block {
    fn new(total: u32) -> Result<Block, Stop> {
        if total < FRAME || !total.is_multiple_of(4) {
            return Err(Stop::Fault(Fault::BlockLength { total }));
        }
        Ok(Block { total, left: total - FRAME })
    }

    /// `n` bytes of the body are about to be read.
    fn spend(&mut self, n: u32) -> Result<(), Stop> {
        let left = self.left.checked_sub(n);
        self.left = left.ok_or(Stop::Fault(Fault::BlockTooShort { total: self.total }))?;
        Ok(())
    }

    fn take<R: Read, const N: usize>(&mut self, source: &mut Source<R>) -> Result<[u8; N], Stop> {
        self.spend(u32::try_from(N).unwrap_or(u32::MAX))?;
        source.take()
    }

    fn skip<R: Read>(&mut self, source: &mut Source<R>, n: u32) -> Result<(), Stop> {
        self.spend(n)?;
        source.skip(n)
    }

    /// Passes over the rest and holds the length after the block to the one before it.
    fn end<R: Read>(&mut self, source: &mut Source<R>, order: Order) -> Result<(), Stop> {
        self.skip(source, self.left)?;
        let after = order.u32(source.take()?);
        if after != self.total {
            return Err(Stop::Fault(Fault::BlockEnd { before: self.total, after }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ticks: Ticks, offset_secs: i64, count: u64) -> u64 {
        Interface { link: LinkType::Ethernet, longest: 0, ticks, offset_secs }.moment(count).ns()
    }

    #[test]
    fn ticks_are_powers_of_ten_or_two() {
        assert_eq!(at(Ticks::of(6), 0, 1_500_000), 1_500_000_000);
        assert_eq!(at(Ticks::of(0), 0, 3), 3_000_000_000);
        assert_eq!(at(Ticks::of(12), 0, 7_000), 7);
        assert_eq!(at(Ticks::of(0x80 | 10), 0, 512), 500_000_000);
        assert_eq!(at(Ticks::of(0x7f), 0, u64::MAX), 0);
        assert_eq!(at(Ticks::of(0xff), 0, u64::MAX), 0);
    }

    #[test]
    fn time_beyond_the_range_stays_at_its_edge() {
        assert_eq!(at(Ticks::of(0), 0, u64::MAX), u64::MAX);
        assert_eq!(at(Ticks::of(9), -1, 5), 0);
        assert_eq!(at(Ticks::of(9), i64::MAX, u64::MAX), u64::MAX);
        assert_eq!(at(Ticks::of(9), 2, 5), 2_000_000_005);
    }
}
