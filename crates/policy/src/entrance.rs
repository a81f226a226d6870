//! Classes that any host can enter by what it writes into its packets: a DSCP, a port. Where such a
//! class has no ceiling, a host whose own class has one leaves it at will.
//!
//! A class is limited here where its ceiling is below that of the class above it, where it is
//! policed, and where the leaves that it makes have a ceiling. Left out: what a host can forge at
//! some cost (addresses, MACs, VLANs), and frames that are not IP.

use crate::matching::When;
use crate::plan::{NodeId, NodeKind, Plan, Rule, Target};
use crate::problem::Problems;

/// Per direction: down, up.
type Ways = [bool; 2];

/// A limited class below a node: where it stands among those asked, and by which child of the node.
type Limited = Option<(usize, NodeId)>;

/// The last two limited classes below a node that come by different children of it.
#[derive(Clone, Copy, Default)]
struct Below([[Limited; 2]; 2]);

/// Warns of each class that a host of a limited one can enter.
pub(crate) fn check(plan: &Plan, problems: &mut Problems) {
    let limits = limits(plan);
    let below = limited_below(plan, &limits);
    let tied = tied(plan);
    for (at, asked) in plan.asked.iter().enumerate() {
        let Some(rule) = asked.rules.iter().find(|rule| is_open(&rule.when)) else { continue };
        let Some(other) = escaped(plan, &limits, &below, &tied, at) else { continue };
        let path = &plan.node(asked.node).path;
        let other = &plan.asked[other];
        let other = match other.target {
            Target::Subscriber => "a subscriber".to_owned(),
            Target::Leaf(_) | Target::Each(_) => format!("\"{}\"", plan.node(other.node).path),
        };
        let what = format!(
            "any host can enter \"{path}\", which has no ceiling, with packets that match \"{}\", \
             and so avoid the ceiling of {other}",
            rule.text
        );
        let help = format!(
            "give \"{path}\" a ceiling (ceil = \"10mbit\"), or restrict the rule to certain \
             hosts: \"lan 10.0.0.0/24, {}\"",
            rule.text
        );
        problems.warning(rule.place, what, help);
    }
}

/// A limited class asked behind this one, whose hosts would get more here.
fn escaped(
    plan: &Plan,
    limits: &[Ways],
    below: &[Below],
    tied: &[bool],
    at: usize,
) -> Option<usize> {
    let mut free = [true; 2];
    let mut node = plan.asked[at].node;
    while node != 0 {
        let here = limits[node as usize];
        free = [free[0] && !here[0], free[1] && !here[1]];
        if tied[node as usize] {
            return None;
        }
        let parent = plan.node(node).parent;
        for way in [0, 1].into_iter().filter(|&way| free[way]) {
            let mut all = below[parent as usize].0[way].into_iter().flatten();
            if let Some((other, _)) = all.find(|&(other, child)| child != node && other > at) {
                return Some(other);
            }
        }
        node = parent;
    }
    None
}

/// Of each node, the limited classes below it in which a host is by who it is.
fn limited_below(plan: &Plan, limits: &[Ways]) -> Vec<Below> {
    let mut below = vec![Below::default(); plan.nodes.len()];
    for (at, asked) in plan.asked.iter().enumerate() {
        if !asked.rules.iter().any(is_by_who) {
            continue;
        }
        match asked.target {
            Target::Subscriber => {
                let leaves = plan.subscribers.iter().map(|(_, leaf)| *leaf);
                leaves.for_each(|leaf| note(plan, limits, &mut below, at, leaf));
            }
            Target::Leaf(_) | Target::Each(_) => note(plan, limits, &mut below, at, asked.node),
        }
    }
    below
}

/// Notes a class at all nodes above the first one that limits it.
fn note(plan: &Plan, limits: &[Ways], below: &mut [Below], at: usize, mut node: NodeId) {
    let mut limited = [false; 2];
    while node != 0 {
        let here = limits[node as usize];
        limited = [limited[0] || here[0], limited[1] || here[1]];
        let parent = plan.node(node).parent;
        for way in [0, 1].into_iter().filter(|&way| limited[way]) {
            let [last, before] = &mut below[parent as usize].0[way];
            // they come in their order
            if last.is_some_and(|(_, child)| child != node) {
                *before = *last;
            }
            *last = Some((at, node));
        }
        node = parent;
    }
}

