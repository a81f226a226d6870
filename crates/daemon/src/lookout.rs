//! What is looked after once a second while a link runs: its ports, guard and helper, and the signs
//! that something is not as its operator thinks. What is wrong becomes trouble, which `weir status`
//! lists until it is cured.

use weir_engine::Report;
use weir_packet::Side;
use weir_policy::Plan;
use weir_units::limits::CROWD_ADDRESSES;
use weir_units::{Instant, Span};

use crate::link::Link;
use crate::ports::{ALL_ARE_COMPLETED, Backend, Kept};
use crate::reader::Ports;
use crate::signs::{A_SECOND, Signs};
use crate::trouble::Trouble;

/// Frames below which nothing is concluded from where they went.
const BUSY: u64 = 200;

/// Looks after a link.
pub(crate) struct Lookout {
    pub(crate) kept: Kept,
    signs: Option<(u64, Signs)>,
    /// Frames that all classes and `(rest)` had received at the last look.
    received: Option<(u64, u64)>,
    /// When they are counted again, which takes the packet thread a moment.
    count_at: Instant,
    /// How often in a row all was in `(rest)`, and the trouble that this is.
    all_in_rest: u32,
    rest: Option<Trouble>,
    crowds: Vec<Trouble>,
    troubles: Vec<Trouble>,
}

/// How often all must have been in `(rest)` to be trouble.
const FOR_LONG: u32 = 2;

/// How often frames are counted by class; of a large policy more seldom.
const OFTEN: Span = Span::from_secs(3);
const SELDOM: Span = Span::from_secs(60);
const LARGE: usize = 10_000;

impl Lookout {
    pub(crate) fn new(kept: Kept) -> Lookout {
        Lookout {
            kept,
            signs: None,
            received: None,
            count_at: Instant::ZERO,
            all_in_rest: 0,
            rest: None,
            crowds: Vec::new(),
            troubles: Vec::new(),
        }
    }

    /// Whether frames are to be counted by class at this look.
    pub(crate) fn wants_report(&mut self, plan: &Plan, now: Instant) -> bool {
        let is_due = now >= self.count_at;
        if is_due {
            self.count_at = now + if plan.nodes.len() > LARGE { SELDOM } else { OFTEN };
        }
        is_due
    }

    /// Looks once; returns what happened, in words, what is new of the trouble too.
    pub(crate) fn look(
        &mut self,
        link: &mut Link,
        ports: &Ports,
        report: Option<&Report>,
        now: Instant,
    ) -> Vec<String> {
        let (mut events, mut troubles) = self.kept.look_after(link, ports, now);
        for side in Side::ALL {
            if link.facts().is_starved(side) {
                let what =
                    format!("{} has no buffers left: frames pass unshaped", self.kept.name(side));
                troubles.push(Trouble::new(what, "start weir with a larger --queue"));
            }
        }
        if link.facts().is_passed_by(now) && self.kept.bridge.is_some() {
            let what =
                "frames passed unshaped in the last second: the kernel's bridge forwarded them";
            let cure = "weir was late; it takes over by itself once it gets CPU time; `weir \
                status` shows how late it was";
            troubles.push(Trouble::new(what, cure));
        }
        troubles.extend(self.signs(link));
        if let Some(report) = report {
            self.rest = self.rest(link, report);
            self.crowds = crowds(report, &link.plan().name);
        }
        troubles.extend(self.rest.clone());
        troubles.extend_from_slice(&self.crowds);
        let is_new = |trouble: &&Trouble| !self.troubles.iter().any(|t| t.what == trouble.what);
        events.extend(troubles.iter().filter(is_new).map(ToString::to_string));
        self.troubles = troubles;
        events
    }

    /// What is wrong now, each with its cure.
    pub(crate) fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    fn signs(&mut self, link: &Link) -> Vec<Trouble> {
        let version = link.version();
        let signs = match &mut self.signs {
            Some((of, signs)) if *of == version => signs,
            // the policy says which addresses are of the LAN
            anew => &mut anew.insert((version, Signs::of(link.plan()))).1,
        };
        signs.see(&link.facts().samples(A_SECOND));
        let completes = match &self.kept.backend {
            Backend::Packet { .. } => ALL_ARE_COMPLETED,
            Backend::Xdp { .. } => self.kept.completes,
        };
        signs.troubles(link.plan(), completes)
    }

    /// Whether everything is in `(rest)`: the policy has classes, and no frame is of one.
    fn rest(&mut self, link: &Link, report: &Report) -> Option<Trouble> {
        let plan = link.plan();
        let path = &plan.node(plan.rest).path;
        let frames = |row: &weir_engine::Row| {
            let [down, up] = row.counters.named().map(|(_, c)| c.received.frames);
            down + up
        };
        let all: u64 = report.rows.first().map_or(0, frames);
        let rest: u64 = report.rows.iter().find(|row| row.path == **path).map_or(0, frames);
        let before = self.received.replace((all, rest));
        let (all_before, rest_before) = before.filter(|(all_before, _)| *all_before <= all)?;
        let (came, unclaimed) = (all - all_before, rest.saturating_sub(rest_before));
        let has_classes = plan.nodes.len() > 2;
        if came < BUSY {
            // too little to say anything new
        } else if has_classes && unclaimed == came {
            self.all_in_rest += 1;
        } else {
            self.all_in_rest = 0;
        }
        (self.all_in_rest >= FOR_LONG).then(|| {
            Trouble::new(
                format!("no class of the policy gets a frame: all frames are in \"{path}\""),
                "check with `weir explain --packet` which class a packet belongs to, whether lan \
                 and wan are reversed, and whether the addresses are those that pass here",
            )
        })
    }
}

/// MACs that may be routers without being named.
fn crowds(report: &Report, link: &str) -> Vec<Trouble> {
    let trouble = |&mac: &[u8; 6]| {
        let mac = weir_classify::Owner::Mac(mac);
        let what =
            format!("{mac} has more than {CROWD_ADDRESSES} addresses and counts as one host");
        let cure = format!("if it is a router, write routers = [\"{mac}\"] in [link.{link}]");
        Trouble::new(what, cure)
    };
    report.crowds.iter().map(trouble).collect()
}
