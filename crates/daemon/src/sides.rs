//! A capture does not say from which side of the box a frame came. Addresses do: those of the LAN
//! are given, or are those the policy calls LAN and the private ones. A frame whose addresses leave
//! it open comes from where its sender was seen before.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weir_io::LinkType;
use weir_packet::{Headers, Net, Side, ethernet};
use weir_policy::{Addresses, Plan};
use weir_units::Prefix;

/// Senders remembered at most.
const SENDERS: usize = 65_536;

/// Tells from which side frames came.
pub struct Sides {
    lan: Addresses,
    senders: BTreeMap<[u8; 6], Side>,
    /// Frames whose side neither addresses nor an earlier frame told.
    pub guessed: u64,
}

/// Addresses that never are on the WAN side: private, unique local, link local.
const PRIVATE: [&str; 6] =
    ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "fc00::/7", "fe80::/10"];

impl Sides {
    /// `given` are the LAN's blocks; none given means those of the policy and the private ones.
    pub fn new(given: &[Prefix], plan: &Plan) -> Sides {
        let mut blocks = given.to_vec();
        if blocks.is_empty() {
            blocks.extend(PRIVATE.iter().filter_map(|b| b.parse::<Prefix>().ok()));
            blocks.extend(plan.subscribers.iter().map(|(block, _)| *block));
            let rules = plan.asked.iter().flat_map(|a| &a.rules);
            // nor does "not lan servers"
            let rules = rules.filter(|rule| !rule.when.excludes);
            let sets = rules.filter_map(|rule| rule.when.lan.as_ref());
            // "lan 0.0.0.0/0" says nothing about where the LAN is
            blocks.extend(sets.flat_map(|set| set.blocks()).filter(|b| b.len() > 0));
        }
        Sides { lan: Addresses::new(blocks), senders: BTreeMap::new(), guessed: 0 }
    }

    /// The side that a frame came from.
    pub fn of(&mut self, link: LinkType, headers: &Headers, bytes: &[u8]) -> Side {
        // other links have no MACs; those of the frame are made up and all the same
        let sender = ethernet::source_mac(bytes).filter(|_| link == LinkType::Ethernet);
        let side = match self.by_address(headers) {
            Some(side) => side,
            None => match sender.and_then(|mac| self.senders.get(&mac)) {
                Some(side) => return *side,
                None => {
                    self.guessed += 1;
                    Side::Lan
                }
            },
        };
        if let Some(mac) = sender
            && (self.senders.len() < SENDERS || self.senders.contains_key(&mac))
        {
            self.senders.insert(mac, side);
        }
        side
    }

    /// The side by the addresses alone, where they tell.
    pub fn by_address(&self, headers: &Headers) -> Option<Side> {
        let is_lan = |address: u128| {
            let address = match headers.net {
                Net::V6 => IpAddr::V6(Ipv6Addr::from_bits(address)),
                _ => IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(address).unwrap_or(0))),
            };
            self.lan.contains(address)
        };
        if headers.net == Net::None {
            return None;
        }
        match (is_lan(headers.source), is_lan(headers.target)) {
            (true, false) => Some(Side::Lan),
            (false, true) => Some(Side::Wan),
            _ => None,
        }
    }
}
