//! The hosts of leaves that let each host have its turn: made by the first frame that waits, gone
//! with the last connection.

use std::ops::{Index, IndexMut};

use super::node::NONE;
use super::queues::{Crowd, Fattest};
use super::ring::{Member, Ring, Turn};

/// One host that has frames waiting in a leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Host {
    turn: Turn,
    /// Its connections.
    pub(crate) ring: Ring,
    /// What waits in them.
    pub(crate) bytes: u32,
    pub(crate) fattest: Fattest,
    /// Its sessions that have a place or wait for one, in leaves with sessions.
    pub(crate) sessions: u32,
    /// Up to when its small frames have been spared, in microseconds.
    pub(crate) moment: u32,
    leaf: u32,
    hash: u32,
    /// The next with the same slot, or the next that is free.
    next: u32,
}

impl Member for Host {
    fn turn(&mut self) -> &mut Turn {
        &mut self.turn
    }
}

/// All of them, found by leaf and address.
#[derive(Debug)]
pub(crate) struct Hosts {
    hosts: Box<[Host]>,
    slots: Box<[u32]>,
    free: u32,
}

impl Index<u32> for Hosts {
    type Output = Host;

    fn index(&self, at: u32) -> &Host {
        &self.hosts[at as usize]
    }
}

impl IndexMut<u32> for Hosts {
    fn index_mut(&mut self, at: u32) -> &mut Host {
        &mut self.hosts[at as usize]
    }
}

impl Hosts {
    /// Room for so many, a power of two.
    pub(crate) fn new(most: usize) -> Hosts {
        let most = most.clamp(1, 1 << 20).next_power_of_two();
        let mut hosts = vec![Host::default(); most].into_boxed_slice();
        for (host, next) in hosts.iter_mut().zip(1..) {
            host.next = next;
        }
        if let Some(last) = hosts.last_mut() {
            last.next = NONE;
        }
        Hosts { hosts, slots: vec![NONE; most].into(), free: 0 }
    }

    fn slot(&self, leaf: u32, hash: u32) -> usize {
        let mixed = (hash ^ leaf.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
        (mixed >> 7) as usize & (self.slots.len() - 1)
    }

    /// The host of this address in a leaf; `None` if every place is taken.
    pub(crate) fn find(&mut self, leaf: u32, hash: u32) -> Option<u32> {
        let slot = self.slot(leaf, hash);
        let mut at = self.slots[slot];
        while at != NONE {
            let host = &self.hosts[at as usize];
            if (host.leaf, host.hash) == (leaf, hash) {
                return Some(at);
            }
            at = host.next;
        }
        let at = self.free;
        if at == NONE {
            return None;
        }
        self.free = self.hosts[at as usize].next;
        self.hosts[at as usize] = Host { leaf, hash, next: self.slots[slot], ..Host::default() };
        self.slots[slot] = at;
        Some(at)
    }

    /// A queue of a host has so many bytes now, so many more than before.
    #[inline(never)]
    pub(crate) fn notice(&mut self, at: u32, crowd: &mut Crowd, queue: (u32, u32), more: i64) {
        let host = &mut self.hosts[at as usize];
        host.fattest.notice(queue.0, queue.1);
        host.bytes = u32::try_from(i64::from(host.bytes) + more).unwrap_or(0);
        crowd.fattest.notice(at, host.bytes);
    }

    /// Whether this is the host of this address.
    #[inline]
    pub(crate) fn is(&self, at: u32, hash: u32) -> bool {
        self.hosts[at as usize].hash == hash
    }

    /// What waits of a host in this leaf.
    pub(crate) fn bytes_in(&self, at: u32, leaf: u32) -> u32 {
        let host = &self.hosts[at as usize];
        if host.leaf == leaf { host.bytes } else { 0 }
    }

    /// A host has no connections any more.
    pub(crate) fn forget(&mut self, host: u32) {
        let Host { leaf, hash, next, .. } = self.hosts[host as usize];
        let slot = self.slot(leaf, hash);
        if self.slots[slot] == host {
            self.slots[slot] = next;
        } else {
            let mut at = self.slots[slot];
            while at != NONE && self.hosts[at as usize].next != host {
                at = self.hosts[at as usize].next;
            }
            if let Some(before) = self.hosts.get_mut(at as usize) {
                before.next = next;
            }
        }
        self.hosts[host as usize].bytes = 0;
        self.hosts[host as usize].next = self.free;
        self.free = host;
    }
}
