//! How far the order of frames may be off the fluid.

use weir_units::Rate;

use crate::World;

/// Frames that a frame may be out of order by: itself, the day of its calendar to which its place
/// is known, and half of the quarter to which it is known who should finish first.
const ORDER: f64 = 1.0 + 1.0 / 16.0 + 1.0 / 8.0;

/// Bits of a full frame, in which clocks reckon however small the frames are that they are for; of
/// the largest frame of any sibling where that is larger.
const FULL: f64 = 1_536.0 * 8.0;

/// Of these, so many the clock of a guarantee may be off: it is ahead by two at most, and late by
/// two before time waits for it, which is seen once the frame on the line has gone.
const CLOCK: f64 = 3.0;

impl World {
    /// [`ORDER`] of a frame of its own and of one of each above it; what its clock may be off
    /// where it is guaranteed something; and its part by weight of the same of those beside it, and
    /// beside those above it. What clocks are off, those bear that have none, if there are any, and
    /// only who has something to send bears anything.
    pub(crate) fn slack(&self) -> Vec<f64> {
        let came = || self.spec.nodes.iter().filter(|n| self.largest[n.number as usize] > 0.0);
        let clock = |parent: u32| CLOCK * self.largest[parent as usize].max(FULL);
        let waits = self.who_waits();
        let none = vec![0.0; self.largest.len()];
        let (mut weights, mut others, mut clocks) = (none.clone(), none.clone(), none.clone());
        for node in came() {
            let (parent, waits) = (node.parent as usize, waits[node.number as usize]);
            if node.rate > Rate::ZERO {
                clocks[parent] += clock(node.parent);
            } else if waits {
                others[parent] += node.weight as f64;
            }
            if waits {
                weights[parent] += node.weight as f64;
            }
        }
        let (mut own, mut taken) = (self.largest.clone(), none);
        for node in &self.spec.nodes {
            let (number, parent) = (node.number as usize, node.parent as usize);
            own[number] += own[parent];
            let mut bear = weights[parent];
            if node.rate > Rate::ZERO {
                taken[number] += clock(node.parent);
            } else {
                bear = others[parent];
            }
            let part = (node.weight as f64 / bear).min(1.0);
            taken[number] += (taken[parent] + clocks[parent]) * part;
        }
        own.iter().zip(taken).map(|(own, taken)| ORDER * own + taken).collect()
    }

    /// Which nodes have something to send, by number.
    fn who_waits(&self) -> Vec<bool> {
        let mut waits: Vec<bool> = self.waiting.iter().map(|&bits| bits > 0.0).collect();
        for node in self.spec.nodes.iter().rev() {
            waits[node.parent as usize] |= waits[node.number as usize];
        }
        waits
    }
}
