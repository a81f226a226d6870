//! Frames of one connection never overtake each other: while some of them wait in a leaf, the next
//! ones join them there, also if the rules would now send them elsewhere. After an edit of the
//! rules a connection obeys at once, and what waits of it elsewhere is dropped.
//!
//! To tell what came before from what came since, each connection has a sign that is one of two,
//! and a frame has that of its connection from when it came. A connection that obeys changes its
//! sign; it does so again when all frames of the old one have gone.
//!
//! A connection is known by its place in the flow table. While frames wait of one that is forgotten
//! (a flow table that is full, or a leaf so slow that they wait for longer than a silent connection
//! is kept), its place may be another's already. That one goes where the rules send it, and what
//! waits elsewhere of the first is dropped, as after an edit: a place has one queue. In the same
//! leaf it waits behind it, or, if the first was of another host, in the queue of its own host for
//! frames of no connection. Only where frames of the first are to be dropped already it joins those
//! that are not, until they have gone.

use weir_packet::{Flow, Label};

/// Where the frames of each connection wait.
#[derive(Debug)]
pub(crate) struct Order {
    flows: Box<[Place]>,
    /// Which rules hold: a number that each edit of them changes, in its place among the bits.
    rules: u32,
    /// Connections of which frames wait that are to be dropped.
    parted: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(16))]
struct Place {
    leaf: u32,
    /// How many frames wait, and above that bits: the sign of those that come; some of the other
    /// sign wait; the rules that it obeyed last.
    waiting: u32,
    /// How many of them came before the connection obeyed, and are to be dropped.
    behind: u32,
    /// The latest of the connections that had this place and of which a frame came.
    generation: u32,
}

const _: () = assert!(size_of::<Place>() == 16);

const COUNT: u32 = (1 << 24) - 1;
const SIGN: u32 = 1 << 24;
const PARTED: u32 = 1 << 25;
const RULES: u32 = !(COUNT | SIGN | PARTED);
const NEXT_RULES: u32 = 1 << 26;

impl Order {
    /// For connections of a table with so many places.
    pub(crate) fn new(flows: usize) -> Order {
        Order { flows: vec![Place::default(); flows].into(), rules: 0, parted: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.flows.len() * size_of::<Place>()
    }

    /// Other rules hold from now on.
    pub(crate) fn has_new_rules(&mut self) {
        self.rules = self.rules.wrapping_add(NEXT_RULES);
    }

    /// The leaf that a frame joins.
    #[inline]
    pub(crate) fn leaf(&self, label: &Label) -> u32 {
        match self.flows.get(label.flow.index as usize) {
            Some(place) if place.waiting & COUNT > 0 => place.leaf,
            _ => label.leaf,
        }
    }

    /// Whether frames of a connection wait.
    pub(crate) fn waits(&self, flow: Flow) -> bool {
        self.flows.get(flow.index as usize).is_some_and(|place| place.waiting & COUNT > 0)
    }

    /// A connection of which frames wait elsewhere goes to the leaf of this label from now on:
    /// once for each edit of the rules, and not before all have gone that it has left behind. If
    /// they are of another connection it goes there as well.
    pub(crate) fn obeys(&mut self, label: &Label) -> bool {
        let Some(place) = self.flows.get_mut(label.flow.index as usize) else { return true };
        let frames = place.waiting & COUNT;
        if place.waiting & PARTED != 0 && place.behind == frames {
            // none of those that wait is where it went, which may be gone
            place.leaf = label.leaf;
            return true;
        }
        // a frame that was held may be of the connection before, and come after the next one's
        let generation = place.newest(label.flow);
        let has_obeyed = place.waiting & RULES == self.rules && place.generation == generation;
        if has_obeyed || place.waiting & PARTED != 0 {
            return false;
        }
        let sign = (place.waiting & SIGN) ^ SIGN;
        let waiting = frames | sign | self.rules;
        *place = Place { leaf: label.leaf, waiting, behind: frames, generation };
        if frames > 0 {
            place.waiting |= PARTED;
            self.parted += 1;
        }
        true
    }

    /// Whether frames wait that are to be dropped.
    #[inline]
    pub(crate) const fn has_parted(&self) -> bool {
        self.parted > 0
    }

    /// Whether a frame of this sign came before its connection left for another leaf.
    pub(crate) fn is_left_behind(&self, flow: Flow, sign: bool) -> bool {
        self.flows
            .get(flow.index as usize)
            .is_some_and(|place| place.waiting & PARTED != 0 && place.sign() != sign)
    }

    /// Lets the processor fetch what a frame of this label will need.
    #[inline]
    pub(crate) fn expect(&self, label: &Label) {
        if let Some(place) = self.flows.get(label.flow.index as usize) {
            std::hint::black_box(place.waiting);
        }
    }

    /// A frame waits now; returns the sign that it has.
    #[inline]
    pub(crate) fn came(&mut self, label: &Label) -> bool {
        let Some(place) = self.flows.get_mut(label.flow.index as usize) else { return false };
        place.leaf = label.leaf;
        place.waiting += 1;
        place.generation = place.newest(label.flow);
        place.sign()
    }

    /// A frame waits no longer; `sign` says which it has.
    #[inline]
    pub(crate) fn left(&mut self, flow: Flow, sign: impl FnOnce() -> bool) {
        let Some(place) = self.flows.get_mut(flow.index as usize) else { return };
        if place.waiting & COUNT > 0 {
            place.waiting -= 1;
        }
        if place.waiting & PARTED != 0 {
            self.one_of_two_left(flow, sign());
        }
    }

    /// The same where some are to be dropped: it may have been the last of these.
    #[cold]
    fn one_of_two_left(&mut self, flow: Flow, sign: bool) {
        let place = &mut self.flows[flow.index as usize];
        if place.sign() != sign {
            place.behind = place.behind.saturating_sub(1);
        }
        if place.behind == 0 {
            place.waiting &= !PARTED;
            self.parted -= 1;
        }
    }

    /// The frames of a connection wait in another leaf now.
    pub(crate) fn moved(&mut self, label: &Label) {
        if let Some(place) = self.flows.get_mut(label.flow.index as usize) {
            place.leaf = label.leaf;
        }
    }
}

impl Place {
    /// The latest connection at this place, be it this one.
    #[inline]
    const fn newest(&self, flow: Flow) -> u32 {
        let is_newer = flow.generation.wrapping_sub(self.generation).cast_signed() > 0;
        if is_newer { flow.generation } else { self.generation }
    }

