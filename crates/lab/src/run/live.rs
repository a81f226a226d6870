//! A run that somebody plays in real time: its hosts and boxes are real, and the world is the wires
//! between them.

use std::convert::Infallible;

use weir_sim::flow::EndReport;
use weir_sim::{FlowSpec, NodeId, World};

use super::{ClassSeen, Counts, Passed, Run, specs, wired};
use crate::scenario::{NodeKind, Profile, Scenario};

/// The wires of a run, and what is to be said over them.
pub struct Live {
    /// The world; hosts and boxes are outside of it.
    pub world: World,
    /// By node of the scenario.
    pub nodes: Vec<NodeId>,
    /// By flow of the scenario.
    pub flows: Vec<Vec<FlowSpec>>,
    links: Vec<(usize, usize)>,
    /// What lines had counted when what arrives began to count, and when it ended.
    counts: [Option<Counts>; 2],
}

/// What was seen of such a run where the wires do not know it.
#[derive(Debug, Default)]
pub struct Played {
    /// By flow of the scenario, and by its number: both ends.
    pub flows: Vec<Vec<[EndReport; 2]>>,
    /// Of the classes of the boxes.
    pub classes: Vec<ClassSeen>,
    /// What the boxes were given and dropped while it counts, from the LAN and from the WAN.
    pub boxes: [Passed; 2],
    /// The longest that a frame waited in a box, in ms.
    pub box_ms: f64,
}

/// Whether a node is a namespace where a run is live.
#[must_use]
pub fn is_real(kind: NodeKind, profile: &Profile) -> bool {
    match kind {
        NodeKind::Host(_) => true,
        NodeKind::Box => profile.policy.is_some(),
        NodeKind::Switch => false,
    }
}

impl Live {
    /// The wires of a scenario; a box without a policy is a wire too.
    #[must_use]
    pub fn new(scenario: &Scenario, profile: &Profile, seed: u64) -> Live {
        let Ok(built) = wired::<Infallible>(scenario, profile, seed, |world, _, kind| {
            let is_real = is_real(kind, profile);
            Ok(if is_real { world.outside() } else { world.switch() })
        });
        let flows = specs(scenario, profile, seed, &built.nodes);
        let super::Built { world, nodes, links, .. } = built;
        Live { world, nodes, flows, links, counts: [None, None] }
    }

    /// What goes over lines counts from now on, or no longer.
    pub fn counts(&mut self, begins: bool) {
        let links = self.links.iter().map(|&(a, b)| [a, b].map(|id| *self.world.link(id)));
        let counts = Counts { links: links.collect(), boxes: Default::default() };
        self.counts[usize::from(!begins)] = Some(counts);
    }

    /// The run, as those under a virtual clock tell it.
    #[must_use]
    pub fn seen(self, scenario: &Scenario, played: Played) -> Run {
        let all = self.links.iter().flat_map(|&(a, b)| [a, b]);
        let frames = all.map(|id| self.world.link(id).sent).sum();
        let mut links = vec![Default::default(); self.links.len()];
        if let [Some(before), Some(mut counts)] = self.counts {
            counts.less(&before);
            links = counts.links;
        }
        let flows = played.flows.into_iter().zip(&scenario.flows);
        let flows = flows.map(|(all, flow)| {
            all.into_iter().map(|ends| super::seen(ends, flow)).collect::<Vec<_>>()
        });
        Run {
            flows: flows.collect(),
            links,
            box_ms: played.box_ms,
            classes: played.classes,
            boxes: played.boxes,
            frames,
            ..Run::default()
        }
    }
}
