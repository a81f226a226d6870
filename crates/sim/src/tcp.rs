//! One end of a TCP connection that does no I/O: segments in, segments out, and a time to be woken.
//! This file has the connection, its timers and what it sends; what an acknowledgement does is in
//! acks.rs and recovery.rs, what arrives in receiver.rs.

mod acks;
mod bbr;
mod control;
mod cubic;
mod open;
mod rack;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod segment;
mod send;
mod spec;
#[cfg(test)]
mod tests;
mod timers;

use weir_packet::tcp;
use weir_units::{Instant, Span};

pub use spec::{Control, Recovery, Stack, TcpSpec};

pub(crate) use segment::{HEADER_BYTES, Segment};

use control::Congestion;
use rack::Rack;
use receiver::Receiver;
use recovery::{Phase, Reduction, Undo};
use rtt::RoundTrip;
use scoreboard::Scoreboard;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Listens,
    SynSent,
    SynReceived,
    Open,
    Aborted,
}

/// What the one timer of a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    None,
    /// Everything under way is lost.
    Lost,
    /// The peer's window is shut.
    Shut,
    /// The last segments may be lost (tail loss probe).
    Tail,
    /// A segment that others overtook may be lost (RACK).
    Overtaken,
}

/// A segment that goes out whatever the window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    None,
    /// The first that is not acknowledged.
    First,
    /// New data, or the last that was sent.
    Last,
    /// One that asks for the window.
    WindowProbe,
}

/// What a sender has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) again: u64,
    pub(crate) timeouts: u64,
    pub(crate) recoveries: u64,
    pub(crate) undone: u64,
}

impl Counts {
    /// Together with those of another connection.
    pub(crate) fn plus(self, other: &Counts) -> Counts {
        Counts {
            sent: self.sent + other.sent,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            again: self.again + other.again,
            timeouts: self.timeouts + other.timeouts,
            recoveries: self.recoveries + other.recoveries,
            undone: self.undone + other.undone,
        }
    }
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Tcp {
    spec: TcpSpec,
    state: State,
    syn_due: bool,
    own_first: u32,
    peer_first: u32,
    /// Payload of a full segment.
    mss: u64,
    sack: bool,
    stamps: bool,
    ecn: bool,
    own_shift: u8,
    peer_shift: u8,

    /// Offsets count from the own SYN: acknowledged up to, sent up to, written up to.
    una: u64,
    next: u64,
    written: u64,
    closes: bool,
    fin_sent: bool,
    peer_window: u64,
    peer_window_max: u64,

    board: Scoreboard,
    rtt: RoundTrip,
    control: Congestion,
    window: u32,
    threshold: u32,
    credit: u32,
    phase: Phase,
    /// What had been sent when the phase began.
    high: u64,
    /// What had been sent when the last recovery began.
    recover: u64,
    reduction: Reduction,
    undo: Undo,
    /// After a timeout: new data shall tell whether it was needless.
    frto: bool,
    /// Nothing is sent again until the next acknowledgement.
    holds: bool,
    tell_cut: bool,

    delivered: u64,
    delivered_at: Instant,
    flight_at: Instant,
    lost_in_all: u64,
    app_limited_until: u64,
    rack: Rack,
    /// A tail loss probe: what had been sent, and whether it was sent again.
    tail: Option<(u64, bool)>,

    timer: Timer,
    timer_at: Instant,
    pace_at: Instant,
    waits_for_pace: bool,
    forced: Forced,

    pub(crate) receiver: Receiver,
    told: u64,
    pub(crate) counts: Counts,
    pub(crate) samples: Vec<Span>,
}

impl Tcp {
    /// An end that opens a connection; `luck` picks its first number.
    pub(crate) fn connect(spec: &TcpSpec, luck: u64) -> Tcp {
        let mut tcp = Tcp::new(spec, luck);
        tcp.state = State::SynSent;
        tcp.syn_due = true;
        tcp
    }

    /// An end that waits for a connection.
    pub(crate) fn listen(spec: &TcpSpec, luck: u64) -> Tcp {
        Tcp::new(spec, luck)
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves of the luck are used")]
    fn new(spec: &TcpSpec, luck: u64) -> Tcp {
        Tcp {
            state: State::Listens,
            syn_due: false,
            own_first: luck as u32,
            peer_first: 0,
            mss: u64::from(spec.mss),
            sack: false,
            stamps: false,
            ecn: false,
            own_shift: 0,
            peer_shift: 0,
            una: 0,
            next: 0,
            written: 1,
            closes: false,
            fin_sent: false,
            peer_window: 0,
            peer_window_max: 0,
            board: Scoreboard::default(),
            rtt: RoundTrip::new(spec),
            control: Congestion::new(spec.control, spec.initial_window, (luck >> 32) as u32),
            window: spec.initial_window,
            threshold: u32::MAX,
            credit: 0,
            phase: Phase::Open,
            high: 0,
            recover: 0,
            reduction: Reduction::default(),
            undo: Undo::default(),
            frto: false,
            holds: false,
            tell_cut: false,
            delivered: 0,
            delivered_at: Instant::ZERO,
            flight_at: Instant::ZERO,
            lost_in_all: 0,
            app_limited_until: 0,
            rack: Rack::default(),
            tail: None,
            timer: Timer::None,
            timer_at: Instant::MAX,
            pace_at: Instant::ZERO,
            waits_for_pace: false,
            forced: Forced::None,
            receiver: Receiver::new(spec),
            told: 0,
            counts: Counts::default(),
            samples: Vec::new(),
            spec: spec.clone(),
        }
    }

    /// The application writes so many bytes.
    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.closes {
            self.written = self.written.saturating_add(bytes).min(u64::MAX >> 1);
        }
    }

