//! How many places of a table each host of the LAN has, so that no host, and no stranger, can have
//! so many that there are none for others.
//!
//! Hosts are told apart by a seeded hash, so that two of them may be taken for one, but nobody can
//! see to it.

use weir_units::limits::FLOW_HOSTS_MIN;

pub(crate) const CELLS: u16 = 1 << 14;

/// What stands for a host where its places are counted.
pub(crate) type Cell = u16;

/// Added to a cell: the host is not known yet, only its address.
pub(crate) const UNKNOWN: Cell = 1 << 15;

/// Places of each host.
#[derive(Debug)]
pub(crate) struct Parts {
    held: Box<[u32]>,
    /// Hosts that hold a place.
    hosts: u32,
    places: u64,
}

impl Parts {
    pub(crate) fn of(places: usize) -> Parts {
        Parts { held: vec![0; CELLS.into()].into(), hosts: 0, places: places as u64 }
    }

    pub(crate) fn cell(host: u32) -> Cell {
        let [.., high, low] = host.to_be_bytes();
        u16::from_be_bytes([high, low]) % CELLS
    }

    pub(crate) fn join(&mut self, cell: Cell) {
        let held = &mut self.held[usize::from(cell % CELLS)];
        self.hosts += u32::from(*held == 0);
        *held += 1;
    }

    pub(crate) fn leave(&mut self, cell: Cell) {
        let held = &mut self.held[usize::from(cell % CELLS)];
        *held -= 1;
        self.hosts -= u32::from(*held == 0);
    }

    pub(crate) fn held(&self, cell: Cell) -> u32 {
        self.held[usize::from(cell % CELLS)]
    }

    /// Whether a host that has so many places has more than its part: half of what each would have
    /// if all had as many. Those that have no more than that hold half of the table at most, so
    /// that in a full one every other place is of a host that has more, however many hosts there
    /// are and however unlike they are.
    pub(crate) fn exceeds(&self, held: u32) -> bool {
        u64::from(held) * u64::from(self.hosts).max(FLOW_HOSTS_MIN) * 2 > self.places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_have_left_make_no_part_smaller() {
        // half of one in 64 places: ten
        let mut parts = Parts::of(1_280);
        assert!(!parts.exceeds(10) && parts.exceeds(11));
        (0..128).for_each(|cell| parts.join(cell));
        // half of what each of 128 would have
        assert!(!parts.exceeds(5) && parts.exceeds(6));
        (0..128).for_each(|cell| parts.leave(cell));
        assert!(!parts.exceeds(10) && parts.exceeds(11));
    }

    #[test]
    fn hosts_are_counted_in_16_384_cells() {
        assert_ne!(Parts::cell(0), Parts::cell(16_383));
        assert_eq!([0, 5].map(Parts::cell), [16_384, 5 + 3 * 16_384].map(Parts::cell));
    }
}
