//! How fast somebody sends, in integers. `follow` is the exponential average of CSFQ (Stoica,
//! Shenker and Zhang 1998), `r <- (1 - e^-x) len/T + e^-x r` with x = T/K, written so that neither
//! the division nor a rounded e^-x is needed: with phi(x) = (1 - e^-x)/x it is
//! `r <- r + phi(x) (len/K - r x)`. `Window` counts bytes and divides
//! once per window.

use crate::scale::{FRACTION, MOST, PERIOD, narrow};

/// Steps of the table between two whole numbers.
const STEPS: usize = 16;
/// Where the old rate is forgotten: e^-17 is less than a bit of the table.
const FORGOTTEN: u64 = 17;
/// phi at steps of 1/16, in 2^-16.
const PHI: [u32; STEPS * 17 + 2] = phi();
/// Bits behind the point in x.
const X: u32 = 12;

/// e^-1/16 in 2^-60.
const DECAY: u128 = 1_083_069_521_826_238_951;

const fn phi() -> [u32; STEPS * 17 + 2] {
    let mut table = [1 << 16; STEPS * 17 + 2];
    let mut decayed: u128 = 1 << 60;
    let mut at = 1;
    while at < table.len() {
        decayed = (decayed * DECAY) >> 60;
        let risen = (1 << 60) - decayed;
        // (1 - e^-x) / x with x = at / 16, rounded
        #[expect(clippy::cast_possible_truncation, reason = "less than 2^16")]
        let phi = ((risen * 16 / at as u128 + (1 << 43)) >> 44) as u32;
        table[at] = phi;
        at += 1;
    }
    table
}

/// phi(x) in 2^-16, for x in 2^-12 below `FORGOTTEN`.
fn phi_of(x: u64) -> u64 {
    let step = usize::try_from(x >> (X - 4)).unwrap_or(usize::MAX).min(PHI.len() - 2);
    let part = x & ((1 << (X - 4)) - 1);
    let (here, next) = (u64::from(PHI[step]), u64::from(PHI[step + 1]));
    here - (((here - next) * part) >> (X - 4))
}

/// The average after `len` bytes that came `gap` ns after the last, with a time constant of
/// 2^`constant` ns.
pub(crate) fn follow(rate: u64, len: u32, gap: u64, constant: u32) -> u64 {
    let len = u64::from(len);
    if gap >= FORGOTTEN << constant {
        return ((len << (FRACTION + PERIOD)) / gap).min(MOST);
    }
    let phi = phi_of((gap << X) >> constant);
    let come = (len << FRACTION) >> constant.saturating_sub(PERIOD);
    let come = come << PERIOD.saturating_sub(constant);
    let gone = narrow((u128::from(rate) * u128::from(gap)) >> constant);
    if come >= gone {
        rate.saturating_add(part(come - gone, phi)).min(MOST)
    } else {
        rate.saturating_sub(part(gone - come, phi))
    }
}

/// `phi` 2^-16 of a change of rate.
fn part(change: u64, phi: u64) -> u64 {
    narrow((u128::from(change) * u128::from(phi)) >> 16)
}

/// Bytes in a window, and the rate of the last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    pub(crate) rate: u64,
    bytes: u64,
    begun: u64,
}

impl Window {
    /// Counts `len` bytes at `now`; the first packet after `length` ns ends the window.
    pub(crate) fn count(&mut self, now: u64, len: u32, length: u64) {
        self.bytes += u64::from(len);
        let age = now.saturating_sub(self.begun);
        if age >= length {
            let bytes = self.bytes.min(1 << 30);
            self.rate = ((bytes << (FRACTION + PERIOD)) / age.max(1)).min(MOST);
            (self.bytes, self.begun) = (0, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scale::{rate, units};
    use weir_units::Rate;

    #[test]
    fn the_table_begins_with_one_and_falls() {
        assert_eq!(PHI[0], 1 << 16);
        // (1 - e^-1) = 0.63212
        assert_eq!(PHI[16], 41_427);
        assert!(PHI.windows(2).all(|pair| pair[0] > pair[1]));
    }

    #[test]
    fn an_average_reaches_the_rate_of_a_steady_flow() {
        for (bps, constant) in [(100_000, 26), (100_000_000, 21), (10_000_000_000, 21)] {
            let gap = 1_024 * 8 * 1_000_000_000 / bps;
            let wanted = units(Rate::from_bps(bps));
            let mut seen = 0;
            for _ in 0..(40 << constant) / gap {
                seen = follow(seen, 1_024, gap, constant);
            }
            assert!(seen.abs_diff(wanted) * 1_000 <= wanted, "{} of {bps}", rate(seen).bps());
        }
    }

    #[test]
    fn packets_at_one_moment_and_after_an_age_are_harmless() {
        assert_eq!(follow(0, 1_024, 0, 21), 1_024 << FRACTION);
        assert!(follow(MOST, u32::MAX, 0, 21) <= MOST);
        assert_eq!(follow(MOST, 64, u64::MAX, 32), 0);
        assert_eq!(follow(MOST, 0, u64::MAX, 21), 0);
    }

    #[test]
    fn after_17_time_constants_nothing_is_left_of_the_old_rate() {
        let gap = FORGOTTEN << 21;
        assert_eq!(follow(MOST, 0, gap, 21), 0);
        assert_eq!(follow(MOST, 1_700, gap, 21), 100 << FRACTION);
        assert!(follow(MOST, 0, gap / 2, 21) > 0);
    }
}
