//! Where frames wait: one place per buffer of the pool, so that a frame's buffer number is its
//! place and a queue is a chain of them. Every queue may be as long as the pool, and none costs
//! memory while it is empty.
//!
//! What a chain is made of lies apart from the frames, sixteen bytes a place: who is next can then
//! be decided before the frame itself has come from memory, and the frames of a burst are fetched
//! all at once.

use weir_packet::{Frame, Label};
use weir_units::{Bytes, Instant};

use super::node::NONE;

/// A frame that waits.
#[derive(Debug)]
pub struct Waiting {
    /// The frame.
    pub frame: Frame,
    /// What is known about it.
    pub label: Label,
    /// When it came.
    pub since: Instant,
    /// Queue management asks for the mark that congestion was experienced.
    pub mark: bool,
}

/// The places of all frames that may wait.
#[derive(Debug)]
pub(crate) struct Store {
    places: Box<[Place]>,
    links: Box<[Link]>,
}

/// One cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Place(Option<(Frame, Label)>);

const _: () = assert!(size_of::<Place>() == 64);

/// What is known of a frame without looking at it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Link {
    pub(crate) since: Instant,
    /// The place of the frame behind it.
    next: u32,
    /// Its bytes.
    pub(crate) len: u16,
    /// Where its network header begins.
    net_at: u8,
    /// Bits: it understands marks; it is to be marked; the sign of its connection.
    flags: u8,
}

const CAN_MARK: u8 = 1;
const MARK: u8 = 2;
/// What order.rs tells frames of one connection apart by.
const SIGN: u8 = 4;

impl Link {
    /// What the frame costs.
    #[inline]
    pub(crate) fn cost(&self, link: crate::FrameCost) -> Bytes {
        link.cost(usize::from(self.len), u16::from(self.net_at))
    }

    pub(crate) const fn can_mark(&self) -> bool {
        self.flags & CAN_MARK != 0
    }
}

/// Frames in the order in which they came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chain {
    first: u32,
    last: u32,
    frames: u32,
    bytes: u32,
}

impl Default for Chain {
    fn default() -> Self {
        Chain { first: NONE, last: NONE, frames: 0, bytes: 0 }
    }
}

impl Store {
    /// Places for the frames of a pool with so many buffers.
    pub(crate) fn new(buffers: usize) -> Store {
        Store {
            places: (0..buffers).map(|_| Place::default()).collect(),
            links: vec![Link::default(); buffers].into(),
        }
    }

    /// Whether there is a place for this frame: it is of the pool the store was made for.
    #[inline]
    pub(crate) fn has_place(&self, frame: &Frame) -> bool {
        self.places.get(frame.index() as usize).is_some_and(|place| place.0.is_none())
    }

    #[inline]
    pub(crate) fn push(
        &mut self,
        chain: &mut Chain,
        now: Instant,
        frame: Frame,
        label: &Label,
        mark: bool,
    ) {
        let at = frame.index();
        let len = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        let net_at = u8::try_from(label.net_at).unwrap_or(u8::MAX);
        let flags = if label.ecn() == 0 { 0 } else { CAN_MARK } | if mark { MARK } else { 0 };
        self.links[at as usize] = Link { since: now, next: NONE, len, net_at, flags };
        // copied in one piece, and not field by field: 15 instructions
        self.places[at as usize].0 = Some((frame, *std::hint::black_box(label)));
        self.hang(chain, at, len);
    }

    #[inline]
    fn hang(&mut self, chain: &mut Chain, at: u32, len: u16) {
        match chain.last {
            NONE => chain.first = at,
            last => self.links[last as usize].next = at,
        }
        chain.last = at;
        chain.count(len);
    }

    /// Puts a frame that was taken out of a chain into another.
    pub(crate) fn append_one(&mut self, chain: &mut Chain, at: u32) {
        let link = &mut self.links[at as usize];
        link.next = NONE;
        let len = link.len;
        self.hang(chain, at, len);
    }

    /// Puts all of `from` behind what is in `to`.
    pub(crate) fn splice(&mut self, to: &mut Chain, from: Chain) {
        if from.is_empty() {
            return;
        }
        match to.last {
            NONE => to.first = from.first,
            last => self.links[last as usize].next = from.first,
        }
        to.last = from.last;
        to.frames += from.frames;
        to.bytes = to.bytes.saturating_add(from.bytes);
    }

    /// The label of a frame.
    pub(crate) fn label(&mut self, at: u32) -> Option<&mut Label> {
        self.places[at as usize].0.as_mut().map(|(_, label)| label)
    }

    /// Shows the labels of a chain's frames, how many bytes each has, and its sign.
    pub(crate) fn each(&mut self, chain: &Chain, mut show: impl FnMut(&mut Label, usize, bool)) {
        let mut at = chain.first;
        for _ in 0..chain.frames {
            let Some(&Link { next, len, flags, .. }) = self.links.get(at as usize) else { return };
            if let Some(label) = self.label(at) {
                show(label, usize::from(len), flags & SIGN != 0);
            }
            at = next;
        }
    }

    /// The sign that a frame has from its connection.
    pub(crate) fn sign(&self, at: u32) -> bool {
        self.links[at as usize].flags & SIGN != 0
    }

    #[cold]
    pub(crate) fn set_sign(&mut self, at: u32) {
        self.links[at as usize].flags |= SIGN;
    }

    /// A frame is to be marked.
    pub(crate) fn mark(&mut self, at: u32) {
        self.links[at as usize].flags |= MARK;
    }

    /// Lets the processor fetch what is known of the first frame of a chain.
    #[inline]
    pub(crate) fn look_at(&self, chain: &Chain) {
        if let Some(link) = self.links.get(chain.first as usize) {
            std::hint::black_box(link.len);
        }
    }

    /// Lets the processor fetch what is known of the last frame of a chain: another joins it.
    #[inline]
    pub(crate) fn look_at_last(&self, chain: &Chain) {
        if let Some(link) = self.links.get(chain.last as usize) {
            std::hint::black_box(link.len);
        }
    }

    /// Lets the processor fetch a frame.
    #[inline]
    pub(crate) fn expect(&self, at: u32) {
        std::hint::black_box(self.places[at as usize].0.is_some());
    }

    /// Takes the first out of the chain: its place and what is known of it.
    #[inline]
    pub(crate) fn pop(&mut self, chain: &mut Chain) -> Option<(u32, Link)> {
        let at = chain.first;
        let link = *self.links.get(at as usize)?;
        chain.first = link.next;
        chain.discount(link.len);
        if link.next == NONE {
            chain.last = NONE;
        }
        Some((at, link))
    }

    /// Takes the frame from its place.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> Option<Waiting> {
        let (frame, label) = self.places[at as usize].0.take()?;
        let link = &self.links[at as usize];
        Some(Waiting { frame, label, since: link.since, mark: link.flags & MARK != 0 })
    }
}

impl Chain {
    /// One more frame.
    #[inline]
    pub(crate) fn count(&mut self, bytes: u16) {
        self.frames += 1;
        self.bytes = self.bytes.saturating_add(u32::from(bytes));
    }

    /// One frame less.
    #[inline]
    pub(crate) fn discount(&mut self, bytes: u16) {
        self.frames -= 1;
        self.bytes = self.bytes.saturating_sub(u32::from(bytes));
    }

    /// As many frames less as there are in `other`.
    pub(crate) fn lessen(&mut self, other: &Chain) {
        self.frames -= other.frames;
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }

    pub(crate) const fn frames(&self) -> u32 {
        self.frames
    }

    pub(crate) const fn bytes(&self) -> u32 {
        self.bytes
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.frames == 0
    }
}
