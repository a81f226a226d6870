//! One host, or somebody outside, against another host: what the victim has and how long a sparse
//! flow of his waits, and the same with honest hosts in the attacker's place, one for each that
//! he really is. Open loop: nobody slows down when frames are lost, which no TCP could do worse.

mod kinds;
mod list;
mod world;

use super::{Shown, whole};
use list::{ATTACKS, Attack};
use world::{Seen, World};

/// The frame on the line, and one that is chosen already.
const FRAMES: f64 = 2.0;

/// All attacks, by name: `share`, what the victim has of what he has undisturbed; `delay_ms_p99`
/// and `undisturbed_ms_p99`, how long his sparse flow waits; `late_ms`, how much longer than twice
/// the time undisturbed and two frame times.
pub(super) fn run(seed: u64) -> Shown {
    let mut shown = Shown::new();
    for attack in &ATTACKS {
        let (honest, under) = (seen(attack, false, seed), seen(attack, true, seed));
        let (Some(honest), Some(under)) = (honest, under) else { continue };
        let frame = 1e3 * 8.0 * 1_518.0 / whole(attack.rate);
        let late = under.p99_ms - (2.0 * honest.p99_ms + FRAMES * frame);
        let figures = [
            ("share", whole(under.bytes) / whole(honest.bytes.max(1))),
            ("delay_ms_p99", under.p99_ms),
            ("undisturbed_ms_p99", honest.p99_ms),
            ("late_ms", late.max(0.0)),
        ];
        shown.extend(figures.map(|(name, figure)| (format!("{name}.{}", attack.name), figure)));
    }
    shown
}

fn seen(attack: &Attack, is_attacked: bool, seed: u64) -> Option<Seen> {
    let mut world = World::new(attack, seed)?;
    if is_attacked {
        (attack.send)(attack, &mut world);
    } else {
        world.honest(attack.honest);
    }
    world.victim();
    Some(world.run())
}
