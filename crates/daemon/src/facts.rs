//! What the packet thread tells about itself without being asked: a few words that it writes and
//! control reads, without a lock.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use weir_packet::{BySide, Side};

use weir_units::{Instant, Span};

/// Bytes of a frame that are copied to be looked at.
const SAMPLE_BYTES: usize = 1_600;

/// Samples that wait to be looked at.
const SAMPLES: usize = 64;

/// A frame, and the port at which it came.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) side: Side,
    len: usize,
    bytes: [u8; SAMPLE_BYTES],
}

impl Sample {
    pub(crate) fn of(side: Side, frame: &[u8]) -> Sample {
        let len = frame.len().min(SAMPLE_BYTES);
        let mut bytes = [0; SAMPLE_BYTES];
        bytes[..len].copy_from_slice(&frame[..len]);
        Sample { side, len, bytes }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[derive(Debug)]
pub(crate) struct Facts {
    /// Samples that control still wants.
    wanted: AtomicU32,
    samples: SyncSender<Sample>,
    taken: Mutex<Receiver<Sample>>,
    /// By side, whether a port has had no buffer to receive into.
    starved: BySide<AtomicBool>,
    turns: AtomicU64,
    last_ns: AtomicU64,
    longest_gap_ns: AtomicU64,
    gaps: AtomicU64,
    unsent: AtomicU64,
    stood_aside: AtomicU64,
    /// When that was last.
    passed_by_ns: AtomicU64,
    lost: AtomicU64,
}

/// A turn that comes later than this after the one before is a gap: the machine was busy.
const GAP: Span = Span::from_ms(5);

impl Default for Facts {
    fn default() -> Facts {
        let (samples, taken) = sync_channel(SAMPLES);
        Facts {
            wanted: AtomicU32::new(0),
            samples,
            taken: Mutex::new(taken),
            starved: BySide::default(),
            turns: AtomicU64::default(),
            last_ns: AtomicU64::default(),
            longest_gap_ns: AtomicU64::default(),
            gaps: AtomicU64::default(),
            unsent: AtomicU64::default(),
            stood_aside: AtomicU64::default(),
            passed_by_ns: AtomicU64::default(),
            lost: AtomicU64::default(),
        }
    }
}

impl Facts {
    /// Copies the beginning of a frame, if control has asked for some.
    #[inline]
    pub(crate) fn sample(&self, side: Side, frame: &[u8]) {
        if self.wanted.load(Relaxed) > 0 {
            self.take_sample(side, frame);
        }
    }

    #[cold]
    fn take_sample(&self, side: Side, frame: &[u8]) {
        self.wanted.store(self.wanted.load(Relaxed).saturating_sub(1), Relaxed);
        // nobody is blocked at the other end, so this is a copy and no lock
        let _ = self.samples.try_send(Sample::of(side, frame));
    }

    /// The samples that were taken since, and a wish for so many more.
    pub(crate) fn samples(&self, more: u32) -> Vec<Sample> {
        let taken = self.taken.lock().map(|taken| taken.try_iter().collect()).unwrap_or_default();
        self.wanted.store(more, Relaxed);
        taken
    }

    /// Whether a port has no buffer to receive into now.
    pub(crate) fn starves(&self, side: Side, starves: bool) {
        self.starved[side].store(starves, Relaxed);
    }

    pub(crate) fn is_starved(&self, side: Side) -> bool {
        self.starved[side].load(Relaxed)
    }

    /// A turn begins, so long after it should have.
    #[inline]
    pub(crate) fn turned(&self, now: Instant, late: Span) {
        // one writer, so that no read-modify-write is needed
        self.turns.store(self.turns.load(Relaxed) + 1, Relaxed);
        self.last_ns.store(now.ns(), Relaxed);
        if late > GAP {
            self.gaps.store(self.gaps.load(Relaxed) + 1, Relaxed);
        }
        if late.ns() > self.longest_gap_ns.load(Relaxed) {
            self.longest_gap_ns.store(late.ns(), Relaxed);
        }
    }

    /// Frames that had no port to go to.
    pub(crate) fn unsent(&self, frames: usize) {
        self.unsent.fetch_add(frames as u64, Relaxed);
    }

    /// Frames that came while the kernel's bridge carried them.
    pub(crate) fn stood_aside(&self, frames: usize) {
        self.passed_by_ns.store(self.last_ns.load(Relaxed), Relaxed);
        self.stood_aside.fetch_add(frames as u64, Relaxed);
    }

    /// Buffers that the kernel did not give back when a port was closed.
    pub(crate) fn lost(&self, buffers: usize) {
        self.lost.fetch_add(buffers as u64, Relaxed);
    }

    /// Whether frames have gone past weir in the last second.
    pub(crate) fn is_passed_by(&self, now: Instant) -> bool {
        let last = self.passed_by_ns.load(Relaxed);
        last > 0 && now.since(Instant::from_ns(last)) < Span::from_secs(1)
    }

    pub(crate) fn turns(&self) -> u64 {
        self.turns.load(Relaxed)
    }

    pub(crate) fn last_turn(&self) -> Instant {
        Instant::from_ns(self.last_ns.load(Relaxed))
    }

    /// The longest time between two turns that nobody had asked for.
    pub(crate) fn longest_gap(&self) -> Span {
        Span::from_ns(self.longest_gap_ns.load(Relaxed))
    }

    /// How often turns were that late.
    pub(crate) fn gaps(&self) -> u64 {
        self.gaps.load(Relaxed)
    }

    pub(crate) fn left_to_the_bridge(&self) -> u64 {
        self.stood_aside.load(Relaxed)
    }

    pub(crate) fn lost_buffers(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    pub(crate) fn without_port(&self) -> u64 {
        self.unsent.load(Relaxed)
    }
}
