//! The loop around an engine: what has to be called, in which order, and when. Whoever has ports
//! and a clock drives a link with it; the packet thread, the simulator, a capture that is replayed
//! and the fuzzer do, so that all of them treat an engine alike.
//!
//! # The contract
//!
//! There are three kinds of calls.
//!
//! - **Work**: [`Driver::poll`] takes what the ports have, sends what may leave, goes on with a
//!   change of policy, and does the upkeep that is due. Call it when frames have come, and at the
//!   moment that [`Driver::next_at`] names. `now` never goes back from one call to the next.
//! - **Change**: [`Driver::change`] hands in a prepared policy, of which each `poll` puts a bounded
//!   part into effect; once [`Driver::changed`] gives it back, the next one may follow.
//!   [`Driver::forget`] tells that the caller stood still while others carried the frames.
//! - **Look**: [`Driver::engine`] answers what a link has counted and found. It changes nothing.
//!
//! Calls that come early, twice, or without any frame are harmless. Late ones delay frames and
//! lose none. Only `poll` sends, so whatever is changed between two of them shows with the next.

use weir_packet::{Burst, Member, Pool, Side};
use weir_units::{Instant, Span};

use crate::{Change, Engine, Margin};

/// Where frames come from and go to: the ports of a box, wires that are simulated, a capture.
pub trait Exchange {
    /// Puts frames that have come at a port into `into`, which is empty, in buffers of `pool`.
    /// Returns how many came, those that are not for the engine included.
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize;

    /// Sends frames of `out` through a port, and gives their buffers back to `pool`. What the port
    /// cannot take now stays in `out`.
    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst);
}

/// The exchange of a caller that has one frame at most for each poll, and looks at what leaves.
#[derive(Debug)]
pub struct Single<'f, F> {
    /// What comes, and at which side.
    pub came: Option<(Side, &'f [u8])>,
    /// Is handed what leaves, and the side at which it does.
    pub left: F,
}

impl<F: FnMut(Side, &[u8])> Exchange for Single<'_, F> {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        let Some((_, bytes)) = self.came.take_if(|(side, _)| *side == port.side) else { return 0 };
        if let Some(frame) = pool.fill(bytes)
            && let Err(frame) = into.push(frame)
        {
            pool.give(frame);
        }
        1
    }

    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst) {
        for frame in out.drain() {
            (self.left)(port.side, pool.bytes(&frame));
            pool.give(frame);
        }
    }
}

/// An engine and what one call leaves for the next.
#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    into: Burst,
    /// The ports, and what each of them could not take yet.
    ports: Box<[(Member, Burst)]>,
    change: Option<Box<Change>>,
    changed: Option<Box<Change>>,
    has_moved: bool,
    aged: Instant,
    followed: Instant,
}

/// Bursts that one port may hand in before the next one is looked at.
const BURSTS: usize = 4;

/// How often flows and hosts that are silent are forgotten.
const AGE: Span = Span::from_ms(1);

/// How soon a port that took nothing is asked again.
const AGAIN: Span = Span::from_us(50);

/// How soon a caller may come back who was told to come at once and found nothing to send.
const PAUSE: Span = Span::from_us(1);

impl Driver {
    /// Drives this engine over these ports.
    #[must_use]
    pub fn new(engine: Engine, ports: &[Member]) -> Driver {
        Driver {
            engine,
            into: Burst::new(),
            ports: ports.iter().map(|&port| (port, Burst::new())).collect(),
            change: None,
            changed: None,
            has_moved: false,
            aged: Instant::ZERO,
            followed: Instant::ZERO,
        }
    }

    /// Takes what came and sends what may leave. Returns whether a frame moved.
    pub fn poll(&mut self, now: Instant, exchange: &mut impl Exchange) -> bool {
        self.has_moved = self.receive(now, exchange) | self.transmit(now, exchange);
        if let Some(mut change) = self.change.take() {
            match self.engine.apply(now, &mut change) {
                true => self.changed = Some(change),
                false => self.change = Some(change),
            }
        }
        if now.since(self.aged) >= AGE {
            self.aged = now;
            self.engine.age(now);
        }
        if now.since(self.followed) >= Margin::CADENCE {
            self.followed = now;
            self.engine.follow(now);
        }
        self.has_moved
    }

    fn receive(&mut self, now: Instant, exchange: &mut impl Exchange) -> bool {
        let Driver { engine, into, ports, .. } = self;
        let mut has_moved = false;
        for &(port, _) in ports.iter() {
            for _ in 0..BURSTS {
                if exchange.receive(port, engine.pool_mut(), into) == 0 {
                    break;
                }
                has_moved = true;
                engine.receive(now, port.side, into);
            }
        }
        has_moved
    }

    fn transmit(&mut self, now: Instant, exchange: &mut impl Exchange) -> bool {
        let Driver { engine, ports, .. } = self;
        let mut has_moved = false;
        for (port, out) in ports {
            loop {
                if out.is_empty() {
                    engine.transmit(now, port.side, out);
                }
                let before = out.len();
                // also without any: a port looks after the buffers of frames that have left
                exchange.transmit(*port, engine.pool_mut(), out);
                has_moved |= out.len() < before;
                if before == 0 || !out.is_empty() {
                    break;
                }
            }
        }
        has_moved
    }

    /// When [`Driver::poll`] has something to do next if no frame comes before; `None` while
    /// nothing waits. Upkeep waits for the next frame: without frames it changes nothing.
    #[must_use]
    pub fn next_at(&self, now: Instant) -> Option<Instant> {
        // an engine that says "now" and sends nothing would keep its caller busy for ever
        let soonest = if self.has_moved { now } else { now + PAUSE };
        let mut next = self.engine.next_wakeup().map(|at| at.max(soonest));
        let mut at = |moment: Instant| next = Some(next.map_or(moment, |next| next.min(moment)));
        if self.change.is_some() {
            at(now);
        }
        if self.ports.iter().any(|(_, out)| !out.is_empty()) {
            at(now + AGAIN);
        }
        next
    }

    /// Puts a prepared policy into effect, a bounded part with each [`Driver::poll`]. One at a
    /// time: the caller waits for [`Driver::changed`].
    pub fn change(&mut self, change: Box<Change>) {
        self.change = Some(change);
    }

    /// Whether a change is under way.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.change.is_some()
    }

    /// A change that is done, with all that it replaced, to be freed where memory costs nothing.
    pub fn changed(&mut self) -> Option<Box<Change>> {
        self.changed.take()
    }

    /// The caller stood still, and others have carried newer frames meanwhile: what waits does not
    /// leave any more. Returns how many frames were waiting for a port.
    pub fn forget(&mut self, now: Instant) -> usize {
        let Driver { engine, ports, .. } = self;
        engine.forget_waiting(now);
        let mut forgotten = 0;
        for (_, out) in ports {
            forgotten += out.len();
            out.drain().for_each(|frame| engine.pool_mut().give(frame));
        }
        forgotten
    }

    /// Frames that have left the engine and wait for their port.
    #[must_use]
    pub fn unsent(&self) -> usize {
        self.ports.iter().map(|(_, out)| out.len()).sum()
    }

    /// The engine, to be looked at.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The engine, for limits, and for whoever fills its buffers.
    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }

    /// The engine, when nobody drives it any more. Frames that no port took are given back.
    #[must_use]
    pub fn into_engine(mut self) -> Engine {
        let Driver { engine, ports, .. } = &mut self;
        for (_, out) in ports {
            out.drain().for_each(|frame| engine.pool_mut().give(frame));
        }
        self.engine
    }
}