/// Of each node, whether all rules of its class are tied to somebody.
fn tied(plan: &Plan) -> Vec<bool> {
    let mut tied = vec![false; plan.nodes.len()];
    for asked in plan.asked.iter().filter(|asked| asked.target != Target::Subscriber) {
        tied[asked.node as usize] = asked.rules.iter().all(|rule| is_tied(&rule.when));
    }
    tied
}

/// Whether each node gets less than passes above it.
fn limits(plan: &Plan) -> Vec<Ways> {
    let one = |(id, node): (u32, &crate::plan::Node)| {
        let above = &plan.node(node.parent).shares;
        let own = &node.shares;
        let mut ways = [own.down.ceil < above.down.ceil, own.up.ceil < above.up.ceil];
        if let NodeKind::Each(each) = &node.kind {
            let leaf = &each.shares;
            let less = [leaf.down.ceil < own.down.ceil, leaf.up.ceil < own.up.ceil];
            ways = [ways[0] || less[0], ways[1] || less[1]];
        }
        let is_policed = node.kind != NodeKind::Interior && plan.words_of(id).police.is_some();
        if is_policed { [true; 2] } else { ways }
    };
    (0..).zip(&plan.nodes).map(one).collect()
}

/// Whether a host is there by who it is, and not by what it sends.
fn is_by_who(rule: &Rule) -> bool {
    !chooses(&rule.when)
}

/// Whether any host can send what the rule asks for.
fn is_open(when: &When) -> bool {
    chooses(when) && !is_tied(when)
}

/// Whether it asks for what a sender writes into an IP packet as it likes.
fn chooses(when: &When) -> bool {
    let ports = when.lan_port.or(when.wan_port).or(when.port);
    let numbers = when.protocol.is_some() || when.dscp.is_some();
    ports.is_some() || numbers || when.length.is_some() || when.raw.is_some()
}

/// Whether it asks for who sends or receives, or for the way that the frame travels.
fn is_tied(when: &When) -> bool {
    let addresses = when.lan.is_some() || when.wan.is_some() || when.host.is_some();
    let addresses = addresses && !when.excludes;
    let macs = when.lan_mac.or(when.wan_mac).or(when.mac).is_some();
    addresses || macs || when.vlan.is_some() || when.untagged || when.toward.is_some()
}

#[cfg(test)]
mod tests {
    use crate::{Severity, Source, read};

    /// Which classes are warned of, each with the one that is left.
    fn warned(classes: &str) -> Vec<String> {
        let line = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"1gbit\"\nup = \"1gbit\"";
        let reading = read(Source::new("p", format!("{line}\n{classes}")), &mut |_| {
            Ok(Source::new("s.csv", CSV))
        })
        .unwrap();
        assert!(!reading.is_at_fault(), "{:?}", reading.problems);
        let all = reading.problems.iter().filter(|p| p.severity == Severity::Warning);
        let all = all.filter(|p| p.what.starts_with("any host"));
        let place = |p: &crate::Problem| reading.sources[0].position(p.place);
        all.map(|p| format!("{} {} ({})", place(p), p.what, p.help)).collect()
    }

    const CSV: &str = "id,parent,addresses,down_ceil,up_ceil\ns,tower,10.0.0.7,5mbit,5mbit\n";
    const GUESTS: &str = "[class.\"/guests\"]\nmatch = \"lan 10.0.9.0/24\"\nceil = \"5mbit\"\n";

    fn with_guests(first: &str, last: &str) -> usize {
        warned(&format!("{first}\n{GUESTS}{last}")).len()
    }

