//! `not`: what a term does not match, as terms that match it. Like lists, it is written out when it
//! is read: one line becomes several that are alternatives, each a plain conjunction, and nothing
//! else knows of negation.
//!
//! A frame that has no such field matches neither a term nor its negation: `not tcp` is every other
//! IP protocol, and no ARP.

use std::sync::Arc;

use super::{Toward, When};

/// Numbers from the first to the last.
type Range = (u16, u16);

/// The protocol of an authentication header: a packet with one is of two protocols.
const AH: Option<(u8, u8)> = Some((51, 51));

/// What a term says, with all ranges of a list.
pub(super) struct Said {
    pub(super) when: When,
    /// The ranges of its list; empty for what is no list.
    pub(super) list: Vec<Range>,
}

impl Said {
    /// What matches where the term does, as alternatives.
    pub(super) fn plain(self) -> Vec<When> {
        let slot = self.slot();
        if self.list.len() < 2 {
            return vec![self.when];
        }
        let with = |range: &Range| slot.map(|slot| slot.put(self.when.clone(), *range));
        self.list.iter().filter_map(with).collect()
    }

    /// What matches where the term does not, as alternatives; why that cannot be said.
    pub(super) fn negated(&self) -> Result<Vec<When>, &'static str> {
        let when = &self.when;
        let mut all = Vec::new();
        if when.lan_mac.or(when.wan_mac).or(when.mac).is_some() {
            return Err("a MAC address cannot be negated");
        }
        if when.protocol == AH {
            return Err("\"ah\" cannot be negated: what it protects is of another protocol too");
        }
        for (set, at) in [(&when.lan, 0), (&when.wan, 1), (&when.host, 2)] {
            if let Some(set) = set {
                let others = Some(Arc::new(set.complement()));
                let (lan, wan) = ((at != 1).then(|| others.clone()), (at != 0).then_some(others));
                let (lan, wan) = (lan.flatten(), wan.flatten());
                all.push(When { lan, wan, excludes: true, ..When::default() });
            }
        }
        if let Some(toward) = when.toward {
            let toward = if toward == Toward::Lan { Toward::Wan } else { Toward::Lan };
            all.push(When { toward: Some(toward), ..When::default() });
        }
        if when.untagged {
            all.push(When { vlan: Some((0, 4_094)), ..When::default() });
        }
        if let Some((first, last)) = when.protocol {
            let others = complement(&[(first.into(), last.into())], u8::MAX.into());
            all.extend(others.into_iter().map(|range| Slot::Protocol.put(When::default(), range)));
        }
        if let Some(slot) = self.slot() {
            // of a term of two parts, either may be false: `not tcp port 80` is also tcp
            let base = When { protocol: when.protocol, ..When::default() };
            all.extend(self.outside(slot, &base));
        }
        Ok(all)
    }

    /// What has other numbers in the place of the list.
    fn outside(&self, slot: Slot, base: &When) -> Vec<When> {
        let own = [slot.of(&self.when).unwrap_or_default()];
        let list = if self.list.is_empty() { &own[..] } else { &self.list };
        let others = complement(list, slot.most());
        let on = |slot: Slot, base: &When| -> Vec<When> {
            others.iter().map(|range| slot.put(base.clone(), *range)).collect()
        };
        if slot != Slot::Port {
            return on(slot, base);
        }
        // neither of the two ports is one of them
        on(Slot::LanPort, base).iter().flat_map(|lan| on(Slot::WanPort, lan)).collect()
    }

    fn slot(&self) -> Option<Slot> {
        Slot::ALL.into_iter().find(|slot| slot.of(&self.when).is_some())
    }
}

/// A condition whose values are numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    LanPort,
    WanPort,
    Port,
    Protocol,
    Dscp,
    Vlan,
    Length,
    Ethertype,
}

impl Slot {
    /// Those of which a term can have a list.
    const ALL: [Slot; 7] = [
        Slot::LanPort,
        Slot::WanPort,
        Slot::Port,
        Slot::Dscp,
        Slot::Vlan,
        Slot::Length,
        Slot::Ethertype,
    ];

    fn most(self) -> u16 {
        match self {
            Slot::Protocol => u8::MAX.into(),
            Slot::Dscp => 63,
            Slot::Vlan => 4_094,
            Slot::LanPort | Slot::WanPort | Slot::Port | Slot::Length | Slot::Ethertype => u16::MAX,
        }
    }

