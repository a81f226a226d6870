//! What is promised must be there: below a class, below the link, to sessions.

use weir_units::{ByWay, Rate};

use super::Build;
use crate::class::Class;
use crate::leaf::Session;
use crate::plan::NodeId;
use crate::problem::Position;

/// What is promised one way, in bits per second: a sum can be more than any rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    /// By the rates of classes.
    firm: u128,
    /// By rows of the table of subscribers: more of it than there is, is what an ISP sells.
    soft: u128,
}

impl Sum {
    fn firm(rate: Rate) -> Sum {
        Sum { firm: rate.bps().into(), soft: 0 }
    }

    pub(super) fn all(self) -> u128 {
        self.firm.saturating_add(self.soft)
    }

    /// As much of it as `most`.
    pub(super) fn min(self, most: u128) -> Sum {
        let firm = self.firm.min(most);
        Sum { firm, soft: self.soft.min(most - firm) }
    }
}

/// What is promised both ways.
pub(super) type Promise = ByWay<Sum>;

pub(super) fn add(a: Promise, b: Promise) -> Promise {
    a.zip(b).map(|(a, b)| Sum {
        firm: a.firm.saturating_add(b.firm),
        soft: a.soft.saturating_add(b.soft),
    })
}

/// What a row of the table promises.
pub(super) fn of_row(rate: ByWay<Rate>) -> Promise {
    rate.map(|rate| Sum { firm: 0, soft: rate.bps().into() })
}

/// What a class promises: what it says, or else what its children are promised.
pub(super) fn of_class(said: ByWay<Option<Rate>>, promised: Promise) -> Promise {
    said.zip(promised).map(|(said, promised)| said.map_or(promised, Sum::firm))
}

/// A promise as a rate, as far as rates go.
pub(super) fn rate(bits: u128) -> Rate {
    Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX))
}

