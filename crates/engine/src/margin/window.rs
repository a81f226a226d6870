//! What a while of traffic says of a line: what it carried, whether more could have come, and
//! whether a queue stands before it.
//!
//! Towards the LAN what arrives is what the line carried. Towards the WAN it is what leaves here,
//! in the part that the other side acknowledges: acknowledgements come back as fast as the line
//! lets data through, whatever waits before it. Data of other protocols share that fate.

use weir_units::{Bytes, Instant, Rate, Span, Way};

use super::Margin;
use crate::ledger::Count;
use crate::watch::{RoundTrip, Uploads};

/// What a link has seen of its line.
#[derive(Clone, Copy, Debug, Default)]
pub struct Look {
    /// All that ever came over the line: from the WAN side, or what left for it.
    pub arrived: Count,
    /// All frames that ever left towards where the rate is found.
    pub left: u64,
    /// How long these had waited here, together.
    pub waited: Span,
    /// The way to the WAN side and back.
    pub round_trip: RoundTrip,
    /// What became of data that left for the WAN side, where that is what the rate is found of.
    pub uploads: Uploads,
}

/// How much of what leaves for the WAN side are TCP's data, over the last few windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    bytes: u64,
    data: u64,
    /// What was carried lately, and in which time.
    carried: u64,
    lasted: Span,
}

/// What a while of traffic says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) lasted: Span,
    /// What came, as it counts on the line.
    pub(super) bytes: u64,
    pub(super) came: Rate,
    /// More could come if the rate were higher.
    pub(super) binds: bool,
    pub(super) queue: Queue,
    /// How much longer ways are, if that is known.
    pub(super) raised: Span,
    /// Hosts of the WAN side whose ways were measured.
    pub(super) hosts: u32,
    /// Ways are longer by half of what means a queue.
    pub(super) begins: bool,
    /// More arrives behind the line than leaves here: whatever stood before it goes.
    pub(super) sinks: bool,
}

/// The queue at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    Unknown,
    Short,
    Long,
    /// It was there all the while that anybody knew the way, and gets shorter.
    Sinking,
}

struct Queued {
    queue: Queue,
    begins: bool,
    is_news: bool,
}

/// Of the rate, what must come for it to bind; upstream, where a queue stands.
pub(super) const BINDS: u32 = 950_000;
const BINDS_UP: u32 = 980_000;
/// And frames wait longer than this as well.
const WAITS: Span = Span::from_ms(1);
/// Ways this much longer, and by two frames, mean a queue.
const LONG: Span = Span::from_ms(5);
/// Ways this much shorter than ever mean that there was one.
const SINKS: Span = Span::from_ms(2);
const FRAMES: Bytes = Bytes::new(2 * 1_514);
const FRAME: Bytes = Bytes::new(1_514);
/// A window has so much in it, if that comes within the longest.
const LONGEST: Span = Span::from_secs(1);
const SAMPLE: Bytes = Bytes::new(15_000);
/// What was measured longer ago is not known any more.
const STALE: Span = Span::from_ms(1_500);
/// Upstream: as much arrives as leaves, up to this more.
const SAME_UP: u32 = 150_000;
/// Of what leaves, data must be one in so many to speak for the rest.
const SPEAKS: u64 = 16;
/// Windows differ by this at most, and are alike.
pub(super) const ALIKE: u32 = 150_000;

impl Mix {
    /// What the line carried of so many bytes that left, if all fare as data do; all, if there are
    /// hardly any.
    fn carried(&mut self, bytes: u64, before: Uploads, now: Uploads) -> u64 {
        let left = now.left.saturating_sub(before.left);
        let arrived = now.arrived.saturating_sub(before.arrived);
        self.bytes = (self.bytes / 4 * 3).saturating_add(bytes);
        self.data = (self.data / 4 * 3).saturating_add(left);
        if self.data < self.bytes / SPEAKS {
            return bytes;
        }
        let carried = u128::from(arrived) * u128::from(self.bytes) / u128::from(self.data.max(1));
        u64::try_from(carried).unwrap_or(u64::MAX)
    }

    /// Acknowledgements come in lumps: what the line carried is the mean of the last windows,
    /// unless this one is of another kind.
    fn lately(&mut self, carried: u64, lasted: Span) -> Rate {
        let (mean, this) = (rate_of(self.carried, self.lasted), rate_of(carried, lasted));
        let is_alike = this >= mean.minus(mean.part(ALIKE)) && this <= mean.plus(mean.part(ALIKE));
        if is_alike {
            self.carried = (self.carried / 4 * 3).saturating_add(carried);
            self.lasted = Span::from_ns(self.lasted.ns() / 4 * 3) + lasted;
        } else {
            (self.carried, self.lasted) = (carried, lasted);
        }
        rate_of(self.carried, self.lasted)
    }
}

