//! A flow as plain data.

use std::net::IpAddr;

use weir_units::{Instant, Rate, Span};

use crate::tcp::TcpSpec;
use crate::world::NodeId;

/// A flow as plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowSpec {
    /// The host that starts it.
    pub from: NodeId,
    /// The host that it is with.
    pub to: NodeId,
    /// Its address at `from`, if not the host's.
    pub from_address: Option<IpAddr>,
    /// Its address at `to`, if not the host's.
    pub to_address: Option<IpAddr>,
    /// Its port at `from`; 0: one of its own.
    pub from_port: u16,
    /// Its port at `to`; 0: the one that its source is known by.
    pub to_port: u16,
    /// How much longer its frames take from `from`: who is further away than others of this host.
    pub away: Span,
    /// DSCP and ECN of its frames.
    pub traffic_class: u8,
    /// What is said.
    pub source: Source,
    /// When it starts.
    pub start: Instant,
    /// When it has no more to say.
    pub stop: Instant,
    /// When what arrives counts, from and up to.
    pub measure: (Instant, Instant),
    /// How long a bin of its series is; none, no series.
    pub bin: Option<Span>,
    /// Whether delays are kept one by one.
    pub samples: bool,
    /// How the two hosts' TCP behaves, where it is one.
    pub tcp: Box<[TcpSpec; 2]>,
}

/// What is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// As many bytes over TCP as there are; without a number, without end.
    Bulk {
        /// How many.
        bytes: Option<u64>,
    },
    /// Files over TCP, one after the other, from `to` to `from`. The delay of an answer is the
    /// time from the first word of the connection, or of the question, to the last byte.
    Web {
        /// Which.
        files: Files,
        /// Bytes of a question.
        request: u32,
        /// Between an answer and the next question, in the mean.
        think: Span,
        /// Whether all questions go over one connection.
        keeps: bool,
    },
    /// Single bytes over TCP that come back: somebody who types.
    Echo {
        /// From one to the next, in the mean.
        every: Span,
    },
    /// Questions for a name.
    Dns {
        /// From an answer to the next question, in the mean.
        every: Span,
    },
    /// Setting up one call: the delay at end 0 is the time to the OK.
    Call {
        /// How long it rings.
        rings: Span,
    },
    /// One direction of a game: frames of 82 bytes, 25 a second, a little unsteady.
    Game,
    /// Datagrams at a constant rate.
    Cbr {
        /// Of Ethernet frames without check sequence.
        rate: Rate,
        /// Bytes of a frame.
        bytes: usize,
    },
    /// Datagrams at random: the gaps between them are exponential.
    Poisson {
        /// In the mean.
        rate: Rate,
        /// Bytes of a frame.
        bytes: usize,
    },
    /// Datagrams at a constant rate, with pauses; talk and pause are exponential.
    OnOff {
        /// While it talks.
        rate: Rate,
        /// Bytes of a frame.
        bytes: usize,
        /// How long it talks, in the mean.
        on: Span,
        /// How long it pauses, in the mean.
        off: Span,
    },
    /// TCP data at a constant rate, whatever comes back; the other end acknowledges them whether
    /// they arrive or not.
    Forged {
        /// Of Ethernet frames without check sequence.
        rate: Rate,
        /// Bytes of a frame.
        bytes: usize,
        /// How long after it was sent each is acknowledged.
        late: Span,
    },
    /// One direction of a G.729 call: 50 frames of 74 bytes a second, RTP inside.
    Voice,
}

/// A set of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    /// All of this size.
    Fixed(u64),
    /// The four classes of a well-known web benchmark: up to 0.9, 9, 90 and 900 KB, asked for 35,
    /// 50, 14 and 1 times of 100; 15 KB in the mean.
    Classes,
}

impl FlowSpec {
    /// A flow that talks from the start of the world to its end.
    #[must_use]
    pub fn new(from: NodeId, to: NodeId, source: Source) -> FlowSpec {
        FlowSpec {
            from,
            to,
            from_address: None,
            to_address: None,
            from_port: 0,
            to_port: 0,
            away: Span::ZERO,
            traffic_class: 0,
            source,
            start: Instant::ZERO,
            stop: Instant::MAX,
            measure: (Instant::ZERO, Instant::MAX),
            bin: None,
            samples: false,
            tcp: Box::default(),
        }
    }

    /// The ports of flow number `id`.
    pub(crate) fn ports(&self, id: usize) -> [u16; 2] {
        // 16 384 to 49 151, so that a flow's own port is never a well-known one
        let own = u16::try_from(16_384 + 2 * (id % 16_384)).unwrap_or(16_384);
        let known = match self.source {
            Source::Voice => own,
            Source::Bulk { .. } | Source::Forged { .. } => 5_001,
            Source::Web { .. } => 80,
            Source::Echo { .. } => 23,
            Source::Dns { .. } => 53,
            Source::Call { .. } => 5_060,
            Source::Game => 27_015,
            Source::Cbr { .. } | Source::Poisson { .. } | Source::OnOff { .. } => 9,
        };
        let own = if matches!(self.source, Source::Call { .. }) { 5_060 } else { own };
        let or = |port, other| if port == 0 { other } else { port };
        [or(self.from_port, own), or(self.to_port, known)]
    }
}

impl Source {
    /// Whether it speaks TCP.
    #[must_use]
    pub fn is_tcp(&self) -> bool {
        matches!(
            self,
            Source::Bulk { .. } | Source::Web { .. } | Source::Echo { .. } | Source::Forged { .. }
        )
    }

    pub(crate) fn is_exchange(&self) -> bool {
        matches!(self, Source::Dns { .. } | Source::Call { .. })
    }
}
