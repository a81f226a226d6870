//! What a driver does by itself, by the kernel's names of it: generic netlink's family "ethtool"
//! (Linux 5.6 or newer). It knows the features that the numbers of the older ioctl cannot name.

use std::io;

use super::netlink::{self, Netlink, Request};

/// The card or the kernel takes 802.1Q tags out of arriving frames.
pub(super) const RX_TAGS: &str = "rx-vlan-hw-parse";
/// The same of service tags (802.1ad).
pub(super) const RX_SERVICE_TAGS: &str = "rx-vlan-stag-hw-parse";
/// The card puts 802.1Q tags into leaving frames, or hands them on beside the frame.
pub(super) const TX_TAGS: &str = "tx-vlan-hw-insert";
/// The same of service tags.
pub(super) const TX_SERVICE_TAGS: &str = "tx-vlan-stag-hw-insert";

/// `linux/genetlink.h` and `linux/ethtool_netlink.h`.
const CONTROL: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const FEATURES_GET: u8 = 11;
const FEATURES_SET: u8 = 12;
const HEADER: u16 = 1;
const HEADER_NAME: u16 = 2;
const WANTED: u16 = 3;
const ACTIVE: u16 = 4;
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// The features of an interface that are on now, by name.
pub(super) fn active(name: &str) -> io::Result<Vec<String>> {
    let answers = ask(FEATURES_GET, |request| request.nested(HEADER, |head| named(head, name)))?;
    let answer = answers.first().ok_or(io::ErrorKind::InvalidData)?;
    Ok(read_active(answer))
}

/// Turns features on or off. Those that are fixed, or not known, stay as they are.
pub(super) fn set(name: &str, features: &[&str], on: bool) -> io::Result<()> {
    for feature in features {
        let bit = |bit: Request| {
            let bit = bit.with_name(BIT_NAME, feature);
            if on { bit.with(BIT_VALUE, &[]) } else { bit }
        };
        ask(FEATURES_SET, |request| {
            request
                .nested(HEADER, |head| named(head, name))
                .nested(WANTED, |set| set.nested(BITS, |bits| bits.nested(BIT, bit)))
        })?;
    }
    Ok(())
}

fn named(head: Request, name: &str) -> Request {
    head.with_name(HEADER_NAME, name)
}

fn ask(command: u8, write: impl FnOnce(Request) -> Request) -> io::Result<Vec<Vec<u8>>> {
    let netlink = Netlink::generic()?;
    let family = Request::generic(CONTROL, GET_FAMILY).with_name(FAMILY_NAME, "ethtool");
    let answers = netlink.ask(family)?;
    let mut attributes = answers.iter().flat_map(|answer| netlink::generic_attributes(answer));
    let id = attributes.find(|(kind, _)| *kind == FAMILY_ID);
    let id = id.and_then(|(_, value)| value.first_chunk()).ok_or(io::ErrorKind::Unsupported)?;
    netlink.ask(write(Request::generic(u16::from_ne_bytes(*id), command)))
}

/// The names in the set of what is active: it lists only what is on.
fn read_active(answer: &[u8]) -> Vec<String> {
    let sets = netlink::generic_attributes(answer).filter(|(kind, _)| *kind == ACTIVE);
    let lists =
        sets.flat_map(|(_, set)| netlink::attributes(set)).filter(|(kind, _)| *kind == BITS);
    let bits = lists.flat_map(|(_, list)| netlink::attributes(list));
    let names = bits.flat_map(|(_, bit)| netlink::attributes(bit));
    names.filter(|(kind, _)| *kind == BIT_NAME).map(|(_, name)| super::text(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_lists_what_is_on() {
        let request = Request::generic(7, 11)
            .nested(WANTED, |set| {
                set.nested(BITS, |bits| bits.nested(BIT, |bit| bit.with_name(BIT_NAME, "wanted")))
            })
            .nested(ACTIVE, |set| {
                set.with(1, &[]).nested(BITS, |bits| {
                    bits.nested(BIT, |bit| bit.with(1, &[4; 4]).with_name(BIT_NAME, RX_TAGS))
                        .nested(BIT, |bit| bit.with_name(BIT_NAME, "other"))
                })
            });
        let message = request.finished();
        assert_eq!(read_active(&message[16..]), [RX_TAGS, "other"]);
        for cut in 16..message.len() {
            assert!(read_active(&message[16..cut]).len() <= 2);
        }
    }
}
