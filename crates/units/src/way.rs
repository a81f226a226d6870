//! The two ways that traffic takes through weir.

use std::ops::{Index, IndexMut};

/// Which way a frame travels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Way {
    /// Towards the LAN.
    #[default]
    Down,
    /// Towards the WAN.
    Up,
}

impl Way {
    /// Both, in the order in which they are told.
    pub const ALL: [Way; 2] = [Way::Down, Way::Up];

    /// The opposite way.
    #[must_use]
    #[inline]
    pub const fn other(self) -> Way {
        match self {
            Way::Down => Way::Up,
            Way::Up => Way::Down,
        }
    }

    /// As it is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Way::Down => "down",
            Way::Up => "up",
        }
    }
}

/// A value for each way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByWay<T> {
    /// Towards the LAN.
    pub down: T,
    /// Towards the WAN.
    pub up: T,
}

impl<T> ByWay<T> {
    /// One value made from the other.
    #[inline]
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> ByWay<U> {
        ByWay { down: f(self.down), up: f(self.up) }
    }

    /// Two pairs side by side.
    #[inline]
    pub fn zip<U>(self, other: ByWay<U>) -> ByWay<(T, U)> {
        ByWay { down: (self.down, other.down), up: (self.up, other.up) }
    }

    /// Both values with their way.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (Way, &T)> {
        [(Way::Down, &self.down), (Way::Up, &self.up)].into_iter()
    }

    /// Both values, to be changed.
    #[inline]
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        [&mut self.down, &mut self.up].into_iter()
    }

    /// Both values with the name of their way.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &T); 2] {
        [(Way::Down.name(), &self.down), (Way::Up.name(), &self.up)]
    }
}

impl ByWay<Way> {
    /// The ways themselves, to be mapped to something.
    pub const WAYS: ByWay<Way> = ByWay { down: Way::Down, up: Way::Up };
}

impl<T: Clone> ByWay<T> {
    /// The same both ways.
    #[must_use]
    pub fn same(value: T) -> Self {
        ByWay { down: value.clone(), up: value }
    }
}

impl<T> Index<Way> for ByWay<T> {
    type Output = T;

    #[inline]
    fn index(&self, way: Way) -> &T {
        match way {
            Way::Down => &self.down,
            Way::Up => &self.up,
        }
    }
}

impl<T> IndexMut<Way> for ByWay<T> {
    #[inline]
    fn index_mut(&mut self, way: Way) -> &mut T {
        match way {
            Way::Down => &mut self.down,
            Way::Up => &mut self.up,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_own() {
        let mut both = ByWay::WAYS.map(|way| way.name().to_owned());
        assert_eq!(both.named().map(|(name, said)| name == said), [true; 2]);
        both[Way::Up].push('!');
        assert_eq!((&*both.down, &*both[Way::Up]), ("down", "up!"));
        assert!(both.iter().map(|(way, _)| way).eq(Way::ALL));
    }
}
