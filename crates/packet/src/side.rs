//! The two sides of the box, and the ports that each of them has.

use std::ops::{Index, IndexMut};

use weir_units::Way;

/// One of the two sides of the box.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Where the operator's own hosts are.
    #[default]
    Lan,
    /// Where the rest of the world is.
    Wan,
}

/// A port: one of those that a side has. A side has one, a bond several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Member {
    /// The side whose hosts are behind it.
    pub side: Side,
    /// Its number among those of its side.
    pub number: u8,
}

/// A value for each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BySide<T> {
    /// Of the LAN side.
    pub lan: T,
    /// Of the WAN side.
    pub wan: T,
}

impl Side {
    /// Both, in the order in which they are served.
    pub const ALL: [Side; 2] = [Side::Lan, Side::Wan];

    /// The other side: where a frame from this one leaves.
    #[must_use]
    pub const fn other(self) -> Side {
        match self {
            Side::Lan => Side::Wan,
            Side::Wan => Side::Lan,
        }
    }

    /// The way of frames that come in here.
    #[must_use]
    #[inline]
    pub const fn way(self) -> Way {
        match self {
            Side::Lan => Way::Up,
            Side::Wan => Way::Down,
        }
    }

    /// The way of frames that leave here.
    #[must_use]
    #[inline]
    pub const fn way_out(self) -> Way {
        match self {
            Side::Lan => Way::Down,
            Side::Wan => Way::Up,
        }
    }
}

impl<T> BySide<T> {
    /// One value made from the other.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> BySide<U> {
        BySide { lan: f(self.lan), wan: f(self.wan) }
    }

    /// Both, to be read.
    pub fn as_ref(&self) -> BySide<&T> {
        BySide { lan: &self.lan, wan: &self.wan }
    }

    /// Both values, the LAN side's first.
    pub fn both(self) -> [T; 2] {
        [self.lan, self.wan]
    }

    /// The same in a loop.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        [&self.lan, &self.wan].into_iter()
    }

    /// Both values, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.lan, &mut self.wan].into_iter()
    }
}

impl Member {
    /// The only port of each side: a box without bonds.
    pub const ONE_EACH: [Member; 2] = [Member::only(Side::Lan), Member::only(Side::Wan)];

    /// The only port of a side.
    #[must_use]
    pub const fn only(side: Side) -> Member {
        Member { side, number: 0 }
    }
}

impl BySide<Side> {
    /// The sides themselves, to be mapped to something.
    pub const SIDES: BySide<Side> = BySide { lan: Side::Lan, wan: Side::Wan };
}

impl<T> Index<Side> for BySide<T> {
    type Output = T;

    #[inline]
    fn index(&self, side: Side) -> &T {
        match side {
            Side::Lan => &self.lan,
            Side::Wan => &self.wan,
        }
    }
}

impl<T> IndexMut<Side> for BySide<T> {
    #[inline]
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Lan => &mut self.lan,
            Side::Wan => &mut self.wan,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_has_its_own_and_the_ways_lead_from_one_to_the_other() {
        let mut both = BySide::SIDES.map(|side| vec![side]);
        both[Side::Wan].push(Side::Lan);
        assert_eq!(both, BySide { lan: vec![Side::Lan], wan: vec![Side::Wan, Side::Lan] });
        both.values_mut().for_each(|value| value.truncate(1));
        assert!(both.values().flatten().copied().eq(Side::ALL));
        for side in Side::ALL {
            assert_eq!(side.way(), side.other().way_out());
            assert_eq!(side.way(), side.way_out().other());
        }
    }
}
