//! What `ask` of `[sharing]` may be, and `law` and `engine` of its profiles: a row for each word.
//! docs/lab.md has its tables from these rows.

use weir_share::hsdba::{Options as Hsdba, Reading, Silence};
use weir_share::{Law, Options, ahab};
use weir_units::Span;

use super::{Ask, Enforce, Word};

/// A word, and what it stands for.
pub(crate) struct Row<T> {
    /// As it is written.
    pub(crate) word: &'static str,
    /// As docs/lab.md says it.
    pub(crate) about: &'static str,
    is: T,
}

/// The words and what they stand for, as [`weir_policy::reader::Entry::word`] takes them.
pub(super) fn pairs<T: Copy>(rows: &[Row<T>]) -> Vec<(&'static str, T)> {
    rows.iter().map(|row| (row.word, row.is)).collect()
}

/// What a profile says beside its law, or the usual.
#[derive(Clone, Copy)]
pub(crate) struct Said {
    pub(super) frames: u32,
    pub(super) constant: Span,
}

pub(crate) const ASKS: [Row<Ask>; 9] = [
    Row { word: "fair", about: "who gets how much, beside the exact shares", is: Ask::Fair },
    Row {
        word: "steps",
        about: "how soon shares are right after a sender starts or stops",
        is: Ask::Steps,
    },
    Row { word: "limits", about: "how well a peak rate is kept", is: Ask::Limits },
    Row { word: "latency", about: "how long packets wait", is: Ask::Latency },
    Row { word: "churn", about: "how shares follow senders that come and go", is: Ask::Churn },
    Row { word: "join", about: "how a node joins, changes and leaves", is: Ask::Join },
    Row { word: "random", about: "as `fair`, in a tree drawn from the seed", is: Ask::Random },
    Row {
        word: "attacks",
        about: "what a host gets while another one attacks it",
        is: Ask::Attacks,
    },
    Row {
        word: "example",
        about: "which levels are tried for the children of the link, and what they then get",
        is: Ask::Example,
    },
];

pub(crate) const ENGINES: [Row<Word>; 3] = [
    Row { word: "weir", about: "`enforce = \"weir\"`", is: Word::Weir },
    Row { word: "hsdba", about: "`enforce = \"hsdba\"`", is: Word::Hsdba },
    Row { word: "queue", about: "queues, without `enforce`", is: Word::Queue },
];

/// What enforces shares, with what a profile says beside it.
type Makes = fn(Said) -> Enforce;

pub(crate) const LAWS: [Row<Makes>; 13] = [
    Row {
        word: "weir",
        about: "weir's allocator with 16 packets of credit: the shortest queue",
        is: |_| Enforce::Law(Law::Weir(Options::SHORT)),
    },
    Row {
        word: "weir-tcp",
        about: "weir's allocator with 20 ms of credit, for TCP",
        is: |_| Enforce::Law(Law::Weir(Options::TCP)),
    },
    Row {
        word: "hsdba",
        about: "HSDBA with Algorithm 1 as it must be meant: rates over `constant` (2 ms); silent \
                nodes, after as long, are found by polling",
        is: |said| silent(Silence::Poll, said),
    },
    Row {
        word: "hsdba-timeout",
        about: "`hsdba` with a timeout for each active leaf",
        is: |said| silent(Silence::Timeout, said),
    },
    Row {
        word: "hsdba-hybrid",
        about: "`hsdba` with a timeout four times as long for leaves; other nodes are polled",
        is: |said| silent(Silence::Hybrid, said),
    },
    Row {
        word: "hsdba-sweep",
        about: "`hsdba` where each packet looks at the next leaf",
        is: |said| silent(Silence::Sweep, said),
    },
    Row {
        word: "hsdba-average",
        about: "`hsdba` with a moving average of rates in place of a window",
        is: |_| hsdba(Hsdba { window: Span::ZERO, ..Hsdba::default() }),
    },
    Row {
        word: "hsdba-printed",
        about: "`hsdba` with Algorithm 1 as it is printed",
        is: |_| hsdba(Hsdba { reading: Reading::Printed, ..Hsdba::default() }),
    },
    Row {
        word: "hcsfq",
        about: "core-stateless fair queueing at every node, averages over `constant` (2 ms)",
        is: |said| Enforce::Law(Law::Hcsfq(said.constant, 1)),
    },
    Row {
        word: "ahab",
        about: "AHAB: a threshold for each slice, capacities from a control plane",
        is: |_| Enforce::Law(Law::Ahab(ahab::Options::default())),
    },
    Row {
        word: "fifo",
        about: "one queue for all, of so many `frames` (64)",
        is: |said| Enforce::Fifo(said.frames),
    },
    Row {
        word: "dwrr",
        about: "a queue for each leaf, of so many `frames` (64), served in rounds by weight",
        is: |said| Enforce::Dwrr(said.frames),
    },
    Row { word: "open", about: "no limit: packets do not meet", is: |_| Enforce::Open },
];

fn silent(silence: Silence, said: Said) -> Enforce {
    hsdba(Hsdba { silence, window: said.constant, idle: said.constant, ..Hsdba::default() })
}

fn hsdba(options: Hsdba) -> Enforce {
    Enforce::Law(Law::Hsdba(options))
}
