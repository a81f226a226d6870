//! What each class of a link gets.

use serde::{Deserialize, Serialize};

use crate::{Count, Counters, Mode, Named};

/// Classes with their counters since the link was started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tree {
    /// The name of the link.
    pub link: String,
    /// When they were read, by the clock of the link.
    pub time_ns: u64,
    /// In the order of the policy, each leaf made at run time behind its class.
    pub rows: Vec<Row>,
    /// Classes that are left out because no frame ever came.
    pub silent: usize,
    /// Classes that are left out because there are too many.
    pub left_out: usize,
    /// Who asks for a leaf of its own and is not approved.
    pub askers: Vec<Asker>,
    /// Whether the link shapes.
    pub mode: Mode,
    /// The age of the counters in seconds, where that is more than it should be.
    pub stale_s: Option<u64>,
}

/// One class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    /// Its path.
    pub class: String,
    /// Levels below the link.
    pub depth: u8,
    /// What it is.
    pub kind: RowKind,
    /// Towards the LAN.
    pub down: Direction,
    /// Towards the WAN.
    pub up: Direction,
}

/// What a class is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// It has classes below it.
    #[default]
    Class,
    /// Frames wait in it.
    Leaf,
    /// It makes leaves.
    Each,
    /// Such a leaf.
    Made,
}

/// What a class gets and may have in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Direction {
    /// What it got.
    #[serde(flatten)]
    pub counters: Counters,
    /// Guaranteed, in bits per second.
    pub rate: u64,
    /// At most, in bits per second; none where it may have everything.
    pub ceil: Option<u64>,
    /// What happened in the last second; only `weir tree` adds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub now: Option<Now>,
}

/// What a class got per second between two answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Now {
    /// Bits that left.
    pub bits: u64,
    /// Frames that left.
    pub frames: u64,
    /// Frames that left with a congestion mark.
    pub marked: u64,
    /// Frames that went no further, by reason.
    pub dropped: Named<u64>,
    /// The mean sojourn time of those that left.
    pub delay_ns_mean: u64,
}

/// Somebody who asks for a leaf of its own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asker {
    /// The class.
    pub class: String,
    /// Who it is, as `known` would name it.
    pub who: String,
}

impl Tree {
    /// The link, and of its classes those at `path` or below it with `filter` in their path. The
    /// case of letters does not matter.
    #[must_use]
    pub fn within(&self, path: &str, filter: &str) -> Tree {
        let (path, filter) = (path.trim_end_matches('/'), filter.to_lowercase());
        let is_below = |class: &str| {
            class.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_meant =
            |class: &str| is_below(class) && class.to_lowercase().contains(filter.as_str());
        let rows = self.rows.iter().filter(|row| row.depth == 0 || is_meant(&row.class));
        Tree { rows: rows.cloned().collect(), left_out: 0, ..self.shown(true, 0) }
    }

    /// The rows that an answer has: of silent classes only the link unless `all`, and at most so
    /// many.
    #[must_use]
    pub fn shown(&self, all: bool, most: usize) -> Tree {
        let mut tree = Tree {
            link: self.link.clone(),
            time_ns: self.time_ns,
            askers: self.askers.clone(),
            mode: self.mode,
            stale_s: self.stale_s,
            ..Tree::default()
        };
        for row in &self.rows {
            if !all && row.depth > 0 && row.is_silent() {
                tree.silent += 1;
            } else if tree.rows.len() == most {
                tree.left_out += 1;
            } else {
                tree.rows.push(row.clone());
            }
        }
        tree
    }
}

impl Row {
    /// Whether no frame ever came.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let none = Counters::default();
        self.down.counters == none && self.up.counters == none
    }

    /// Both directions with their words.
    #[must_use]
    pub fn directions(&self) -> [(&'static str, &Direction); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

impl Direction {
    /// What came since `before`, per second; `span_ns` lies between the two.
    #[must_use]
    pub fn since(&self, before: &Counters, span_ns: u64) -> Now {
        let per_second = |count: u64| {
            let count = u128::from(count) * 1_000_000_000 / u128::from(span_ns.max(1));
            u64::try_from(count).unwrap_or(u64::MAX)
        };
        let now = &self.counters;
        let frames = now.sent.frames.saturating_sub(before.sent.frames);
        let dropped = now.dropped.0.iter().filter_map(|(reason, count)| {
            let was = before.dropped.get(reason).map_or(0, |count: &Count| count.frames);
            let more = count.frames.saturating_sub(was);
            (more > 0).then(|| (reason.clone(), per_second(more)))
        });
        let bytes = now.sent.bytes.saturating_sub(before.sent.bytes);
        Now {
            bits: per_second(bytes.saturating_mul(8)),
            frames: per_second(frames),
            marked: per_second(now.marked.frames.saturating_sub(before.marked.frames)),
            dropped: Named(dropped.collect()),
            delay_ns_mean: now.delay_ns_sum.saturating_sub(before.delay_ns_sum) / frames.max(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(class: &str, depth: u8, frames: u64) -> Row {
        let mut row = Row { class: class.to_owned(), depth, ..Row::default() };
        row.up.counters.received.frames = frames;
        row
    }

    #[test]
    fn silent_classes_and_those_beyond_the_bound_are_counted() {
        let rows = vec![row("/", 0, 0), row("/a", 1, 1), row("/b", 1, 0), row("/c", 1, 2)];
        let tree = Tree { rows, ..Tree::default() };
        for (all, most, shown, silent, left_out) in
            [(false, 9, "/ /a /c", 1, 0), (true, 9, "/ /a /b /c", 0, 0), (true, 2, "/ /a", 0, 2)]
        {
            let answer = tree.shown(all, most);
            let classes: Vec<&str> = answer.rows.iter().map(|row| row.class.as_str()).collect();
            assert_eq!(
                (&*classes.join(" "), answer.silent, answer.left_out),
                (shown, silent, left_out)
            );
        }
    }

    #[test]
    fn a_rate_is_what_came_in_between() {
        let count = |frames, bytes| Count { frames, bytes };
        let mut direction = Direction::default();
        direction.counters.sent = count(30, 2_500);
        direction.counters.delay_ns_sum = 900;
        direction.counters.dropped =
            [("crowded", count(8, 80)), ("runt", count(1, 9))].into_iter().collect();
        let mut before = direction.counters.clone();
        before.sent = count(10, 500);
        before.delay_ns_sum = 100;
        before.dropped.0[0].1.frames = 2;
        let now = direction.since(&before, 2_000_000_000);
        assert_eq!((now.bits, now.frames, now.delay_ns_mean), (8_000, 10, 40));
        assert_eq!(now.dropped, [("crowded", 3)].into_iter().collect());
        // a link that was started again counts from zero
        assert_eq!(Direction::default().since(&before, 1), Now::default());
    }
}
