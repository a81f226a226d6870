//! Edits while somebody floods.

use weir_packet::Side;

use crate::world::{MS, OUTSIDE, ROUTER, SECOND, World, datagram, fresh};
use crate::{FLOOD, LINE, many_macs};

const VICTIM: &str = "[class.\"/a\"]\nmatch = \"lan 10.0.0.2\"\nrate = \"5mbit\"\n";

fn flood(world: &mut World) {
    many_macs(world, 1_000, 300);
    world.add(Side::Lan, (FLOOD, 500), 0, |n| {
        let (port, far) = fresh(n % 5_000);
        datagram(Side::Lan, 66, port, far).frame_len(500).to_vec()
    });
    world.add(Side::Lan, (FLOOD, 1_514), 0, |_| {
        datagram(Side::Lan, 66, 9_000, OUTSIDE).macs([2; 6], ROUTER).frame_len(1_514).to_vec()
    });
}

fn edited(name: &str, policies: &[&str], every: u64) {
    let mut shown = Vec::new();
    for is_edited in [false, true] {
        let mut world = World::new(LINE, &format!("{VICTIM}{}", policies[0]), Side::Lan);
        flood(&mut world);
        world.victim(4_000_000, 0);
        let edits = (0..4 * SECOND / every).filter(|_| is_edited);
        let mut policies = policies.iter().cycle().skip(1);
        world.edits = edits
            .filter_map(|n| Some((n * every + SECOND, format!("{VICTIM}{}", policies.next()?))))
            .collect();
        shown.push(world.run(2 * SECOND, 5 * SECOND));
    }
    let [undisturbed, seen] = [shown[0], shown[1]];
    let told = format!("{name}: {seen:?}, without edits {undisturbed:?}");
    assert!(seen.bulk * 100 >= undisturbed.bulk * 97, "{told}");
    assert!(seen.p99 <= 2 * undisturbed.p99 + 2_422_400, "{told}");
    assert_eq!(seen.lost, 0, "{told}");
}

const EACH: &str = "[class.\"/b\"]\nmatch = \"any\"\neach = \"lan-mac\"\n";
const EACH_NARROW: &str =
    "[class.\"/b\"]\nmatch = \"any\"\neach = { by = \"lan-mac\", ceil = \"8kbit\" }\n";
const EACH_FEW: &str = "[class.\"/b\"]\nmatch = \"any\"\neach = { by = \"lan-mac\", count = 7 }\n";
const FIFO: &str = "[class.\"/b\"]\nmatch = \"any\"\nqueue = \"fifo\"\n";
const FAIR: &str = "[class.\"/b\"]\nmatch = \"any\"\nqueue = \"fair\"\naqm = \"cobalt\"\n";
const CODEL: &str = "[class.\"/b\"]\nmatch = \"any\"\nqueue = \"fifo\"\naqm = \"codel\"\n";
const OTHER: &str = "[class.\"/c\"]\nmatch = \"any\"\nqueue = \"fifo\"\nceil = \"1mbit\"\n";
const SESSIONS: &str = "[class.\"/b\"]\nmatch = \"any\"\n\
    session = { min = \"100kbit\", max = \"200kbit\", count = 9, next = \"wait\" }\n";
const DEEP: &str = "[class.\"/b\"]\nceil = \"4mbit\"\n[class.\"/b/c\"]\nmatch = \"any\"\n\
    each = \"wan-host\"\n";
const WEIR: &str = "[class.\"/b\"]\nmatch = \"any\"\nenforce = \"weir\"\n";

#[test]
fn who_is_not_edited_does_not_notice() {
    edited("each", &[EACH, EACH_NARROW, EACH_FEW], 20 * MS);
    let all = [FIFO, FAIR, EACH, CODEL, SESSIONS, DEEP, WEIR, OTHER, "", EACH_NARROW];
    edited("all", &all, 10 * MS);
}
