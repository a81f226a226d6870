//! A box: the real engine between a LAN and a WAN port, called as a live loop calls it.

use weir_engine::{Config, Engine, Margin, NoRoom, Planner, Snapshot};
use weir_packet::{Burst, Pool, Side};
use weir_policy::Plan;
use weir_units::{Instant, Span};

use super::{Kind, NodeId, Place, World, number};
use crate::events::Event;
use crate::frames::{FRAME_BYTES, Frame};

/// How often the engine may forget: connections are silent for seconds before they go. Every
/// millisecond, as live, it was four tenths of a run at T1.
const AGE: Span = Span::from_ms(50);

pub(super) struct Boxed {
    pub(super) engine: Engine,
    burst: Burst,
    /// When the world will come back at the latest that is queued.
    armed: Instant,
    aged: Instant,
    /// By the side that the rate leads to.
    pub(super) margins: [Option<Margin>; 2],
    followed: Instant,
}

impl Boxed {
    pub(super) fn new(plan: &Plan, config: Config) -> Result<Boxed, NoRoom> {
        let change = Planner::of(&config).prepare(plan)?;
        let margins = [Side::Lan, Side::Wan].map(|side| Margin::of(plan, side));
        let config =
            Config { watch: config.watch || margins.iter().any(Option::is_some), ..config };
        let pool = Pool::new(2 * config.queue_frames + 64, FRAME_BYTES);
        Ok(Boxed {
            engine: Engine::new(config, pool, change, Instant::ZERO),
            burst: Burst::new(),
            armed: Instant::MAX,
            aged: Instant::ZERO,
            margins,
            followed: Instant::ZERO,
        })
    }
}

impl Boxed {
    /// What a control thread does beside a live link.
    fn follow(&mut self, now: Instant) {
        let finds = self.margins.iter().any(Option::is_some);
        if finds && now.since(self.followed) >= Margin::CADENCE {
            self.followed = now;
            let mut books = Snapshot::default();
            let _ = self.engine.snapshot(u32::MAX, &mut books);
            for margin in self.margins.iter_mut().flatten() {
                self.engine.limits(now, &[margin.follow(now, &books)]);
            }
        }
    }
}

impl World {
    pub(super) fn box_frame(&mut self, at: Place, frame: Frame) {
        let now = self.now;
        if let Kind::Box(boxed) = &mut self.nodes[at.node].kind {
            let copy = boxed.engine.pool_mut().fill(self.frames.bytes(&frame));
            if let Some(copy) = copy
                && let Err(copy) = boxed.burst.push(copy)
            {
                boxed.engine.pool_mut().give(copy);
            }
            let side = if at.port == 0 { Side::Lan } else { Side::Wan };
            boxed.engine.receive(now, side, &mut boxed.burst);
            if now.since(boxed.aged) >= AGE {
                boxed.engine.age(now);
                boxed.aged = now;
            }
            boxed.follow(now);
        }
        self.frames.give(frame);
        self.kick(at.node);
    }

    pub(super) fn wake_box(&mut self, node: NodeId) {
        let Kind::Box(boxed) = &mut self.nodes[node].kind else { return };
        // what was queued before something earlier came up is stale
        if boxed.armed == self.now {
            boxed.armed = Instant::MAX;
            self.kick(node);
        }
    }

    /// Lets leave what may leave a box now, and comes back when there is more.
    pub fn kick(&mut self, node: NodeId) {
        let now = self.now;
        let mut out = Burst::new();
        loop {
            let Kind::Box(boxed) = &mut self.nodes[node].kind else { return };
            let Some(next) = boxed.engine.next_wakeup() else { return };
            if next > now {
                self.come_back(node, next);
                return;
            }
            let mut moved = false;
            for (port, side) in [Side::Lan, Side::Wan].into_iter().enumerate() {
                while let Some(frame) = self.leave(node, side, &mut out) {
                    moved = true;
                    self.send(node, port, frame);
                }
            }
            if !moved {
                // an engine that says "now" and sends nothing would keep us here for ever
                self.come_back(node, now + Span::from_us(1));
                return;
            }
        }
    }

    fn come_back(&mut self, node: NodeId, at: Instant) {
        if let Kind::Box(boxed) = &mut self.nodes[node].kind
            && at < boxed.armed
        {
            boxed.armed = at;
            self.events.push(at, Event::Box(number(node)));
        }
    }

    /// The next frame that leaves a box at one side, in a buffer of the world.
    fn leave(&mut self, node: NodeId, side: Side, out: &mut Burst) -> Option<Frame> {
        let Kind::Box(boxed) = &mut self.nodes[node].kind else { return None };
        loop {
            if out.is_empty() {
                boxed.engine.transmit(self.now, side, out);
            }
            let frame = out.pop()?;
            let copy = self.frames.fill(boxed.engine.pool().bytes(&frame));
            boxed.engine.pool_mut().give(frame);
            if copy.is_some() {
                return copy;
            }
        }
    }
}
