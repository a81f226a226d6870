//! The policy that only watches: the same classes with nothing that holds a frame back, so that
//! what each class carries can be counted before anything is shaped.

use weir_units::{ByWay, Priority, Rate};

use crate::class::Enforce;
use crate::leaf::{Aqm, AqmKind, LeafWords, Mark, Mss, Queue, Tcp, TcpClock, TcpLoss, TcpRate};
use crate::plan::{NodeKind, Plan, Shares};

impl Plan {
    /// The same classes and rules, but every frame leaves as it came and when it came. It is a
    /// policy like any other, so that a running link can change to it and back between two frames,
    /// and no frame is lost or overtaken.
    #[must_use]
    pub fn observing(&self) -> Plan {
        let mut plan = self.clone();
        for node in &mut plan.nodes {
            node.enforce = Enforce::Queue;
            node.priority = Priority::default();
            node.shares = node.shares.map(unheld);
            if let NodeKind::Each(each) = &mut node.kind {
                each.shares = each.shares.map(unheld);
            }
        }
        // the line itself carries as much as its rate says, not as its ceiling
        let line = &mut plan.nodes[0].shares;
        *line = line.map(|was| Shares { rate: Rate::MAX, ..was });
        plan.finds = ByWay::default();
        plan.observes = true;
        plan.words.fill(untouched());
        plan
    }
}

/// No guarantee is needed and no ceiling met where the line is wider than any port.
fn unheld(was: Shares) -> Shares {
    Shares { rate: Rate::ZERO, ceil: Rate::MAX, weight: was.weight, burst: None }
}

fn untouched() -> LeafWords {
    let aqm = Aqm {
        kind: AqmKind::None,
        target: None,
        interval: None,
        min: None,
        max: None,
        probability: None,
    };
    let tcp = Tcp {
        window: Some(false),
        pace_acks: Some(false),
        mss: Some(Mss::Keep),
        least: None,
        loss: TcpLoss::default(),
        round_trip: TcpClock::default(),
        rate: TcpRate::default(),
    };
    LeafWords {
        queue: Some(Queue::Fifo),
        limit: None,
        aqm: Some(aqm),
        ecn: Some(false),
        dscp: Some(Mark::Keep),
        tcp: Some(tcp),
        session: None,
        police: None,
    }
}

#[cfg(test)]
mod tests {
    use crate::Source;
    use crate::plan::NodeKind;

    #[test]
    fn classes_and_rules_stay_and_nothing_holds_a_frame() {
        let text = r#"
            [link.l]
            lan = "a"
            wan = "b"
            down = "10mbit"
            up = "1mbit"
            enforce = "weir"
            [class."/calls"]
            match = "dscp ef"
            rate = "100kbit"
            ceil = "200kbit"
            dscp = "cs5"
            police = { rate = "200kbit" }
            [class."/hosts"]
            match = "any"
            each = { by = "lan-host", ceil = "1mbit" }
        "#;
        let reading =
            crate::read(Source::new("p", text.to_owned()), &mut |_| Err(String::new())).unwrap();
        let plan = &reading.plans[0];
        let watching = plan.observing();
        assert_eq!((&watching.asked, watching.rest), (&plan.asked, plan.rest));
        assert_eq!(watching.nodes[0].shares.down.rate, weir_units::Rate::MAX);
        for (node, was) in watching.nodes.iter().zip(&plan.nodes) {
            assert_eq!((&node.path, node.parent), (&was.path, was.parent));
            assert_eq!(node.shares.up.ceil, weir_units::Rate::MAX);
            assert_eq!(node.enforce, crate::Enforce::Queue);
            if let NodeKind::Each(each) = &node.kind {
                assert_eq!(each.shares.down.ceil, weir_units::Rate::MAX);
            }
        }
        assert!(watching.words.iter().all(|words| words.police.is_none()));
        assert!(plan.words.iter().any(|words| words.police.is_some()));
    }
}
