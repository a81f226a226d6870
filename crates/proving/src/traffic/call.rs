//! A call as G.711 makes it: fifty packets of 160 bytes of sound a second, each way, behind an RTP
//! header and marked `ef`. How it sounded is what the E-model says of the worse direction.

use weir_lab::metrics::voice;
use weir_units::{Rate, Span};

use super::{End, Flood, Flow, Seen};

/// Both directions under way.
pub(crate) struct Call([Flow; 2]);

/// What was heard in the worse direction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// One-way delay that 99 % of the packets do not exceed.
    pub(crate) p99: Span,
    /// Mean opinion, 1 to 4.5.
    pub(crate) mos: f64,
}

/// 200 bytes every 20 ms.
const PACKET: u16 = 200;
const RATE: Rate = Rate::from_bps(80_000);
const EXPEDITED: u8 = 46;

/// Version 2, sound of kind 0 (PCMU); number, time and source are of no use here.
const RTP: [u8; 12] = [0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// What a packet holds, and how long a receiver waits for late ones before it plays.
const PACKETISATION: Span = Span::from_ms(20);
const PLAY_OUT: Span = Span::from_ms(40);

impl Call {
    pub(crate) fn start(one: &End, other: &End) -> Result<Call, String> {
        let way = Flood { dscp: EXPEDITED, head: &RTP, ..Flood::new(RATE, PACKET) };
        // each direction has sockets of its own: one thread sends, another one listens
        let beside = |end: &End| {
            let at = std::net::SocketAddrV4::new(*end.at.ip(), end.at.port() + 1);
            End { place: end.place.clone(), at }
        };
        Ok(Call([way.start(one, other)?, way.start(&beside(other), &beside(one))?]))
    }

    pub(crate) fn stop(self) -> Result<Heard, String> {
        let [one, other] = self.0;
        let (one, other) = (Heard::of(&one.stop()?), Heard::of(&other.stop()?));
        let lost = one.lost + other.lost;
        let sent = one.sent + other.sent;
        let worse = if one.mos <= other.mos { one } else { other };
        Ok(Heard { sent, lost, p99: one.p99.max(other.p99), ..worse })
    }
}

impl Heard {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds and packets of a call are few")]
    fn of(seen: &Seen) -> Heard {
        let delays = &seen.tally.delays;
        let play_at = delays.shortest().unwrap_or(Span::ZERO) + PLAY_OUT;
        let missing = seen.lost() + delays.longer_than(play_at);
        let loss = 100.0 * missing as f64 / seen.sent.max(1) as f64;
        let delay = (play_at + PACKETISATION).ns() as f64 / 1e6;
        let codec = voice::codec("G.711").unwrap_or(voice::CODECS[0]);
        let mos = voice::mos(voice::EModel::call(codec, delay, loss).rate().r);
        let p99 = delays.at_most(990).unwrap_or(Span::MAX);
        Heard { sent: seen.sent, lost: seen.lost(), p99, mos }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tally;
    use super::*;
    use weir_units::Instant;

    fn call(lost: u64, late: u64) -> Heard {
        let mut tally = Tally::default();
        for number in 0..1_000 - lost {
            let ms = if number < late { 60 } else { 1 };
            tally.see(number, Instant::ZERO, Instant::ZERO + Span::from_ms(ms));
        }
        Heard::of(&Seen { sent: 1_000, tally })
    }

    #[test]
    fn a_call_that_loses_nothing_is_as_good_as_g711_is() {
        assert!((4.3..4.5).contains(&call(0, 0).mos), "{:?}", call(0, 0));
    }

    #[test]
    fn what_comes_too_late_is_as_bad_as_what_is_lost() {
        assert_eq!((call(50, 0).lost, call(0, 50).lost), (50, 0));
        assert!(call(50, 0).mos < 3.0);
        assert!((call(50, 0).mos - call(0, 50).mos).abs() < 1e-9);
    }
}
