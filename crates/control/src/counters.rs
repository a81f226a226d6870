//! What classes count, by the words of the protocol.

use serde::{Deserialize, Serialize};

use crate::Named;

/// Frames and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// How many frames.
    pub frames: u64,
    /// How many bytes they have.
    pub bytes: u64,
}

/// What happened to frames that travel in one direction. received + moved in = sent + waiting +
/// dropped + moved out, at every moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// Came in.
    pub received: Count,
    /// Left.
    pub sent: Count,
    /// Wait now.
    #[serde(rename = "waiting")]
    pub backlog: Count,
    /// The most bytes that ever waited.
    #[serde(rename = "waiting_bytes_max")]
    pub backlog_bytes_max: u64,
    /// Left with a congestion mark.
    pub marked: Count,
    /// TCP data that weir had passed on before.
    #[serde(rename = "again")]
    pub retransmitted: Count,
    /// TCP data that filled a hole: out of order, or lost before weir and retransmitted.
    #[serde(rename = "late")]
    pub reordered: Count,
    /// Came over from another class when the policy changed.
    pub moved_in: Count,
    /// Went to another class when the policy changed.
    pub moved_out: Count,
    /// Sojourn times of all frames that left, together.
    pub delay_ns_sum: u64,
    /// The longest of them.
    pub delay_ns_max: u64,
    /// Went no further, by reason; reasons for which nothing was dropped are left out.
    pub dropped: Named<Count>,
}

impl Counters {
    /// Dropped for any reason.
    #[must_use]
    pub fn dropped_in_all(&self) -> Count {
        let add = |sum: Count, (_, count): (&str, &Count)| Count {
            frames: sum.frames.saturating_add(count.frames),
            bytes: sum.bytes.saturating_add(count.bytes),
        };
        self.dropped.iter().fold(Count::default(), add)
    }

    /// Whether every frame that came is accounted for.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        let [came, went] = [
            [self.received, self.moved_in, Count::default(), Count::default()],
            [self.sent, self.backlog, self.dropped_in_all(), self.moved_out],
        ]
        .map(|counts| counts.iter().fold(0, |sum: u64, count| sum.saturating_add(count.frames)));
        came == went
    }

    /// The mean sojourn time of the frames that left, in nanoseconds.
    #[must_use]
    pub fn delay_ns_mean(&self) -> u64 {
        self.delay_ns_sum / self.sent.frames.max(1)
    }
}

/// One value for each direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Both<T> {
    /// Towards the LAN.
    pub down: T,
    /// Towards the WAN.
    pub up: T,
}

/// The raw counters, as the engine keeps them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Books {
    /// When they were read, by the clock of the link.
    pub time_ns: u64,
    /// The link.
    pub total: Both<Counters>,
    /// What leaves had counted that are not there any more.
    pub gone: Both<Counters>,
    /// By the number of the leaf.
    pub leaves: Vec<LeafBooks>,
    /// Leaves beyond the bound.
    pub left_out: usize,
}

/// The raw counters of a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeafBooks {
    /// Its number.
    pub leaf: u32,
    /// Who it was made for.
    pub owner: Option<String>,
    /// Towards the LAN.
    pub down: Counters,
    /// Towards the WAN.
    pub up: Counters,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_balance_when_every_frame_is_accounted_for() {
        let count = |frames| Count { frames, bytes: frames * 100 };
        let mut counters = Counters {
            received: count(10),
            sent: count(6),
            backlog: count(1),
            dropped: [("queue-full", count(2)), ("managed", count(1))].into_iter().collect(),
            ..Counters::default()
        };
        assert!(counters.is_balanced());
        counters.sent = count(5);
        assert!(!counters.is_balanced());
        (counters.sent, counters.moved_in, counters.moved_out) = (count(9), count(5), count(2));
        assert!(counters.is_balanced());
    }

    #[test]
    fn words_that_are_missing_or_unknown_are_no_fault() {
        let read: Counters = serde_json::from_str(r#"{"sent":{"frames":7},"more":[1]}"#).unwrap();
        assert_eq!(read.sent, Count { frames: 7, bytes: 0 });
        assert_eq!(Counters { sent: Count::default(), ..read }, Counters::default());
    }
}
