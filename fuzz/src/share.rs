//! The allocators: any tree, any integers, any order of packets and changes. The first bytes are
//! nodes, four each, up to one that is 255; the rest are what happens, ten bytes each.

use weir_share::{Allocator, ahab, hsdba};
use weir_share::{LINK, Law, Node, Options, Place, Published, Weir};
use weir_units::{Instant, Rate, Span};

/// Sums are what follows from the parts, whatever comes; no share is above its peak.
pub fn share(data: &[u8]) {
    let mut nodes = vec![Node::link(Rate::from_bps(1_000_000_000))];
    let mut rest = data;
    while let [a, b, c, d, more @ ..] = rest
        && *a != 255
        && nodes.len() < 64
    {
        rest = more;
        let parent = u32::from(*a) % u32::try_from(nodes.len()).unwrap_or(1);
        let parent = if nodes[parent as usize].is_leaf { LINK } else { parent };
        let rate = |exponent: u8| Rate::from_bps(1_u64.wrapping_shl(u32::from(exponent % 64)));
        nodes.push(Node {
            parent,
            weight: 1_u32.wrapping_shl(u32::from(*b)),
            floor: if c & 1 == 0 { Rate::ZERO } else { rate(*c) },
            peak: if d & 1 == 0 { Rate::MAX } else { rate(*d) },
            is_leaf: b & 0x80 != 0,
            is_spare: b & 0x40 != 0,
        });
    }
    let Ok((mut weir, places)) = Weir::new(&nodes, Options { marks: true, ..Options::TCP }) else {
        return;
    };
    let laws = [
        Law::Hsdba(hsdba::Options::default()),
        Law::Hsdba(hsdba::Options {
            reading: hsdba::Reading::Printed,
            ..hsdba::Options::default()
        }),
        Law::Hcsfq(Span::from_ms(2), 1),
        Law::Ahab(ahab::Options::default()),
    ];
    let mut others = laws.map(|law| Allocator::new(&nodes, law).expect("the same tree").0);
    let mut published = Published::new(&nodes).expect("the same tree").0;
    let mut cores = [published.core(), published.core()];
    while let Some((step, more)) = rest.split_at_checked(10) {
        rest = more;
        let number = |at: usize| u64::from_le_bytes(step[at..at + 8].try_into().expect("eight"));
        let now = Instant::from_ns(number(2) >> (step[1] & 63));
        let place = places.of(u32::from(step[1]) % u32::try_from(nodes.len()).unwrap_or(1));
        let any = step[9];
        match (step[0] % 16, place) {
            (0, _) => weir.set_weight(place, u32::from(any) << (any & 31)),
            (1, _) => weir.set_floor(place, Rate::from_bps(number(2))),
            (2, _) => weir.set_peak(place, Rate::from_bps(number(2))),
            (3, _) => _ = weir.remove(place),
            (4, Place::Inner(parent)) => {
                if let Some(leaf) = weir.join(now, parent, any & 1 == 0) {
                    weir.approve(leaf);
                }
            }
            (5, _) => weir.age(now, Span::from_us(u64::from(any)), 8),
            (6, _) => weir.sweep(now, u32::from(any)),
            (7, _) => published.publish(now, &mut cores),
            (_, Place::Leaf(leaf)) => {
                let len = u32::from(any) << (any & 31);
                weir.packet(now, leaf, len);
                others.iter_mut().for_each(|other| _ = other.packet(now, leaf, len));
                let _ = cores[usize::from(any & 1)].packet(leaf, len);
            }
            _ => {}
        }
        if let Err(why) = weir.audit() {
            panic!("{why}");
        }
        while weir.next_event().is_some() {}
    }
}