    #[test]
    fn no_example_has_such_a_class() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        let mut seen = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".toml") {
                continue;
            }
            let mut open = |file: &str| Ok(Source::new(file, text(file)));
            let reading = read(Source::new(&*name, text(&name)), &mut open).unwrap();
            assert!(!reading.is_at_fault(), "{name}: {:?}", reading.problems);
            let open = reading.problems.iter().find(|p| p.what.starts_with("any host"));
            assert_eq!(open, None, "{name}");
            seen += 1;
        }
        assert!(seen >= 6);
    }

    #[test]
    fn a_mark_without_a_ceiling_leaves_one() {
        let calls = "[class.\"/calls\"]\nmatch = [\"lan 10.0.1.0/24\", \"dscp ef\"]\n";
        let said = warned(&format!("{calls}{GUESTS}"));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("p:7:29 any host can enter \"/calls\""), "{said:?}");
        assert!(said[0].contains("match \"dscp ef\"") && said[0].contains("of \"/guests\""));
        assert!(said[0].contains("ceil = ") && said[0].contains("lan 10.0.0.0/24, dscp ef"));
        for line in ["tcp port 179", "proto gre", "length 0-200", "ipv4, dscp cs6"] {
            let class = format!("[class.\"/x\"]\nmatch = \"{line}\"\n");
            assert_eq!(with_guests(&class, ""), 1, "{line}");
        }
    }

    #[test]
    fn what_is_tied_limited_or_asked_later_is_no_way_out() {
        let class = |line: &str, more: &str| {
            with_guests(&format!("[class.\"/x\"]\nmatch = \"{line}\"\n{more}"), "")
        };
        for line in ["host 10.0.0.1, dscp cs6", "lan 10.0.1.0/24", "vlan 7, dscp ef", "arp"] {
            assert_eq!(class(line, ""), 0, "{line}");
        }
        for line in ["mac 02:00:00:00:00:01, dscp ef", "down, dscp ef", "wan 192.0.2.1, udp"] {
            assert_eq!(class(line, ""), 0, "{line}");
        }
        for line in ["not lan 10.0.1.0/24, udp", "not tcp", "udp, not host 192.0.2.1"] {
            assert_eq!(class(line, ""), 1, "{line}");
        }
        assert_eq!(class("dscp ef", "ceil = \"10mbit\""), 0, "more than guests have, but bounded");
        assert_eq!(class("dscp ef", "police = { rate = \"1mbit\", burst = \"9kb\" }"), 0);
        assert_eq!(class("dscp ef", "ceil = { down = \"10mbit\" }"), 1, "up");
        assert_eq!(with_guests("", "[class.\"/x\"]\nmatch = \"dscp ef\""), 0, "asked later");
        // nobody has a ceiling, or only who chose to be there
        assert_eq!(warned("[class.\"/x\"]\nmatch = \"dscp ef\"\n").len(), 0);
        let backup = "[class.\"/x\"]\nmatch = \"dscp ef\"\n\
            [class.\"/backup\"]\nmatch = \"tcp port 873\"\nceil = \"5mbit\"\n";
        assert_eq!(warned(backup).len(), 0);
        let all = "[class.\"/x\"]\nmatch = \"dscp ef\"\n\
            [class.\"/all\"]\nmatch = \"any\"\neach = { by = \"lan-host\", ceil = \"5mbit\" }\n";
        assert_eq!(warned(all).len(), 1, "a ceiling per host is one");
    }

    #[test]
    fn a_branch_is_entered_by_its_own_hosts_only() {
        let branch = |rules: &str, ceil: &str| {
            format!(
                "[class.\"/a\"]\n{rules}\n{ceil}\n\
                 [class.\"/a/ef\"]\nmatch = \"dscp ef\"\n\
                 [class.\"/a/b\"]\nmatch = \"lan 10.0.1.0/24\"\n{}\n",
                if ceil.is_empty() { "ceil = \"5mbit\"" } else { "" }
            )
        };
        // within the branch, and out of it
        assert_eq!(warned(&branch("match = \"lan 10.0.0.0/21\"", "")).len(), 1);
        let limited = branch("match = \"lan 10.0.0.0/21\"", "ceil = \"9mbit\"");
        assert_eq!(with_guests(&limited, ""), 0, "nobody else gets in");
        assert_eq!(with_guests(&branch("match = \"tcp\"", "ceil = \"9mbit\""), ""), 0);
        let open = "[class.\"/a\"]\n[class.\"/a/ef\"]\nmatch = \"dscp ef\"\n";
        assert_eq!(with_guests(open, ""), 1);
    }

    #[test]
    fn subscribers_have_ceilings_too() {
        let tower = "[class.\"/tower\"]\n[subscribers]\nfile = \"s.csv\"\n";
        let said = warned(&format!("[class.\"/net\"]\nmatch = \"dscp cs6\"\n{tower}"));
        assert_eq!(said.len(), 1, "{said:?}");
        let tied = format!("[class.\"/net\"]\nmatch = \"host 10.0.0.1, dscp cs6\"\n{tower}");
        assert_eq!(warned(&tied).len(), 0);
    }
}
