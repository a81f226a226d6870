//! The identity of a piece of memory. Buffers are known by their numbers, and a number says nothing
//! about the memory that it counts in: a frame of one memory, used with the pool or the port of
//! another, would be a different buffer. Whatever holds numbers across calls therefore holds this
//! identity too, and compares it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Which memory a pool, a port or a ring works over. No two pieces of memory in one process have
/// the same one, whatever their sizes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct MemoryId(u64);

impl MemoryId {
    /// An identity that nothing else has.
    pub(crate) fn unique() -> MemoryId {
        // identities are compared and never counted with: their order is of no meaning, and so is
        // the number itself, which therefore makes no run differ from another
        static NEXT: AtomicU64 = AtomicU64::new(0);
        MemoryId(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Refuses to go on with a pool of another memory, where buffers would be mixed up.
    ///
    /// # Panics
    /// If `other` is not this memory: a fault in weir, never one of a frame.
    #[inline]
    #[track_caller]
    pub fn expect_same(self, other: MemoryId) {
        assert!(self == other, "the pool works over {other:?}, but its buffers are of {self:?}");
    }
}

impl fmt::Debug for MemoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use crate::Pool;

    #[test]
    fn two_memories_of_the_same_size_are_not_the_same() {
        let (a, b) = (Pool::new(4, 64), Pool::new(4, 64));
        assert_ne!(a.memory(), b.memory());
        a.memory().expect_same(a.memory());
    }

    #[test]
    #[should_panic(expected = "but its buffers are of memory")]
    fn a_pool_of_another_memory_is_refused() {
        Pool::new(4, 64).memory().expect_same(Pool::new(4, 64).memory());
    }
}
