//! Which core's engine has a host. Bandwidth is shared per host, so all frames from and to a host
//! have to meet in one engine. Which one follows from the host's number on labels and from nothing
//! else, so every thread that sees a frame of the host comes to the same core.

use std::num::NonZeroU32;

use weir_packet::{Headers, Side};

use crate::facts::{Facts, Routers};
use crate::key::Seed;

/// Which core's engine has which host, for who receives a frame before any engine looks at it. All
/// cores have to ask the same: a seed and the routers of a policy.
#[derive(Clone, Debug)]
pub struct Homes {
    seed: Seed,
    routers: Routers,
    cores: NonZeroU32,
}

impl Homes {
    pub(crate) fn new(seed: Seed, routers: Routers, cores: NonZeroU32) -> Homes {
        Homes { seed, routers, cores }
    }

    /// The core, counted from 0, whose engine has the host of a frame that came in from one side:
    /// the LAN host that sends or gets it, so that both directions of all of its connections, and
    /// their fragments, meet in one. Headers are read only behind a router.
    #[must_use]
    pub fn core(&self, side: Side, bytes: &[u8]) -> u32 {
        let Homes { seed, routers, cores } = self;
        let by_mac = Facts::new(side, &Headers::EMPTY, bytes);
        let host = match by_mac.host_mac(routers) {
            Some(_) => by_mac.host_number(*seed, routers),
            None => Facts::new(side, &Headers::parse(bytes), bytes).host_number(*seed, routers),
        };
        core_of(host, *cores)
    }
}

/// The core, counted from 0, whose engine has the host that labels name by this number
/// ([`Label::host`](weir_packet::Label)).
#[must_use]
#[inline]
pub fn core_of(host: u32, cores: NonZeroU32) -> u32 {
    // tables take their place from the low bits of a host's number: stirred once more, hosts of one
    // core still use all places of its tables (the factor is 2^32 over the golden ratio)
    let stirred = host.wrapping_mul(0x9e37_79b9);
    let place = u64::from(stirred) * u64::from(cores.get());
    u32::try_from(place >> 32).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_spread_over_all_cores_and_their_low_bits_over_each() {
        for cores in 1..=32 {
            let cores = NonZeroU32::new(cores).unwrap();
            let mut of_core = vec![0u32; cores.get() as usize];
            // hosts that fall into one of 16 places of a table
            for place in 0..16 {
                for host in (place..1 << 16).step_by(16) {
                    of_core[core_of(host, cores) as usize] += 1;
                }
                let even = (1 << 12) * (place + 1) / cores.get();
                let is_even = |&count: &u32| count.abs_diff(even) <= even / 8 + 16;
                assert!(of_core.iter().all(is_even), "{cores} cores: {of_core:?}");
            }
        }
    }
}