    /// What was written and not yet sent is taken back, as if it had never been.
    pub(crate) fn stop_writing(&mut self) {
        self.written = self.written.min(self.next.max(1));
    }

    /// The application has no more to write.
    pub(crate) fn close(&mut self) {
        self.closes = true;
    }

    /// Payload that has arrived in order since this was asked.
    pub(crate) fn take_delivered(&mut self) -> u64 {
        let news = self.receiver.delivered - self.told;
        self.told = self.receiver.delivered;
        news
    }

    /// When it wants to be woken.
    pub(crate) fn deadline(&self) -> Instant {
        let mut at = self.timer_at.min(self.receiver.ack_at);
        if self.waits_for_pace {
            at = at.min(self.pace_at);
        }
        at
    }

    /// Whether both sides know that both have said all.
    #[cfg(test)]
    fn is_over(&self) -> bool {
        let said_all = self.fin_sent && self.una == self.next && self.receiver.is_over;
        said_all || self.state == State::Aborted
    }

    /// Whether all that was written has been acknowledged.
    #[cfg(test)]
    fn is_acknowledged(&self) -> bool {
        self.una >= self.written
    }

    /// A segment has come.
    pub(crate) fn receive(&mut self, now: Instant, segment: &Segment) {
        if segment.has(tcp::RST) {
            if self.state == State::Open && self.offset_of(segment.seq) < self.receiver.next {
                // an old one, or of somebody who guesses
                return;
            }
            self.state = State::Aborted;
            self.timer_at = Instant::MAX;
            return;
        }
        match self.state {
            State::Listens | State::SynSent | State::SynReceived => {
                if !self.opens(now, segment) {
                    return;
                }
            }
            State::Open => {}
            State::Aborted => return,
        }
        if segment.has(tcp::SYN) {
            // the peer did not hear the last of the three
            self.receiver.ack_now = true;
            return;
        }
        if let Some((value, _)) = segment.timestamps
            && self.offset_of(segment.seq) <= self.receiver.next
        {
            self.receiver.stamp = value.wrapping_sub(self.lie(now));
        }
        if segment.has(tcp::CWR) {
            self.receiver.echo = false;
        }
        if segment.has(tcp::ACK) {
            self.acknowledged(now, segment);
        }
        if segment.payload > 0 || segment.has(tcp::FIN) {
            let start = self.offset_of(segment.seq);
            self.receiver.take(now, start, segment, &self.spec);
        } else if self.offset_of(segment.seq) < self.receiver.next {
            // a probe of the window, or of whether we are there
            self.receiver.ack_now = true;
        }
    }

    /// How many milliseconds older than it is this host says that the peer's clock is.
    fn lie(&self, now: Instant) -> u32 {
        let lies = (now.ns() / 1_000_000_000).is_multiple_of(2);
        let ms = if lies { self.spec.stale_echo.ns() / 1_000_000 } else { 0 };
        u32::try_from(ms).unwrap_or(0)
    }

    /// Where a sequence number of the peer is, counted from its SYN.
    fn offset_of(&self, seq: u32) -> u64 {
        let next = self.receiver.next;
        near(next, seq.wrapping_sub(self.peer_first))
    }

    /// The window as the peer sees it.
    fn shown_window(&mut self) -> u16 {
        let window = self.receiver.window() >> self.own_shift;
        u16::try_from(window).unwrap_or(u16::MAX)
    }

    /// The sender's clock as timestamps show it: milliseconds.
    fn clock(&self, now: Instant) -> u32 {
        #[expect(clippy::cast_possible_truncation, reason = "the clock wraps, as it should")]
        let ms = (now.ns() / 1_000_000) as u32;
        ms.wrapping_add(self.own_first)
    }
}

/// The 64-bit offset nearest to `around` that ends in these 32 bits.
fn near(around: u64, low: u32) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        reason = "the difference modulo 2^32, as signed"
    )]
    let by = low.wrapping_sub(around as u32) as i32;
    around.saturating_add_signed(i64::from(by))
}
