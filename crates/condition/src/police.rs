//! What is done to the frames of each leaf: policed by a meter, marked with a code point, or
//! nothing. The table is read for every frame; it changes by edits that are made off the packet
//! thread, and what was saved up in the meters of leaves that stay is kept.

use std::collections::{BTreeMap, BTreeSet};

use weir_packet::{Label, Reason, edit, precedence};
use weir_units::{Bytes, Instant};

use crate::meter::{Colour, Meter, Terms};

/// What is done to the frames of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// This code point is written.
    Mark(u8),
    /// A meter of each direction decides.
    Police(Police),
}

/// What a meter's colours mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// What was agreed.
    pub terms: Terms,
    /// What becomes of green, yellow and red frames.
    pub fates: [Fate; 3],
    /// Whether the colour that a frame comes with counts: none gets a better one.
    pub aware: bool,
}

/// What becomes of frames of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They go on as frames of this colour, with this code point where one is named.
    Forward(Colour, Option<u8>),
    /// They go no further.
    Drop,
}

/// What all leaves get, as plain data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The treatments, each once; one that stays keeps its place.
    pub treatments: Vec<Treatment>,
    /// Leaves that are treated, and the place of their treatment.
    pub leaves: BTreeMap<u32, u32>,
}

/// What makes the table of one spec out of that of another.
#[derive(Debug, Default)]
pub struct Edit {
    treatments: Box<[Treatment]>,
    /// Pages that come, and empty ones where they go.
    pages: Vec<(usize, Page)>,
    /// Leaves that change, and what holds for them from now on.
    rows: Vec<(u32, u32)>,
    is_idle: bool,
}

/// Treats the frames of the leaves of one engine.
#[derive(Debug)]
pub struct Policer {
    /// By leaf; empty where no leaf of the page is treated.
    pages: Vec<Page>,
    treatments: Box<[Treatment]>,
    is_idle: bool,
}

type Page = Box<[Row]>;

/// Leaves of a page.
const PAGE: usize = 1_024;

/// One leaf.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Row {
    /// By the side that the frames came in from.
    meters: [Meter; 2],
    /// One more than the place of its treatment; 0 for none.
    treatment: u32,
}

const _: () = assert!(size_of::<Row>() == 64);

impl Policer {
    /// For leaves with numbers below `leaves`; nobody is treated yet.
    #[must_use]
    pub fn new(leaves: usize) -> Policer {
        let pages = Vec::with_capacity(leaves.div_ceil(PAGE));
        Policer { pages, treatments: Box::default(), is_idle: true }
    }

    /// Whether no leaf is treated.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Looks at what a frame that is about to be treated will need, so that a burst can have all of
    /// it fetched at once.
    #[inline]
    pub fn expect(&self, label: &Label) {
        let page = self.pages.get(label.leaf as usize / PAGE);
        let row = page.and_then(|page| page.get(label.leaf as usize % PAGE));
        std::hint::black_box(row.map(|row| row.treatment));
    }

    /// Treats a frame that costs `cost`: its bytes and its label say afterwards what it is.
    ///
    /// # Errors
    /// It goes no further; nothing of it was changed.
    #[inline]
    pub fn treat(
        &mut self,
        now: Instant,
        cost: Bytes,
        bytes: &mut [u8],
        label: &mut Label,
    ) -> Result<(), Reason> {
        match self.judge(now, cost, label) {
            None => Ok(()),
            Some(Fate::Forward(colour, code_point)) => {
                if let Some(dscp) = code_point {
                    edit::mark_dscp(bytes, label, dscp);
                }
                label.colour = colour as u8;
                Ok(())
            }
            Some(Fate::Drop) => Err(Reason::Policed),
        }
    }

