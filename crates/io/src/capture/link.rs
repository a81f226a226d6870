//! What the bytes of a record start with, and how they become an Ethernet frame.

use weir_packet::{Headers, ethernet};

/// The kind of link that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// Ethernet frames.
    Ethernet,
    /// IP packets with nothing before them.
    RawIp,
    /// What Linux gives for `any`.
    LinuxCooked,
    /// The same with the interface in it.
    LinuxCooked2,
    /// IP behind the number of its family, as BSD's loopback has it, in the byte order of the host.
    Null,
    /// The same in network byte order.
    Loopback,
    /// Another kind, by its number in the registry of link types.
    Other(u16),
}

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// Made up, and marked as such: locally administered addresses. IP packets whose addresses can be
/// read have others, so that each host has its own.
const ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
/// Hardware whose protocol number is no ethertype: netlink, GRE, and frames of radio.
const NO_ETHERTYPE: [u16; 5] = [778, 801, 802, 803, 824];

impl LinkType {
    pub(super) fn from_number(number: u16) -> LinkType {
        match number {
            0 => LinkType::Null,
            1 => LinkType::Ethernet,
            12 | 14 | 101 | 228 | 229 => LinkType::RawIp,
            108 => LinkType::Loopback,
            113 => LinkType::LinuxCooked,
            276 => LinkType::LinuxCooked2,
            other => LinkType::Other(other),
        }
    }
}

/// Makes an Ethernet frame of a record: `frame` is cleared and filled. Where the record has no
/// Ethernet header, one with made-up addresses stands for it ([`ethernet::mac_for`]). `None`
/// when that is not possible: another kind of link, or no IP in it.
#[must_use]
pub fn to_ethernet(link: LinkType, bytes: &[u8], frame: &mut Vec<u8>) -> Option<()> {
    frame.clear();
    let (ethertype, packet) = match link {
        LinkType::Ethernet => {
            frame.extend_from_slice(bytes);
            return Some(());
        }
        LinkType::RawIp => (version(bytes)?, bytes),
        LinkType::Null | LinkType::Loopback => {
            let (_family, packet) = bytes.split_first_chunk::<4>()?;
            (version(packet)?, packet)
        }
        LinkType::LinuxCooked => {
            let (head, packet) = bytes.split_first_chunk::<16>()?;
            (cooked([head[14], head[15]], [head[2], head[3]])?, packet)
        }
        LinkType::LinuxCooked2 => {
            let (head, packet) = bytes.split_first_chunk::<20>()?;
            (cooked([head[0], head[1]], [head[8], head[9]])?, packet)
        }
        LinkType::Other(_) => return None,
    };
    frame.extend_from_slice(&ADDRESSES);
    frame.extend_from_slice(&ethertype);
    frame.extend_from_slice(packet);
    let headers = Headers::parse(frame);
    if headers.is_ip()
        && let Some((source, target)) = headers.addresses()
    {
        frame[..6].copy_from_slice(&ethernet::mac_for(target));
        frame[6..12].copy_from_slice(&ethernet::mac_for(source));
    }
    Some(())
}

fn version(packet: &[u8]) -> Option<[u8; 2]> {
    match packet.first()? >> 4 {
        4 => Some(IPV4),
        6 => Some(IPV6),
        _ => None,
    }
}

fn cooked(protocol: [u8; 2], hardware: [u8; 2]) -> Option<[u8; 2]> {
    let is_ethertype = u16::from_be_bytes(protocol) >= 0x0600;
    let fits = !NO_ETHERTYPE.contains(&u16::from_be_bytes(hardware));
    (is_ethertype && fits).then_some(protocol)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ethertype(link: LinkType, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut frame = vec![9; 3];
        to_ethernet(link, bytes, &mut frame)?;
        assert_eq!(frame[..12], ADDRESSES);
        Some(frame[12..].to_vec())
    }

    #[test]
    fn an_ethernet_frame_stays_as_it_is() {
        let mut frame = vec![9];
        assert_eq!(to_ethernet(LinkType::Ethernet, &[1, 2, 3], &mut frame), Some(()));
        assert_eq!(frame, [1, 2, 3]);
    }

    #[test]
    fn ip_gets_the_ethertype_of_its_version() {
        assert_eq!(ethertype(LinkType::RawIp, &[0x45, 7]), Some(vec![8, 0, 0x45, 7]));
        assert_eq!(ethertype(LinkType::Null, &[30, 0, 0, 0, 0x60]), Some(vec![0x86, 0xdd, 0x60]));
        assert_eq!(ethertype(LinkType::Loopback, &[0, 0, 0, 2, 0x45]), Some(vec![8, 0, 0x45]));
    }

    #[test]
    fn cooked_records_name_theirs() {
        let mut first = [0; 17];
        (first[3], first[14], first[16]) = (1, 8, 0x45);
        assert_eq!(ethertype(LinkType::LinuxCooked, &first), Some(vec![8, 0, 0x45]));
        first[2..4].copy_from_slice(&824_u16.to_be_bytes());
        assert_eq!(ethertype(LinkType::LinuxCooked, &first), None);
        let mut second = [0; 21];
        (second[0], second[1], second[20]) = (0x86, 0xdd, 0x60);
        assert_eq!(ethertype(LinkType::LinuxCooked2, &second), Some(vec![0x86, 0xdd, 0x60]));
    }

    #[test]
    fn what_is_no_ip_or_too_short_gives_nothing() {
        for (link, bytes) in [
            (LinkType::RawIp, &[0x15_u8][..]),
            (LinkType::RawIp, &[]),
            (LinkType::Null, &[2, 0, 0]),
            (LinkType::LinuxCooked, &[0; 15]),
            (LinkType::LinuxCooked2, &[0; 20]),
            (LinkType::Other(127), &[0x45]),
        ] {
            assert_eq!(ethertype(link, bytes), None, "{link:?} {bytes:?}");
        }
    }
}
