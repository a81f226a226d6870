//! Metrics of links and boxes, and what allocators and histories have shown by themselves.

use super::ran::{count, whole};
use super::table::{Of, Row};

pub(super) const ROWS: [Row; 8] = [
    Row {
        word: "queue-bytes",
        unit: "bytes",
        about: "maximum queue before the link, over the whole run",
        of: Of::Link(|counts| count(counts.queue_bytes_max)),
    },
    Row {
        word: "queue-ms",
        unit: "ms",
        about: "mean time that frames waited before the link",
        of: Of::Link(|counts| whole(counts.wait_ns_sum) / 1e6 / whole(counts.sent.max(1))),
    },
    Row {
        word: "dropped",
        unit: "share",
        about: "frames dropped before the link or lost behind it, divided by those that came",
        of: Of::Link(|counts| whole(counts.dropped + counts.lost) / whole(counts.offered.max(1))),
    },
    Row {
        word: "class-queue",
        unit: "bytes",
        about: "maximum queue of the class (a path) in the box, in either direction",
        of: Of::Class(|seen| whole(seen.most)),
    },
    Row {
        word: "class-wait",
        unit: "ms",
        about: "mean time that frames waited in the class, in the direction that carried more",
        of: Of::Class(|seen| seen.wait_ms),
    },
    Row {
        word: "share",
        unit: "its own",
        about: "what `[sharing]` or `[histories]` show under the name `figure`",
        of: Of::Shown(|run, name| {
            run.shares.iter().find(|(shown, _)| shown == name).map(|(_, figure)| *figure)
        }),
    },
    Row {
        word: "box-dropped",
        unit: "share",
        about: "bytes dropped by the boxes, divided by those that came from the LAN (`there`) or \
                the WAN (`back`)",
        of: Of::Boxes(|passed| whole(passed.dropped) / whole(passed.received.max(1))),
    },
    Row {
        word: "box-ms",
        unit: "ms",
        about: "maximum time that a frame waited in a box",
        of: Of::Run(|run| run.box_ms),
    },
];