    /// What becomes of a frame; `None`: its leaf is not treated.
    #[inline]
    fn judge(&mut self, now: Instant, cost: Bytes, label: &Label) -> Option<Fate> {
        let page = self.pages.get_mut(label.leaf as usize / PAGE)?;
        let row = page.get_mut(label.leaf as usize % PAGE)?;
        let place = row.treatment.checked_sub(1)?;
        match self.treatments.get(place as usize)? {
            // what has no code point keeps its colour
            Treatment::Mark(_) if !label.kind.is_ip() => None,
            Treatment::Mark(dscp) => Some(Fate::Forward(colour(precedence(*dscp)), Some(*dscp))),
            Treatment::Police(police) => {
                let came = if police.aware { colour(label.colour) } else { Colour::Green };
                let meter = &mut row.meters[label.side as usize];
                let fate = police.fates[meter.colour(&police.terms, now, cost, came) as usize];
                Some(match fate {
                    Fate::Forward(colour, dscp) => Fate::Forward(colour.max(came), dscp),
                    Fate::Drop => Fate::Drop,
                })
            }
        }
    }

    /// Puts an edit into effect. What was replaced stays in `edit`, to be freed elsewhere; nothing
    /// is allocated here.
    pub fn apply(&mut self, now: Instant, edit: &mut Edit) {
        std::mem::swap(&mut self.treatments, &mut edit.treatments);
        self.is_idle = edit.is_idle;
        for (at, page) in &mut edit.pages {
            while self.pages.len() <= *at && self.pages.len() < self.pages.capacity() {
                self.pages.push(Page::default());
            }
            if let Some(old) = self.pages.get_mut(*at) {
                std::mem::swap(old, page);
            }
        }
        let (old, new) = (&edit.treatments, &self.treatments);
        let terms = |of: &[Treatment], number: u32| match of.get(number.checked_sub(1)? as usize)? {
            Treatment::Police(police) => Some(police.terms),
            Treatment::Mark(_) => None,
        };
        for &(leaf, treatment) in &edit.rows {
            let page = self.pages.get_mut(leaf as usize / PAGE);
            let Some(row) = page.and_then(|p| p.get_mut(leaf as usize % PAGE)) else { continue };
            match (terms(old, row.treatment), terms(new, treatment)) {
                (Some(old), Some(new)) => {
                    row.meters.iter_mut().for_each(|meter| meter.change(&old, &new, now));
                }
                (None, Some(new)) => row.meters = [Meter::full(&new); 2],
                (_, None) => {}
            }
            row.treatment = treatment;
        }
    }

    /// The leaf is another's from now on: its meters begin anew.
    pub fn begin_anew(&mut self, leaf: u32) {
        let page = self.pages.get_mut(leaf as usize / PAGE);
        let Some(row) = page.and_then(|p| p.get_mut(leaf as usize % PAGE)) else { return };
        let place = row.treatment.wrapping_sub(1) as usize;
        if let Some(Treatment::Police(police)) = self.treatments.get(place) {
            row.meters = [Meter::full(&police.terms); 2];
        }
    }
}

/// Drop precedence as a colour.
#[inline]
const fn colour(precedence: u8) -> Colour {
    match precedence {
        0 => Colour::Green,
        1 => Colour::Yellow,
        _ => Colour::Red,
    }
}

impl Edit {
    /// What is to be done so that `new` holds where `old` does.
    #[must_use]
    pub fn between(old: &Spec, new: &Spec) -> Edit {
        let treatment = |spec: &Spec, leaf: u32| {
            let at = *spec.leaves.get(&leaf)?;
            Some((at, *spec.treatments.get(at as usize)?))
        };
        let leaves: BTreeSet<u32> = old.leaves.keys().chain(new.leaves.keys()).copied().collect();
        let mut rows = Vec::new();
        for leaf in leaves {
            let now = treatment(new, leaf);
            if now != treatment(old, leaf) {
                rows.push((leaf, now.map_or(0, |(at, _)| at + 1)));
            }
        }
        let pages = |spec: &Spec| -> BTreeSet<usize> {
            spec.leaves.keys().map(|&leaf| leaf as usize / PAGE).collect()
        };
        let (had, has) = (pages(old), pages(new));
        let come = has.difference(&had).map(|&at| (at, vec![Row::default(); PAGE].into()));
        let go = had.difference(&has).map(|&at| (at, Page::default()));
        Edit {
            treatments: new.treatments.clone().into(),
            pages: come.chain(go).collect(),
            rows,
            is_idle: new.leaves.is_empty(),
        }
    }
}
