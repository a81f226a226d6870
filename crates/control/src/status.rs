//! How a link is.

use serde::{Deserialize, Serialize};

use crate::{Confirm, Named, Revision};

/// What `status` answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The version of weir.
    pub version: String,
    /// The name of the link.
    pub link: String,
    /// Whether it shapes.
    pub mode: Mode,
    /// How frames come and go: `xdp` or `packet`.
    pub io: String,
    /// The bridge that forwards traffic unshaped when weir does not run.
    pub bypass: Option<String>,
    /// The rate that was found towards the LAN, where `margin` is `auto`.
    pub found_down: Option<u64>,
    /// The rate that was found towards the WAN, where `margin` is `auto`.
    pub found_up: Option<u64>,
    /// Round trips of TCP.
    pub round_trips: RoundTrips,
    /// What the link was started with.
    pub file: String,
    /// Seconds since then.
    pub uptime_s: u64,
    /// The policy in effect.
    pub revision: Revision,
    /// What comes back unless it is confirmed.
    pub confirm: Option<Confirm>,
    /// Both ports.
    pub ports: Ports,
    /// What the packet thread says of itself.
    pub packets: Option<Packets>,
    /// Connections that are known.
    pub flows: Option<u64>,
    /// Connections that were taken over from the weir before, where that had left any.
    pub taken_over: Option<u64>,
    /// Why the connections of the weir before, or some of them, are not known to this one.
    pub not_taken_over: Option<String>,
    /// The age in seconds of what is said of ports and packets, where that is more than it should
    /// be.
    pub stale_s: Option<u64>,
    /// The revisions that are kept.
    pub history: Stored,
    /// Rows of the table of subscribers that are not in effect.
    pub subscribers: Subscribers,
    /// All that is wrong, each with its cure.
    pub trouble: Vec<String>,
}

/// Whether a link shapes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It does.
    #[default]
    Shape,
    /// It only counts.
    Observe,
}

impl Mode {
    /// The mode of a link that only observes, or does not.
    #[must_use]
    pub fn of(is_observing: bool) -> Mode {
        if is_observing { Mode::Observe } else { Mode::Shape }
    }
}

/// How long TCP takes to either side and back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundTrips {
    /// Hosts on the LAN side.
    pub lan: Option<RoundTrip>,
    /// Hosts on the WAN side.
    pub wan: Option<RoundTrip>,
}

/// Round trips to one side, as seen in passing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RoundTrip {
    /// The shortest.
    pub shortest_us: u64,
    /// The mean.
    pub mean_us: u64,
}

/// The ports of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ports {
    /// Towards the LAN.
    pub lan: Port,
    /// Towards the WAN.
    pub wan: Port,
}

impl Ports {
    /// Both with their words.
    #[must_use]
    pub fn named(&self) -> [(&'static str, &Port); 2] {
        [("lan", &self.lan), ("wan", &self.wan)]
    }
}

/// One port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Port {
    /// Its interface.
    pub interface: String,
    /// `up`, `no link`, `gone` or `unknown`.
    pub state: String,
    /// What it counted since it was opened.
    pub counters: Option<PortCounters>,
    /// What the program at the interface did with frames, by verdict.
    pub xdp: Option<Named<u64>>,
}

macro_rules! port_counters {
    ($($(#[doc = $doc:literal])+ $word:ident),+ $(,)?) => {
        /// What a port counted.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct PortCounters {
            $($(#[doc = $doc])+ pub $word: u64,)+
        }

        impl PortCounters {
            /// All of them with their words, which the metrics use too.
            pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($word), self.$word)),+].into_iter()
            }
        }
    };
}

port_counters! {
    /// Frames that came.
    received_frames,
    /// Bytes that came.
    received_bytes,
    /// Frames that left.
    sent_frames,
    /// Bytes that left.
    sent_bytes,
    /// Dropped by the kernel, because weir did not fetch them in time.
    dropped_by_kernel,
    /// Dropped because no buffer was free.
    no_buffer,
    /// Longer than a buffer.
    too_long,
    /// The kernel did not take them.
    not_sent,
    /// Had checksums that were left to hardware.
    repaired_checksums,
    /// Came as one of several segments, and were split.
    split,
}

impl PortCounters {
    /// Frames that were lost at the port, so that no class counts them.
    #[must_use]
    pub fn lost(&self) -> u64 {
        [self.dropped_by_kernel, self.no_buffer, self.too_long, self.not_sent]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

/// What the packet thread says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Packets {
    /// Whether frames pass.
    pub alive: bool,
    /// Turns so far.
    pub turns: u64,
    /// Milliseconds since the last one.
    pub last_turn_ms: u64,
    /// The longest time by which a turn came late.
    pub longest_gap_us: u64,
    /// Turns that came late.
    pub gaps: u64,
    /// Frames that had no port to go to.
    pub without_port: u64,
    /// Frames that were left to the kernel's bridge after a pause.
    pub left_to_the_bridge: u64,
    /// Buffers that the kernel did not give back.
    pub lost_buffers: u64,
}

/// The revisions that are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stored {
    /// Where.
    pub folder: String,
    /// How many.
    pub kept: usize,
}

/// Rows of the table of subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subscribers {
    /// That were skipped.
    pub skipped: usize,
    /// How many of these keep their last good row.
    pub held: usize,
}
