//! A leaf that was made for a host, as another engine finds it or makes it again.

use weir_units::{By, Instant, Span};

use super::{Hosts, Who};
use crate::key::Seed;

/// Whom a leaf was made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeLeaf {
    /// By what its class tells hosts apart.
    pub by: By,
    /// What all addresses of the host have in common, and whether that is an IPv4 address.
    pub host: (u128, bool),
    /// The host's address that came first, and whether it is IPv4.
    pub first: (u128, bool),
    /// How long the host has been silent.
    pub silence: Span,
}

impl Hosts {
    /// Whom a leaf of this class stands for.
    pub(crate) fn made(&self, leaf: u32, now: Instant) -> Option<MadeLeaf> {
        let slot = self.slots.get(leaf.checked_sub(self.each.first_leaf)? as usize)?;
        let plain = |who: Who| (who.bits, who.v4);
        slot.taken.then(|| MadeLeaf {
            by: self.each.by,
            host: plain(slot.host),
            first: plain(slot.who),
            silence: now.since(slot.seen),
        })
    }

    /// The leaf of such a host, made if it has none. Whether it was made.
    pub(crate) fn find_or_make(
        &mut self,
        seed: Seed,
        at: Instant,
        made: &MadeLeaf,
    ) -> Option<(u32, bool)> {
        let [host, first] = [made.host, made.first].map(|(bits, v4)| Who { bits, v4 });
        if self.each.by != made.by || !self.knows(first) {
            return None;
        }
        if let Some(leaf) = self.find(seed, host) {
            return Some((leaf, false));
        }
        self.make(seed, host, first, at - made.silence).map(|leaf| (leaf, true))
    }
}