/// A promise in words, also one that is more than any rate.
fn say(bits: u128) -> String {
    const TERA: u128 = 1_000_000_000_000;
    if bits <= u128::from(Rate::MAX.bps()) {
        return rate(bits).to_string();
    }
    let text = format!("{}.{:012}", bits / TERA, bits % TERA);
    format!("{}tbit", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Whose children are promised something.
pub(super) struct Owner {
    pub(super) name: String,
    pub(super) is_link: bool,
    pub(super) place: ByWay<Position>,
    /// Whether it has no rate of its own: it is guaranteed the sum of its children's, and no more.
    pub(super) follows: ByWay<bool>,
    /// Whether it is the top of what weir's allocator holds to its rates.
    pub(super) allocates: bool,
    /// What of it there may be at the best, in millionths: less than all where the line is found.
    pub(super) at_best: ByWay<u32>,
    /// A child that is guaranteed nothing.
    pub(super) bare: ByWay<Option<NodeId>>,
}

/// Of 100 parts, those that guarantees have beside a child without one.
const BESIDE_OTHERS: u32 = 990_000;
/// Of a line that is found, the part that is used.
pub(super) const FOUND: u32 = 970_000;

impl Build<'_> {
    pub(super) fn check_class(
        &mut self,
        class: &Class,
        id: NodeId,
        said: ByWay<Option<Rate>>,
        ceil: ByWay<Rate>,
        promised: Promise,
        allocates: bool,
    ) {
        let places = class.rate.zip(class.ceil);
        let place = places.map(|(rate, ceil)| rate.or(ceil).map_or(class.place, |at| at.place));
        let promise = of_class(said, promised);
        // a rate that could not be read is a mistake of its own
        let is_unread = class.rate.zip(class.says_rate).map(|(rate, says)| says && rate.is_none());
        let above = promise.zip(ceil).map(|(promise, ceil)| promise.firm > u128::from(ceil.bps()));
        let new = above.zip(is_unread).map(|(above, unread)| above && !unread);
        let link = self.plan.nodes[0].shares.map(|shares| shares.ceil);
        let all = promise.zip(ceil.zip(link)).zip(place.zip(new));
        for (direction, ((promise, (ceil, link)), (place, is_new))) in all.named() {
            if *is_new {
                let what = format!(
                    "\"{}\" is guaranteed {} {direction} but has a ceiling of {ceil}",
                    class.path,
                    say(promise.firm)
                );
                let help = if ceil == link {
                    "lower the rate: the link has no more"
                } else {
                    "lower the rate, or raise its ceil or that of a class above"
                };
                self.problems.error(*place, what, help);
                break;
            }
        }
        let owner = Owner {
            name: format!("\"{}\"", class.path),
            is_link: false,
            place,
            follows: said.map(|said| said.is_none()),
            allocates,
            at_best: ByWay::same(1_000_000),
            bare: self.bare(id),
        };
        // a class without a rate promises what its children do; that it is too much has been said,
        // and of a rate that could not be read nobody knows
        let whole = said.zip(ceil).map(|(said, ceil)| said.unwrap_or(ceil));
        let is_said = above.zip(is_unread).map(|(above, unread)| above || unread);
        let unsaid = said.zip(is_said).map(|(said, is_said)| said.is_none() && is_said);
        let promised =
            promised.zip(unsaid).map(|(sum, unsaid)| if unsaid { Sum::default() } else { sum });
        self.check_promise(&owner, whole, promised);
        if let Some(session) = &class.leaf.session {
            self.check_session(class, session, ceil);
        }
    }

    fn check_session(&mut self, class: &Class, session: &Session, ceil: ByWay<Rate>) {
        for (direction, (min, ceil)) in session.min.zip(ceil).named() {
            let Some(min) = min else { continue };
            let count = session.count.unwrap_or(1);
            let sum = u128::from(min.bps()) * u128::from(count);
            if sum > u128::from(ceil.bps()) {
                let path = &class.path;
                let (what, help) = if session.count.is_some() {
                    let what = format!(
                        "{count} sessions of at least {min} are {} {direction}, and \"{path}\" \
                         has a ceiling of {ceil}",
                        say(sum)
                    );
                    (what, "lower \"count\" or \"min\", or raise the ceil")
                } else {
                    let what = format!(
                        "each session gets at least {min} {direction}, and \"{path}\" has a \
                         ceiling of {ceil}"
                    );
                    (what, "lower \"min\", or raise the ceil")
                };
                self.problems.error(session.place, what, help);
                return;
            }
        }
    }

    /// What children are promised must fit into what their parent has. At the top of what weir's
    /// allocator holds it must fit into 199/200 of that, because the queues there may hold
    /// back up to 1/200; the levels below share what they let through.
    pub(super) fn check_promise(&mut self, owner: &Owner, whole: ByWay<Rate>, promised: Promise) {
        let Owner { name, place, allocates, .. } = owner;
        for (direction, (place, (whole, promised))) in place.zip(whole.zip(promised)).named() {
            let admitted = match allocates {
                true => whole.minus(Rate::from_bps(whole.bps().div_ceil(200))),
                false => *whole,
            };
            let firm = promised.firm;
            let Some(over) = firm.checked_sub(admitted.bps().into()).filter(|over| *over > 0)
            else {
                continue;
            };
            let mut what = format!(
                "the classes below {name} are guaranteed {} {direction}, but it has {whole}",
                say(firm)
            );
            if *allocates {
                what += &format!(" and enforce = \"weir\" admits 199/200 of it, {admitted}");
            }
            let cure = match owner.is_link {
                true => format!("correct \"{direction}\" if the line carries more"),
                false => "raise its own rate".to_owned(),
            };
            let help = format!("reduce their rates by {}, or {cure}", say(over));
            self.problems.error(*place, what, help);
            return;
        }
        if !self.warn_of_overbooking(owner, whole, promised) {
            self.warn_of_parts(owner, whole, promised.map(Sum::all));
        }
    }

    /// Subscribers that are guaranteed more than there is for all of them together.
    fn warn_of_overbooking(
        &mut self,
        owner: &Owner,
        whole: ByWay<Rate>,
        promised: Promise,
    ) -> bool {
        let all = owner.place.zip(owner.follows).zip(whole.zip(promised));
        for (direction, ((place, follows), (whole, promised))) in all.named() {
            let (sum, bits) = (promised.all(), u128::from(whole.bps()));
            if sum <= bits || bits == 0 {
                continue;
            }
            let hundredths = sum.saturating_mul(100) / bits;
            let factor = format!("{}.{:02}", hundredths / 100, hundredths % 100);
            let what = format!(
                "the subscribers below {} are guaranteed {} {direction}, {factor} times the \
                 {whole} that it has",
                owner.name,
                say(sum)
            );
            let raise = match (owner.is_link, follows) {
                (true, _) => "correct the rate of the link if it carries more".to_owned(),
                (false, true) => format!("raise the ceil of {}, which has no rate", owner.name),
                (false, false) => format!("raise the rate of {}", owner.name),
            };
            let help = format!(
                "while all of them have traffic, each gets {} % of its guarantee; lower \
                 \"{direction}_rate\" in the table, or {raise}",
                bits.saturating_mul(100) / sum
            );
            self.problems.warning(*place, what, help);
            return true;
        }
        false
    }

    /// Guarantees that fit and are not whole all the same: on a line that is found, and beside a
    /// child that is guaranteed nothing, while that has traffic.
    fn warn_of_parts(&mut self, owner: &Owner, whole: ByWay<Rate>, promised: ByWay<u128>) {
        if self.problems.has_errors() {
            // what is at fault is not what will be promised
            return;
        }
        let parts = owner.at_best.zip(owner.bare).zip(owner.follows);
        let all = owner.place.zip(whole.zip(promised).zip(parts));
        for (direction, (place, ((whole, promised), ((at_best, bare), follows)))) in all.named() {
            let whole = if *follows { &rate(*promised) } else { whole };
            let best = whole.part(*at_best);
            let kept = if bare.is_some() { best.part(BESIDE_OTHERS) } else { best };
            let Some(over) = promised.checked_sub(u128::from(kept.bps())).filter(|over| *over > 0)
            else {
                continue;
            };
            let mut why = Vec::new();
            if *follows {
                why.push(format!(
                    "{} has no rate of its own and is guaranteed the sum of theirs",
                    owner.name
                ));
            }
            if best < *whole {
                why.push(format!("margin = \"auto\" uses at most {best} of {whole}"));
            }
            if let Some(bare) = bare {
                let bare = &self.plan.nodes[*bare as usize].path;
                why.push(format!(
                    "they get {kept} while \"{bare}\", which has no guarantee, has traffic"
                ));
            }
            let what = format!(
                "the classes below {} are guaranteed {} {direction} and do not always get all of \
                 it: {}",
                owner.name,
                say(*promised),
                why.join("; ")
            );
            let help = if *follows {
                let whole = rate(promised.saturating_mul(1_000_000).div_ceil(BESIDE_OTHERS.into()));
                format!("give {} a rate of {whole} or more", owner.name)
            } else {
                format!("reduce their rates by {}", say(over))
            };
            self.problems.warning(*place, what, help);
            return;
        }
    }

    /// A child of this node that is guaranteed nothing. What lies below it was added behind it.
    pub(super) fn bare(&self, id: NodeId) -> ByWay<Option<NodeId>> {
        let behind = (id + 1..).zip(&self.plan.nodes[id as usize + 1..]);
        let children = behind.filter(|(_, node)| node.parent == id);
        let mut bare = ByWay::same(None);
        for (child, node) in children {
            if node.shares.down.rate == Rate::ZERO {
                bare.down = bare.down.or(Some(child));
            }
            if node.shares.up.rate == Rate::ZERO {
                bare.up = bare.up.or(Some(child));
            }
        }
        bare
    }
}
