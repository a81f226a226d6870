//! How a link goes from one policy to the next: at once, or with a way back that is taken by itself
//! unless somebody confirms. It is a state machine without clock, disk or thread; who calls it
//! hands in how a plan is put into effect.

use std::sync::Arc;

use weir_control::{Refused, RevisionState};
use weir_policy::Plan;
use weir_units::{Instant, Span};

use crate::revision::Revision;

/// Puts a plan into effect; nothing has changed if it fails.
pub(crate) type Put<'p> = dyn FnMut(&Plan) -> Result<(), String> + 'p;

/// What became of a revision.
pub(crate) type Step = (Arc<Revision>, RevisionState);

/// Which policy a link has, which it goes back to, and when.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Confirmed: a restart comes up with it.
    confirmed: Arc<Revision>,
    /// Confirmed before that.
    before: Option<Arc<Revision>>,
    /// In effect until then, unless it is confirmed.
    waiting: Option<(Arc<Revision>, Instant)>,
}

/// How long an operator has until going back is tried again, where it failed.
const AGAIN: Span = Span::from_secs(5);

const UNCHANGED: &str = "nothing was changed";

impl Changes {
    pub(crate) fn new(first: Arc<Revision>) -> Changes {
        Changes { confirmed: first, before: None, waiting: None }
    }

    /// Puts a revision into effect: for good, or until `confirm` is over.
    pub(crate) fn apply(
        &mut self,
        revision: Revision,
        now: Instant,
        confirm: Option<Span>,
        put: &mut Put<'_>,
    ) -> Result<Vec<Step>, Refused> {
        self.may(&revision.plan, now, confirm)?;
        put(&revision.plan).map_err(|why| Refused::cannot(why, UNCHANGED))?;
        let mut steps = self.undone();
        let revision = Arc::new(revision);
        match confirm {
            Some(span) => {
                self.waiting = Some((revision.clone(), now + span));
                steps.push((revision, RevisionState::Waiting));
            }
            None => steps.extend(self.hold(revision)),
        }
        Ok(steps)
    }

    /// What waits is held for good.
    pub(crate) fn confirm(&mut self) -> Result<Vec<Step>, Refused> {
        match self.waiting.take() {
            Some((revision, _)) => Ok(self.hold(revision)),
            None => {
                let number = self.confirmed.about.number;
                let what =
                    format!("no change waits for confirmation; revision {number} is confirmed");
                Err(Refused::call(what, ""))
            }
        }
    }

    /// Goes back to what was confirmed last, if something waits.
    pub(crate) fn undo(&mut self, put: &mut Put<'_>) -> Result<Vec<Step>, Refused> {
        let plan = &self.confirmed.plan;
        put(plan).map_err(|why| Refused::cannot(why, ""))?;
        Ok(self.undone())
    }

    /// Holds another revision, also while one waits: going back needs no confirmation.
    pub(crate) fn go_back(
        &mut self,
        revision: Revision,
        put: &mut Put<'_>,
    ) -> Result<Vec<Step>, Refused> {
        self.is_here(&revision.plan)?;
        put(&revision.plan).map_err(|why| Refused::cannot(why, UNCHANGED))?;
        let mut steps = self.undone();
        steps.extend(self.hold(Arc::new(revision)));
        Ok(steps)
    }

