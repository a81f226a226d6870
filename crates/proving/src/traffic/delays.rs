//! How long things took, in buckets that are 3 % wide: a soak counts for hours in the same memory.

use weir_units::Span;

/// Buckets of one power of two.
const STEPS: u64 = 32;
const BUCKETS: usize = 64 * 32;

#[derive(Clone, Debug)]
pub(crate) struct Delays {
    buckets: Vec<u64>,
    count: u64,
    shortest: Span,
    longest: Span,
}

impl Default for Delays {
    fn default() -> Delays {
        let buckets = vec![0; BUCKETS];
        Delays { buckets, count: 0, shortest: Span::MAX, longest: Span::ZERO }
    }
}

impl Delays {
    pub(crate) fn see(&mut self, delay: Span) {
        self.buckets[bucket(delay.ns())] += 1;
        self.count += 1;
        self.shortest = self.shortest.min(delay);
        self.longest = self.longest.max(delay);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn longest(&self) -> Span {
        self.longest
    }

    /// None of nothing.
    pub(crate) fn shortest(&self) -> Option<Span> {
        (self.count > 0).then_some(self.shortest)
    }

    /// What at least so many of a thousand do not exceed; none of nothing.
    pub(crate) fn at_most(&self, of_thousand: u64) -> Option<Span> {
        let rank = (self.count * of_thousand).div_ceil(1_000).max(1);
        let mut below = 0;
        let at = self.buckets.iter().position(|count| {
            below += count;
            below >= rank
        })?;
        Some(Span::from_ns(end_of(at)).min(self.longest))
    }

    /// How many are longer, to the width of a bucket.
    pub(crate) fn longer_than(&self, bound: Span) -> u64 {
        if self.longest <= bound {
            return 0;
        }
        self.buckets[bucket(bound.ns())..].iter().skip(1).sum()
    }
}

fn bucket(ns: u64) -> usize {
    if ns < STEPS {
        return usize::try_from(ns).unwrap_or(0);
    }
    let power = u64::from(ns.ilog2());
    let step = (ns >> (power - 5)) & (STEPS - 1);
    usize::try_from((power - 4) * STEPS + step).map_or(BUCKETS - 1, |at| at.min(BUCKETS - 1))
}

/// The last value that falls into a bucket.
fn end_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let (row, step) = (bucket / STEPS, bucket % STEPS);
    if row == 0 {
        return step;
    }
    ((STEPS + step + 1) << (row - 1)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_next_begins() {
        for ns in (0..10_000).chain([1 << 20, (1 << 40) + 12_345, 1 << 50]) {
            let at = bucket(ns);
            assert!(ns <= end_of(at), "{ns}");
            assert!(at == 0 || ns > end_of(at - 1), "{ns}");
        }
    }

    #[test]
    fn ranks_are_right_to_a_bucket() {
        let mut delays = Delays::default();
        assert_eq!((delays.at_most(990), delays.shortest()), (None, None));
        (1..=1_000).for_each(|us| delays.see(Span::from_us(us)));
        let p99 = delays.at_most(990).unwrap();
        assert!(p99 >= Span::from_us(990) && p99 < Span::from_us(1_021), "{p99}");
        assert_eq!(delays.longest(), Span::from_ms(1));
        let late = delays.longer_than(Span::from_us(900));
        assert!((70..=100).contains(&late), "{late}");
        assert_eq!(delays.longer_than(Span::from_ms(1)), 0);
    }
}
