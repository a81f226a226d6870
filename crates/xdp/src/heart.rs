//! The daemon's hand on the program: it says that it is alive, whether frames shall come, and which
//! are the box's own; and reads what the program counted. All through one shared page, with no
//! system call.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::Ordering;

use weir_units::limits::XSK_QUEUES;

use crate::kernel::Page;
use crate::program::{address_word, word};

/// One port's page. Its program takes no frame before [`Heart::take`] and a first [`Heart::beat`].
#[derive(Debug)]
pub struct Heart {
    page: Page,
}

/// What the program did with the frames that arrived, all queues together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent up to a socket.
    pub taken: u64,
    /// Passed to the kernel, because weir stands aside.
    pub aside: u64,
    /// Passed to the kernel, because the daemon's last turn was too long ago.
    pub stale: u64,
    /// Passed to the kernel, because they are for the box itself.
    pub to_box: u64,
    /// Passed to the kernel, because their queue has no socket.
    pub no_socket: u64,
}

impl Heart {
    pub(crate) fn over(page: Page) -> Heart {
        Heart { page }
    }

    /// The daemon is alive. Once per turn, with the time that the turn has anyway: nanoseconds of
    /// `CLOCK_MONOTONIC`.
    #[inline]
    pub fn beat(&self, now_ns: u64) {
        self.page.word(word::BEAT).store(now_ns, Ordering::Relaxed);
    }

    /// Whether frames shall come up to the daemon, or pass as if weir were not there.
    pub fn take(&self, frames: bool) {
        self.page.word(word::TAKE).store(u64::from(frames), Ordering::Relaxed);
    }

    /// The address of the kernel's bridge below, whose frames pass to the kernel; zeros for none.
    /// An address of a group is none either: its frames are everyone's.
    pub fn own_mac(&self, mac: [u8; 6]) {
        let group = mac[0] & 1 != 0;
        let word = if group { 0 } else { address_word(mac) };
        self.page.word(word::OWN).store(word, Ordering::Relaxed);
    }

    /// The box's own IPv4 address: ARP requests for it pass to the kernel, so that it is found.
    /// Zeros for none; only with an [`Heart::own_mac`].
    pub fn own_ipv4(&self, address: Ipv4Addr) {
        let word = u64::from(u32::from_ne_bytes(address.octets()));
        self.page.word(word::OWN_IPV4).store(word, Ordering::Relaxed);
    }

    /// The box's own IPv6 address: who looks for it asks a group made of its last three bytes
    /// (RFC 4291, section 2.7.1), whose frames pass to the kernel. Zeros for none; only with an
    /// [`Heart::own_mac`].
    pub fn own_ipv6(&self, address: Ipv6Addr) {
        let [.., a, b, c] = address.octets();
        let group = address_word([0x33, 0x33, 0xff, a, b, c]);
        let word = if address.is_unspecified() { 0 } else { group };
        self.page.word(word::OWN_GROUP).store(word, Ordering::Relaxed);
    }

    /// What became of the frames so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let sum = |counter| {
            let lines = (0..XSK_QUEUES).map(|queue| word::QUEUES + queue * word::PER_QUEUE);
            lines.map(|line| self.page.word(line + counter).load(Ordering::Relaxed)).sum()
        };
        Counts {
            taken: sum(word::TAKEN),
            aside: sum(word::ASIDE),
            stale: sum(word::STALE),
            to_box: sum(word::TO_BOX),
            no_socket: sum(word::NO_SOCKET),
        }
    }
}
