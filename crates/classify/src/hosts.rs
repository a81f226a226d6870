//! Leaves that are made as hosts appear: one table per class with `each`. A leaf stands for one
//! host until that host was silent long enough and the leaf's queue is empty. The table is made
//! with the policy, so that nothing allocates when hosts come and go.

mod export;
mod known;

use std::collections::VecDeque;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_packet::{Net, Side};
use weir_units::limits::{CLASSES, EACH_ASKERS};
use weir_units::{By, Instant, Prefix};

use crate::facts::{Facts, Routers, number};
use crate::key::{Seed, halves};
use crate::spec::Each;
pub use export::MadeLeaf;
use known::Known;

/// Whom a leaf stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A host by its address.
    Host(IpAddr),
    /// All hosts of a block.
    Block(Prefix),
    /// A host by its MAC.
    Mac([u8; 6]),
    /// All hosts of a VLAN.
    Vlan(u16),
}

/// A leaf was made for a host, or taken from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The first frame of a host made a leaf.
    Made {
        /// The class that it is a leaf of.
        class: u32,
        /// Its number.
        leaf: u32,
        /// Whom it stands for.
        owner: Owner,
    },
    /// A host has come that no leaf is made for unless it is approved.
    Asked {
        /// The class that it would have a leaf of.
        class: u32,
        /// Who it is.
        owner: Owner,
    },
    /// A leaf may be made for another host.
    Aged {
        /// The class that it is a leaf of.
        class: u32,
        /// Its number.
        leaf: u32,
        /// Whom it stood for.
        owner: Owner,
    },
}

/// The leaves of one class.
#[derive(Debug)]
pub(crate) struct Hosts {
    class: u32,
    each: Each,
    slots: Box<[Slot]>,
    /// Open addressing with steps of one: a slot's number plus 1, or 0.
    buckets: Box<[u32]>,
    free: Vec<u32>,
    sweep: usize,
    known: Known,
    /// Who has asked for a leaf, the newest last.
    askers: VecDeque<Who>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The host as the table finds it: what all of its addresses have in common.
    host: Who,
    /// Its address that came first.
    who: Who,
    seen: Instant,
    taken: bool,
}

/// A host as the table keeps it: an address (cut to its block), a MAC or a VLAN, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Who {
    bits: u128,
    v4: bool,
}

impl Who {
    const NOBODY: Who = Who { bits: 0, v4: false };

    /// The host of a frame, if it has what `by` asks for.
    #[inline]
    pub(crate) fn of(by: By, facts: &Facts) -> Option<Who> {
        let mac = |mac: [u8; 6]| Who { bits: number(mac).into(), v4: false };
        match by {
            By::LanHost => Who::address(facts, facts.lan(), 32, 128),
            By::WanHost => Who::address(facts, facts.wan(), 32, 128),
            By::LanPrefix { v4, v6 } => Who::address(facts, facts.lan(), v4, v6),
            By::WanPrefix { v4, v6 } => Who::address(facts, facts.wan(), v4, v6),
            By::LanMac => facts.lan_mac().map(mac),
            By::Vlan => facts.headers.vlan().map(|vlan| Who { bits: vlan.into(), v4: false }),
        }
    }

    /// The host that has this address, where leaves are made by hosts of the LAN.
    #[inline]
    pub(crate) fn or_host(self, by: By, facts: &Facts, routers: &Routers) -> Who {
        match by {
            By::LanHost => {
                let bits = facts.host(routers);
                // behind a router, an address of either family by its number
                Who { bits, v4: self.v4 && bits == self.bits }
            }
            _ => self,
        }
    }

    fn address(facts: &Facts, bits: u128, v4: u8, v6: u8) -> Option<Who> {
        let cut = |width: u32, len: u8| {
            let behind = width.saturating_sub(len.into());
            bits & u128::MAX.checked_shl(behind).unwrap_or(0)
        };
        match facts.headers.net {
            Net::V4 => Some(Who { bits: cut(32, v4), v4: true }),
            Net::V6 => Some(Who { bits: cut(128, v6), v4: false }),
            Net::None | Net::Arp => None,
        }
    }

    fn hash(self, seed: Seed) -> u64 {
        let [high, low] = halves(self.bits);
        seed.hash([high, low, self.v4.into(), 0, 0])
    }

