//! One host, or somebody outside, against another host: what the victim has and how long a sparse
//! flow of his waits, and the same with honest hosts in the attacker's place, one for each that
//! he really is. Honest flows keep a window of frames under way; the attacker sends whatever
//! becomes of his frames, which no TCP could do worse.

mod kinds;
mod list;
mod world;

use super::{Enforce, Numbers, Told, whole};
use list::{ATTACKS, Attack, FIFO, Policy};
use world::{COUNTS, Seen, World};

/// The frame on the line, and one that is chosen already: the largest there are.
const FRAMES: f64 = 2.0;

/// All attacks, by name: `share`, what the victim has of what he has undisturbed, which is
/// `undisturbed_mbit`; `delay_ms_p99` and `undisturbed_ms_p99`, how long his sparse flow waits;
/// `late_ms`, how much longer than twice the time undisturbed and two frame times.
pub(super) fn run(told: Told, enforce: Enforce, seed: u64) -> Numbers {
    let mut shown = Numbers::new();
    for attack in &ATTACKS {
        let honest = seen(attack, (attack.policy, attack.rate), false, seed);
        // under attack the box may be told amiss, or have one queue for all
        let policy = if let Enforce::Fifo(_) = enforce { (FIFO, "") } else { attack.policy };
        let rate = attack.rate / 1_000 * told.rates / 1_000;
        let under = seen(attack, (policy, rate), true, seed);
        let (Some(honest), Some(under)) = (honest, under) else { continue };
        let frame = 1e3 * 8.0 * whole(attack.frame as u64 + 4) / whole(attack.rate);
        let late = under.p99_ms - (2.0 * honest.p99_ms + FRAMES * frame);
        let figures = [
            ("share", whole(under.bytes) / whole(honest.bytes.max(1))),
            ("undisturbed_mbit", whole(8 * honest.bytes) * 1e3 / whole(COUNTS)),
            ("delay_ms_p99", under.p99_ms),
            ("undisturbed_ms_p99", honest.p99_ms),
            ("late_ms", late.max(0.0)),
        ];
        shown.extend(figures.map(|(name, figure)| (format!("{name}.{}", attack.name), figure)));
    }
    shown
}

fn seen(attack: &Attack, policy: (Policy, u64), is_attacked: bool, seed: u64) -> Option<Seen> {
    let mut world = World::new(attack, policy, seed)?;
    if is_attacked {
        (attack.send)(attack, &mut world);
    } else {
        world.honest(attack.honest);
    }
    world.victim();
    Some(world.run())
}
