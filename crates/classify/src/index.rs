//! The rules of a policy as tables: from a frame to the first rule that matches and counts. Made
//! off the packet thread; a look-up touches a few words per field that the policy uses.

use weir_packet::Net;

use crate::facts::{Facts, Routers};
use crate::fields::{FIELDS, Field, mac_number};
use crate::hosts::{Hosts, Owner};
use crate::ranges::Ranges;
use crate::rules::write_out;
use crate::sets::{BLOCK, Block, Blocks};
use weir_units::Raw;
use weir_units::limits::{RAW_BESIDE_MACS, RAW_MATCHES, SUBSCRIBER_MACS};

use crate::spec::{Spec, Target};

/// A policy's rules, classes and subscribers, ready for look-ups, and the room for the leaves that
/// it makes per host.
#[derive(Debug)]
pub struct Index {
    fields: Vec<Field>,
    blocks: Box<[Block]>,
    /// Per bit: the rule that it was written out from, the raw matches that must hold.
    origins: Box<[u32]>,
    needs: Box<[u64]>,
    raws: Vec<Raw>,
    /// Class of each rule.
    rule_class: Box<[u32]>,
    classes: Box<[Place]>,
    subscribers: Option<Ranges>,
    /// The leaves of subscribers by their MAC, sorted.
    macs: Box<[(u64, u32)]>,
    default_leaf: u32,
    /// Whether there are fields or raw matches in which the frames of a connection may differ.
    varies: bool,
    /// Whether rules ask for what a later fragment does not say: ports and bytes; the protocol.
    asks_ports: bool,
    asks_protocol: bool,
    /// The fields before this one are the same for all frames of a connection and direction.
    steady: usize,
    pub(crate) hosts: Vec<Hosts>,
    pub(crate) routers: Routers,
    /// The places in `hosts`, by the first leaf.
    by_leaf: Box<[u32]>,
}

/// A class in the index.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The bits of its rules.
    first: u32,
    behind: u32,
    /// The nearest class above that has rules.
    above: Option<u32>,
    goal: Goal,
}

/// Where the frames of a class go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Leaf(u32),
    /// To a leaf of `hosts`, by its place there.
    Each(u32),
    /// To the subscriber's leaf, or else to this one.
    Subscriber(u32),
}

/// The answer for a frame: the rule and its class, if any, and where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) rule: Option<u32>,
    pub(crate) goal: Goal,
}

/// What within a connection the answer depends on: sets of the fields that vary, and raw matches
/// with the subscriber of a MAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Variant {
    sets: u64,
    raw: u64,
}

/// The leaf of an address that is no subscriber's.
const NOBODY: u32 = u32::MAX;
/// Classes above one another; a chain that is longer goes round in a circle, and never matches.
const CHAIN: usize = 64;

impl Index {
    /// Compiles a policy. Rules of classes that do not exist never match.
    #[must_use]
    pub fn compile(spec: &Spec) -> Index {
        let mut raws = Vec::new();
        let most = if spec.subscriber_macs.is_empty() { RAW_MATCHES } else { RAW_BESIDE_MACS };
        let mut rules = write_out(&spec.rules, &mut raws, most);
        rules.retain(|rule| (spec.rules[rule.rule].class as usize) < spec.classes.len());
        let origins: Box<[u32]> = rules.iter().map(|rule| number(rule.rule)).collect();
        let mut hosts = Vec::new();
        let mut classes = places(spec, &mut hosts);
        for (bit, rule) in rules.iter().enumerate() {
            let place = &mut classes[spec.rules[rule.rule].class as usize];
            place.first = place.first.min(number(bit));
            place.behind = number(bit + 1);
        }
        let mut blocks = Blocks::new();
        let fields = Field::all(&rules, &mut blocks);
        Index {
            asks_ports: fields.iter().any(Field::is_port) || !raws.is_empty(),
            asks_protocol: fields.iter().any(Field::is_protocol),
            varies: fields.iter().any(Field::varies)
                || !raws.is_empty()
                || !spec.subscriber_macs.is_empty(),
            steady: fields.iter().take_while(|field| !field.varies()).count(),
            fields,
            blocks: blocks.finish(),
            origins,
            needs: rules.iter().map(|rule| rule.raw).collect(),
            raws: raws.into_iter().take(64).collect(),
            rule_class: spec.rules.iter().map(|rule| rule.class).collect(),
            classes: classes.into(),
            subscribers: (!spec.subscribers.is_empty()).then(|| {
                Ranges::new(spec.subscribers.iter().copied(), NOBODY, |_, leaves| leaves[0])
            }),
            macs: by_mac(spec),
            default_leaf: spec.default_leaf,
            by_leaf: by_leaf(&hosts),
            hosts,
            routers: Routers::of(&spec.routers),
        }
    }
}

