//! RED and WRED against the algorithm of Floyd and Jacobson (1993, figure 2) in floats, with the
//! gentle part of Floyd (2000). Both see the same queue and the same random number per frame.
//!
//! Ours keeps averages in 2^-24 bytes and probabilities in 2^-32. With weights down to 2^-12 that
//! puts the average off by less than 2^-11 bytes, and a probability by less than a millionth at the
//! steepest curve here; a frame that is nearer than that to the edge is not compared, and the model
//! takes our word for it.

use proptest::prelude::*;
use weir_shape::aqm::{Aqm, Curve, Decision, Random, Red, Wred};
use weir_units::{Bytes, Instant, Span};

use crate::line::{Burst, Discipline, Frame, Queue, drive, traffic};

const NEAR: f64 = 2e-6;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    min: u64,
    max: u64,
    millionths: u32,
    gentle: bool,
}

impl Told {
    pub(crate) fn curve(self) -> Curve {
        Curve::new(Bytes::new(self.min), Bytes::new(self.max), self.millionths, self.gentle)
    }
}

struct Paper {
    curves: [Told; 3],
    weight: f64,
    frame_time: f64,
    avg: f64,
    q_time: f64,
    counts: [f64; 3],
}

struct Checked {
    ours: Queue,
    paper: Paper,
    asked: usize,
    compared: usize,
    differ: Option<String>,
}

impl Paper {
    /// The fate, and by how much it was not another one; `None`: too near to call.
    fn fate(&mut self, now: f64, depth: f64, frame: Frame, random: f64) -> Option<Decision> {
        if depth > 0.0 {
            self.avg += self.weight * (depth - self.avg);
        } else {
            let m = ((now - self.q_time) / self.frame_time).floor();
            self.avg *= (1.0 - self.weight).powf(m);
            self.q_time += m * self.frame_time;
        }
        let told = self.curves[usize::from(frame.colour)];
        let count = &mut self.counts[usize::from(frame.colour)];
        let (min, max) = (told.min as f64, told.max as f64);
        let end = if told.gentle { 2.0 * max } else { max };
        if [min, max, end].iter().any(|edge| (self.avg - edge).abs() < 1e-3) {
            // a frame that is taken there counts, as it does on either side of these two
            *count += f64::from(u8::from(self.avg > min + 1e-3));
            return None;
        }
        if self.avg < min {
            *count = -1.0;
            return Some(Decision::Take);
        }
        let mut signal = true;
        if self.avg < end {
            *count += 1.0;
            let top = f64::from(told.millionths) / 1e6;
            let pb = if self.avg < max {
                top * (self.avg - min) / (max - min)
            } else {
                top + (1.0 - top) * (self.avg - max) / max
            };
            let left = 1.0 - *count * pb;
            let pa = if left > 0.0 { pb / left } else { 1.0 };
            if (random * left - pb).abs() < NEAR || left.abs() < NEAR * *count {
                return None;
            }
            signal = random < pa;
        }
        if !signal {
            return Some(Decision::Take);
        }
        *count = 0.0;
        Some(if frame.can_mark && self.avg < max { Decision::Mark } else { Decision::Drop })
    }
}

impl Discipline for Checked {
    fn arrive(&mut self, now: Instant, frame: Frame) {
        self.ours.random = Random::new(frame.id);
        let random = f64::from(Random::new(frame.id).next_u32()) / 4_294_967_296.0;
        let depth = self.ours.bytes as f64;
        let said = self.ours.log.len();
        let full = self.ours.frames.len() >= self.ours.limit;
        self.ours.arrive(now, frame);
        if full || self.differ.is_some() {
            return;
        }
        let ours = self.ours.log.get(said).map_or(Decision::Take, |(_, fate)| fate.unwrap());
        self.asked += 1;
        match self.paper.fate(now.ns() as f64, depth, frame, random) {
            Some(fate) if fate == ours => self.compared += 1,
            None => {
                let told = self.paper.curves[usize::from(frame.colour)];
                let count = &mut self.paper.counts[usize::from(frame.colour)];
                let below = self.paper.avg < told.min as f64;
                *count = match (ours, below) {
                    (Decision::Take, true) => -1.0,
                    (Decision::Take, false) => *count,
                    _ => 0.0,
                };
            }
            Some(fate) => self.differ = Some(format!("{frame:?}: {ours:?}, paper {fate:?}")),
        }
        let average = self.ours.state.average().unwrap().get() as f64;
        if (average - self.paper.avg).abs() > 1.01 {
            self.differ = Some(format!("{frame:?}: {average}, paper {}", self.paper.avg));
        }
    }

    fn leave(&mut self, now: Instant) -> Option<Frame> {
        let frame = self.ours.leave(now);
        if frame.is_some() && self.ours.frames.is_empty() {
            self.paper.q_time = now.ns() as f64;
        }
        frame
    }
}

fn told() -> impl Strategy<Value = Told> {
    (1_000u64..100_000, 1_000u64..200_000, 1_000u32..1_000_000, any::<bool>()).prop_map(
        |(min, more, millionths, gentle)| Told { min, max: min + more, millionths, gentle },
    )
}

fn compare(
    aqm: Aqm,
    curves: [Told; 3],
    shift: u32,
    frame_time: Span,
    traffic: &[Burst],
) -> Result<(), TestCaseError> {
    let paper = Paper {
        curves,
        weight: 0.5f64.powi(shift as i32),
        frame_time: frame_time.ns() as f64,
        avg: 0.0,
        q_time: 0.0,
        counts: [-1.0; 3],
    };
    let mut both =
        Checked { ours: Queue::new(aqm, 300), paper, asked: 0, compared: 0, differ: None };
    drive(&mut both, traffic);
    prop_assert_eq!(&both.differ, &None);
    // the comparison must not be lost in what is too near to call
    let Checked { asked, compared, .. } = both;
    prop_assert!(compared + 5 >= asked - asked / 50, "{compared} of {asked}");
    Ok(())
}

proptest! {
    #[test]
    fn red_decides_as_the_paper(
        traffic in traffic(),
        told in told(),
        shift in 1u32..=12,
        frame_us in 10u64..2_000,
    ) {
        let frame_time = Span::from_us(frame_us);
        let aqm = Aqm::Red(Red::new(told.curve(), shift, frame_time));
        // one curve and one count, whatever the colour
        let traffic: Vec<_> = traffic.into_iter().map(Burst::green).collect();
        compare(aqm, [told; 3], shift, frame_time, &traffic)?;
    }

    #[test]
    fn wred_decides_as_the_paper_with_three_curves(
        traffic in traffic(),
        curves in [told(), told(), told()],
        shift in 1u32..=12,
        frame_us in 10u64..2_000,
    ) {
        let frame_time = Span::from_us(frame_us);
        let aqm = Aqm::Wred(Wred::new(curves.map(Told::curve), shift, frame_time));
        compare(aqm, curves, shift, frame_time, &traffic)?;
    }
}
