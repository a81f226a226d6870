//! Rules written out: one that speaks of either side (host, port, mac) becomes one per side, so
//! that every rule is a conjunction of fields. What cannot match at all falls away here.

use std::borrow::Cow;
use std::collections::BTreeSet;

use weir_packet::Side;
use weir_units::{Prefix, Raw};

use crate::spec::{Rule, When};

/// The number that stands for a frame without a tag, behind all VLANs.
pub(crate) const UNTAGGED: u16 = 4_096;

/// A rule of which every field is asked on one side.
#[derive(Clone, Debug)]
pub(crate) struct Plain<'s> {
    /// Its place in the spec.
    pub(crate) rule: usize,
    pub(crate) when: &'s When,
    pub(crate) lan: Cow<'s, [Prefix]>,
    pub(crate) wan: Cow<'s, [Prefix]>,
    pub(crate) lan_port: Option<(u16, u16)>,
    pub(crate) wan_port: Option<(u16, u16)>,
    pub(crate) lan_mac: Option<[u8; 6]>,
    pub(crate) wan_mac: Option<[u8; 6]>,
    pub(crate) vlan: Option<(u16, u16)>,
    /// Raw matches that must hold, one bit each.
    pub(crate) raw: u64,
}

/// Writes out all rules; `raws` collects the raw matches, each once and at most `most`.
pub(crate) fn write_out<'s>(rules: &'s [Rule], raws: &mut Vec<Raw>, most: usize) -> Vec<Plain<'s>> {
    let mut plain = Vec::with_capacity(rules.len());
    for (rule, Rule { when, .. }) in rules.iter().enumerate() {
        let vlan = match (when.vlan, when.untagged) {
            (Some(_), true) => continue,
            (None, true) => Some((UNTAGGED, UNTAGGED)),
            (vlan, false) => vlan.map(|(first, last)| (first, last.min(UNTAGGED - 1))),
        };
        let Some(raw) = raw_bits(&when.raw, raws, most) else { continue };
        let base = Plain {
            rule,
            when,
            lan: Cow::Borrowed(&when.lan),
            wan: Cow::Borrowed(&when.wan),
            lan_port: when.lan_port,
            wan_port: when.wan_port,
            lan_mac: when.lan_mac,
            wan_mac: when.wan_mac,
            vlan,
            raw,
        };
        let hosts = sides(!when.host.is_empty(), [base], |side, base| base.host_on(side));
        let ports = sides(when.port.is_some(), hosts, |side, base| base.port_on(side));
        plain.extend(sides(when.mac.is_some(), ports, |side, base| base.mac_on(side)));
    }
    plain
}

/// Each rule as it is, or once per side if it asks for either.
fn sides<'s>(
    either: bool,
    rules: impl IntoIterator<Item = Plain<'s>>,
    on: impl Fn(Side, Plain<'s>) -> Option<Plain<'s>>,
) -> Vec<Plain<'s>> {
    let rules = rules.into_iter();
    if !either {
        return rules.collect();
    }
    rules.flat_map(|rule| [on(Side::Lan, rule.clone()), on(Side::Wan, rule)]).flatten().collect()
}

impl Plain<'_> {
    fn host_on(mut self, side: Side) -> Option<Self> {
        let field = if side == Side::Lan { &mut self.lan } else { &mut self.wan };
        if field.is_empty() {
            *field = Cow::Borrowed(&self.when.host);
        } else {
            *field = Cow::Owned(common(field, &self.when.host));
        }
        (!field.is_empty()).then_some(self)
    }

    fn port_on(mut self, side: Side) -> Option<Self> {
        let field = if side == Side::Lan { &mut self.lan_port } else { &mut self.wan_port };
        let (own, asked) = (field.unwrap_or((0, u16::MAX)), self.when.port?);
        let (first, last) = (own.0.max(asked.0), own.1.min(asked.1));
        *field = Some((first, last));
        (first <= last).then_some(self)
    }

    fn mac_on(mut self, side: Side) -> Option<Self> {
        let field = if side == Side::Lan { &mut self.lan_mac } else { &mut self.wan_mac };
        let fits = field.is_none() || *field == self.when.mac;
        *field = self.when.mac;
        fits.then_some(self)
    }
}

/// The blocks that two lists have in common.
fn common(a: &[Prefix], b: &[Prefix]) -> Vec<Prefix> {
    let within = |inner: &[Prefix], outer: &[Prefix]| -> Vec<Prefix> {
        let outer: BTreeSet<&Prefix> = outer.iter().collect();
        let covered = |block: &&Prefix| {
            let lens = 0..=block.len();
            lens.rev().any(|len| outer.contains(&Prefix::around(block.address(), len)))
        };
        inner.iter().filter(covered).copied().collect()
    };
    [within(a, b), within(b, a)].concat()
}

/// The bits of some raw matches; `None` if there are more than a policy may have.
fn raw_bits(raw: &[Raw], raws: &mut Vec<Raw>, most: usize) -> Option<u64> {
    raw.iter().try_fold(0, |bits, raw| {
        let known = raws.iter().position(|known| known == raw);
        let place = known.unwrap_or_else(|| {
            raws.push(*raw);
            raws.len() - 1
        });
        (place < most.min(64)).then(|| bits | 1 << place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Origin;
    use weir_units::limits::RAW_MATCHES;

    #[test]
    fn what_asks_for_one_raw_match_too_many_falls_away() {
        let raw = |value| Raw { from: Origin::Frame, at: 0, length: 8, value, mask: u64::MAX };
        let asks = |values: &[u64]| {
            let raw = values.iter().copied().map(raw).collect();
            Rule { class: 0, when: When { raw, ..When::default() } }
        };
        let last = RAW_MATCHES as u64 - 1;
        let mut rules: Vec<Rule> = (0..last).map(|value| asks(&[value])).collect();
        rules.extend([asks(&[0, last]), asks(&[last + 1]), asks(&[0, last + 2]), asks(&[last])]);
        let plain = write_out(&rules, &mut Vec::new(), RAW_MATCHES);
        let left: Vec<(usize, u64)> = plain.iter().map(|plain| (plain.rule, plain.raw)).collect();
        let mut wanted: Vec<(usize, u64)> = (0..63).map(|bit| (bit, 1 << bit)).collect();
        wanted.extend([(63, 1 << 63 | 1), (66, 1 << 63)]);
        assert_eq!(left, wanted);
    }
}
