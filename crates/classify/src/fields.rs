//! The fields that rules ask for. Each field that a policy uses has its sets of rules and a way
//! from a frame's value to one of them; a field that no rule asks for is not there.

use weir_packet::Net;

use crate::facts::Facts;
use crate::key::AH;
use crate::ranges::Ranges;
use crate::rules::{Plain, UNTAGGED};
use crate::sets::{Blocks, Maker, Sets};
use crate::steps::Steps;

/// A field with the sets of rules that its values allow.
#[derive(Debug)]
pub(crate) struct Field {
    kind: Kind,
    sets: Sets,
}

#[derive(Debug)]
enum Kind {
    Lan(Ranges),
    Wan(Ranges),
    Number(Number, Steps),
}

/// A field whose values are numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    LanPort,
    WanPort,
    Protocol,
    Vlan,
    Side,
    Net,
    Subscriber,
    Dscp,
    Length,
    Ethertype,
    LanMac,
    WanMac,
}

/// What a frame has that does not have the field: it lies behind all steps, where no rule is that
/// asks for the field.
const ABSENT: u64 = u64::MAX;

/// What is added to the protocol of a packet that has one: it is of two protocols.
const BEHIND_AH: u64 = 256;

/// No more fields than this are there.
pub(crate) const FIELDS: usize = 14;

impl Number {
    pub(crate) const ALL: [Number; 12] = [
        Number::LanPort,
        Number::WanPort,
        Number::Protocol,
        Number::Vlan,
        Number::Side,
        Number::Net,
        Number::Subscriber,
        Number::Dscp,
        Number::Length,
        Number::Ethertype,
        Number::LanMac,
        Number::WanMac,
    ];

    /// Whether the frames of one connection in one direction may differ in it.
    const fn varies(self) -> bool {
        use Number::{Dscp, Ethertype, LanMac, Length, WanMac};
        matches!(self, Dscp | Length | Ethertype | LanMac | WanMac)
    }

    /// The numbers that a rule allows, if it asks.
    fn asked(self, rule: &Plain) -> Option<(u64, u64)> {
        let one = |number: u64| (number, number);
        let range = |(first, last): (u16, u16)| (first.into(), last.into());
        let narrow = |(first, last): (u8, u8)| (first.into(), last.into());
        match self {
            Number::LanPort => rule.lan_port.map(range),
            Number::WanPort => rule.wan_port.map(range),
            Number::Protocol => rule.when.protocol.map(narrow),
            Number::Vlan => rule.vlan.map(range),
            Number::Side => rule.when.side.map(|side| one(side as u64)),
            Number::Net => rule.when.net.map(|net| one(net as u64)),
            Number::Subscriber => rule.when.subscriber.then_some((1, 1)),
            Number::Dscp => rule.when.dscp.map(narrow),
            Number::Length => rule.when.length.map(range),
            Number::Ethertype => rule.when.ethertype.map(range),
            Number::LanMac => rule.lan_mac.map(|mac| one(mac_number(mac))),
            Number::WanMac => rule.wan_mac.map(|mac| one(mac_number(mac))),
        }
    }

    /// The numbers that the same rule allows besides, if there are any.
    fn asked_too(self, rule: &Plain) -> Option<(u64, u64)> {
        match (self, rule.when.protocol?) {
            (Number::Protocol, (AH, AH)) => Some((BEHIND_AH, BEHIND_AH + u64::from(u8::MAX))),
            (Number::Protocol, (first, last)) => {
                Some((BEHIND_AH + u64::from(first), BEHIND_AH + u64::from(last)))
            }
            _ => None,
        }
    }

    /// What a frame has.
    #[inline]
    fn of(self, facts: &Facts, is_subscriber: impl Fn() -> bool) -> u64 {
        let h = facts.headers;
        let if_ip = |number: u8| if h.is_ip() { number.into() } else { ABSENT };
        match self {
            Number::LanPort => facts.lan_port().unwrap_or(ABSENT),
            Number::WanPort => facts.wan_port().unwrap_or(ABSENT),
            Number::Protocol if h.ah => BEHIND_AH + u64::from(h.protocol),
            Number::Protocol => if_ip(h.protocol),
            Number::Vlan => h.vlan().unwrap_or(UNTAGGED).into(),
            Number::Side => facts.side as u64,
            Number::Net => h.net as u64,
            Number::Subscriber => is_subscriber().into(),
            Number::Dscp => if_ip(h.dscp()),
            Number::Length => facts.bytes.len().min(usize::from(u16::MAX)) as u64,
            Number::Ethertype => h.ethertype.into(),
            Number::LanMac => facts.lan_mac().map_or(ABSENT, mac_number),
            Number::WanMac => facts.wan_mac().map_or(ABSENT, mac_number),
        }
    }
}

