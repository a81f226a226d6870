//! The leaves of subscribers.

use weir_units::Prefix;

use super::sums::{self, Promise};
use super::{Above, Build};
use crate::held;
use crate::leaf::LeafWords;
use crate::plan::{Asked, NodeKind, Rule, Shares, Target};
use crate::policy::Policy;
use crate::say::pair;
use crate::subscribers::Subscriber;

/// The rows of each class, by the class's path; sorted so that look-ups are quick.
pub(super) fn below(policy: &Policy) -> Vec<(&str, &Subscriber)> {
    let rows = policy.subscribers.iter().flat_map(|s| &s.rows);
    let mut rows: Vec<(&str, &Subscriber)> = rows.map(|r| (&*r.parent, r)).collect();
    rows.sort_by_key(|(parent, row)| (*parent, row.place));
    rows
}

impl Build<'_> {
    /// Adds the leaves of the subscribers of a class; returns what they are promised.
    pub(super) fn rows(&mut self, path: &str, above: &Above) -> Promise {
        let start = self.below.partition_point(|(p, _)| *p < path);
        let end = self.below.partition_point(|(p, _)| *p <= path);
        let mut promised = Promise::default();
        let mut more = (0, None);
        for at in start..end {
            let row = self.below[at].1;
            if !self.fits(row, path, above) {
                continue;
            }
            let ceil =
                row.ceil.zip(above.ceil).map(|(said, above)| said.unwrap_or(above).min(above));
            let asks_more = row
                .ceil
                .zip(above.ceil)
                .named()
                .iter()
                .any(|(_, (said, above))| said.is_some_and(|said| said > *above));
            if asks_more {
                more.0 += 1;
                more.1.get_or_insert(row.place);
            }
            let shares = row.rate.zip(ceil).map(|(rate, ceil)| Shares {
                rate,
                ceil,
                weight: 0,
                burst: None,
            });
            let path = format!("{path}/{}", row.id);
            let words = above.words.or(&LeafWords::default());
            let words = LeafWords::default().or(&words);
            let id = self.node(
                &path,
                above.id,
                above.depth + 1,
                NodeKind::Leaf,
                shares,
                &words,
                row.place,
            );
            let node = &mut self.plan.nodes[id as usize];
            node.name = (!row.name.is_empty()).then(|| row.name.clone());
            node.priority = above.priority;
            node.enforce = above.enforce;
            let leaves = row.blocks.iter().map(|&block: &Prefix| (block, id));
            self.plan.subscribers.extend(leaves);
            promised = sums::add(promised, sums::of(row.rate));
        }
        if let (count, Some(place)) = more {
            let (above, way) = (pair(&above.ceil), if path.is_empty() { "the link" } else { path });
            let what = format!(
                "{count} subscribers, of which this is the first, have a higher ceiling than \
                 {way}, which has {above}"
            );
            self.problems.warning(place, what, "they get at most that");
        }
        promised
    }

    /// Whether a row's guarantee passes above it; the row is named and skipped if not, so that one
    /// row does not cost the class.
    fn fits(&mut self, row: &Subscriber, path: &str, above: &Above) -> bool {
        let whole = above.rate.zip(above.ceil).map(|(rate, ceil)| rate.unwrap_or(ceil).min(ceil));
        for (direction, (rate, whole)) in row.rate.zip(whole).named() {
            if rate > whole {
                let way = if path.is_empty() { "the link" } else { path };
                let what = format!("it is guaranteed {rate} {direction}, and {way} has {whole}");
                let help = "lower the guarantee, or raise what the class has";
                // each link asks again; of a held row the skipped one has been named
                if self.problems.unfit.insert(row.place) && row.place.file != held::FILE {
                    self.problems.skipped.add(row.place, row.line, what, help.to_owned());
                }
                return false;
            }
        }
        true
    }

    /// The table is asked where the class is that it hangs under.
    pub(super) fn ask_subscribers(&mut self, path: &str, above: &Above) {
        let Some(table) = &self.policy.subscribers else { return };
        if table.under() != path || self.plan.subscribers.is_empty() {
            return;
        }
        let rule = Rule {
            when: crate::matching::When::default(),
            text: format!("lan address in {}", table.file.value).into(),
            place: table.file.place,
        };
        let (node, within) = (above.id, above.within);
        self.plan.asked.push(Asked { node, within, target: Target::Subscriber, rules: vec![rule] });
    }
}
