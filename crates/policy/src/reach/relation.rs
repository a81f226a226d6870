//! How the frames of one rule lie to those of another, condition by condition.

use crate::addresses::Addresses;
use crate::matching::When;

/// How the frames of a later rule lie to those of an earlier one.
#[derive(PartialEq, Eq)]
pub(super) enum Relation {
    Apart,
    /// The earlier one takes them all.
    Covered,
    /// The later one takes what the earlier leaves: the special before the general.
    General,
    /// They speak of the same thing and share a part of it.
    Partly,
    /// They speak of different things.
    Crossing,
}

/// How one condition of the later rule lies to the same condition of the earlier.
struct Field {
    /// The earlier holds for all that the later holds for.
    covers: bool,
    /// The later holds for all that the earlier holds for.
    covered: bool,
    /// Both say something.
    both: bool,
}

pub(super) fn relation(earlier: &When, later: &When) -> Relation {
    let (mut covers, mut covered, mut partly, mut crossing) = (true, true, false, false);
    let meet = fields(earlier, later, &mut |field| {
        let field = field();
        covers &= field.covers;
        covered &= field.covered;
        partly |= field.both && !field.covers && !field.covered;
        crossing |= !field.both && field.covers != field.covered;
    });
    match (covers, covered) {
        _ if !meet => Relation::Apart,
        (true, _) => Relation::Covered,
        (false, true) => Relation::General,
        _ if partly && !crossing => Relation::Partly,
        _ => Relation::Crossing,
    }
}

/// Whether a frame can satisfy both.
pub(super) fn meet(a: &When, b: &When) -> bool {
    fields(a, b, &mut |_| {})
}

/// What is told of each condition, worked out only if asked for.
type Told<'a> = &'a mut dyn FnMut(&dyn Fn() -> Field);

/// Whether the two can be true of one frame in this condition.
fn field<T>(
    (earlier, later): (Option<&T>, Option<&T>),
    covers: impl Fn(&T, &T) -> bool,
    meets: impl Fn(&T, &T) -> bool,
    told: Told<'_>,
) -> bool {
    if let (Some(e), Some(l)) = (earlier, later)
        && !meets(e, l)
    {
        return false;
    }
    told(&|| match (earlier, later) {
        (None, None) => Field { covers: true, covered: true, both: false },
        (None, Some(_)) => Field { covers: true, covered: false, both: false },
        (Some(_), None) => Field { covers: false, covered: true, both: false },
        (Some(e), Some(l)) => Field { covers: covers(e, l), covered: covers(l, e), both: true },
    });
    true
}

/// Tells of every condition, up to the first that no frame can satisfy on both sides; says whether
/// there is none. What is quick to compare comes first.
fn fields(e: &When, l: &When, told: Told<'_>) -> bool {
    let mut range = |e: Option<(u16, u16)>, l: Option<(u16, u16)>| {
        let within = |a: &(u16, u16), b: &(u16, u16)| a.0 <= b.0 && a.1 >= b.1;
        let meet = |a: &(u16, u16), b: &(u16, u16)| a.0 <= b.1 && b.0 <= a.1;
        field((e.as_ref(), l.as_ref()), within, meet, told)
    };
    range(e.lan_port, l.lan_port)
        && range(e.wan_port, l.wan_port)
        && range(e.port, l.port)
        && range(e.length, l.length)
        && range(tag(e), tag(l))
        && range(wide(e.protocol), wide(l.protocol))
        && range(wide(e.dscp), wide(l.dscp))
        && range(e.ethertype, l.ethertype)
        && same(e.toward, l.toward, told)
        && same(e.lan_mac, l.lan_mac, told)
        && same(e.wan_mac, l.wan_mac, told)
        && same(e.mac, l.mac, told)
        // different bytes may still be in one frame
        && field((e.raw.as_ref(), l.raw.as_ref()), PartialEq::eq, |_, _| true, told)
        && set(e.lan.as_deref(), l.lan.as_deref(), told)
        && set(e.wan.as_deref(), l.wan.as_deref(), told)
        && set(e.host.as_deref(), l.host.as_deref(), told)
}

fn wide(range: Option<(u8, u8)>) -> Option<(u16, u16)> {
    range.map(|(first, last)| (first.into(), last.into()))
}

/// The VLANs of a line; a number that none can have stands for no tag at all.
fn tag(when: &When) -> Option<(u16, u16)> {
    if when.untagged { Some((u16::MAX, u16::MAX)) } else { when.vlan }
}

fn same<T: PartialEq + Copy>(e: Option<T>, l: Option<T>, told: Told<'_>) -> bool {
    field((e.as_ref(), l.as_ref()), PartialEq::eq, PartialEq::eq, told)
}

fn set(e: Option<&Addresses>, l: Option<&Addresses>, told: Told<'_>) -> bool {
    field((e, l), Addresses::covers, Addresses::overlaps, told)
}
