//! How well the peak of a leaf is kept: one leaf, thirteen peaks from 100 kbit/s to 1 Gbit/s, what
//! passes of some times as much.

use weir_share::{LINK, Node};
use weir_units::Rate;

use super::traffic::{Load, send};
use super::{Enforce, Numbers, Sharing, number};

/// Packets at the peak's rate that a run takes, and the time it takes at least and at most.
const PACKETS: f64 = 20_000.0;
const SECONDS: [f64; 2] = [2.0, 60.0];

pub(super) fn run(sharing: &Sharing, enforce: Enforce, seed: u64) -> Numbers {
    let Some(load) = sharing.loads.first() else { return Vec::new() };
    // the load is given for a peak of 1 Mbit/s
    let over = load.rate / 1e6;
    let (mut sum, mut most, mut count) = (0.0, 0.0_f64, 0.0);
    let decades = (5..9).flat_map(|e| [1.0, 2.0, 5.0].map(|f| f * 10_f64.powi(e)));
    for peak in decades.chain([1e9]) {
        let packet = f64::from(sharing.bytes) * 8.0;
        let seconds = (PACKETS * packet / peak).clamp(SECONDS[0], SECONDS[1]);
        let node = Node { peak: Rate::from_bps(number(peak)), ..Node::leaf(LINK, 1) };
        let nodes = [sharing.nodes[0], node];
        let times = (0, number(seconds * 1e9));
        let load = Load { node: 1, rate: over * peak, gaps: load.gaps, sizes: None, times };
        let Some(mut gate) = sharing.gate(&nodes, enforce, seed) else { return Vec::new() };
        // the credit of a newcomer is no error of the rate: a tenth is left out
        let from = times.1 / 10;
        let mut passed = 0.0;
        let is_engine = matches!(enforce, Enforce::Engine(_));
        send(&[load], sharing.bytes, seed, |now, _, _| {
            let passes = gate.packet(now, 1, sharing.bytes);
            if !is_engine && passes && now >= from {
                passed += packet;
            }
            let sent = gate.sent().into_iter().filter(|sent| sent.left >= from);
            passed += sent.map(|sent| f64::from(sent.bytes) * 8.0).sum::<f64>();
        });
        let off = (passed / (seconds * 0.9) / peak - 1.0).abs();
        (sum, most, count) = (sum + off, most.max(off), count + 1.0);
    }
    vec![("error_mean".to_owned(), sum / count), ("error_max".to_owned(), most)]
}
