//! BBR version 1, as Linux has it: a model of the path's rate (a maximum over ten round trips) and
//! of its round trip (a minimum over ten seconds), a pace and a window that follow. Rates are
//! segments per microsecond x 2^24, gains in parts of 256. Left out: what it adds for aggregated
//! acknowledgements, and its detection of policers. With the latter it lost less in a short queue
//! at 256 kbit/s than the kernel does; without, it loses as much.

use std::collections::VecDeque;

use weir_units::{Instant, Span};

const UNIT: u64 = 256;
const HIGH_GAIN: u64 = UNIT * 2_885 / 1_000 + 1;
const DRAIN_GAIN: u64 = UNIT * 1_000 / 2_885;
const WINDOW_GAIN: u64 = 2 * UNIT;
const CYCLE: [u64; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
const RATE_ROUNDS: u64 = 10;
const ROUND_TRIP_FOR: Span = Span::from_secs(10);
const PROBE_FOR: Span = Span::from_ms(200);
const LEAST_WINDOW: u32 = 4;
const SCALE: u32 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeRate,
    ProbeRoundTrip,
}

/// What an acknowledgement says about the path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) now: Instant,
    /// Delivered so far, and when the newest segment that has arrived was sent.
    pub(crate) delivered: u64,
    pub(crate) delivered_then: u64,
    /// Over how long; none if it is not to be trusted.
    pub(crate) interval: Option<Span>,
    pub(crate) rtt: Option<Span>,
    pub(crate) acked: u32,
    pub(crate) newly_lost: u32,
    pub(crate) in_flight: u32,
    pub(crate) prior_in_flight: u32,
    pub(crate) app_limited: bool,
    pub(crate) in_recovery: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    mode: Mode,
    /// The largest rates of late, with their rounds; falling.
    rates: VecDeque<(u64, u64)>,
    rounds: u64,
    round_ends_at: u64,
    round_starts: bool,
    round_trip: Span,
    round_trip_at: Instant,
    probe_done_at: Option<Instant>,
    probe_round_done: bool,
    full_rate: u64,
    full_count: u32,
    is_full: bool,
    phase: usize,
    phase_at: Instant,
    prior_window: u32,
    was_in_recovery: bool,
    conserves: bool,
    pacing_gain: u64,
    window_gain: u64,
    /// The pace, as a rate.
    pub(crate) pace: u64,
    has_round_trip: bool,
    /// Picks the phase to begin with.
    luck: u32,
}

impl Bbr {
    pub(crate) fn new(initial_window: u32, luck: u32) -> Bbr {
        Bbr {
            mode: Mode::Startup,
            rates: VecDeque::new(),
            rounds: 0,
            round_ends_at: 0,
            round_starts: false,
            round_trip: Span::MAX,
            round_trip_at: Instant::ZERO,
            probe_done_at: None,
            probe_round_done: false,
            full_rate: 0,
            full_count: 0,
            is_full: false,
            phase: 0,
            phase_at: Instant::ZERO,
            prior_window: 0,
            was_in_recovery: false,
            conserves: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            // until there is a round trip, as if it were 1 ms
            pace: gained(rate(u64::from(initial_window), Span::from_ms(1)), HIGH_GAIN),
            has_round_trip: false,
            luck,
        }
    }