impl Margin {
    /// What came since the last window, if that was long enough ago.
    pub(super) fn measure(&mut self, now: Instant, look: &Look) -> Option<Window> {
        let Some((since, before)) = self.since else {
            self.since = Some((now, *look));
            return None;
        };
        let lasted = now.since(since);
        // a tick that comes a little early is one
        let least = Span::from_ns(Margin::CADENCE.ns() / 4 * 3);
        if lasted < self.rate.time_for(SAMPLE).clamp(least, LONGEST) {
            return None;
        }
        self.since = Some((now, *look));
        let Queued { queue, begins, is_news } = self.queued(now, &look.round_trip);
        let bytes = self.cost(before.arrived, look.arrived);
        self.all += bytes;
        self.slope.leaves(now, self.all);
        let through = rate_of(bytes, lasted);
        let carried = match self.way {
            Way::Down => bytes,
            Way::Up => self.mix.carried(bytes, before.uploads, look.uploads),
        };
        let lately = match self.way {
            Way::Down => through,
            Way::Up => self.mix.lately(carried, lasted),
        };
        let sinks = lately > through.plus(through.part(SAME_UP));
        // no queue: all that left was carried, whoever acknowledges it later
        let (bytes, came) = match queue {
            Queue::Short => (bytes, through),
            _ => (carried, lately),
        };
        if self.way == Way::Up && is_news {
            self.slope.hears(&look.round_trip, self.rate.time_for(FRAME));
        }
        let left = look.left.saturating_sub(before.left);
        let waited = look.waited.ns().saturating_sub(before.waited.ns()) / left.max(1);
        let waits = waited > (WAITS + self.rate.time_for(FRAMES)).ns();
        // on this side of the line frames wait here even where weir lets through a little too much
        let most = match (self.way, queue) {
            (Way::Up, Queue::Long) => BINDS_UP,
            _ => BINDS,
        };
        let binds = waits && came >= self.rate.part(most);
        let (raised, hosts) = (look.round_trip.raised, look.round_trip.hosts);
        Some(Window { lasted, bytes, came, binds, queue, raised, hosts, begins, sinks })
    }

    /// The queue, as the way to the WAN side and back tells.
    fn queued(&mut self, now: Instant, trip: &RoundTrip) -> Queued {
        let is_news = trip.until > std::mem::replace(&mut self.heard, trip.until);
        let is_known = trip.compared > 0 && now.since(trip.until) <= STALE;
        let long = LONG + self.rate.time_for(FRAMES);
        let queue = match (trip.raised >= long, trip.sank >= SINKS) {
            _ if !is_known || !is_news => Queue::Unknown,
            (true, _) => Queue::Long,
            (false, true) => Queue::Sinking,
            (false, false) => Queue::Short,
        };
        Queued { queue, begins: trip.raised.ns() >= long.ns() / 2, is_news: is_known && is_news }
    }

    /// What frames cost on the line that were counted since.
    fn cost(&self, before: Count, now: Count) -> u64 {
        let frames = now.frames.saturating_sub(before.frames);
        let bytes = now.bytes.saturating_sub(before.bytes);
        let mean = usize::try_from(bytes / frames.max(1)).unwrap_or(0);
        frames.saturating_mul(self.link.cost(mean, 14).get())
    }
}

/// The rate at which so many bytes come in a while.
pub(super) fn rate_of(bytes: u64, lasted: Span) -> Rate {
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(lasted.ns().max(1));
    Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What left and arrived of data, in thousands of bytes, and what is concluded of all.
    fn carried(mix: &mut Mix, bytes: u64, left: u64, arrived: u64) -> u64 {
        let before = Uploads { left: 7_000_000, arrived: 3_000_000 };
        let now =
            Uploads { left: before.left + left * 1_000, arrived: before.arrived + arrived * 1_000 };
        mix.carried(bytes * 1_000, before, now) / 1_000
    }

    #[test]
    fn all_that_leaves_fares_as_data_do() {
        let mut mix = Mix::default();
        // half of it is data, and four in five of these arrive
        assert_eq!(carried(&mut mix, 100, 50, 40), 80);
        // of the windows before, three quarters count: 75 + 100 bytes for 37.5 + 100 of data
        assert_eq!(carried(&mut mix, 100, 100, 55), 70);
    }

    #[test]
    fn where_less_than_a_sixteenth_is_data_all_counts_as_carried() {
        assert_eq!(carried(&mut Mix::default(), 1_600, 99, 10), 1_600);
        assert_eq!(carried(&mut Mix::default(), 1_600, 100, 10), 160);
    }

    #[test]
    fn windows_that_are_alike_have_one_mean_and_others_begin_anew() {
        let tenth = Span::from_ms(100);
        let mut mix = Mix::default();
        let mut lately = |bytes| mix.lately(bytes, tenth).bps();
        assert_eq!(lately(100_000), 8_000_000);
        // 75 000 + 114 000 bytes in 175 ms
        assert_eq!(lately(114_000), 8_640_000);
        // 16 % more than that, then as much less
        assert_eq!(lately(125_280), 10_022_400);
        assert_eq!(lately(105_235), 8_418_800);
    }
}
