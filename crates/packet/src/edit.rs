//! Changes to a frame in place, with its checksums repaired from what changed. Each takes the
//! headers as they were parsed (for the offsets; the values are read from the bytes, so that edits
//! may follow one another) and says whether anything was changed.

use crate::Label;
use crate::checksum::repair16;
use crate::headers::{Headers, Net};
use crate::read::array_mut;
use crate::tcp::{self, Tcp};

/// Writes DSCP and ECN.
pub fn set_traffic_class(bytes: &mut [u8], headers: &Headers, class: u8) -> bool {
    change_traffic_class(bytes, headers, |_| class)
}

/// Writes the DSCP (its low six bits) and keeps the ECN.
pub fn set_dscp(bytes: &mut [u8], headers: &Headers, dscp: u8) -> bool {
    change_traffic_class(bytes, headers, |old| (dscp << 2) | (old & 3))
}

/// Writes the ECN (its low two bits) and keeps the DSCP.
pub fn set_ecn(bytes: &mut [u8], headers: &Headers, ecn: u8) -> bool {
    change_traffic_class(bytes, headers, |old| (old & !3) | (ecn & 3))
}

/// Writes that congestion was experienced, into a frame of which only the label is at hand.
pub fn mark_congestion(bytes: &mut [u8], label: &Label) -> bool {
    change(bytes, net_of(label), label.net_at, |old| old | 3)
}

/// Writes the DSCP into a frame of which only the label is at hand, and keeps the ECN. The label
/// tells of it; the colour is the caller's to say.
pub fn mark_dscp(bytes: &mut [u8], label: &mut Label, dscp: u8) -> bool {
    let net = net_of(label);
    if net != Net::None {
        label.traffic_class = (dscp << 2) | label.ecn();
    }
    change(bytes, net, label.net_at, |old| (dscp << 2) | (old & 3))
}

fn net_of(label: &Label) -> Net {
    match (label.kind.is_v4(), label.kind.is_v6()) {
        (true, _) => Net::V4,
        (_, true) => Net::V6,
        _ => Net::None,
    }
}

fn change_traffic_class(bytes: &mut [u8], headers: &Headers, to: impl Fn(u8) -> u8) -> bool {
    change(bytes, headers.net, headers.net_at, to)
}

fn change(bytes: &mut [u8], net: Net, net_at: u16, change: impl Fn(u8) -> u8) -> bool {
    let at = usize::from(net_at);
    match net {
        Net::V4 => {
            let Some(header) = array_mut::<12>(bytes, at) else { return false };
            let (old, new) = (header[1], change(header[1]));
            header[1] = new;
            let words = [[header[0], old], [header[0], new]].map(u16::from_be_bytes);
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            let repaired = repair16(checksum, words[0], words[1]);
            if old != new {
                [header[10], header[11]] = repaired.to_be_bytes();
            }
            old != new
        }
        Net::V6 => {
            let Some(header) = array_mut::<2>(bytes, at) else { return false };
            let old = (header[0] << 4) | (header[1] >> 4);
            let new = change(old);
            header[0] = (header[0] & 0xf0) | (new >> 4);
            header[1] = (header[1] & 0x0f) | (new << 4);
            old != new
        }
        Net::None | Net::Arp => false,
    }
}

/// Writes the TCP window as it stands on the wire (not shifted). Not for a segment that is signed
/// ([`Tcp::is_signed`]): its receiver would reject it.
pub fn set_tcp_window(bytes: &mut [u8], headers: &Headers, window: u16) -> bool {
    Tcp::of(bytes, headers).is_some() && set_tcp_word(bytes, headers, tcp::WINDOW_AT, window)
}

/// Lowers the maximum segment size of a SYN to `most`; a smaller one, or none, stays, and so does
/// that of a SYN that is signed.
pub fn clamp_mss(bytes: &mut [u8], headers: &Headers, most: u16) -> bool {
    let Some(tcp) = Tcp::of(bytes, headers).filter(|tcp| tcp.has(tcp::SYN)) else { return false };
    if tcp.is_signed() {
        return false;
    }
    let Some(at) = tcp.options().mss_at() else { return false };
    let now = bytes.get(usize::from(headers.transport_at) + at..).and_then(<[u8]>::first_chunk);
    let too_large = now.is_some_and(|&now| u16::from_be_bytes(now) > most);
    too_large && set_tcp_word(bytes, headers, at, most)
}

