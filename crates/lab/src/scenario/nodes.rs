//! Who is there.

use std::net::IpAddr;

use weir_policy::Problems;
use weir_policy::reader::Entry;

/// One of those who are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NodeKind,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeKind {
    /// It speaks; with an address of its own, or one that it is given.
    Host(Option<IpAddr>),
    /// It learns who is where.
    Switch,
    /// What a profile makes of it. The first link that names it is its LAN, the second its WAN.
    Box,
}

const KINDS: [(&str, NodeKind); 3] =
    [("host", NodeKind::Host(None)), ("switch", NodeKind::Switch), ("box", NodeKind::Box)];

pub(super) fn read(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<Node> {
    let mut table = entry.table(&format!("node \"{name}\""), problems)?;
    let kind = table.take("kind").map_or(Some(KINDS[0].1), |e| e.word("kind", &KINDS, problems));
    let mut address = None;
    if let Some(entry) = table.take("address") {
        let text = entry.text("address", "an address as in \"10.0.0.1\"", problems)?;
        match text.parse() {
            Ok(read) => address = Some(read),
            Err(_) => {
                let what = format!("\"address\" cannot be \"{text}\"");
                problems.error(entry.place, what, "write an address as in \"10.0.0.1\"");
            }
        }
    }
    table.finish(&["kind", "address"], problems);
    let kind = match kind? {
        NodeKind::Host(_) => NodeKind::Host(address),
        other => other,
    };
    Some(Node { name: name.to_owned(), kind })
}
