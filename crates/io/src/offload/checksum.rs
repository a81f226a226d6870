//! The rest of a partial checksum. The sender has put the sum of the pseudo header where the
//! checksum stands, so the sum of all bytes from the transport header on is what is missing.

use weir_packet::{Fragment, Headers, Net, checksum, tcp};

use super::Checksum;

const UDP: u8 = 17;

/// Whether the checksum of a TCP or UDP frame is left undone, told by the frame alone: the sum of
/// the pseudo header stands in its place. Of 65 536 frames whose checksum is done one looks the
/// same by chance; to complete it then changes nothing, unless the frame was damaged on its way.
/// Left out: what is inside a tunnel, and SCTP.
#[must_use]
pub fn undone(frame: &[u8]) -> Option<Checksum> {
    let headers = Headers::parse(frame);
    let offset = match headers.protocol {
        tcp::NUMBER => 16,
        UDP => 6,
        _ => return None,
    };
    let (net, start) = (usize::from(headers.net_at), usize::from(headers.transport_at));
    let addresses = match headers.net {
        Net::V4 => net + 12..net + 20,
        Net::V6 => net + 8..net + 40,
        Net::None | Net::Arp => return None,
    };
    if start == 0 || headers.fragment != Fragment::None || headers.ah {
        return None;
    }
    let length = usize::from(headers.end).checked_sub(start)?;
    let sum = checksum::sum(length as u64 + u64::from(headers.protocol), frame.get(addresses)?);
    let at = start + usize::from(offset);
    let stands = frame.get(at..at + 2)?;
    let is_undone = stands == (!checksum::fold(sum)).to_be_bytes() && stands != [0, 0];
    is_undone.then_some(Checksum { start: headers.transport_at, offset })
}

/// Completes a partial checksum. `false`, and nothing changed, if its place is not in the frame.
#[must_use]
pub fn complete(frame: &mut [u8], undone: Checksum) -> bool {
    let start = usize::from(undone.start);
    let at = start + usize::from(undone.offset);
    let (Some(counted), true) = (frame.get(start..), at + 2 <= frame.len()) else { return false };
    let sum = checksum::for_udp(checksum::of(counted));
    frame[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::{Build, Headers};

    /// A frame as a sender with offload leaves it: the sum of the pseudo header in its place.
    fn partial(frame: &[u8], offset: u16) -> (Vec<u8>, Checksum) {
        let headers = Headers::parse(frame);
        let (net, start) = (usize::from(headers.net_at), usize::from(headers.transport_at));
        let mut pseudo = frame[net + 12..net + 20].to_vec();
        pseudo.extend([0, headers.protocol]);
        pseudo.extend(u16::try_from(frame.len() - start).unwrap().to_be_bytes());
        let mut frame = frame.to_vec();
        let at = start + usize::from(offset);
        frame[at..at + 2].copy_from_slice(&(!checksum::of(&pseudo)).to_be_bytes());
        (frame, Checksum { start: headers.transport_at, offset })
    }

    #[test]
    fn a_partial_checksum_becomes_that_of_a_whole_frame() {
        let (a, b) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:443".parse().unwrap());
        for (whole, offset) in [
            (Build::tcp(a, b).payload(b"hello").to_vec(), 16),
            (Build::udp(a, b).payload(b"hi").vlan(7).to_vec(), 6),
        ] {
            assert_eq!(super::undone(&whole), None);
            let (mut frame, undone) = partial(&whole, offset);
            assert_ne!(frame, whole);
            assert_eq!(super::undone(&frame), Some(undone));
            assert!(complete(&mut frame, undone));
            assert_eq!(frame, whole);
        }
    }

    #[test]
    fn ipv6_is_told_too_and_what_has_no_checksum_is_not() {
        let (a, b) = ("[2001:db8::1]:80".parse().unwrap(), "[2001:db8::2]:443".parse().unwrap());
        let whole = Build::tcp(a, b).payload(b"hello there").to_vec();
        let headers = Headers::parse(&whole);
        let (net, start) = (usize::from(headers.net_at), usize::from(headers.transport_at));
        let mut frame = whole.clone();
        let mut pseudo = whole[net + 8..net + 40].to_vec();
        pseudo.extend([0, headers.protocol]);
        pseudo.extend(u16::try_from(whole.len() - start).unwrap().to_be_bytes());
        frame[start + 16..start + 18].copy_from_slice(&(!checksum::of(&pseudo)).to_be_bytes());
        let undone = undone(&frame).unwrap();
        assert!(complete(&mut frame, undone) && frame == whole);
        let mut none = Build::udp(a, b).payload(b"x").to_vec();
        let at = usize::from(Headers::parse(&none).transport_at) + 6;
        none[at..at + 2].copy_from_slice(&[0, 0]);
        assert_eq!(super::undone(&none), None);
        for len in 0..whole.len() {
            let _ = super::undone(&whole[..len]);
        }
    }

    #[test]
    fn a_place_outside_the_frame_changes_nothing() {
        let mut frame = [1; 20];
        for (start, offset) in [(20, 0), (10, 9), (u16::MAX, u16::MAX), (0, 19)] {
            assert!(!complete(&mut frame, Checksum { start, offset }), "{start} {offset}");
        }
        assert_eq!(frame, [1; 20]);
        assert!(complete(&mut frame, Checksum { start: 18, offset: 0 }));
    }
}
