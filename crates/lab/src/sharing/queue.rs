//! The rivals that have queues: one for all, or one for each leaf and a server that goes round
//! (deficit weighted round robin, Shreedhar and Varghese 1995). What they do with a packet is known
//! when it is served, so they also say how long packets waited.

use std::collections::VecDeque;

use weir_share::{Node, Places};
use weir_units::Rate;

use super::{bits, number};

/// Bytes that a queue of weight one may send in its turn.
const QUANTUM: u64 = 1_600;

#[derive(Clone, Debug, Default)]
struct Queue {
    waiting: VecDeque<(u64, u32)>,
    deficit: u64,
    weight: u64,
    is_listed: bool,
}

/// Queues before a link.
pub(crate) struct Queues {
    queues: Vec<Queue>,
    is_shared: bool,
    depth: usize,
    /// ns for a bit.
    bit: f64,
    /// Who has something, whose turn it is first.
    turns: VecDeque<usize>,
    /// Until when the link is busy.
    busy: u64,
    /// How long each packet took from its coming to its last bit, in ns.
    pub(crate) waits: Vec<(u64, u64)>,
}

impl Queues {
    pub(crate) fn new(
        nodes: &[Node],
        places: &Places,
        rate: Rate,
        depth: u32,
        is_shared: bool,
    ) -> Queues {
        let leaves = (0_u32..).zip(nodes).filter_map(|(at, node)| Some((places.leaf(at)?, node)));
        let mut queues = vec![Queue { weight: 1, ..Queue::default() }];
        for (leaf, node) in leaves {
            let leaf = leaf as usize;
            if queues.len() <= leaf {
                queues.resize(leaf + 1, Queue::default());
            }
            queues[leaf].weight = u64::from(node.weight);
        }
        let (turns, waits) = (VecDeque::new(), Vec::new());
        let bit = 1e9 / bits(rate);
        Queues { queues, is_shared, depth: depth as usize, bit, turns, busy: 0, waits }
    }

    /// A packet comes; whether there is room for it.
    pub(crate) fn arrive(&mut self, now: u64, leaf: u32, len: u32) -> bool {
        self.serve(now);
        let at = if self.is_shared { 0 } else { leaf as usize };
        let queue = &mut self.queues[at];
        if queue.waiting.len() >= self.depth {
            return false;
        }
        queue.waiting.push_back((now, len));
        if !queue.is_listed {
            (queue.is_listed, queue.deficit) = (true, QUANTUM * queue.weight);
            self.turns.push_back(at);
        }
        true
    }

    /// Sends what the link could send by now.
    pub(crate) fn serve(&mut self, now: u64) {
        while let Some(&at) = self.turns.front() {
            let queue = &mut self.queues[at];
            let Some(&(came, len)) = queue.waiting.front() else {
                queue.is_listed = false;
                self.turns.pop_front();
                continue;
            };
            let begins = self.busy.max(came);
            if begins > now {
                return;
            }
            if queue.deficit < u64::from(len) {
                queue.deficit += QUANTUM * queue.weight;
                self.turns.rotate_left(1);
                continue;
            }
            queue.deficit -= u64::from(len);
            queue.waiting.pop_front();
            self.busy = begins + number(f64::from(len) * 8.0 * self.bit).max(1);
            self.waits.push((came, self.busy - came));
        }
    }
}
