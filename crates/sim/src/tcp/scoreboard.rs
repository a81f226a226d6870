//! What has been sent and not yet acknowledged, segment by segment, and the counts that follow.

use std::collections::VecDeque;

use weir_units::Instant;

/// A segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) has_fin: bool,
    /// When it was sent last.
    pub(crate) at: Instant,
    pub(crate) sacked: bool,
    pub(crate) lost: bool,
    /// It was sent again since it was lost, and may be under way.
    pub(crate) again: bool,
    /// It was ever sent again.
    pub(crate) ever_again: bool,
    /// What had been delivered when it was sent, and when that was.
    pub(crate) delivered: u64,
    pub(crate) delivered_at: Instant,
    /// When the first segment of the flight was sent that it is part of.
    pub(crate) flight_at: Instant,
    pub(crate) app_limited: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Scoreboard {
    pub(crate) sent: VecDeque<Sent>,
    /// Segments that arrived above a hole; without SACK, as many as there were duplicates.
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) again: u32,
    /// The right end of the highest segment that arrived above a hole.
    pub(crate) highest: u64,
    /// The first segment that may be lost and not sent again.
    hint: u64,
}

impl Scoreboard {
    pub(crate) fn out(&self) -> u32 {
        u32::try_from(self.sent.len()).unwrap_or(u32::MAX)
    }

    /// Segments that are thought to be under way.
    pub(crate) fn in_flight(&self) -> u32 {
        (self.out() + self.again).saturating_sub(self.sacked + self.lost)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The index of the segment that has `offset`, or would.
    pub(crate) fn at(&self, offset: u64) -> usize {
        self.sent.partition_point(|sent| sent.end <= offset)
    }

    pub(crate) fn mark_lost(&mut self, index: usize) -> bool {
        let Some(sent) = self.sent.get_mut(index).filter(|sent| !sent.sacked) else { return false };
        let was_under_way = !sent.lost || sent.again;
        if sent.again {
            sent.again = false;
            self.again -= 1;
        }
        if !sent.lost {
            sent.lost = true;
            self.lost += 1;
        }
        self.hint = self.hint.min(sent.start);
        was_under_way
    }

    /// Marks a segment as arrived; gives it back if that is news.
    pub(crate) fn mark_sacked(&mut self, index: usize) -> Option<Sent> {
        let sent = self.sent.get_mut(index).filter(|sent| !sent.sacked)?;
        let before = *sent;
        sent.sacked = true;
        self.sacked += 1;
        self.highest = self.highest.max(sent.end);
        if std::mem::take(&mut sent.lost) {
            self.lost -= 1;
        }
        if std::mem::take(&mut sent.again) {
            self.again -= 1;
        }
        Some(before)
    }

    /// Takes off the first segment, if it ends by `una`; cuts it where `una` lies in it.
    pub(crate) fn acknowledge(&mut self, una: u64, counts_sacked: bool) -> Option<Sent> {
        let first = self.sent.front_mut()?;
        if first.end > una {
            first.start = first.start.max(una);
            return None;
        }
        let gone = self.sent.pop_front()?;
        self.lost -= u32::from(gone.lost);
        self.again -= u32::from(gone.again);
        if counts_sacked {
            self.sacked -= u32::from(gone.sacked);
        }
        Some(gone)
    }

    /// The first segment that is lost and not sent again.
    pub(crate) fn next_lost(&mut self) -> Option<usize> {
        if self.lost <= self.again {
            return None;
        }
        let from = self.at(self.hint);
        let found = (from..self.sent.len()).find(|at| {
            let sent = &self.sent[*at];
            sent.lost && !sent.again
        });
        self.hint = found.map_or(u64::MAX, |at| self.sent[at].start);
        found
    }

    /// The segment has been sent again.
    pub(crate) fn sent_again(&mut self, index: usize, now: Instant) {
        let Some(sent) = self.sent.get_mut(index) else { return };
        sent.at = now;
        sent.ever_again = true;
        if sent.lost && !sent.again {
            sent.again = true;
            self.again += 1;
        }
    }

    /// Nothing is thought to be lost any more.
    pub(crate) fn forgive(&mut self) {
        for sent in &mut self.sent {
            sent.lost = false;
            sent.again = false;
        }
        (self.lost, self.again) = (0, 0);
    }
}