    /// In the operator's words.
    pub(crate) fn owner(self, by: By) -> Owner {
        #[expect(clippy::cast_possible_truncation, reason = "IPv4 stands in the low 32 bits")]
        let ip = if self.v4 {
            IpAddr::from(Ipv4Addr::from_bits(self.bits as u32))
        } else {
            IpAddr::from(Ipv6Addr::from_bits(self.bits))
        };
        match by {
            By::LanHost | By::WanHost => Owner::Host(ip),
            By::LanPrefix { v4, v6 } | By::WanPrefix { v4, v6 } => {
                Owner::Block(Prefix::around(ip, if self.v4 { v4 } else { v6 }))
            }
            By::LanMac => {
                let [.., a, b, c, d, e, f] = self.bits.to_be_bytes();
                Owner::Mac([a, b, c, d, e, f])
            }
            By::Vlan => Owner::Vlan(u16::try_from(self.bits).unwrap_or(0)),
        }
    }
}

impl Hosts {
    pub(crate) fn new(class: u32, mut each: Each) -> Self {
        // neither more leaves than there can be, nor numbers behind the last one
        let count =
            each.count.min(u32::MAX - each.first_leaf).min(u32::try_from(CLASSES).unwrap_or(0));
        let known = Known::of(each.known.take());
        let askers = VecDeque::with_capacity(if known.is_everybody() { 0 } else { EACH_ASKERS });
        let free = Slot { host: Who::NOBODY, who: Who::NOBODY, seen: Instant::ZERO, taken: false };
        Hosts {
            class,
            each,
            slots: vec![free; count as usize].into(),
            buckets: vec![0; (2 * count as usize).next_power_of_two()].into(),
            free: (0..count).rev().collect(),
            sweep: 0,
            known,
            askers,
        }
    }

    pub(crate) const fn each(&self) -> &Each {
        &self.each
    }

    pub(crate) const fn class(&self) -> u32 {
        self.class
    }

    /// Whether the leaves of another policy's class may live on in this one.
    pub(crate) fn is_same(&self, other: &Hosts) -> bool {
        let (a, b) = (&self.each, &other.each);
        (a.first_leaf, a.count, a.by) == (b.first_leaf, b.count, b.by)
    }

    /// Takes the leaves of the same class in an older policy, and leaves it the room instead.
    pub(crate) fn inherit(&mut self, old: &mut Hosts) {
        std::mem::swap(&mut self.slots, &mut old.slots);
        std::mem::swap(&mut self.buckets, &mut old.buckets);
        std::mem::swap(&mut self.free, &mut old.free);
        std::mem::swap(&mut self.sweep, &mut old.sweep);
        for &who in &old.askers {
            if !self.known.has(who) && self.askers.len() < EACH_ASKERS {
                self.askers.push_back(who);
            }
        }
    }

    /// Whether a host may have a leaf of its own.
    #[inline]
    pub(crate) fn knows(&self, who: Who) -> bool {
        self.known.has(who)
    }

    /// Remembers that a host asks for a leaf; whether it had not asked before. The one that asked
    /// first is forgotten where there is no room.
    pub(crate) fn ask(&mut self, who: Who) -> bool {
        if self.askers.contains(&who) {
            return false;
        }
        if self.askers.len() >= EACH_ASKERS {
            self.askers.pop_front();
        }
        self.askers.push_back(who);
        true
    }

    /// Who has asked, the newest last.
    pub(crate) fn askers(&self) -> impl Iterator<Item = Owner> {
        self.askers.iter().map(|who| who.owner(self.each.by))
    }

    /// Whether a leaf stands for this host; if so, the host is seen. One of the LAN is seen when it
    /// sends, and not when anyone outside sends to it.
    #[inline]
    pub(crate) fn touch(&mut self, leaf: u32, host: Who, side: Side, now: Instant) -> bool {
        let slot = leaf.wrapping_sub(self.each.first_leaf) as usize;
        match self.slots.get_mut(slot) {
            Some(slot) if slot.taken && slot.host == host => {
                if side == Side::Lan || !self.each.by.is_of_lan() {
                    slot.seen = now;
                }
                true
            }
            _ => false,
        }
    }

    /// The leaf of a host that has one.
    pub(crate) fn find(&self, seed: Seed, host: Who) -> Option<u32> {
        let slot = self.buckets[self.bucket_of(seed, host)?].checked_sub(1)?;
        Some(self.each.first_leaf + slot)
    }

    /// Makes a leaf for a host that has none; `None` if all leaves are taken.
    pub(crate) fn make(&mut self, seed: Seed, host: Who, who: Who, now: Instant) -> Option<u32> {
        let slot = self.free.pop()?;
        self.slots[slot as usize] = Slot { host, who, seen: now, taken: true };
        let mut at = self.home(seed, host);
        while self.buckets[at] != 0 {
            at = self.next(at);
        }
        self.buckets[at] = slot + 1;
        Some(self.each.first_leaf + slot)
    }

