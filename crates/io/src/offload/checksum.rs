//! The rest of a partial checksum. The sender has put the sum of the pseudo header where the
//! checksum stands, so the sum of all bytes from the transport header on is what is missing.

use weir_packet::checksum;

use super::Checksum;

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
            let (mut frame, undone) = partial(&whole, offset);
            assert_ne!(frame, whole);
            assert!(complete(&mut frame, undone));
            assert_eq!(frame, whole);
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
