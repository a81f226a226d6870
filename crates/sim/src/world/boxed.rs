//! A box: the real engine between a LAN and a WAN port, driven as a live link drives it.

use weir_engine::{Config, Driver, Engine, Exchange, Margin, NoRoom, Planner};
use weir_packet::{Burst, Member, Pool, Side};
use weir_policy::Plan;
use weir_units::{Instant, Way};

use super::{Kind, NodeId, Place, World, number};
use crate::events::Event;
use crate::frames::{FRAME_BYTES, Frame, Frames};

pub(super) struct Boxed {
    pub(super) driver: Driver,
    /// When the world will come back at the latest that is queued.
    armed: Instant,
    /// Frames on their way out, empty between two calls.
    left: Vec<(Side, Frame)>,
}

impl Boxed {
    pub(super) fn new(plan: &Plan, config: Config) -> Result<Boxed, NoRoom> {
        let change = Planner::of(&config).prepare(plan)?;
        let finds = Way::ALL.into_iter().any(|way| Margin::of(plan, way).is_some());
        let config = Config { watch: config.watch || finds, ..config };
        let pool = Pool::new(2 * config.queue_frames + 64, FRAME_BYTES);
        let engine = Engine::new(config, pool, change, Instant::ZERO);
        Ok(Boxed {
            driver: Driver::new(engine, &Member::ONE_EACH),
            armed: Instant::MAX,
            left: Vec::new(),
        })
    }
}

/// The ports of a box for one call: a frame that has come, in a buffer of the world, and those
/// that leave.
struct Ports<'w> {
    frames: &'w mut Frames,
    came: Option<(Side, Frame)>,
    left: &'w mut Vec<(Side, Frame)>,
}

impl Exchange for Ports<'_> {
    fn receive(&mut self, port: Member, pool: &mut Pool, into: &mut Burst) -> usize {
        let Some((_, frame)) = self.came.take_if(|(side, _)| *side == port.side) else { return 0 };
        if let Some(copy) = pool.fill(self.frames.bytes(&frame))
            && let Err(copy) = into.push(copy)
        {
            pool.give(copy);
        }
        self.frames.give(frame);
        1
    }

    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst) {
        for frame in out.drain() {
            let copy = self.frames.fill(pool.bytes(&frame));
            pool.give(frame);
            self.left.extend(copy.map(|copy| (port.side, copy)));
        }
    }
}

impl World {
    pub(super) fn box_frame(&mut self, at: Place, frame: Frame) {
        let side = if at.port == 0 { Side::Lan } else { Side::Wan };
        self.poll(at.node, Some((side, frame)));
    }

    pub(super) fn wake_box(&mut self, node: NodeId) {
        let Kind::Box(boxed) = &mut self.nodes[node].kind else { return };
        // what was queued before something earlier came up is stale
        if boxed.armed == self.now {
            boxed.armed = Instant::MAX;
            self.poll(node, None);
        }
    }

    /// Lets a frame come and leave what may leave a box now, and comes back when there is more.
    fn poll(&mut self, node: NodeId, mut came: Option<(Side, Frame)>) {
        let now = self.now;
        loop {
            let Kind::Box(boxed) = &mut self.nodes[node].kind else { return };
            let mut left = std::mem::take(&mut boxed.left);
            let frames = &mut self.frames;
            boxed.driver.poll(now, &mut Ports { frames, came: came.take(), left: &mut left });
            let next = boxed.driver.next_at(now);
            for (side, frame) in left.drain(..) {
                self.send(node, usize::from(side == Side::Wan), frame);
            }
            if let Kind::Box(boxed) = &mut self.nodes[node].kind {
                boxed.left = left;
            }
            let Some(next) = next else { return };
            if next > now {
                return self.come_back(node, next);
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
}