    /// Whether a new host would find a leaf.
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whom a leaf stands for.
    pub(crate) fn owner(&self, leaf: u32) -> Option<Owner> {
        let slot = self.slots.get(leaf.checked_sub(self.each.first_leaf)? as usize)?;
        slot.taken.then(|| slot.who.owner(self.each.by))
    }

    /// Looks at the next slot; takes its leaf back if its host was silent and `may_reuse` allows.
    pub(crate) fn age(
        &mut self,
        seed: Seed,
        now: Instant,
        mut may_reuse: impl FnMut(u32) -> bool,
    ) -> Option<Event> {
        let place = self.sweep;
        self.sweep = if place + 1 < self.slots.len() { place + 1 } else { 0 };
        let slot = self.slots.get(place).copied()?;
        let number = u32::try_from(place).ok()?;
        let leaf = self.each.first_leaf + number;
        if !slot.taken || now.since(slot.seen) < self.each.idle || !may_reuse(leaf) {
            return None;
        }
        if let Some(bucket) = self.bucket_of(seed, slot.host) {
            self.empty(seed, bucket);
        }
        self.slots[place].taken = false;
        self.free.push(number);
        Some(Event::Aged { class: self.class, leaf, owner: slot.who.owner(self.each.by) })
    }

    /// Slots looked at by a full sweep.
    pub(crate) fn at_end(&self) -> bool {
        self.sweep == 0
    }

    fn home(&self, seed: Seed, host: Who) -> usize {
        // the table has a power of two of buckets: the remainder is the low bits
        usize::try_from(host.hash(seed) % self.buckets.len() as u64).unwrap_or(0)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) % self.buckets.len()
    }

    fn bucket_of(&self, seed: Seed, host: Who) -> Option<usize> {
        let mut at = self.home(seed, host);
        // half of the buckets are empty, so that this ends soon; the bound is for a table of none
        for _ in 0..self.buckets.len() {
            let slot = self.buckets[at].checked_sub(1)?;
            if self.slots[slot as usize].host == host {
                return Some(at);
            }
            at = self.next(at);
        }
        None
    }

    /// Empties a bucket and moves up those behind it that it kept from their home.
    fn empty(&mut self, seed: Seed, mut hole: usize) {
        let len = self.buckets.len();
        let mut at = hole;
        self.buckets[hole] = 0;
        loop {
            at = self.next(at);
            let Some(slot) = self.buckets[at].checked_sub(1) else { return };
            let home = self.home(seed, self.slots[slot as usize].host);
            // from its home to where it lies: does the way lead over the hole?
            if (at + len - home) % len >= (at + len - hole) % len {
                self.buckets[hole] = self.buckets[at];
                self.buckets[at] = 0;
                hole = at;
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Host(ip) => ip.fmt(f),
            Owner::Block(block) => block.fmt(f),
            Owner::Mac([a, b, c, d, e, g]) => {
                f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
            }
            Owner::Vlan(vlan) => f.pad(&format!("vlan {vlan}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use weir_units::Span;

    use super::*;

    proptest! {
        #[test]
        fn the_table_is_a_map(
            count in 0u32..40,
            steps in prop::collection::vec((0u128..60, 0u64..900), 1..400),
        ) {
            let idle = Span::from_ms(2_000);
            let (by, known) = (By::Vlan, None);
            let each = Each { by, first_leaf: 50, count, idle, overflow_leaf: 1, known };
            let mut hosts = Hosts::new(3, each);
            let seed = Seed::new(4);
            let mut model: BTreeMap<u128, u32> = BTreeMap::new();
            let mut now = Instant::ZERO;
            for (bits, ms) in steps {
                now += Span::from_ms(ms);
                let who = Who { bits, v4: false };
                prop_assert_eq!(hosts.find(seed, who), model.get(&bits).copied());
                let leaf = hosts.find(seed, who).or_else(|| hosts.make(seed, who, who, now));
                let is_full = !model.contains_key(&bits) && model.len() == count as usize;
                prop_assert_eq!(leaf.is_none(), is_full);
                if let Some(leaf) = leaf {
                    prop_assert!(hosts.touch(leaf, who, Side::Lan, now));
                    let of_v4 = Who { bits, v4: true };
                    prop_assert!(!hosts.touch(leaf, of_v4, Side::Lan, now));
                    model.insert(bits, leaf);
                }
                for _ in 0..8 {
                    let event = hosts.age(seed, now, |leaf| leaf != 51);
                    if let Some(Event::Aged { leaf, .. }) = event {
                        prop_assert_ne!(leaf, 51);
                        model.retain(|_, taken| *taken != leaf);
                    }
                }
                prop_assert_eq!(hosts.has_room(), model.len() < count as usize);
            }
        }
    }
}
