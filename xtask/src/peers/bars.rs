//! What is compared with what, and the bar. The same leaves, the same standing backlog, bursts of
//! 32 frames of 64 bytes, leaf and queue drawn uniformly; `bench/peers/README.md` says where the
//! two differ nevertheless.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// `bench/peers/rte_bench.c`: DPDK's `rte_sched`.
    Rte,
    /// `weir bench sched`.
    Weir,
    /// `weir bench police`.
    Police,
}

/// What one program says with these arguments: the sum of these of its metrics, each so many times.
pub(super) struct Figure {
    pub(super) program: Program,
    pub(super) arguments: &'static str,
    pub(super) metrics: &'static [(f64, &'static str)],
}

pub(super) struct Bar {
    /// Its number in SPECIFICATION.md.
    pub(super) number: &'static str,
    pub(super) what: &'static str,
    /// `None`: ours is held to the limit itself and not to a ratio.
    pub(super) theirs: Option<Figure>,
    pub(super) ours: Figure,
    /// The most that ours may be, in parts of theirs.
    pub(super) limit: f64,
}

const fn bar(
    number: &'static str,
    what: &'static str,
    theirs: Figure,
    ours: Figure,
    limit: f64,
) -> Bar {
    Bar { number, what, theirs: Some(theirs), ours, limit }
}

const fn at_most(number: &'static str, what: &'static str, ours: Figure, limit: f64) -> Bar {
    Bar { number, what, theirs: None, ours, limit }
}

/// Nanoseconds per packet, enqueue and dequeue.
const fn rte(arguments: &'static str) -> Figure {
    Figure { program: Program::Rte, arguments, metrics: &[(1.0, "sum_ns")] }
}

/// The same per packet that was delivered.
const fn rte_sent(arguments: &'static str) -> Figure {
    Figure { program: Program::Rte, arguments, metrics: &[(1.0, "per_sent_ns")] }
}

const fn weir(arguments: &'static str) -> Figure {
    weir_of(arguments, &[(1.0, "ns_per_packet")])
}

const fn weir_of(arguments: &'static str, metrics: &'static [(f64, &'static str)]) -> Figure {
    Figure { program: Program::Weir, arguments, metrics }
}

const fn police(arguments: &'static str) -> Figure {
    Figure { program: Program::Police, arguments, metrics: &[(1.0, "ns_per_packet")] }
}

/// DPDK's meter of two rates, with what a burst needs fetched ahead.
const fn rte_meter(arguments: &'static str) -> Figure {
    Figure { program: Program::Rte, arguments, metrics: &[(1.0, "ns")] }
}

const IDLE: &str = "--leaves 4096 --state idle";
const BACKLOG: &str = "--leaves 4096 --standing 64";
const CODEL: &str = "--leaves 4096 --standing 64 --aqm codel";
const RTE_BACKLOG: &str = "pipes=4096 state=backlog fill=64";

/// As many queues in a leaf as a pipe has.
const LEAF_OF_16: &[(f64, &str)] = &[(1.0, "bytes_per_leaf"), (16.0, "bytes_per_flow")];

pub(super) const BARS: &[Bar] = &[
    bar("1", "idle, 64 leaves", rte("pipes=64 state=idle"), weir("--leaves 64 --state idle"), 0.5),
    bar(
        "1",
        "idle, 1 024 leaves",
        rte("pipes=1024 state=idle"),
        weir("--leaves 1024 --state idle"),
        0.5,
    ),
    bar("1", "idle, 4 096 leaves", rte("pipes=4096 state=idle"), weir(IDLE), 0.5),
    bar(
        "2",
        "64 frames stand in each of 64 leaves",
        rte("pipes=64 state=backlog fill=64"),
        weir("--leaves 64 --standing 64"),
        1.5,
    ),
    bar(
        "2",
        "64 in each of 1 024",
        rte("pipes=1024 state=backlog fill=64"),
        weir("--leaves 1024 --standing 64"),
        1.0,
    ),
    bar("2", "64 in each of 4 096", rte(RTE_BACKLOG), weir(BACKLOG), 1.0),
    bar("3", "the same with CoDel and 16 queues a leaf", rte(RTE_BACKLOG), weir(CODEL), 1.5),
    bar(
        "2",
        "16 in each of 64",
        rte("pipes=64 state=backlog fill=16"),
        weir("--leaves 64 --standing 16"),
        1.5,
    ),
    bar(
        "2",
        "16 in each of 1 024",
        rte("pipes=1024 state=backlog fill=16"),
        weir("--leaves 1024 --standing 16"),
        1.0,
    ),
    bar(
        "2",
        "16 in each of 4 096",
        rte("pipes=4096 state=backlog fill=16"),
        weir("--leaves 4096 --standing 16"),
        1.0,
    ),
    bar("4", "one leaf, idle", rte("pipes=1 state=idle"), weir("--leaves 1 --state idle"), 0.4),
    bar(
        "4",
        "one leaf, 64 frames stand",
        rte("pipes=1 state=backlog fill=64"),
        weir("--leaves 1 --standing 64"),
        0.4,
    ),
    bar(
        "5",
        "64 leaves at their ceilings, per frame that passes (half do)",
        rte_sent("pipes=64 state=shaped rate=1000 qsize=8"),
        weir("--leaves 64 --state binding"),
        0.35,
    ),
    bar(
        "6",
        "16 tops of 256 leaves, idle",
        rte("pipes=256 subports=16 state=idle"),
        weir("--tops 16 --leaves 4096 --state idle"),
        0.3,
    ),
    bar(
        "6",
        "the same, to weir with 1 top",
        weir(IDLE),
        weir("--tops 16 --leaves 4096 --state idle"),
        1.2,
    ),
    bar(
        "7",
        "65 536 leaves idle, to weir with 4 096",
        weir(IDLE),
        weir("--leaves 65536 --state idle"),
        2.0,
    ),
    bar(
        "7",
        "4 stand in each of 65 536, to weir with 64 in 4 096",
        weir(BACKLOG),
        weir("--leaves 65536 --standing 4"),
        2.0,
    ),
    bar(
        "7",
        "1 Mi leaves idle, to weir with 4 096",
        weir(IDLE),
        weir("--leaves 1048576 --state idle"),
        4.0,
    ),
    bar(
        "7",
        "1 stands in each of 1 Mi, to weir with 64 in 4 096",
        weir(BACKLOG),
        weir("--leaves 1048576 --standing 1"),
        4.0,
    ),
    bar(
        "9",
        "policed by two rates, 4 096 leaves",
        rte_meter("mode=meter kind=tr prefetch=1 meters=4096"),
        police("--leaves 4096"),
        1.25,
    ),
    bar(
        "9",
        "policed by two rates, 1 Mi leaves",
        rte_meter("mode=meter kind=tr prefetch=1 meters=1048576"),
        police("--leaves 1048576"),
        1.25,
    ),
    at_most("13", "bytes of a leaf", weir_of(BACKLOG, &[(1.0, "bytes_per_leaf")]), 512.0),
    at_most("13", "bytes of an active flow", weir_of(CODEL, &[(1.0, "bytes_per_flow")]), 128.0),
    bar(
        "13",
        "bytes of a leaf with 16 flows, of a pipe with 16 queues of 64",
        Figure { program: Program::Rte, arguments: RTE_BACKLOG, metrics: &[(1.0, "b_per_pipe")] },
        weir_of(CODEL, LEAF_OF_16),
        0.15,
    ),
];