    #[inline]
    const fn sign(self) -> bool {
        self.waiting & SIGN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::{Headers, Side};

    fn label(leaf: u32) -> Label {
        let mut label = Label::new(Side::Lan, &Headers::EMPTY);
        (label.leaf, label.flow) = (leaf, Flow { index: 0, generation: 0 });
        label
    }

    /// Whatever edits come while it waits, a frame is behind from the first one on, and those that
    /// came since never are.
    #[test]
    fn a_frame_that_waits_through_two_hundred_edits_stays_behind() {
        let mut order = Order::new(1);
        let flow = label(1).flow;
        let oldest = order.came(&label(1));
        for edit in 0..200 {
            order.has_new_rules();
            let to = label(2 + edit);
            assert_eq!(order.obeys(&to), edit == 0, "edit {edit}");
            let leaf = order.leaf(&to);
            assert_eq!(leaf, 2, "edit {edit}");
            let sign = order.came(&label(leaf));
            assert!(order.is_left_behind(flow, oldest), "after {edit} edits");
            assert!(!order.is_left_behind(flow, sign), "after {edit} edits");
            if edit % 2 == 1 {
                order.left(flow, || sign);
            }
        }
        order.left(flow, || oldest);
        assert!(!order.has_parted());
        // it obeys again; all that wait are behind then
        assert!(order.obeys(&label(9)));
        assert!(order.is_left_behind(flow, !oldest));
        assert!(!order.is_left_behind(flow, order.flows[0].sign()));
        (0..100).for_each(|_| order.left(flow, || !oldest));
        assert!(!order.has_parted());
        assert_eq!(order.leaf(&label(3)), 3, "nothing waits");
    }

    /// The leaf that it went to may be gone since.
    #[test]
    fn a_connection_of_which_only_old_frames_wait_goes_wherever_it_is_told() {
        let mut order = Order::new(1);
        let sign = order.came(&label(1));
        order.has_new_rules();
        assert!(order.obeys(&label(2)) && order.obeys(&label(3)));
        assert!(order.is_left_behind(label(1).flow, sign));
        order.came(&label(3));
        assert!(!order.obeys(&label(4)));
    }

    #[test]
    fn a_connection_obeys_once_for_each_edit_of_the_rules() {
        let mut order = Order::new(1);
        let sign = order.came(&label(1));
        assert!(!order.obeys(&label(2)), "no edit");
        order.has_new_rules();
        assert!(order.obeys(&label(2)));
        order.came(&label(2));
        order.left(label(1).flow, || sign);
        assert!(!order.has_parted());
        assert!(!order.obeys(&label(3)), "rules may differ from frame to frame");
    }

    #[test]
    fn who_has_the_place_of_another_goes_where_it_is_told() {
        let mut order = Order::new(1);
        let next = |leaf, generation| {
            let flow = Flow { index: 0, generation };
            Label { flow, ..label(leaf) }
        };
        let sign = order.came(&next(1, 7));
        assert!(!order.obeys(&next(2, 7)), "it is the same");
        assert!(order.obeys(&next(2, 8)));
        assert!(order.is_left_behind(label(1).flow, sign));
        let new = order.came(&next(2, 8));
        assert!(!order.is_left_behind(label(1).flow, new));
        // the next one waits with it until the frames of the first have gone
        assert!(!order.obeys(&next(3, 9)));
        order.left(label(1).flow, || sign);
        assert!(!order.has_parted() && order.obeys(&next(3, 9)));
        order.left(label(1).flow, || new);
        // where nothing waits, or in the same leaf, it is nobody's business
        assert_eq!((order.leaf(&next(4, 10)), order.has_parted()), (4, false));
        order.came(&next(4, 10));
        order.came(&next(4, 11));
        assert!(!order.obeys(&next(5, 11)));
    }

    #[test]
    fn a_late_frame_of_the_connection_before_drops_nothing() {
        let mut order = Order::new(1);
        let next = |leaf, generation| {
            let flow = Flow { index: 0, generation };
            Label { flow, ..label(leaf) }
        };
        for _ in 0..10 {
            order.came(&next(2, 8));
        }
        // it joins those that wait, and neither it nor the next one leaves them behind
        for generation in [7, 8] {
            assert!(!order.obeys(&next(1, generation)));
            order.came(&next(order.leaf(&next(1, generation)), generation));
        }
        assert!(!order.has_parted());
        assert!(order.obeys(&next(1, 9)), "a newer one goes where it is told");
    }

    #[test]
    fn a_place_has_sixteen_bytes() {
        assert_eq!(Order::new(100).bytes(), 1_600);
    }
}
