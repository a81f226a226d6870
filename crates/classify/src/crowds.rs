//! MACs that have more addresses than a host does, though the policy does not name them routers:
//! all of them share one host's part, and whoever runs the network should hear of it.

use weir_units::limits::{CROWD_ADDRESSES, CROWD_MACS};
use weir_units::{Instant, Span};

use crate::facts::Routers;

/// Addresses of MACs, each at the one place where it may be.
#[derive(Debug)]
pub(crate) struct Crowds(Box<[Seen]>);

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    mac: u64,
    since: Instant,
    /// What stands for the addresses that came since then, none twice.
    addresses: [u32; CROWD_ADDRESSES],
    count: usize,
    is_crowd: bool,
    /// It was one in the time before.
    was_crowd: bool,
}

/// Addresses that a host has one after the other are not counted together for longer.
const WINDOW: Span = Span::from_secs(600);

impl Crowds {
    pub(crate) fn new() -> Crowds {
        Crowds(vec![Seen::default(); CROWD_MACS].into())
    }

    /// A MAC has sent from an address. One that has no place gets that of another that has not been
    /// counted anew for ten minutes.
    pub(crate) fn note(&mut self, mac: u64, address: u32, now: Instant) {
        let place = usize::try_from(mac % CROWD_MACS as u64).unwrap_or(0);
        let Some(seen) = self.0.get_mut(place) else { return };
        let is_over = seen.count == 0 || now.since(seen.since) > WINDOW;
        if is_over {
            let was_crowd = seen.mac == mac && seen.is_crowd;
            *seen = Seen { mac, since: now, was_crowd, ..Seen::default() };
        }
        if seen.mac != mac || seen.addresses[..seen.count].contains(&address) {
            return;
        }
        match seen.addresses.get_mut(seen.count) {
            Some(free) => {
                *free = address;
                seen.count += 1;
            }
            None => seen.is_crowd = true,
        }
    }

    /// Those that have more addresses than a host does, and are no routers.
    pub(crate) fn macs(&self, routers: &Routers) -> impl Iterator<Item = [u8; 6]> {
        let crowds = self.0.iter().filter(|seen| seen.is_crowd || seen.was_crowd);
        crowds.filter(|seen| !routers.has(seen.mac)).map(|seen| {
            let [_, _, a, b, c, d, e, f] = seen.mac.to_be_bytes();
            [a, b, c, d, e, f]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_addresses_within_ten_minutes_are_a_crowd() {
        let told = |addresses: u32, apart: u64| {
            let mut crowds = Crowds::new();
            for n in 0..addresses {
                let now = Instant::ZERO + Span::from_secs(apart * u64::from(n));
                crowds.note(7, n, now);
                crowds.note(7, n, now);
            }
            crowds.macs(&Routers::default()).count()
        };
        assert_eq!([told(4, 1), told(5, 1), told(50, 60), told(50, 200)], [0, 1, 1, 0]);
        let mut crowds = Crowds::new();
        for n in 0..5 {
            crowds.note(7, n, Instant::ZERO);
            crowds.note(7 + CROWD_MACS as u64, n, Instant::ZERO);
        }
        let macs: Vec<_> = crowds.macs(&Routers::default()).collect();
        assert_eq!(macs, [[0, 0, 0, 0, 0, 7]], "the other has no place");
        assert_eq!(crowds.macs(&Routers::of(&macs)).count(), 0, "it is named");
        // it stays one while its addresses are counted anew
        let later = Instant::ZERO + Span::from_secs(601);
        crowds.note(7, 0, later);
        assert_eq!(crowds.macs(&Routers::default()).count(), 1);
        crowds.note(7, 0, later + Span::from_secs(601));
        assert_eq!(crowds.macs(&Routers::default()).count(), 0);
    }
}
