//! A table in two pieces: a part for connections, made once, and a part for leaves, which an edit
//! may replace by a larger one.

use std::ops::{Index, IndexMut};

/// First the places of connections, behind them those of leaves.
#[derive(Debug, Default)]
pub(crate) struct Split<T> {
    flows: Vec<T>,
    leaves: Vec<T>,
}

impl<T: Default + Clone> Split<T> {
    pub(crate) fn new(flows: usize) -> Split<T> {
        Split { flows: vec![T::default(); flows], leaves: Vec::new() }
    }

    /// The leaves' part moves into `large`, which takes its place.
    pub(crate) fn move_into(&mut self, large: &mut Vec<T>) {
        large[..self.leaves.len()].clone_from_slice(&self.leaves);
        std::mem::swap(&mut self.leaves, large);
    }

    /// Bytes that the leaves take.
    pub(crate) fn bytes(&self) -> usize {
        self.leaves.len() * size_of::<T>()
    }

    /// Bytes that the connections take.
    pub(crate) fn bytes_of_flows(&self) -> usize {
        self.flows.len() * size_of::<T>()
    }

    #[inline]
    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        let at = at as usize;
        self.flows.get(at).or_else(|| self.leaves.get(at.wrapping_sub(self.flows.len())))
    }
}

impl<T> Index<u32> for Split<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        match self.flows.get(at as usize) {
            Some(place) => place,
            None => &self.leaves[at as usize - self.flows.len()],
        }
    }
}

impl<T> IndexMut<u32> for Split<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        let flows = self.flows.len();
        match self.flows.get_mut(at as usize) {
            Some(place) => place,
            None => &mut self.leaves[at as usize - flows],
        }
    }
}
