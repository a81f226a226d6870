//! The sign of life that the packet thread gives every turn. Who watches it lets frames go around
//! weir when it stops: a program in the kernel, or the guard.

use std::sync::Arc;

use weir_io::page::Page;
use weir_packet::BySide;
use weir_units::Instant;
use weir_xdp::Heart;

/// The word of the page with the time of the last turn.
pub(crate) const BEAT: usize = 0;
/// The word that says that the kernel's bridge carries the frames now.
pub(crate) const BYPASSED: usize = 1;
/// The word with the time of the guard's last look.
pub(crate) const GUARD_BEAT: usize = 2;
/// The word that says that weir ends in good order: the bridge is to carry at once.
pub(crate) const LEAVING: usize = 3;

/// Where the packet thread writes the time of its last turn.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// The programs' words, one of each port.
    pub(crate) hearts: BySide<Option<Heart>>,
    /// The word of the program at the bridge, with packet sockets.
    pub(crate) bridge: Option<Heart>,
    /// What the guard looks at.
    pub(crate) page: Option<Arc<Page>>,
    /// Whether anything carries the frames while weir does not turn.
    pub(crate) has_bypass: bool,
}

impl Pulse {
    #[inline]
    pub(crate) fn beat(&self, now: Instant) {
        for heart in self.hearts.values().chain([&self.bridge]).flatten() {
            heart.beat(now.ns());
        }
        if let Some(page) = &self.page {
            page.set(BEAT, now.ns());
        }
    }

    /// Whether the bridge carries the frames that come now, so that weir must not as well.
    #[inline]
    pub(crate) fn is_bypassed(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.get(BYPASSED) != 0)
    }
}
