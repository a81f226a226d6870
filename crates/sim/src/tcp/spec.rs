//! How a host's TCP behaves, as plain data, and what some systems are known to do.

use weir_units::Span;

/// How a host's TCP behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSpec {
    /// Whose code it is.
    pub stack: Stack,
    /// Who says how much may be under way.
    pub control: Control,
    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// A window that was cut is repaired packet by packet in proportion (PRR), not at once.
    pub prr: bool,
    /// After a timeout, new data tell whether it was needless (F-RTO).
    pub frto: bool,
    /// A cut that proves needless by timestamps or duplicate SACKs is taken back.
    pub undo: bool,
    /// The first duplicate acknowledgements let new data out.
    pub limited_transmit: bool,
    /// So many duplicate acknowledgements mean a loss.
    pub dup_threshold: u32,
    /// In slow start the window grows by the segments acknowledged, not by acknowledgements.
    pub byte_counting: bool,
    /// Segments that may leave at first.
    pub initial_window: u32,
    /// The least retransmission timeout.
    pub rto_min: Span,
    /// Whether that is the least above the round trip (Linux) or of the whole.
    pub rto_min_added: bool,
    /// The timeout before there is a round trip.
    pub rto_initial: Span,
    /// The longest timeout.
    pub rto_max: Span,
    /// Timers run out at multiples of this.
    pub tick: Span,
    /// How long an acknowledgement may wait for a second segment.
    pub delayed_ack: Span,
    /// Segments that are acknowledged at once at first and after a pause.
    pub quick_acks: u32,
    /// Bytes that the receiver takes at once.
    pub window: u32,
    /// Largest segment that it takes.
    pub mss: u16,
    /// Offers selective acknowledgements.
    pub sack: bool,
    /// Offers timestamps.
    pub timestamps: bool,
    /// Offers to shift the window.
    pub window_scale: bool,
    /// Offers to be told of congestion instead of losing.
    pub ecn: bool,
    /// Small segments wait for what is under way to be acknowledged.
    pub nagle: bool,
    /// It lies: every other second it echoes a clock that is so much older than what it heard, so
    /// that its way looks longer than it is.
    pub stale_echo: Span,
}

/// Whose code speaks TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// The model of this crate.
    Own,
    /// smoltcp, which knows nothing of it: a second opinion. Of the rest it heeds `control` (Reno
    /// or CUBIC), `window`, `delayed_ack` and `nagle`; it counts no timeouts and no round trips.
    Smoltcp,
}

/// Who says how much may be under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Halves at a loss, adds one per round trip (RFC 5681).
    Reno,
    /// A cubic curve around the last window that was too large (RFC 9438).
    Cubic,
    /// A model of the path's rate and round trip, and pacing (BBR version 1).
    Bbr,
}

/// How losses are found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Duplicate acknowledgements; over with the first new one (RFC 2581).
    Reno,
    /// The same, but over only when all is acknowledged (RFC 6582).
    NewReno,
    /// Segments with enough others acknowledged above them (RFC 6675).
    Sack,
    /// Segments sent long enough before one that arrived, and a probe for the last (RFC 8985).
    Rack,
}

/// Systems whose behaviour is known; those of 2001 are today's Linux without what the survey of
/// 2001 had switched off.
const PRESETS: [&str; 12] = [
    "linux-2.2",
    "win2000",
    "freebsd-4",
    "solaris-8",
    "linux-now",
    "linux-reno",
    "linux-ecn",
    "bbr",
    "linux-reno-2001",
    "linux-cubic-2001",
    "smoltcp-reno",
    "smoltcp-cubic",
];

impl TcpSpec {
    /// What is known by this name.
    #[must_use]
    pub fn preset(name: &str) -> Option<TcpSpec> {
        Some(match name {
            "linux-2.2" => linux_2_2(),
            "win2000" => win2000(),
            "freebsd-4" => freebsd_4(),
            "solaris-8" => solaris_8(),
            "linux-now" => linux_now(),
            "linux-reno" => TcpSpec { control: Control::Reno, ..linux_now() },
            "linux-ecn" => TcpSpec { ecn: true, ..linux_now() },
            "bbr" => TcpSpec { control: Control::Bbr, ..linux_now() },
            "linux-reno-2001" => as_in_2001(Control::Reno),
            "linux-cubic-2001" => as_in_2001(Control::Cubic),
            "smoltcp-reno" => smoltcp(Control::Reno),
            "smoltcp-cubic" => smoltcp(Control::Cubic),
            _ => return None,
        })
    }

