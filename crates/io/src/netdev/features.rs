//! What a driver does by itself to make packets cheaper (ethtool's features): joining and cutting
//! them, and leaving checksums to the card. A box in the middle must see frames as they are on the
//! wire, so some of it is turned off.

use std::io;
use std::os::fd::AsFd;

use crate::kernel::ioctl::{self, EthtoolCommand};
use crate::kernel::socket;

use super::generic;

/// One feature, by ethtool's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `gro`: arriving frames are joined by the kernel.
    Gro,
    /// `lro`: arriving frames are joined by the card, so that they cannot be cut as they were.
    Lro,
    /// `tso`: the card cuts TCP.
    Tso,
    /// `gso`: the kernel cuts late.
    Gso,
    /// `tx`: the card completes checksums.
    TxChecksums,
    /// `rxvlan`: the card takes the VLAN tag (802.1Q) out of an arriving frame.
    RxVlan,
    /// `rx-vlan-stag-hw-parse`: the same of service tags (802.1ad).
    RxServiceVlan,
    /// `txvlan` and `tx-vlan-stag-hw-insert`: the card puts the VLAN tag into a leaving frame, or
    /// hands it on beside the frame.
    TxVlan,
}

/// Which are on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// [`Feature::Gro`].
    pub gro: bool,
    /// [`Feature::Lro`].
    pub lro: bool,
    /// [`Feature::Tso`].
    pub tso: bool,
    /// [`Feature::Gso`].
    pub gso: bool,
    /// [`Feature::TxChecksums`].
    pub tx_checksums: bool,
}

/// Among the flags, the one for large receive offload.
const LRO: u32 = 1 << 15;

/// Turns a feature on or off.
pub fn set_feature(name: &str, feature: Feature, on: bool) -> io::Result<()> {
    let any = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    let set = |command, value| ioctl::ethtool(any.as_fd(), name, command, value).map(drop);
    match feature {
        Feature::Gro => set(EthtoolCommand::SetGro, u32::from(on)),
        Feature::Tso => set(EthtoolCommand::SetTso, u32::from(on)),
        Feature::Gso => set(EthtoolCommand::SetGso, u32::from(on)),
        Feature::TxChecksums => set(EthtoolCommand::SetTxChecksums, u32::from(on)),
        Feature::Lro => {
            let old = ioctl::ethtool(any.as_fd(), name, EthtoolCommand::GetFlags, 0)?;
            set(EthtoolCommand::SetFlags, if on { old | LRO } else { old & !LRO })
        }
        Feature::RxVlan => generic::set(name, &[generic::RX_TAGS], on),
        Feature::RxServiceVlan => generic::set(name, &[generic::RX_SERVICE_TAGS], on),
        Feature::TxVlan => generic::set(name, &[generic::TX_TAGS, generic::TX_SERVICE_TAGS], on),
    }
}

/// Turns off what joins arriving frames before anybody can see them one by one. Returns what was
/// on, for who wants to turn it on again.
pub fn see_single_frames(name: &str) -> io::Result<Vec<Feature>> {
    let now = Features::of(name)?;
    let mut turned = Vec::new();
    for (feature, on) in [(Feature::Gro, now.gro), (Feature::Lro, now.lro)] {
        if on {
            set_feature(name, feature, false)?;
            turned.push(feature);
        }
    }
    Ok(turned)
}

impl Features {
    /// Which are on of the interface of that name; what a driver does not know is off.
    pub fn of(name: &str) -> io::Result<Self> {
        let any = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
        let get = |command| ioctl::ethtool(any.as_fd(), name, command, 0).unwrap_or(0);
        Ok(Features {
            gro: get(EthtoolCommand::GetGro) != 0,
            lro: get(EthtoolCommand::GetFlags) & LRO != 0,
            tso: get(EthtoolCommand::GetTso) != 0,
            gso: get(EthtoolCommand::GetGso) != 0,
            tx_checksums: get(EthtoolCommand::GetTxChecksums) != 0,
        })
    }
}