    /// Goes back if what waits was not confirmed in time. An error leaves it as it is; it is tried
    /// again.
    pub(crate) fn expire(&mut self, now: Instant, put: &mut Put<'_>) -> Result<Vec<Step>, Refused> {
        match &mut self.waiting {
            Some((_, until)) if *until <= now => {
                // before it is tried, so that a failure is not tried without end
                *until = now + AGAIN;
                self.undo(put)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// What is in effect.
    pub(crate) fn current(&self) -> &Arc<Revision> {
        self.waiting.as_ref().map_or(&self.confirmed, |(revision, _)| revision)
    }

    /// What a restart comes up with.
    pub(crate) fn confirmed(&self) -> &Arc<Revision> {
        &self.confirmed
    }

    /// What was confirmed before that, while this weir runs.
    pub(crate) fn before(&self) -> Option<&Arc<Revision>> {
        self.before.as_ref()
    }

    /// Until when what is in effect must be confirmed.
    pub(crate) fn waits_until(&self) -> Option<Instant> {
        self.waiting.as_ref().map(|(_, until)| *until)
    }

    /// Whether a plan may be put into effect now.
    pub(crate) fn may(
        &self,
        plan: &Plan,
        now: Instant,
        confirm: Option<Span>,
    ) -> Result<(), Refused> {
        if let (Some((waiting, until)), None) = (&self.waiting, confirm) {
            let (number, left) = (waiting.about.number, seconds(until.since(now)));
            let what = format!("revision {number} waits {left} more for its confirmation");
            let cure = "run `weir confirm` or `weir rollback` first, or apply with --confirm";
            return Err(Refused::call(what, cure));
        }
        self.is_here(plan)
    }

    /// Whether a plan is for the interfaces that the link has.
    fn is_here(&self, plan: &Plan) -> Result<(), Refused> {
        let now = &self.confirmed.plan;
        if (&now.lan, &now.wan) != (&plan.lan, &plan.wan) {
            let what = format!(
                "the link runs between {} and {}, but the policy names {} and {}",
                now.lan, now.wan, plan.lan, plan.wan
            );
            return Err(Refused::content(what, "restart weir to change interfaces"));
        }
        Ok(())
    }

    fn undone(&mut self) -> Vec<Step> {
        self.waiting
            .take()
            .map(|(revision, _)| (revision, RevisionState::Undone))
            .into_iter()
            .collect()
    }

    fn hold(&mut self, revision: Arc<Revision>) -> Vec<Step> {
        let before = std::mem::replace(&mut self.confirmed, revision.clone());
        self.before = Some(before);
        vec![(revision, RevisionState::Confirmed)]
    }
}

/// Whole seconds, the last one begun counts.
fn seconds(span: Span) -> String {
    format!("{} s", span.ns().div_ceil(1_000_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::revision;

    /// A link that remembers the rates it was given, and may refuse.
    #[derive(Default)]
    struct Given(Vec<String>, bool);

    impl Given {
        fn put(&mut self) -> impl FnMut(&Plan) -> Result<(), String> {
            |plan| {
                if self.1 {
                    return Err("the packet thread has ended".to_owned());
                }
                self.0.push(plan.nodes[0].shares.down.rate.to_string());
                Ok(())
            }
        }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_ns(seconds * 1_000_000_000)
    }

    fn fates(steps: &[Step]) -> Vec<(u64, RevisionState)> {
        steps.iter().map(|(revision, fate)| (revision.about.number, *fate)).collect()
    }

    fn number(changes: &Changes) -> (u64, u64) {
        (changes.current().about.number, changes.confirmed().about.number)
    }

    const MINUTE: Option<Span> = Some(Span::from_secs(60));

    #[test]
    fn what_nobody_confirms_goes_back_by_itself() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        let steps = changes.apply(revision(2, "20mbit"), at(0), MINUTE, &mut link.put()).unwrap();
        assert_eq!((fates(&steps), number(&changes)), (vec![(2, RevisionState::Waiting)], (2, 1)));
        let early = changes.expire(Instant::from_ns(59_999_999_999), &mut link.put()).unwrap();
        assert!(early.is_empty() && changes.waits_until() == Some(at(60)));
        let steps = changes.expire(at(60), &mut link.put()).unwrap();
        assert_eq!((fates(&steps), number(&changes)), (vec![(2, RevisionState::Undone)], (1, 1)));
        assert_eq!(link.0, ["20mbit", "10mbit"]);
        assert!(changes.expire(at(999), &mut link.put()).unwrap().is_empty());
        assert!(changes.confirm().unwrap_err().what.contains("no change waits"));
    }

    #[test]
    fn what_is_confirmed_stays() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        changes.apply(revision(2, "20mbit"), at(0), MINUTE, &mut link.put()).unwrap();
        assert_eq!(fates(&changes.confirm().unwrap()), [(2, RevisionState::Confirmed)]);
        assert!(changes.expire(at(61), &mut link.put()).unwrap().is_empty());
        assert_eq!((link.0, number(&changes)), (vec!["20mbit".to_owned()], (2, 2)));
    }

    #[test]
    fn a_second_change_waits_too_or_is_refused_and_the_way_back_stays() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        changes.apply(revision(2, "20mbit"), at(0), MINUTE, &mut link.put()).unwrap();
        let no = changes.apply(revision(3, "30mbit"), at(18), None, &mut link.put()).unwrap_err();
        assert_eq!(no.what, "revision 2 waits 42 s more for its confirmation");
        assert_eq!(number(&changes), (2, 1));
        let steps = changes.apply(revision(3, "30mbit"), at(50), MINUTE, &mut link.put()).unwrap();
        assert_eq!(fates(&steps), [(2, RevisionState::Undone), (3, RevisionState::Waiting)]);
        assert!(changes.expire(at(61), &mut link.put()).unwrap().is_empty());
        changes.expire(at(110), &mut link.put()).unwrap();
        assert_eq!((link.0.join(" "), number(&changes)), ("20mbit 30mbit 10mbit".into(), (1, 1)));
    }

    #[test]
    fn a_link_that_refuses_stays_as_it_is_and_is_asked_again() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        link.1 = true;
        assert!(changes.apply(revision(2, "20mbit"), at(0), None, &mut link.put()).is_err());
        assert_eq!(number(&changes), (1, 1));
        link.1 = false;
        changes.apply(revision(2, "20mbit"), at(0), MINUTE, &mut link.put()).unwrap();
        link.1 = true;
        assert!(changes.expire(at(60), &mut link.put()).is_err());
        assert!(changes.expire(at(61), &mut link.put()).unwrap().is_empty());
        assert_eq!(number(&changes), (2, 1));
        link.1 = false;
        changes.expire(at(65), &mut link.put()).unwrap();
        assert_eq!(number(&changes), (1, 1));
    }

    #[test]
    fn going_back_needs_no_confirmation() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        changes.apply(revision(2, "20mbit"), at(0), MINUTE, &mut link.put()).unwrap();
        let steps = changes.go_back(revision(3, "5mbit"), &mut link.put()).unwrap();
        assert_eq!(fates(&steps), [(2, RevisionState::Undone), (3, RevisionState::Confirmed)]);
        assert_eq!((number(&changes), changes.waits_until()), ((3, 3), None));
        assert_eq!(changes.before().unwrap().about.number, 1);
    }

    #[test]
    fn other_interfaces_are_another_link() {
        let mut link = Given::default();
        let mut changes = Changes::new(Arc::new(revision(1, "10mbit")));
        let mut other = revision(2, "20mbit");
        other.plan.wan = "eth9".to_owned();
        let no = changes.apply(other, at(0), None, &mut link.put()).unwrap_err();
        assert!(no.what.contains("names a and eth9"), "{no}");
        assert!(link.0.is_empty());
    }
}
