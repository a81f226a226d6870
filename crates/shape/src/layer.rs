//! What a frame costs on its link. The operator buys a rate that counts IP packets, Ethernet frames
//! or ATM cells; a shaper that counts something else is wrong by the difference, most of all for
//! small frames.

use weir_units::{Bytes, Layer};

/// What a rate counts, with the operator's correction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FrameCost {
    /// Which layer a rate counts.
    pub layer: Layer,
    /// Bytes that a frame costs beyond that.
    pub overhead: i16,
}

const ETHERNET_HEADER: i64 = 14;
const CHECK_SEQUENCE: i64 = 4;
const SHORTEST: i64 = 64;
/// Preamble, start delimiter and the gap between frames.
const PREAMBLE_AND_GAP: i64 = 20;
/// PTM's own frame: flags and its check sequence (IEEE 802.3 clause 61).
const PTM_FRAME: i64 = 4;
const AAL5_TRAILER: i64 = 8;
const CELL: i64 = 53;
const CELL_CARRIES: i64 = 48;

impl FrameCost {
    /// What a frame of `frame` bytes costs, whose network header begins at `net_at` (0: nowhere).
    #[must_use]
    #[inline]
    pub fn cost(self, frame: usize, net_at: u16) -> Bytes {
        let frame = i64::try_from(frame).unwrap_or(i64::MAX >> 8);
        let ethernet = (frame + CHECK_SEQUENCE).max(SHORTEST) + i64::from(self.overhead);
        let cost = match self.layer {
            Layer::Ethernet | Layer::Docsis => ethernet,
            _ => self.coded(frame, net_at, ethernet),
        };
        Bytes::new(cost.max(1).unsigned_abs())
    }

    /// What a frame costs on a layer that counts something else than Ethernet does.
    #[inline(never)]
    fn coded(self, frame: i64, net_at: u16, ethernet: i64) -> i64 {
        let header = if net_at == 0 { ETHERNET_HEADER } else { i64::from(net_at) };
        let packet = frame - header + i64::from(self.overhead);
        match self.layer {
            Layer::Ethernet | Layer::Docsis => ethernet,
            Layer::Ip => packet,
            Layer::Wire => ethernet + PREAMBLE_AND_GAP,
            Layer::Atm => parts((packet + AAL5_TRAILER).max(1), CELL_CARRIES) * CELL,
            Layer::Ptm => parts((ethernet + PTM_FRAME) * 65, 64),
        }
    }
}

/// `of / by`, rounded up.
const fn parts(of: i64, by: i64) -> i64 {
    (of + by - 1).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_and_a_small_frame_on_every_layer() {
        let cost = |layer, overhead, frame| FrameCost { layer, overhead }.cost(frame, 14).get();
        assert_eq!(cost(Layer::Ip, 0, 1514), 1500);
        assert_eq!(cost(Layer::Ethernet, 0, 1514), 1518);
        assert_eq!(cost(Layer::Ethernet, 0, 54), 64);
        assert_eq!(cost(Layer::Wire, 0, 1514), 1538);
        // 1500 + 8 in 32 cells; 40 + 8 fills one cell, one byte more takes two
        assert_eq!(cost(Layer::Atm, 0, 1514), 32 * 53);
        assert_eq!(cost(Layer::Atm, 0, 54), 53);
        assert_eq!(cost(Layer::Atm, 1, 54), 2 * 53);
        assert_eq!(cost(Layer::Docsis, 0, 1514), 1518);
        // (1518 + 4) x 65 / 64 = 1545.8
        assert_eq!(cost(Layer::Ptm, 0, 1514), 1546);
    }

    #[test]
    fn no_overhead_makes_a_frame_free() {
        for layer in [Layer::Ip, Layer::Ethernet, Layer::Wire, Layer::Atm, Layer::Ptm] {
            assert!(FrameCost { layer, overhead: i16::MIN }.cost(0, 60_000).get() >= 1);
        }
    }
}
