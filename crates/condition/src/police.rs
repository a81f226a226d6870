//! What is done to the frames of each leaf: policed by a meter, marked with a code point, or
//! nothing. The table is read for every frame; it changes by edits that are made off the packet
//! thread, and what was saved up in the meters of leaves that stay is kept.

use std::collections::{BTreeMap, BTreeSet};

use weir_packet::{Label, Reason, edit, precedence};
use weir_units::limits::CLASSES;
use weir_units::{ByWay, Bytes, Instant, Rate, Way};

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
    pub fates: [Action; 3],
    /// Whether the colour that a frame comes with counts: none gets a better one.
    pub aware: bool,
}

/// What becomes of frames of one colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// They go on as frames of this colour, with this code point. Where none is named they keep
    /// theirs, and are no better than it says.
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
    rules: Box<[Rule]>,
    /// Pages that come, and empty ones where they go.
    pages: Vec<(usize, ByWay<Page>)>,
    /// Leaves that change, and what holds for them from now on.
    rows: Vec<(u32, u32)>,
    is_idle: bool,
    pages_there: usize,
}

/// A treatment as the path reads it.
#[derive(Clone, Copy, Debug)]
struct Rule {
    terms: Terms,
    rulings: [Ruling; 3],
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// The meter alone decides.
    Blind,
    /// The meter decides, and the colour that the frame comes with.
    Aware,
    /// All frames get the first ruling.
    Mark,
}

/// What becomes of frames of one colour: that which they have from now on, and a code point or what
/// is done instead of writing one.
#[derive(Clone, Copy, Debug)]
struct Ruling {
    colour: Colour,
    code_point: u8,
}

const KEEP: u8 = 64;
const DROP: u8 = 65;

/// Treats the frames of the leaves of one engine.
#[derive(Debug)]
pub struct Policer {
    /// By the way of the frames, and leaf; none where no leaf of the page is treated.
    pages: Box<ByWay<Pages>>,
    rules: Box<[Rule]>,
    is_idle: bool,
    /// How many pages of a way are there.
    pages_there: usize,
}

type Page = Option<Box<[Row; PAGE]>>;
type Pages = [Page; PAGES];

/// Leaves of a page.
const PAGE: usize = 1 << 10;
/// Pages at most: an engine numbers twice the classes of one policy.
const PAGES: usize = 2 * CLASSES / PAGE;
/// Pages of a way that stay in the nearer caches; looking ahead costs more there than it gains.
const NEAR_PAGES: usize = 1;

/// One leaf and direction.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Row {
    meter: Meter,
    /// One more than the place of its rule; 0 for none.
    rule: u32,
}

const _: () = assert!(size_of::<Row>() == 32);

impl Policer {
    /// A policer who treats nobody yet.
    #[must_use]
    pub fn new() -> Policer {
        let pages = Box::new(ByWay { down: [const { None }; PAGES], up: [const { None }; PAGES] });
        Policer { pages, rules: Box::default(), is_idle: true, pages_there: 0 }
    }

    /// Whether no leaf is treated.
    #[inline]
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.is_idle
    }

    /// Looks at what the frames of a burst that travels this way will need, so that all of it is
    /// fetched at once.
    #[inline]
    pub fn expect(&self, way: Way, labels: &[Label]) {
        if self.pages_there > NEAR_PAGES {
            let pages = &self.pages[way];
            let mut looked_at = 0;
            // few instructions: as many reads as possible shall be under way at once
            for label in labels {
                if let Some(page) = &pages[page_of(label.leaf) % PAGES] {
                    looked_at ^= page[row_of(label.leaf)].rule;
                }
            }
            std::hint::black_box(looked_at);
        }
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
        let row = row(&mut self.pages[label.way], label.leaf);
        let Some(row) = row.filter(|row| row.rule > 0) else { return Ok(()) };
        let Some(rule) = self.rules.get(row.rule as usize - 1) else { return Ok(()) };
        if rule.mode != Mode::Blind {
            return rule.otherwise(&mut row.meter, now, cost, bytes, label);
        }
        let ruling = rule.judge(&mut row.meter, now, cost, Colour::Green);
        ruling.carry_out(Colour::Green, bytes, label)
    }

    /// Puts an edit into effect. What was replaced stays in `edit`, to be freed elsewhere; nothing
    /// is allocated here.
    pub fn apply(&mut self, now: Instant, edit: &mut Edit) {
        std::mem::swap(&mut self.rules, &mut edit.rules);
        self.is_idle = edit.is_idle;
        for (at, both) in &mut edit.pages {
            for (pages, page) in self.pages.values_mut().zip(both.values_mut()) {
                if let Some(old) = pages.get_mut(*at) {
                    std::mem::swap(old, page);
                }
            }
        }
        self.pages_there = edit.pages_there;
        let (old, new) = (&edit.rules, &self.rules);
        for &(leaf, rule) in &edit.rows {
            for row in self.pages.values_mut().filter_map(|pages| row(pages, leaf)) {
                match (terms(old, row.rule), terms(new, rule)) {
                    (Some(old), Some(new)) => row.meter.change(old, new, now),
                    (None, Some(new)) => row.meter = Meter::full(new),
                    (_, None) => {}
                }
                row.rule = rule;
            }
        }
    }

    /// The leaf is another's from now on: its meters begin anew.
    pub fn begin_anew(&mut self, leaf: u32) {
        for row in self.pages.values_mut().filter_map(|pages| row(pages, leaf)) {
            if let Some(terms) = terms(&self.rules, row.rule) {
                row.meter = Meter::full(terms);
            }
        }
    }
}