impl Index {
    /// Takes over the leaves of hosts from an older policy, where they are the same leaves.
    pub(crate) fn inherit(&mut self, old: &mut Index) {
        let mut olds = old.by_leaf.iter().copied().peekable();
        for &new in &self.by_leaf {
            let new = &mut self.hosts[new as usize];
            let first = new.each().first_leaf;
            while let Some(at) =
                olds.next_if(|&at| old.hosts[at as usize].each().first_leaf <= first)
            {
                let old = &mut old.hosts[at as usize];
                if new.is_same(old) {
                    new.inherit(old);
                    break;
                }
            }
        }
    }

    /// Whom a leaf stands for that was made for a host.
    pub(crate) fn owner(&self, leaf: u32) -> Option<Owner> {
        self.hosts.get(self.maker_of(leaf)?)?.owner(leaf)
    }

    /// The place in `hosts` of the class that makes a leaf, if any class makes it.
    pub(crate) fn maker_of(&self, leaf: u32) -> Option<usize> {
        let first = |&at: &u32| self.hosts[at as usize].each().first_leaf;
        let behind = self.by_leaf.partition_point(|at| first(at) <= leaf);
        Some(*self.by_leaf.get(behind.checked_sub(1)?)? as usize)
    }

    /// The class of a rule.
    pub(crate) fn class_of(&self, rule: u32) -> Option<u32> {
        self.rule_class.get(rule as usize).copied()
    }

    /// The first rule that matches and counts, and where its class sends the frame.
    #[inline]
    pub(crate) fn answer(&self, facts: &Facts) -> Answer {
        let rule = self.first_match(facts);
        let class = rule.and_then(|rule| self.class_of(rule));
        let goal = match class.and_then(|class| self.classes.get(class as usize)) {
            None => Goal::Leaf(self.default_leaf),
            Some(Place { goal: Goal::Subscriber(otherwise), .. }) => {
                Goal::Leaf(self.subscriber(facts).unwrap_or(*otherwise))
            }
            Some(place) => place.goal,
        };
        Answer { rule, goal }
    }

    /// Whether the answer for a later fragment may be another than that for its packet. One of IPv6
    /// may name an extension header where the first names the protocol.
    pub(crate) fn asks_behind(&self, net: Net) -> bool {
        self.asks_ports || self.asks_protocol && net == Net::V6
    }

    /// Looks at what the answer for a frame will need first, so that it is in the cache.
    #[inline]
    pub(crate) fn peek(&self, facts: &Facts) -> u32 {
        // fields of addresses come first
        self.fields.iter().take(2).fold(0, |touched, field| touched ^ field.peek(facts))
    }

    /// What the answer for a frame depends on besides its connection and direction. Exact: the
    /// sets of five fields over at most 16 384 rules have fewer than 2^64 combinations.
    #[inline]
    pub(crate) fn variant(&self, facts: &Facts) -> Variant {
        if !self.varies {
            return Variant::default();
        }
        let mut sets = 0u64;
        for field in &self.fields[self.steady..] {
            let set = field.find_varying(facts);
            sets = sets.wrapping_mul(field.sets()).wrapping_add(set.into());
        }
        // beside MACs there are at most `RAW_BESIDE_MACS` raw matches
        let mac = if self.macs.is_empty() { 0 } else { self.place_of_mac(facts) };
        Variant { sets, raw: self.raw(facts) | mac << RAW_BESIDE_MACS }
    }

    #[inline]
    fn raw(&self, facts: &Facts) -> u64 {
        if self.raws.is_empty() { 0 } else { self.raw_bits(facts) }
    }

