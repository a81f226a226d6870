//! One of the allocators, chosen at run time: for the laboratory and the benchmark.

use weir_units::{Instant, Rate, Span};

use crate::fate::Fate;
use crate::tree::{Node, Places, Unfit};
use crate::{Ahab, Hcsfq, Hsdba, Weir, ahab, hsdba, weir};

/// One of the allocators.
#[derive(Debug)]
pub enum Allocator {
    /// Ours.
    Weir(Weir),
    /// HSDBA.
    Hsdba(Hsdba),
    /// HCSFQ.
    Hcsfq(Hcsfq),
    /// AHAB.
    Ahab(Ahab),
}

/// Which, and how.
#[derive(Clone, Copy, Debug)]
pub enum Law {
    /// Ours.
    Weir(weir::Options),
    /// HSDBA.
    Hsdba(hsdba::Options),
    /// HCSFQ, with its time constant and a seed.
    Hcsfq(Span, u64),
    /// AHAB.
    Ahab(ahab::Options),
}

impl Allocator {
    /// An allocator for this tree.
    ///
    /// # Errors
    /// The list is no tree.
    pub fn new(nodes: &[Node], law: Law) -> Result<(Allocator, Places), Unfit> {
        Ok(match law {
            Law::Weir(options) => {
                let (weir, places) = Weir::new(nodes, options)?;
                (Allocator::Weir(weir), places)
            }
            Law::Hsdba(options) => {
                let (hsdba, places) = Hsdba::new(nodes, options)?;
                (Allocator::Hsdba(hsdba), places)
            }
            Law::Hcsfq(constant, seed) => {
                let (hcsfq, places) = Hcsfq::new(nodes, constant, seed)?;
                (Allocator::Hcsfq(hcsfq), places)
            }
            Law::Ahab(options) => {
                let (ahab, places) = Ahab::new(nodes, options)?;
                (Allocator::Ahab(ahab), places)
            }
        })
    }

    /// A packet of a leaf.
    pub fn packet(&mut self, now: Instant, leaf: u32, len: u32) -> Fate {
        match self {
            Allocator::Weir(weir) => weir.packet(now, leaf, len),
            Allocator::Hsdba(hsdba) => hsdba.packet(now, leaf, len),
            Allocator::Hcsfq(hcsfq) => hcsfq.packet(now, leaf, len),
            Allocator::Ahab(ahab) => ahab.packet(now, leaf, len),
        }
    }

    /// What a leaf may send now.
    #[must_use]
    pub fn share(&self, leaf: u32) -> Rate {
        match self {
            Allocator::Weir(weir) => weir.share(leaf),
            Allocator::Hsdba(hsdba) => hsdba.share(leaf),
            Allocator::Hcsfq(hcsfq) => hcsfq.share(leaf),
            Allocator::Ahab(ahab) => ahab.share(leaf),
        }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Allocator::Weir(weir) => weir.bytes(),
            Allocator::Hsdba(hsdba) => hsdba.bytes(),
            Allocator::Hcsfq(hcsfq) => hcsfq.bytes(),
            Allocator::Ahab(ahab) => ahab.bytes(),
        }
    }
}
