//! From the words about TCP to what condition is told. What a leaf does not say is chosen by its
//! rate: a narrow one needs its senders held, a wide one has its queues.

use weir_condition::{Leaf, Loss, RoundTrip, Spec, Told};
use weir_policy::plan::{NodeId, NodeKind, Shares};
use weir_policy::{self as policy, LeafWords, Mss, Plan, Queue, TcpRate};
use weir_units::{Bytes, Rate, Span, Way};

use super::{Own, Table};

/// At this rate and below, a leaf that says nothing holds its senders.
const NARROW: Rate = Rate::from_bps(1_000_000);
/// Segments that a window lets out at least: what is lost is noticed by three more.
const LEAST: u8 = 4;
/// A full frame that takes longer than this holds up a call.
const PATIENCE: Span = Span::from_ms(10);
/// Bytes of a full packet, and of the headers of one over IPv4.
const FULL: u64 = 1_500;
const HEADERS: u64 = 40;
/// Smaller segments are mostly headers.
const SMALLEST: u64 = 256;

/// What condition is told.
pub(super) fn spec(table: &Table<'_>) -> Spec {
    let mut spec = Spec { told: vec![Told::default()], ..Spec::default() };
    for way in Way::ALL {
        spec.leaves[way] = leaves(table, &mut spec.told, way);
    }
    spec
}

fn leaves(table: &Table<'_>, list: &mut Vec<Told>, way: Way) -> Vec<Leaf> {
    let mut leaves = Vec::new();
    for row in &table.rows[1..] {
        let words = row.words;
        let sized_for = words.tcp.as_ref().map_or(TcpRate::Present, |tcp| tcp.rate);
        let mut add = |number: u32, shares: Shares| {
            let ceil = table.most(shares, way);
            let told = told(words, ceil, table.rate(way));
            if told == Told::default() || ceil == Rate::ZERO {
                return;
            }
            let at = list.iter().position(|t| *t == told).unwrap_or_else(|| {
                list.push(told);
                list.len() - 1
            });
            // treatments differ by few words and few sizes: there are never so many
            let told = u16::try_from(at).unwrap_or(u16::MAX);
            let fixed = match sized_for {
                TcpRate::Present => None,
                TcpRate::Guaranteed => Some(shares.rate),
                TcpRate::At(both) => both[way],
            };
            let rate = fixed.unwrap_or(ceil);
            leaves.push(Leaf { number, told, rate, fixed: fixed.is_some() });
        };
        if let Own::Made { .. } = row.own {
            add(row.number, row.shares(way));
        }
        row.leaves().for_each(|number| add(number, row.of_a_leaf(way)));
    }
    leaves.sort_unstable_by_key(|leaf| leaf.number);
    leaves
}

/// What is done to the connections whose data travel this way through a leaf, also where nobody
/// asked for it.
pub(crate) fn in_words(plan: &Plan, node: NodeId, way: Way) -> Option<String> {
    let line = plan.nodes[0].shares[way].rate;
    let leaf = plan.node(node);
    let shares = match &leaf.kind {
        NodeKind::Each(each) => each.shares[way],
        NodeKind::Leaf | NodeKind::Interior => leaf.shares[way],
    };
    let told = told(plan.words_of(node), shares.ceil.min(line), line);
    let done = [
        told.window.then(|| "windows sized".to_owned()),
        told.pace_acks.then(|| "acknowledgements paced".to_owned()),
        (told.mss != 0).then(|| format!("segments at most {} bytes", told.mss)),
    ];
    let done: Vec<String> = done.into_iter().flatten().collect();
    (!done.is_empty()).then(|| format!("TCP data in this direction: {}", done.join(", ")))
}

/// Whether windows are sized in a leaf with these words that may have `ceil`.
pub(super) fn sizes_windows(words: &LeafWords, ceil: Rate) -> bool {
    let is_fair = words.queue.unwrap_or_default() != Queue::Fifo;
    let said = words.tcp.as_ref().and_then(|tcp| tcp.window);
    said.unwrap_or(is_fair && ceil <= NARROW)
}

/// What is done to the connections of a leaf with these words that may have `ceil` of `line`.
fn told(words: &LeafWords, ceil: Rate, line: Rate) -> Told {
    let said = words.tcp.as_ref();
    let is_fair = words.queue.unwrap_or_default() != Queue::Fifo;
    let is_narrow = is_fair && ceil <= NARROW;
    let told = Told {
        window: sizes_windows(words, ceil),
        pace_acks: said.and_then(|tcp| tcp.pace_acks).unwrap_or(is_narrow),
        least: said.and_then(|tcp| tcp.least).unwrap_or(LEAST),
        loss: match said.map(|tcp| tcp.loss) {
            Some(policy::TcpLoss::Release) => Loss::Release,
            _ => Loss::Hold,
        },
        round_trip: match said.map(|tcp| tcp.round_trip) {
            Some(policy::TcpClock::Coarse) => RoundTrip::Coarse,
            _ => RoundTrip::Fine,
        },
        mss: match said.and_then(|tcp| tcp.mss).unwrap_or(Mss::Auto) {
            Mss::Keep => 0,
            Mss::Auto => segment(line),
            Mss::AtMost(most) => most,
        },
    };
    // a treatment that changes nothing is none
    if told.window || told.pace_acks || told.mss != 0 { told } else { Told::default() }
}

/// The segment that leaves room for a call on a line; 0: any.
fn segment(line: Rate) -> u16 {
    if line.time_for(Bytes::new(FULL)) <= PATIENCE {
        return 0;
    }
    let packet = line.bytes_in(PATIENCE).get();
    u16::try_from(packet.saturating_sub(HEADERS).max(SMALLEST)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_policy::{Source, read};

    /// What is done to data on their way up through class /a with these words.
    fn said(up: &str, class: &str) -> Option<String> {
        let text = format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"{up}\"\n\
             margin = \"100%\"\n[class.\"/a\"]\nmatch = \"tcp\"\n{class}\n"
        );
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).unwrap();
        let plan = &reading.plans[0];
        let node = plan.nodes.iter().position(|node| &*node.path == "/a").unwrap();
        in_words(plan, NodeId::try_from(node).unwrap(), Way::Up)
    }

    #[test]
    fn what_is_done_is_said_and_nothing_else() {
        let words = |done: &str| Some(format!("TCP data in this direction: {done}"));
        assert_eq!(said("100mbit", ""), None);
        let narrow = "windows sized, acknowledgements paced";
        assert_eq!(said("100mbit", "ceil = \"1mbit\""), words(narrow));
        // in 10 ms a line of 1 Mbit/s carries 1 250 bytes, 40 of which are headers
        let small = "segments at most 1210 bytes";
        assert_eq!(said("1mbit", ""), words(&format!("{narrow}, {small}")));
        assert_eq!(said("1mbit", "tcp = { window = false, pace-acks = false }"), words(small));
        assert_eq!(said("1mbit", "tcp = { mss = \"keep\" }"), words(narrow));
    }
}
