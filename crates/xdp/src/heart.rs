//! The daemon's hand on the program: it says that it is alive, whether frames shall come, and which
//! are the box's own; and reads what the program counted. All through one shared page, with no
//! system call.

use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use weir_units::limits::{XDP_OWN_ADDRESSES, XSK_QUEUES};

use crate::XdpError;
use crate::error::Step;
use crate::kernel::Page;
use crate::program::{PAGE_WORDS, address_word, word};

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
    /// Passed to the kernel, because weir bypasses the port.
    pub aside: u64,
    /// Passed to the kernel, because the daemon's last turn was too long ago.
    pub stale: u64,
    /// Passed to the kernel, because they are packets to an address of the box itself.
    pub to_box: u64,
    /// Passed to the kernel, because their queue has no socket.
    pub no_socket: u64,
    /// Passed to the kernel, because they ask by ARP for an address of the box, or answer it.
    pub arp: u64,
    /// Passed to the kernel, because a neighbour asks for an IPv6 address of the box.
    pub neighbour: u64,
    /// Asked for the box like those two, but too often in a second: sent up like any other.
    pub asked_too_often: u64,
}

impl Heart {
    /// A hand on the program that has this page.
    ///
    /// # Errors
    /// As the kernel says, when it is no page of a program.
    pub fn at(page: &OwnedFd) -> Result<Heart, XdpError> {
        let page = Page::map(page, PAGE_WORDS).map_err(|why| XdpError::new(Step::Share, why))?;
        Ok(Heart { page })
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

    /// The address of the kernel's bridge below; zeros for none. Frames to it pass to the kernel if
    /// they are for one of [`Heart::own_addresses`] as well. An address of a group is none either:
    /// its frames are everyone's.
    pub fn own_mac(&self, mac: [u8; 6]) {
        let group = mac[0] & 1 != 0;
        let word = if group { 0 } else { address_word(mac) };
        self.page.word(word::OWN).store(word, Ordering::Relaxed);
    }

    /// The box's own addresses, [`XDP_OWN_ADDRESSES`] of each family; says how many were too many.
    /// Packets to them pass to the kernel if they are for [`Heart::own_mac`] too; so do ARP
    /// requests and neighbour solicitations for them, so that the box is found.
    pub fn own_addresses(&self, addresses: &[IpAddr]) -> usize {
        let set = |word, value| self.page.word(word).store(value, Ordering::Relaxed);
        let mut v4 = addresses.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(u32::from_ne_bytes(address.octets())),
            IpAddr::V6(_) => None,
        });
        let mut v6 = addresses.iter().filter_map(|address| match address {
            IpAddr::V4(_) => None,
            IpAddr::V6(address) => Some(address.octets()),
        });
        for own in 0..XDP_OWN_ADDRESSES {
            set(word::OWN_IPV4 + own, v4.next().unwrap_or(0).into());
            let address = v6.next().unwrap_or_default();
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = address;
            set(word::OWN_IPV6 + 2 * own, u64::from_ne_bytes([a, b, c, d, e, f, g, h]));
            set(word::OWN_IPV6 + 2 * own + 1, u64::from_ne_bytes([i, j, k, l, m, n, o, p]));
            // who looks for it asks a group made of its last three bytes (RFC 4291, section 2.7.1)
            let group = address_word([0x33, 0x33, 0xff, n, o, p]);
            set(word::OWN_GROUPS + own, if address == [0; 16] { 0 } else { group });
        }
        v4.count() + v6.count()
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
            arp: sum(word::ARP),
            neighbour: sum(word::NEIGHBOUR),
            asked_too_often: sum(word::ASKED_TOO_OFTEN),
        }
    }
}

impl Counts {
    /// Each with its name, for status and metrics.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 8] {
        [
            ("taken", self.taken),
            ("aside", self.aside),
            ("stale", self.stale),
            ("no-socket", self.no_socket),
            ("to-box", self.to_box),
            ("arp", self.arp),
            ("neighbour", self.neighbour),
            ("asked-too-often", self.asked_too_often),
        ]
    }
}
