//! Frames of one connection never overtake each other: while some of them wait in a leaf, the next
//! ones join them there, also if the rules (or a new policy) would now send them elsewhere.

use weir_packet::{Flow, Label};

/// Where the frames of each connection wait.
#[derive(Debug)]
pub(crate) struct Order {
    flows: Box<[Place]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    leaf: u32,
    waiting: u32,
}

impl Order {
    /// For connections of a table with so many places.
    pub(crate) fn new(flows: usize) -> Order {
        Order { flows: vec![Place::default(); flows].into() }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.flows.len() * size_of::<Place>()
    }

    /// The leaf that a frame joins.
    #[inline]
    pub(crate) fn leaf(&self, label: &Label) -> u32 {
        match self.flows.get(label.flow.index as usize) {
            Some(place) if place.waiting > 0 => place.leaf,
            _ => label.leaf,
        }
    }

    /// Whether frames of a connection wait.
    pub(crate) fn waits(&self, label: &Label) -> bool {
        self.flows.get(label.flow.index as usize).is_some_and(|place| place.waiting > 0)
    }

    /// Lets the processor fetch what a frame of this label will need.
    #[inline]
    pub(crate) fn expect(&self, label: &Label) {
        if let Some(place) = self.flows.get(label.flow.index as usize) {
            std::hint::black_box(place.waiting);
        }
    }

    #[inline]
    pub(crate) fn came(&mut self, label: &Label) {
        if let Some(place) = self.flows.get_mut(label.flow.index as usize) {
            place.leaf = label.leaf;
            place.waiting += 1;
        }
    }

    #[inline]
    pub(crate) fn left(&mut self, flow: Flow) {
        if let Some(place) = self.flows.get_mut(flow.index as usize) {
            place.waiting = place.waiting.saturating_sub(1);
        }
    }

    /// The frames of a connection wait in another leaf now.
    pub(crate) fn moved(&mut self, label: &Label) {
        if let Some(place) = self.flows.get_mut(label.flow.index as usize) {
            place.leaf = label.leaf;
        }
    }
}
