//! One node of the tree, as the packet path sees it: what its parent knows of it, and its queue if
//! it is a leaf. All of it lies in one cache line.

use super::store::Chain;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;

/// A node; its number is its place in the tree's tables.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Node {
    pub(crate) share: Share,
    pub(crate) parent: u32,
    pub(crate) chain: Chain,
    /// Frames and bytes that may wait in a leaf.
    pub(crate) most_frames: u32,
    pub(crate) most_bytes: u32,
    /// How the frames of a leaf wait, if not plainly.
    pub(crate) care: u16,
    pub(crate) kind: Kind,
    /// The ring of `longest.rs` that a leaf lies in.
    pub(crate) ring: u8,
}

const _: () = assert!(size_of::<Node>() == 64);

/// What a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No node has this number.
    #[default]
    None,
    /// It has children.
    Interior,
    /// Frames wait here, in one chain.
    Plain,
    /// Frames wait here in queues of their own.
    WithCare,
}

/// What a node is among its siblings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// When its next frame should start, in the parent's virtual time.
    pub(crate) s: u64,
    /// Virtual time per byte.
    pub(crate) per_byte: u64,
    pub(crate) weight: u64,
    /// The sibling that is next on its day of the calendar.
    pub(crate) next: u32,
    /// Which calendar of its parent's it is in.
    pub(crate) group: u16,
    pub(crate) flags: Flags,
}

/// Facts about a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(u16);

impl Flags {
    /// It has something to send.
    pub(crate) const ACTIVE: u16 = 1;
    /// It is in a calendar.
    pub(crate) const LISTED: u16 = 2;
    /// Its guarantee has a clock of its own.
    pub(crate) const OWED: u16 = 4;
    /// It waits for that clock.
    pub(crate) const LISTED_OWED: u16 = 8;
    /// It has a ceiling of its own: the parent's is higher.
    pub(crate) const CEILING: u16 = 16;
    /// Its ceiling does not let it send yet: it waits in the timer.
    pub(crate) const HELD: u16 = 32;
    /// It is served because its guarantee is due.
    pub(crate) const IS_DUE: u16 = 64;

    /// It or a sibling has a guarantee with a clock.
    pub(crate) const CLOCKS: u16 = 128;

    /// It has another parent, or is another node, and the parent that it had still notes it: it
    /// sends nothing until that is over.
    pub(crate) const PARKED: u16 = 256;

    /// It had something to send when it left for the parent that it has now, which has not woken it
    /// yet.
    pub(crate) const MOVED: u16 = 512;

    /// Where it is noted.
    const NOTED: u16 = Flags::LISTED | Flags::LISTED_OWED;

    /// Those that do not depend on the siblings.
    pub(crate) const fn of_its_own(self) -> u16 {
        let own = self.0 & (Flags::CEILING | Flags::HELD | Flags::PARKED | Flags::MOVED);
        if self.has(Flags::PARKED) { own | self.noted() } else { own }
    }

    /// Nothing but where it is noted.
    pub(crate) const fn only_noted(self) -> Flags {
        Flags(self.noted())
    }

    /// Where it is noted.
    pub(crate) const fn noted(self) -> u16 {
        self.0 & Flags::NOTED
    }

    #[inline]
    pub(crate) const fn has(self, flag: u16) -> bool {
        self.0 & flag != 0
    }

    #[inline]
    pub(crate) const fn has_all(self, flags: u16) -> bool {
        self.0 & flags == flags
    }

    #[inline]
    pub(crate) const fn set(&mut self, flag: u16) {
        self.0 |= flag;
    }

    #[inline]
    pub(crate) const fn clear(&mut self, flag: u16) {
        self.0 &= !flag;
    }
}

impl Node {
    /// A leaf of one chain.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.kind == Kind::Plain
    }

    pub(crate) const fn is_leaf(&self) -> bool {
        matches!(self.kind, Kind::Plain | Kind::WithCare)
    }

    /// Whether it may not send yet: for its ceiling, or for an edit.
    #[inline]
    pub(crate) const fn is_held(&self) -> bool {
        self.share.flags.has(Flags::HELD | Flags::PARKED)
    }

    #[inline]
    pub(crate) const fn has_ceiling(&self) -> bool {
        self.share.flags.has(Flags::CEILING)
    }

    /// Whether it has a ceiling, or it or a sibling has a guarantee with a clock.
    #[inline]
    pub(crate) const fn has_clock(&self) -> bool {
        self.share.flags.has(Flags::CEILING | Flags::CLOCKS)
    }

    /// Whether one more frame is too many.
    #[inline]
    pub(crate) fn is_full(&self, bytes: usize) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let after = self.chain.bytes().checked_add(bytes);
        self.chain.frames() >= self.most_frames || after.is_none_or(|b| b > self.most_bytes)
    }
}