    fn of(self, when: &When) -> Option<Range> {
        let wide = |(first, last): (u8, u8)| (first.into(), last.into());
        match self {
            Slot::LanPort => when.lan_port,
            Slot::WanPort => when.wan_port,
            Slot::Port => when.port,
            Slot::Protocol => when.protocol.map(wide),
            Slot::Dscp => when.dscp.map(wide),
            Slot::Vlan => when.vlan,
            Slot::Length => when.length,
            Slot::Ethertype => when.ethertype,
        }
    }

    fn put(self, mut when: When, range: Range) -> When {
        let narrow = |n: u16| u8::try_from(n).unwrap_or(u8::MAX);
        match self {
            Slot::LanPort => when.lan_port = Some(range),
            Slot::WanPort => when.wan_port = Some(range),
            Slot::Port => when.port = Some(range),
            Slot::Protocol => when.protocol = Some((narrow(range.0), narrow(range.1))),
            Slot::Dscp => when.dscp = Some((narrow(range.0), narrow(range.1))),
            Slot::Vlan => when.vlan = Some(range),
            Slot::Length => when.length = Some(range),
            Slot::Ethertype => when.ethertype = Some(range),
        }
        when
    }
}

/// Sorted ranges without gaps that could be closed.
pub(super) fn merged(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.sort_unstable();
    let mut merged: Vec<Range> = Vec::new();
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// The numbers up to `most` that are in none of these sorted ranges.
fn complement(ranges: &[Range], most: u16) -> Vec<Range> {
    let mut others = Vec::new();
    let mut next = Some(0);
    for &(first, last) in ranges {
        if let Some(from) = next.filter(|from| *from < first) {
            others.push((from, first - 1));
        }
        next = last.checked_add(1);
    }
    others.extend(next.filter(|from| *from <= most).map(|from| (from, most)));
    others
}

/// What holds where both do; `None` where no frame does both. Ports of either side are kept apart:
/// `port 80, port 443` is a mistake of its own.
pub(super) fn both(a: &When, b: &When) -> Option<When> {
    let mut all = a.clone();
    for slot in Slot::ALL.into_iter().chain([Slot::Protocol]) {
        if let Some((first, last)) = slot.of(b) {
            let own = slot.of(&all).unwrap_or((0, u16::MAX));
            let range = (own.0.max(first), own.1.min(last));
            if range.0 > range.1 {
                return None;
            }
            all = slot.put(all, range);
        }
    }
    if all.protocol == AH && a.protocol != AH && b.protocol != AH {
        // what is left between two negations is not all that has such a header
        return None;
    }
    let sets = [(&mut all.lan, &b.lan), (&mut all.wan, &b.wan), (&mut all.host, &b.host)];
    for (own, other) in sets {
        let common = match (&*own, other) {
            (Some(own), Some(other)) => {
                let common = own.common(other);
                if common.blocks().is_empty() && !own.blocks().is_empty() {
                    return None;
                }
                Some(Arc::new(common))
            }
            (own, other) => own.clone().or(other.clone()),
        };
        *own = common;
    }
    let same = |a: Option<Toward>, b: Option<Toward>| a.zip(b).is_none_or(|(a, b)| a == b);
    if !same(a.toward, b.toward) {
        return None;
    }
    all.toward = a.toward.or(b.toward);
    all.untagged |= b.untagged;
    let is_free = |when: &When| when.excludes || when.has_no_address();
    all.excludes = (a.excludes || b.excludes) && is_free(a) && is_free(b);
    all.lan_mac = a.lan_mac.or(b.lan_mac);
    all.wan_mac = a.wan_mac.or(b.wan_mac);
    all.mac = a.mac.or(b.mac);
    (!all.untagged || all.vlan.is_none()).then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_in_a_list_is_before_between_and_behind() {
        assert_eq!(complement(&[(5, 9), (20, 20)], 63), [(0, 4), (10, 19), (21, 63)]);
        assert_eq!(complement(&[(0, 9)], 9), []);
        assert_eq!(complement(&[(0, 9), (60_000, u16::MAX)], u16::MAX), [(10, 59_999)]);
        assert_eq!(merged(vec![(7, 9), (1, 3), (4, 5), (8, 20)]), [(1, 5), (7, 20)]);
    }
}