    /// The names that [`TcpSpec::preset`] knows.
    #[must_use]
    pub const fn presets() -> [&'static str; 12] {
        PRESETS
    }
}

impl Default for TcpSpec {
    fn default() -> TcpSpec {
        linux_now()
    }
}

/// Linux as it comes today: CUBIC, SACK, RACK with its tail loss probe, PRR, F-RTO.
fn linux_now() -> TcpSpec {
    TcpSpec {
        stack: Stack::Own,
        control: Control::Cubic,
        recovery: Recovery::Rack,
        prr: true,
        frto: true,
        undo: true,
        limited_transmit: true,
        dup_threshold: 3,
        byte_counting: true,
        initial_window: 10,
        rto_min: Span::from_ms(200),
        rto_min_added: true,
        rto_initial: Span::from_secs(1),
        rto_max: Span::from_secs(120),
        tick: Span::from_ms(4),
        delayed_ack: Span::from_ms(40),
        quick_acks: 16,
        // it grows to this by itself; here it is there from the start
        window: 6 << 20,
        mss: 1_460,
        sack: true,
        timestamps: true,
        window_scale: true,
        ecn: false,
        nagle: true,
        stale_echo: Span::ZERO,
    }
}

/// Today's Linux with everything off that the survey of 2001 had off: no SACK, no timestamps, no
/// scaling, 32 KB, two segments at first.
fn as_in_2001(control: Control) -> TcpSpec {
    TcpSpec {
        control,
        recovery: Recovery::NewReno,
        initial_window: 2,
        window: 32 << 10,
        sack: false,
        timestamps: false,
        window_scale: false,
        ..linux_now()
    }
}

/// The least that every system of 2000 had, as the survey set them.
fn year_2000() -> TcpSpec {
    TcpSpec {
        control: Control::Reno,
        recovery: Recovery::NewReno,
        prr: false,
        frto: false,
        undo: false,
        limited_transmit: false,
        byte_counting: false,
        initial_window: 2,
        rto_min_added: false,
        rto_initial: Span::from_secs(3),
        rto_max: Span::from_secs(64),
        quick_acks: 0,
        window: 32 << 10,
        sack: false,
        timestamps: false,
        window_scale: false,
        ..linux_now()
    }
}

fn linux_2_2() -> TcpSpec {
    TcpSpec {
        rto_min: Span::from_ms(200),
        rto_min_added: true,
        rto_max: Span::from_secs(120),
        tick: Span::from_ms(10),
        delayed_ack: Span::from_ms(30),
        quick_acks: 16,
        ..year_2000()
    }
}

fn win2000() -> TcpSpec {
    TcpSpec {
        dup_threshold: 2,
        rto_min: Span::from_ms(300),
        tick: Span::from_ms(100),
        delayed_ack: Span::from_ms(200),
        window: 17_520,
        ..year_2000()
    }
}

fn freebsd_4() -> TcpSpec {
    TcpSpec {
        rto_min: Span::from_secs(1),
        tick: Span::from_ms(500),
        delayed_ack: Span::from_ms(200),
        window: 16 << 10,
        ..year_2000()
    }
}

fn solaris_8() -> TcpSpec {
    TcpSpec {
        rto_min: Span::from_ms(400),
        tick: Span::from_ms(10),
        delayed_ack: Span::from_ms(100),
        initial_window: 4,
        window: 24 << 10,
        ..year_2000()
    }
}

/// smoltcp as it comes, with a window of 32 KB.
fn smoltcp(control: Control) -> TcpSpec {
    TcpSpec {
        stack: Stack::Smoltcp,
        control,
        delayed_ack: Span::from_ms(10),
        window: 32 << 10,
        ..linux_now()
    }
}
