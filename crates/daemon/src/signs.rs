//! Signs that a link is not set up as its operator thinks, read from a few frames a second: LAN
//! and WAN mixed up, checksums that nobody completes. A sign is trouble when it is in almost all
//! frames that could show it, so that one odd host makes none.

use weir_io::offload;
use weir_packet::{BySide, Headers, Side};
use weir_policy::Plan;

use crate::facts::Sample;
use crate::sides::Sides;
use crate::trouble::Trouble;

/// Samples a second.
pub(crate) const A_SECOND: u32 = 16;

/// Frames that must have been able to show a sign before it counts; of twice as many half is
/// forgotten.
const ENOUGH: u32 = 32;

/// What the samples of a link have shown.
pub(crate) struct Signs {
    sides: Sides,
    reversed: Share,
    undone: BySide<Share>,
}

/// How many of the latest frames showed a sign.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    of: u32,
    with: u32,
}

impl Signs {
    pub(crate) fn of(plan: &Plan) -> Signs {
        Signs {
            sides: Sides::new(&[], plan),
            reversed: Share::default(),
            undone: BySide::default(),
        }
    }

    /// Takes in some frames as they came, before weir has touched them.
    pub(crate) fn see(&mut self, samples: &[Sample]) {
        for sample in samples {
            let headers = Headers::parse(sample.bytes());
            if let Some(side) = self.sides.by_address(&headers) {
                self.reversed.add(side != sample.side);
            }
            if headers.is_ip() && headers.transport_at > 0 {
                let undone = offload::undone(sample.bytes()).is_some();
                self.undone[sample.side].add(undone);
            }
        }
    }

    /// What is wrong, each with its cure; `completes` says of each side whether weir completes
    /// checksums there.
    pub(crate) fn troubles(&self, plan: &Plan, completes: BySide<bool>) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        let (lan, wan) = (&plan.lan, &plan.wan);
        if self.reversed.is_almost_all() {
            troubles.push(Trouble::new(
                format!(
                    "the ports look reversed: {} of {} frames with a LAN address arrived from it \
                     at {wan}, or for it at {lan}",
                    self.reversed.with, self.reversed.of
                ),
                format!(
                    "if {wan} leads to your hosts, write lan = \"{wan}\", wan = \"{lan}\" and \
                     restart weir"
                ),
            ));
        }
        for (side, port) in [(Side::Lan, lan), (Side::Wan, wan)] {
            let undone = self.undone[side];
            if undone.is_almost_all() && !completes[side] {
                troubles.push(Trouble::new(
                    format!("frames at {port} have checksums that were left to hardware"),
                    format!(
                        "receivers will drop them; run `ethtool -K DEV tx off` at the other end \
                         of {port}, or start weir with --io packet"
                    ),
                ));
            }
        }
        troubles
    }
}

impl Share {
    fn add(&mut self, with: bool) {
        self.of += 1;
        self.with += u32::from(with);
        if self.of >= 2 * ENOUGH {
            self.of /= 2;
            self.with /= 2;
        }
    }

    /// Nine of ten.
    fn is_almost_all(self) -> bool {
        self.of >= ENOUGH && self.with * 10 >= self.of * 9
    }
}

#[cfg(test)]
mod tests {
    use weir_packet::Build;

    use super::*;
    use crate::tests::revision;

    fn sample(side: Side, from: &str, to: &str) -> Sample {
        let frame = Build::udp(from.parse().unwrap(), to.parse().unwrap()).payload(b"x").to_vec();
        Sample::of(side, &frame)
    }

    #[test]
    fn ports_that_are_reversed_are_told_and_right_ones_are_not() {
        let plan = revision(1, "10mbit").plan;
        let (host, server) = ("192.168.1.7:1000", "198.51.100.1:53");
        for (side, is_wrong) in [(Side::Lan, false), (Side::Wan, true)] {
            let mut signs = Signs::of(&plan);
            for n in 0..200 {
                assert_eq!(
                    signs.troubles(&plan, BySide { lan: true, wan: true }).is_empty(),
                    !is_wrong || n < ENOUGH
                );
                signs.see(&[sample(side, host, server)]);
            }
            // a frame that says nothing changes nothing
            (0..100).for_each(|_| signs.see(&[sample(side.other(), server, "198.51.100.2:1")]));
            assert_eq!(
                signs.troubles(&plan, BySide { lan: true, wan: true }).len(),
                usize::from(is_wrong)
            );
            if is_wrong {
                assert!(
                    signs.troubles(&plan, BySide { lan: true, wan: true })[0]
                        .cure
                        .contains("lan = \"b\"")
                );
            }
        }
    }

    #[test]
    fn one_host_that_lies_about_its_address_makes_no_trouble() {
        let plan = revision(1, "10mbit").plan;
        let mut signs = Signs::of(&plan);
        for n in 0..400 {
            let side = if n % 4 == 0 { Side::Lan } else { Side::Wan };
            signs.see(&[sample(side, "192.168.1.7:1000", "198.51.100.1:53")]);
            assert!(signs.troubles(&plan, BySide { lan: true, wan: true }).is_empty(), "{n}");
        }
    }
}
