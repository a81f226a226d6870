//! What classify is told, as plain data: the engine fills it from a plan, tests fill it by hand.

use weir_packet::{Net, Side};
use weir_units::{By, Prefix, Raw, Span};

use crate::hosts::Owner;

/// Everything about who a frame belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// In the order in which they are asked; the rules of one class lie together.
    pub rules: Vec<Rule>,
    /// The classes that rules and parents name by number.
    pub classes: Vec<Class>,
    /// Whose LAN address it is: block and leaf. The longest block wins, of equal ones the first.
    pub subscribers: Vec<(Prefix, u32)>,
    /// Whose MAC it is on the LAN side, where the address is in none of these blocks.
    pub subscriber_macs: Vec<([u8; 6], u32)>,
    /// Where a frame goes that no rule takes.
    pub default_leaf: u32,
    /// MACs of the LAN side that are routers: behind them hosts are told apart by their addresses.
    /// All addresses behind any other MAC are one host's.
    pub routers: Vec<[u8; 6]>,
}

/// One line of a class's `match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// The class it is a rule of.
    pub class: u32,
    /// What must be so.
    pub when: When,
}

/// A class as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// The class above it.
    pub parent: Option<u32>,
    /// Where its frames go.
    pub target: Target,
}

/// Where the frames of a class go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To one leaf.
    Leaf(u32),
    /// To a leaf per host, made by its first frame.
    Each(Each),
    /// To the leaf of the subscriber whose LAN address it is.
    Subscriber {
        /// Where a frame goes that is of no subscriber.
        otherwise: u32,
    },
}

/// Leaves that are made as hosts appear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Each {
    /// What makes two frames the same host's.
    pub by: By,
    /// The first of the leaves that are free to be made.
    pub first_leaf: u32,
    /// How many there are.
    pub count: u32,
    /// How long without a frame until a leaf may be given to another host.
    pub idle: Span,
    /// Where hosts go that found no leaf, and frames that have no such host.
    pub overflow_leaf: u32,
    /// Whom a leaf is made for; all others ask for one, and go where those go that found none.
    /// `None`: everybody is taken.
    pub known: Option<Vec<Owner>>,
}

/// What must be so for a rule to match; what is empty or `None` does not matter. Addresses are
/// those of IP packets: ARP is matched by `net` or `ethertype`. Ranges include both ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// The LAN address is in one of these blocks.
    pub lan: Vec<Prefix>,
    /// The WAN address is in one of these blocks.
    pub wan: Vec<Prefix>,
    /// One of the two addresses is in one of these blocks.
    pub host: Vec<Prefix>,
    /// The port of the LAN host.
    pub lan_port: Option<(u16, u16)>,
    /// The port of the WAN host.
    pub wan_port: Option<(u16, u16)>,
    /// One of the two ports.
    pub port: Option<(u16, u16)>,
    /// The IP protocol: the one behind all extension headers, or AH (51 alone) if that lies before
    /// it.
    pub protocol: Option<(u8, u8)>,
    /// The differentiated services code point.
    pub dscp: Option<(u8, u8)>,
    /// The number of the outermost VLAN.
    pub vlan: Option<(u16, u16)>,
    /// There is no VLAN tag.
    pub untagged: bool,
    /// The MAC on the LAN side.
    pub lan_mac: Option<[u8; 6]>,
    /// The MAC on the WAN side.
    pub wan_mac: Option<[u8; 6]>,
    /// One of the two MACs.
    pub mac: Option<[u8; 6]>,
    /// Bytes of the frame.
    pub length: Option<(u16, u16)>,
    /// The side that it came in from.
    pub side: Option<Side>,
    /// The Ethernet type behind all tags.
    pub ethertype: Option<(u16, u16)>,
    /// The network header.
    pub net: Option<Net>,
    /// The LAN address is a subscriber's.
    pub subscriber: bool,
    /// Bytes at some place; all of them must be so.
    pub raw: Vec<Raw>,
}