    #[inline(never)]
    fn raw_bits(&self, facts: &Facts) -> u64 {
        let bits = self.raws.iter().enumerate();
        bits.fold(0, |bits, (n, raw)| bits | u64::from(facts.raw(raw)) << n)
    }

    fn subscriber(&self, facts: &Facts) -> Option<u32> {
        let leaf = match (&self.subscribers, facts.headers.net) {
            (Some(subscribers), Net::V4) => subscribers.v4(facts.lan()),
            (Some(subscribers), Net::V6) => subscribers.v6(facts.lan()),
            (None, _) | (_, Net::None | Net::Arp) => NOBODY,
        };
        if leaf != NOBODY {
            return Some(leaf);
        }
        if self.macs.is_empty() { None } else { self.leaf_of_mac(facts) }
    }

    /// The number of the MAC among those of subscribers, from 1; 0: it is none of theirs.
    fn place_of_mac(&self, facts: &Facts) -> u64 {
        let mac = facts.lan_mac().map(mac_number);
        let at = mac.and_then(|mac| self.macs.binary_search_by_key(&mac, |(mac, _)| *mac).ok());
        at.map_or(0, |at| at as u64 + 1)
    }

    /// The leaf of the subscriber whose MAC it is.
    fn leaf_of_mac(&self, facts: &Facts) -> Option<u32> {
        let at = usize::try_from(self.place_of_mac(facts)).ok()?.checked_sub(1)?;
        self.macs.get(at).map(|(_, leaf)| *leaf)
    }

    fn first_match(&self, facts: &Facts) -> Option<u32> {
        let mut lists: [&[u32]; FIELDS] = [&[]; FIELDS];
        for (list, field) in lists.iter_mut().zip(&self.fields) {
            *list = field.list(field.find(facts, || self.subscriber(facts).is_some()));
        }
        let used = self.fields.len().min(FIELDS);
        let matches = Matches { index: self, lists: &lists[..used], raw: self.raw(facts) };
        let mut failed = None;
        for n in 0..self.origins.len().div_ceil(BLOCK) {
            let Some(block) = matches.block(n) else { continue };
            for (n, mut word) in (n * (BLOCK / 64)..).zip(block.0) {
                while word != 0 {
                    let rule = self.origins[n * 64 + word.trailing_zeros() as usize];
                    word &= word - 1;
                    // neighbours mostly are of one class: its parents are asked once
                    let above = self.above(rule);
                    if above.is_none() || (failed != above && matches.class(above)) {
                        return Some(rule);
                    }
                    failed = above;
                }
            }
        }
        None
    }

    /// The nearest class with rules above a rule's class.
    #[inline]
    fn above(&self, rule: u32) -> Option<u32> {
        self.classes[self.rule_class[rule as usize] as usize].above
    }
}

/// The rules that match a frame, found as they are asked for.
struct Matches<'i> {
    index: &'i Index,
    /// The set of each field, as numbers of blocks.
    lists: &'i [&'i [u32]],
    raw: u64,
}