pub(crate) fn mac_number([a, b, c, d, e, f]: [u8; 6]) -> u64 {
    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

impl Field {
    /// The fields that these rules ask for, those first that tell most apart.
    pub(crate) fn all(rules: &[Plain], blocks: &mut Blocks) -> Vec<Field> {
        let lan = Field::addresses(rules, blocks, Kind::Lan, |rule| &rule.lan);
        let wan = Field::addresses(rules, blocks, Kind::Wan, |rule| &rule.wan);
        let numbers = Number::ALL.into_iter();
        let numbers = numbers.filter_map(|number| Field::number(rules, blocks, number));
        let mut fields: Vec<Field> = [lan, wan].into_iter().flatten().chain(numbers).collect();
        if fields.is_empty() {
            // one that nobody asks for: all rules are in its only set
            fields.push(Field::of(rules, blocks, Number::Side, &[]));
        }
        fields
    }

    fn addresses<'r>(
        rules: &'r [Plain],
        blocks: &mut Blocks,
        kind: fn(Ranges) -> Kind,
        asked: fn(&'r Plain) -> &'r [weir_units::Prefix],
    ) -> Option<Field> {
        if rules.iter().all(|rule| asked(rule).is_empty()) {
            return None;
        }
        let mut maker = Maker::new(blocks, rules.len(), |bit| asked(&rules[bit]).is_empty());
        let asking = (0u32..)
            .zip(rules)
            .flat_map(|(bit, rule)| asked(rule).iter().map(move |&block| (block, bit)));
        let ranges = Ranges::new(asking, 0, |around, bits| maker.with(around, bits));
        Some(Field { kind: kind(ranges), sets: maker.finish() })
    }

    fn number(rules: &[Plain], blocks: &mut Blocks, number: Number) -> Option<Field> {
        let asked = (0u32..).zip(rules).flat_map(|(bit, rule)| {
            let ranges = number.asked(rule).into_iter().chain(number.asked_too(rule));
            ranges.map(move |(first, last)| (first, last, bit))
        });
        let asked: Vec<_> = asked.collect();
        if asked.is_empty() {
            return None;
        }
        Some(Field::of(rules, blocks, number, &asked))
    }

    fn of(
        rules: &[Plain],
        blocks: &mut Blocks,
        number: Number,
        asked: &[(u64, u64, u32)],
    ) -> Field {
        let is_any = |bit: usize| number.asked(&rules[bit]).is_none();
        let mut maker = Maker::new(blocks, rules.len(), is_any);
        let steps = Steps::new(asked, &mut maker);
        Field { kind: Kind::Number(number, steps), sets: maker.finish() }
    }

    /// Whether the frames of one connection in one direction may differ in it.
    pub(crate) fn varies(&self) -> bool {
        matches!(self.kind, Kind::Number(number, _) if number.varies())
    }

    /// Whether it is a port.
    pub(crate) fn is_port(&self) -> bool {
        matches!(self.kind, Kind::Number(Number::LanPort | Number::WanPort, _))
    }

    /// Whether it is the IP protocol.
    pub(crate) fn is_protocol(&self) -> bool {
        matches!(self.kind, Kind::Number(Number::Protocol, _))
    }

    /// How many sets there are.
    pub(crate) fn sets(&self) -> u64 {
        self.sets.len() as u64
    }

    /// The number of the set that a frame leads to.
    #[inline]
    pub(crate) fn find(&self, facts: &Facts, is_subscriber: impl Fn() -> bool) -> u32 {
        match &self.kind {
            Kind::Lan(ranges) => find_address(ranges, facts.headers.net, facts.lan()),
            Kind::Wan(ranges) => find_address(ranges, facts.headers.net, facts.wan()),
            Kind::Number(number, steps) => steps.find(number.of(facts, is_subscriber)),
        }
    }

    /// The same for a field that varies within a connection.
    #[inline]
    pub(crate) fn find_varying(&self, facts: &Facts) -> u32 {
        match &self.kind {
            Kind::Number(number, steps) => steps.find(number.of(facts, || false)),
            Kind::Lan(_) | Kind::Wan(_) => 0,
        }
    }

    /// Looks at where the search for a frame's address begins.
    #[inline]
    pub(crate) fn peek(&self, facts: &Facts) -> u32 {
        match &self.kind {
            Kind::Lan(ranges) => ranges.peek(facts.headers.net, facts.lan()),
            Kind::Wan(ranges) => ranges.peek(facts.headers.net, facts.wan()),
            Kind::Number(..) => 0,
        }
    }

    /// The numbers of the blocks of a set.
    #[inline]
    pub(crate) fn list(&self, set: u32) -> &[u32] {
        self.sets.list(set)
    }
}

#[inline]
fn find_address(ranges: &Ranges, net: Net, address: u128) -> u32 {
    match net {
        Net::V4 => ranges.v4(address),
        Net::V6 => ranges.v6(address),
        Net::None | Net::Arp => 0,
    }
}