/// Writes the two bytes at `at` of a TCP header that is whole, and repairs its checksum.
fn set_tcp_word(bytes: &mut [u8], headers: &Headers, at: usize, new: u16) -> bool {
    let header = &mut bytes[usize::from(headers.transport_at)..];
    let Some(word) = array_mut::<2>(header, at) else { return false };
    let old = u16::from_be_bytes(*word);
    if old == new {
        return false;
    }
    *word = new.to_be_bytes();
    let Some(field) = array_mut::<2>(header, tcp::CHECKSUM_AT) else { return false };
    let checksum = u16::from_be_bytes(*field);
    // at an odd offset the two bytes lie in two words, each in the other half: the same sum,
    // swapped
    let repaired = if at.is_multiple_of(2) {
        repair16(checksum, old, new)
    } else {
        repair16(checksum, old.swap_bytes(), new.swap_bytes())
    };
    *field = repaired.to_be_bytes();
    true
}

/// Writes the MAC that the frame comes from.
pub fn set_source_mac(bytes: &mut [u8], mac: [u8; 6]) -> bool {
    set_mac(bytes, 6, mac)
}

/// Writes the MAC that the frame goes to.
pub fn set_target_mac(bytes: &mut [u8], mac: [u8; 6]) -> bool {
    set_mac(bytes, 0, mac)
}

fn set_mac(bytes: &mut [u8], at: usize, mac: [u8; 6]) -> bool {
    match array_mut::<6>(bytes, at) {
        Some(field) if *field != mac => {
            *field = mac;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Build;

    fn syn() -> Build {
        let (a, b) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        Build::tcp(a, b).tcp_flags(tcp::SYN)
    }

    #[test]
    fn an_mss_at_an_odd_offset_is_repaired_right() {
        for padding in [&[][..], &[1], &[1, 1], &[1, 1, 1]] {
            let options = |mss: u16| [padding, &[2, 4], &mss.to_be_bytes()].concat();
            let mut bytes = syn().tcp_options(&options(1460)).payload(b"x").to_vec();
            let headers = Headers::parse(&bytes);
            assert!(clamp_mss(&mut bytes, &headers, 1234));
            assert_eq!(bytes, syn().tcp_options(&options(1234)).payload(b"x").to_vec());
            assert!(!clamp_mss(&mut bytes, &headers, 1400), "a smaller one stays");
        }
    }

    #[test]
    fn only_a_syn_is_clamped() {
        let mut bytes = syn().tcp_options(&[2, 4, 5, 0xb4]).tcp_flags(tcp::ACK).to_vec();
        let headers = Headers::parse(&bytes);
        assert!(!clamp_mss(&mut bytes, &headers, 100));
    }

    #[test]
    fn a_signed_syn_is_not_clamped() {
        let md5 = [&[2, 4, 5, 0xb4, 1, 1, 19, 18][..], &[7; 16]].concat();
        for options in [&md5[..], &[29, 4, 1, 1, 2, 4, 5, 0xb4]] {
            let mut bytes = syn().tcp_options(options).to_vec();
            let (before, headers) = (bytes.clone(), Headers::parse(&bytes));
            assert!(!clamp_mss(&mut bytes, &headers, 100));
            assert_eq!(bytes, before);
        }
    }

    #[test]
    fn what_has_no_such_field_is_left_alone() {
        let mut bytes = Build::arp([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).to_vec();
        let (before, headers) = (bytes.clone(), Headers::parse(&bytes));
        assert!(!set_dscp(&mut bytes, &headers, 46));
        assert!(!set_tcp_window(&mut bytes, &headers, 1));
        assert_eq!(bytes, before);
        assert!(set_source_mac(&mut bytes, [7; 6]) && !set_source_mac(&mut bytes, [7; 6]));
        assert!(!set_target_mac(&mut [0; 3], [7; 6]));
    }

    #[test]
    fn headers_of_another_frame_do_no_harm() {
        let headers = Headers::parse(&syn().tcp_options(&[2, 4, 5, 0xb4]).to_vec());
        for len in 0..54 {
            let mut bytes = vec![0; len];
            set_dscp(&mut bytes, &headers, 46);
            set_tcp_window(&mut bytes, &headers, 1);
            clamp_mss(&mut bytes, &headers, 1);
        }
    }
}