impl Matches<'_> {
    /// The matches among the rules of one block, if there are any.
    #[inline]
    fn block(&self, n: usize) -> Option<Block> {
        let [first, others @ ..] = self.lists else { return None };
        let blocks = &self.index.blocks;
        let mut block = blocks[first[n] as usize];
        for list in others {
            let number = list[n];
            if number == 0 {
                return None;
            }
            block.intersect(&blocks[number as usize]);
        }
        if !self.index.raws.is_empty() {
            for (n, word) in (n * (BLOCK / 64)..).zip(&mut block.0) {
                *word = self.with_raw(n, *word);
            }
        }
        (!block.is_empty()).then_some(block)
    }

    /// The matches among 64 rules.
    fn word(&self, n: usize) -> u64 {
        let (place, n_there) = (n / (BLOCK / 64), n % (BLOCK / 64));
        let blocks = &self.index.blocks;
        let words = self.lists.iter().map(|list| blocks[list[place] as usize].0[n_there]);
        self.with_raw(n, words.fold(u64::MAX, |all, word| all & word))
    }

    /// Of the rules in a word, those whose raw matches hold.
    fn with_raw(&self, n: usize, mut word: u64) -> u64 {
        let mut left = word;
        while left != 0 {
            let bit = left.trailing_zeros() as usize;
            left &= left - 1;
            if self.index.needs[n * 64 + bit] & !self.raw != 0 {
                word &= !(1 << bit);
            }
        }
        word
    }

    /// Whether a class and all that are above it match.
    fn class(&self, class: Option<u32>) -> bool {
        let mut class = class;
        for _ in 0..CHAIN {
            let Some(number) = class else { return true };
            let place = &self.index.classes[number as usize];
            if !self.any(place.first, place.behind) {
                return false;
            }
            class = place.above;
        }
        false
    }

    /// Whether one of these bits matches.
    fn any(&self, first: u32, behind: u32) -> bool {
        let (first, behind) = (first as usize, behind as usize);
        if first >= behind {
            return false;
        }
        (first / 64..behind.div_ceil(64)).any(|n| {
            let from = u64::MAX << first.saturating_sub(n * 64).min(63);
            let to = u64::MAX >> ((n + 1) * 64).saturating_sub(behind);
            self.word(n) & from & to != 0
        })
    }
}

/// The classes without their rules' bits, and the room for the leaves that they make.
fn places(spec: &Spec, hosts: &mut Vec<Hosts>) -> Vec<Place> {
    let mut has_rules = vec![false; spec.classes.len()];
    for rule in &spec.rules {
        if let Some(has) = has_rules.get_mut(rule.class as usize) {
            *has = true;
        }
    }
    let mut places = Vec::with_capacity(spec.classes.len());
    for (class, own) in (0u32..).zip(&spec.classes) {
        let goal = match &own.target {
            Target::Leaf(leaf) => Goal::Leaf(*leaf),
            Target::Subscriber { otherwise } => Goal::Subscriber(*otherwise),
            Target::Each(each) => {
                hosts.push(Hosts::new(class, each.clone()));
                Goal::Each(number(hosts.len() - 1))
            }
        };
        let mut above = own.parent;
        for _ in 0..CHAIN {
            above = match above {
                Some(n) if has_rules.get(n as usize) == Some(&false) => {
                    spec.classes[n as usize].parent
                }
                Some(n) if (n as usize) < has_rules.len() => break,
                _ => None,
            };
        }
        let above = above.filter(|&class| (class as usize) < has_rules.len());
        places.push(Place { first: u32::MAX, behind: 0, above, goal });
    }
    places
}

/// The leaves of subscribers by their MAC; of equal ones the first.
fn by_mac(spec: &Spec) -> Box<[(u64, u32)]> {
    let macs = spec.subscriber_macs.iter().map(|&(mac, leaf)| (mac_number(mac), leaf));
    let mut macs: Vec<(u64, u32)> = macs.collect();
    macs.sort_by_key(|(mac, _)| *mac);
    macs.dedup_by_key(|(mac, _)| *mac);
    macs.truncate(SUBSCRIBER_MACS);
    macs.into()
}

fn by_leaf(hosts: &[Hosts]) -> Box<[u32]> {
    let mut order: Vec<u32> = (0..number(hosts.len())).collect();
    order.sort_by_key(|&at| hosts[at as usize].each().first_leaf);
    order.into()
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Class, Rule, When};

    fn index(when: When) -> Index {
        let class = Class { parent: None, target: Target::Leaf(3) };
        let rules = vec![Rule { class: 0, when }];
        Index::compile(&Spec { rules, classes: vec![class], ..Spec::default() })
    }

    #[test]
    fn one_field_is_enough_to_ask_for_what_a_later_fragment_does_not_say() {
        let vlan = Some((5, 5));
        let asks = |when| {
            let index = index(when);
            [Net::V4, Net::V6].map(|net| index.asks_behind(net))
        };
        assert_eq!(asks(When { vlan, ..When::default() }), [false, false]);
        assert_eq!(asks(When { vlan, protocol: Some((6, 6)), ..When::default() }), [false, true]);
        assert_eq!(asks(When { vlan, lan_port: Some((5, 5)), ..When::default() }), [true, true]);
    }
}
