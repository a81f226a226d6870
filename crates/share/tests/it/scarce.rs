//! Guarantees that fit or do not, drawn: once it has settled the allocator gives what the exact
//! answer says, however many they are, whoever wants less than its own, and whatever the weights.

use proptest::prelude::*;
use weir_share::{LINK, Node, Options, Weir};
use weir_units::Rate;

use crate::traffic::{LEN, Sender, steady, through, wanted, windows};

/// A link of 1 Gbit/s, of which the figures below are parts.
const LINE: f64 = 1e9;
/// When all has settled, and the end, in seconds.
const WINDOW: (f64, f64) = (0.4, 0.7);

/// A leaf of the link.
#[derive(Clone, Copy, Debug)]
struct Told {
    weight: u32,
    /// Its part of all that is guaranteed; none: 0.
    part: u32,
    /// What it wants: in hundredths of its guarantee, or of an even share where it has none.
    wants: u32,
}

fn told() -> impl Strategy<Value = Told> {
    let part = prop_oneof![1 => Just(0u32), 3 => 1u32..100];
    (1u32..101, part, 20u32..400).prop_map(|(weight, part, wants)| Told { weight, part, wants })
}

/// The guarantees are so many hundredths of the line together.
fn case(leaves: &[Told], promised: u32) -> (Vec<Node>, Vec<Sender>) {
    let parts = f64::from(leaves.iter().map(|told| told.part).sum::<u32>().max(1));
    let even = LINE / leaves.len() as f64;
    let mut nodes = vec![Node::link(Rate::from_bps(LINE as u64))];
    let mut senders = Vec::new();
    for (told, number) in leaves.iter().zip(1..) {
        let floor = LINE * f64::from(promised) / 100.0 * f64::from(told.part) / parts;
        let of = if told.part == 0 { even } else { floor };
        // four times the line at most
        let rate = (of * f64::from(told.wants) / 100.0).clamp(1e6, 4.0 * LINE);
        nodes.push(Node { floor: Rate::from_bps(floor as u64), ..Node::leaf(LINK, told.weight) });
        senders.push(steady(number, rate, 0.0, WINDOW.1));
    }
    (nodes, senders)
}

fn check(leaves: &[Told], promised: u32) -> Result<(), TestCaseError> {
    let (nodes, senders) = case(leaves, promised);
    let (mut weir, places) = Weir::new(&nodes, Options::SHORT).unwrap();
    let seconds = WINDOW.1 - WINDOW.0;
    let seen = windows(&senders, &[WINDOW], 1, through(&mut weir, &places));
    prop_assert!(weir.audit().is_ok());
    let exact = wanted(&nodes, &senders, |sender| sender.rate);
    for (at, exact) in exact.iter().enumerate() {
        let rate = seen[0].passed[at] / seconds;
        // beside 1 %: two packets, and 0.5 % of the link. While the virtual queue is nearly empty a
        // 256th more than the link is shared out; and where one of little weight has all that is
        // left, the level swings with the noise of all others, and so does who is beside it
        let off = (rate - exact).abs() - 2.0 * f64::from(LEN) * 8.0 / seconds - LINE / 200.0;
        prop_assert!(
            off <= 0.01 * exact,
            "leaf {at} has {:.3}, exact {:.3} Mbit/s",
            rate / 1e6,
            exact / 1e6
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn guarantees_are_scaled_as_the_exact_answer_says(
        leaves in prop::collection::vec(told(), 2..13),
        promised in 50u32..301,
    ) {
        check(&leaves, promised)?;
    }
}