    /// Updates the model, and says the window.
    pub(crate) fn acked(&mut self, sample: &Sample, window: u32) -> u32 {
        self.update_rate(sample);
        self.update_phase(sample);
        self.check_full(sample);
        self.check_drain(sample);
        let window = self.update_round_trip(sample, window);
        self.pacing_gain = match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeRate => CYCLE[self.phase],
            Mode::ProbeRoundTrip => UNIT,
        };
        self.window_gain = match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeRate => WINDOW_GAIN,
            Mode::ProbeRoundTrip => UNIT,
        };
        self.set_pace(sample, window);
        self.next_window(sample, window)
    }

    /// The window before a loss or a probe is kept.
    pub(crate) fn save(&mut self, window: u32) {
        self.prior_window = if !self.was_in_recovery && self.mode != Mode::ProbeRoundTrip {
            window
        } else {
            self.prior_window.max(window)
        };
    }

    /// A timeout.
    pub(crate) fn timed_out(&mut self) {
        self.was_in_recovery = true;
        self.full_rate = 0;
        self.round_starts = true;
    }

    /// A cut was needless.
    pub(crate) fn undone(&mut self) {
        self.full_rate = 0;
        self.full_count = 0;
    }

    fn rate_max(&self) -> u64 {
        self.rates.front().map_or(0, |(_, rate)| *rate)
    }

    fn update_rate(&mut self, sample: &Sample) {
        self.round_starts = false;
        let Some(interval) = sample.interval else { return };
        if sample.delivered_then >= self.round_ends_at {
            self.round_ends_at = sample.delivered;
            self.rounds += 1;
            self.round_starts = true;
            self.conserves = false;
        }
        let rate = rate(sample.delivered - sample.delivered_then, interval);
        if !sample.app_limited || rate >= self.rate_max() {
            while self.rates.back().is_some_and(|(_, old)| *old <= rate) {
                self.rates.pop_back();
            }
            self.rates.push_back((self.rounds, rate));
        }
        while let Some((round, _)) = self.rates.front()
            && round + RATE_ROUNDS < self.rounds
            && self.rates.len() > 1
        {
            self.rates.pop_front();
        }
    }

    /// Segments that fill the path at this gain.
    fn fill(&self, rate: u64, gain: u64) -> u32 {
        if self.round_trip == Span::MAX {
            return 10;
        }
        let us = u128::from(self.round_trip.ns() / 1_000);
        let segments =
            (u128::from(rate) * us * u128::from(gain) / u128::from(UNIT)).div_ceil(1 << SCALE);
        let segments = u32::try_from(segments).unwrap_or(u32::MAX >> 1);
        // room for what the sender and the receiver batch, and to an even number
        let batched = (segments + 3).next_multiple_of(2);
        let rises = self.mode == Mode::ProbeRate && self.phase == 0;
        batched + if rises { 2 } else { 0 }
    }

    fn update_phase(&mut self, sample: &Sample) {
        if self.mode != Mode::ProbeRate {
            return;
        }
        let is_whole = sample.now.since(self.phase_at) > self.round_trip;
        let is_over = match CYCLE[self.phase] {
            UNIT => is_whole,
            gain if gain > UNIT => {
                let full = sample.prior_in_flight >= self.fill(self.rate_max(), gain);
                is_whole && (sample.newly_lost > 0 || full)
            }
            _ => is_whole || sample.prior_in_flight <= self.fill(self.rate_max(), UNIT),
        };
        if is_over {
            self.phase = (self.phase + 1) % CYCLE.len();
            self.phase_at = sample.now;
        }
    }

    fn check_full(&mut self, sample: &Sample) {
        if self.is_full || !self.round_starts || sample.app_limited {
            return;
        }
        if self.rate_max() >= self.full_rate * 5 / 4 {
            self.full_rate = self.rate_max();
            self.full_count = 0;
        } else {
            self.full_count += 1;
            self.is_full = self.full_count >= 3;
        }
    }

    fn check_drain(&mut self, sample: &Sample) {
        if self.mode == Mode::Startup && self.is_full {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && sample.in_flight <= self.fill(self.rate_max(), UNIT) {
            self.start_cycle(sample.now);
        }
    }

    fn start_cycle(&mut self, now: Instant) {
        self.mode = Mode::ProbeRate;
        self.luck = self.luck.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        // any phase but the one that drains
        let pick = (self.luck >> 16) as usize % (CYCLE.len() - 1);
        self.phase = (CYCLE.len() - pick) % CYCLE.len();
        self.phase_at = now;
    }

    fn update_round_trip(&mut self, sample: &Sample, window: u32) -> u32 {
        let now = sample.now;
        let is_old = now.since(self.round_trip_at) > ROUND_TRIP_FOR;
        if let Some(rtt) = sample.rtt
            && (rtt <= self.round_trip || is_old)
        {
            self.round_trip = rtt;
            self.round_trip_at = now;
        }
        if is_old && self.mode != Mode::ProbeRoundTrip {
            self.save(window);
            self.mode = Mode::ProbeRoundTrip;
            self.probe_done_at = None;
        }
        if self.mode != Mode::ProbeRoundTrip {
            return window;
        }
        match self.probe_done_at {
            None if sample.in_flight <= LEAST_WINDOW => {
                self.probe_done_at = Some(now + PROBE_FOR);
                self.probe_round_done = false;
                self.round_ends_at = sample.delivered;
            }
            None => {}
            Some(at) => {
                self.probe_round_done |= self.round_starts;
                if self.probe_round_done && now > at {
                    self.round_trip_at = now;
                    if self.is_full {
                        self.start_cycle(now);
                    } else {
                        self.mode = Mode::Startup;
                    }
                    return window.max(self.prior_window);
                }
            }
        }
        window
    }

    fn set_pace(&mut self, sample: &Sample, window: u32) {
        if !self.has_round_trip
            && let Some(rtt) = sample.rtt
        {
            self.has_round_trip = true;
            self.pace = gained(rate(u64::from(window), rtt), HIGH_GAIN);
        }
        let pace = gained(self.rate_max(), self.pacing_gain) * 99 / 100;
        if self.is_full || pace > self.pace {
            self.pace = pace;
        }
    }

    fn next_window(&mut self, sample: &Sample, mut window: u32) -> u32 {
        if sample.newly_lost > 0 {
            window = window.saturating_sub(sample.newly_lost).max(1);
        }
        let under_way = sample.in_flight + sample.acked;
        if sample.in_recovery && !self.was_in_recovery {
            self.conserves = true;
            self.round_ends_at = sample.delivered;
            window = under_way;
        } else if !sample.in_recovery && self.was_in_recovery {
            window = window.max(self.prior_window);
            self.conserves = false;
        }
        self.was_in_recovery = sample.in_recovery;
        if self.conserves {
            window = window.max(under_way);
        } else {
            let target = self.fill(self.rate_max(), self.window_gain);
            if self.is_full {
                window = (window + sample.acked).min(target);
            } else if window < target || sample.delivered < 10 {
                window += sample.acked;
            }
            window = window.max(LEAST_WINDOW);
        }
        if self.mode == Mode::ProbeRoundTrip { window.min(LEAST_WINDOW) } else { window }
    }
}

/// Segments over a span, as a rate.
fn rate(segments: u64, span: Span) -> u64 {
    let us = (span.ns() / 1_000).max(1);
    u64::try_from((u128::from(segments) << SCALE) / u128::from(us)).unwrap_or(u64::MAX)
}

fn gained(rate: u64, gain: u64) -> u64 {
    u64::try_from(u128::from(rate) * u128::from(gain) / u128::from(UNIT)).unwrap_or(u64::MAX)
}

/// How long a segment takes at this pace.
pub(crate) fn gap(pace: u64) -> Span {
    Span::from_ns((1_000_u64 << SCALE) / pace.max(1))
}