impl Default for Policer {
    fn default() -> Self {
        Policer::new()
    }
}

#[inline]
fn row(pages: &mut Pages, leaf: u32) -> Option<&mut Row> {
    let page = pages.get_mut(page_of(leaf))?.as_mut()?;
    Some(&mut page[row_of(leaf)])
}

#[inline]
const fn page_of(leaf: u32) -> usize {
    leaf as usize / PAGE
}

#[inline]
const fn row_of(leaf: u32) -> usize {
    leaf as usize % PAGE
}

/// The terms of the rule that a row names, if it polices.
fn terms(of: &[Rule], rule: u32) -> Option<&Terms> {
    let rule = of.get(rule.checked_sub(1)? as usize)?;
    (rule.mode != Mode::Mark).then_some(&rule.terms)
}

impl Rule {
    fn new(treatment: &Treatment) -> Rule {
        match treatment {
            Treatment::Mark(dscp) => {
                let ruling = Ruling { colour: colour(precedence(*dscp)), code_point: *dscp & 63 };
                let terms = Terms::single_rate(Rate::ZERO, Bytes::ZERO, Bytes::ZERO);
                Rule { terms, rulings: [ruling; 3], mode: Mode::Mark }
            }
            Treatment::Police(Police { terms, fates, aware }) => {
                let rulings = fates.map(|fate| match fate {
                    Action::Forward(colour, dscp) => {
                        Ruling { colour, code_point: dscp.map_or(KEEP, |dscp| dscp & 63) }
                    }
                    Action::Drop => Ruling { colour: Colour::Red, code_point: DROP },
                });
                let mode = if *aware { Mode::Aware } else { Mode::Blind };
                Rule { terms: *terms, rulings, mode }
            }
        }
    }

    #[inline]
    fn judge(&self, meter: &mut Meter, now: Instant, cost: Bytes, came: Colour) -> Ruling {
        // by value: it is written back once
        let mut filled = *meter;
        let colour = filled.colour(&self.terms, now, cost, came);
        *meter = filled;
        self.rulings[colour as usize]
    }

    /// What most leaves do not ask for.
    #[inline(never)]
    fn otherwise(
        &self,
        meter: &mut Meter,
        now: Instant,
        cost: Bytes,
        bytes: &mut [u8],
        label: &mut Label,
    ) -> Result<(), Reason> {
        match self.mode {
            Mode::Blind | Mode::Aware => {
                let came = colour(label.colour);
                self.judge(meter, now, cost, came).carry_out(came, bytes, label)
            }
            // what has no code point keeps its colour
            Mode::Mark if !label.kind.is_ip() => Ok(()),
            Mode::Mark => self.rulings[0].carry_out(Colour::Green, bytes, label),
        }
    }
}

impl Ruling {
    /// `came`: no better colour than this.
    #[inline]
    fn carry_out(self, came: Colour, bytes: &mut [u8], label: &mut Label) -> Result<(), Reason> {
        if self.code_point == KEEP {
            // whoever reads the code point later takes the frame for what it says
            if label.colour < self.colour as u8 {
                label.colour = self.colour as u8;
            }
            return Ok(());
        }
        if self.code_point == DROP {
            return Err(Reason::Policed);
        }
        edit::mark_dscp(bytes, label, self.code_point);
        label.colour = self.colour.max(came) as u8;
        Ok(())
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
            spec.leaves.keys().map(|&leaf| page_of(leaf)).collect()
        };
        let (had, has) = (pages(old), pages(new));
        let page = || vec![Row::default(); PAGE].into_boxed_slice().try_into().ok();
        let come = has.difference(&had).map(|&at| (at, ByWay { down: page(), up: page() }));
        let go = had.difference(&has).map(|&at| (at, ByWay::default()));
        Edit {
            rules: new.treatments.iter().map(Rule::new).collect(),
            pages: come.chain(go).collect(),
            rows,
            is_idle: new.leaves.is_empty(),
            pages_there: has.len(),
        }
    }
}
