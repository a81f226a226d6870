//! TCP rate control: any frames, and any segments of a few connections, under a policy that treats
//! TCP. The first bytes choose the policy; then come pieces: what it is, how long, its bytes.

use weir_condition::{Conditioner, Edit, Leaf, Loss, Pacing, RoundTrip, Spec, Told};
use weir_packet::tcp::{self, Tcp};
use weir_packet::{Build, Flow, Headers, Label, Net, Pool, Side, checksum};
use weir_units::{ByWay, Instant, Rate, Span};

/// Bytes of a segment that is made of fields.
const FIELDS: usize = 10;

/// Nothing but window and segment size changes, the checksum stays as right as it was, and every
/// frame comes out within a second.
pub fn condition(data: &[u8]) {
    let Some((&[a, b], mut rest)) = data.split_first_chunk() else { return };
    let mut stage = Stage::new(&spec(a, b));
    while let [what, length, more @ ..] = rest {
        let (piece, behind) = more.split_at(usize::from(*length).min(more.len()));
        rest = behind;
        stage.now += Span::from_us(u64::from(what & 0xf0) * 997);
        stage.let_go(stage.now);
        let side = if what & 1 == 0 { Side::Lan } else { Side::Wan };
        match what & 14 {
            14 => stage.tell(&spec(*what, *length)),
            12 | 10 => stage.arrive(side, *what, piece),
            _ => {
                let (fields, options) = piece.split_at(FIELDS.min(piece.len()));
                if let Some(fields) = fields.first_chunk() {
                    stage.arrive(side, *what, &segment(side, *what, fields, options));
                }
            }
        }
    }
    stage.now += Span::from_secs(1);
    stage.let_go(stage.now);
    assert_eq!(stage.conditioner.held(), 0, "somebody waits for longer than a second");
    assert_eq!(stage.pool.free(), stage.pool.capacity(), "a frame stayed somewhere");
}

struct Stage {
    conditioner: Conditioner,
    spec: Spec,
    pool: Pool,
    now: Instant,
}

impl Stage {
    fn new(spec: &Spec) -> Stage {
        let (conditioner, pool) = (Conditioner::new(16), Pool::new(64, 2_048));
        let mut stage =
            Stage { conditioner, spec: Spec::default(), pool, now: Instant::from_ns(1 << 42) };
        stage.tell(spec);
        stage
    }

    fn tell(&mut self, spec: &Spec) {
        self.let_go(Instant::from_ns(u64::MAX));
        self.conditioner.apply(&mut Edit::between(&self.spec, spec, 2));
        self.spec = spec.clone();
    }

    fn arrive(&mut self, side: Side, what: u8, before: &[u8]) {
        let Some(frame) = self.pool.fill(before) else { return };
        let headers = Headers::parse(before);
        let flow = Flow { index: u32::from(what >> 1 & 1), generation: u32::from(what >> 6) };
        let label = Label { flow, leaf: 1, ..Label::new(side, &headers) };
        let bytes = self.pool.bytes_mut(&frame);
        let fate = self.conditioner.frame(self.now, bytes, &headers, &label, u32::from(what));
        check(before, self.pool.bytes(&frame), &headers);
        let frame = match fate {
            Pacing::Pass => Some(frame),
            Pacing::Hold(due) => self.conditioner.hold(frame, label, due).err(),
        };
        self.let_go(self.now);
        frame.into_iter().for_each(|frame| self.pool.give(frame));
    }

    fn let_go(&mut self, now: Instant) {
        while let Some((frame, _)) = self.conditioner.take(now) {
            self.pool.give(frame);
        }
    }
}

fn spec(a: u8, b: u8) -> Spec {
    let told = Told {
        window: a & 1 != 0,
        pace_acks: a & 2 != 0,
        least: a >> 4,
        loss: if a & 4 != 0 { Loss::Release } else { Loss::Hold },
        round_trip: if a & 8 != 0 { RoundTrip::Coarse } else { RoundTrip::Fine },
        mss: u16::from(b & 31) * 47,
    };
    let rate = Rate::from_bps(1_000 << (b >> 4));
    let leaf = Leaf { number: 1, told: 1, rate, fixed: b & 1 != 0 };
    let (up, down) = match b & 3 {
        0 => return Spec { told: vec![Told::default()], ..Spec::default() },
        1 => (vec![leaf], vec![]),
        2 => (vec![], vec![leaf]),
        _ => (vec![leaf], vec![leaf]),
    };
    let leaves = ByWay { down, up };
    Spec { told: vec![Told::default(), told], leaves }
}

fn segment(side: Side, what: u8, fields: &[u8; FIELDS], options: &[u8]) -> Vec<u8> {
    let [flags, s0, s1, a0, a1, w0, w1, data, net, _] = *fields;
    let (lan, wan) = match net & 1 {
        0 => ("10.0.0.1:1000", "192.0.2.2:80"),
        _ => ("[fd00::1]:1000", "[2001:db8::2]:80"),
    };
    let [lan, wan] = [lan, wan].map(|text| text.parse().expect("an address"));
    let build = if side == Side::Lan { Build::tcp(lan, wan) } else { Build::tcp(wan, lan) };
    // around 0, so that numbers mean something to each other and come around
    let number = |high, low| u32::from(u16::from_be_bytes([high, low])).wrapping_sub(1 << 15);
    // mostly what hosts send
    let flags = match flags & 7 {
        0 => tcp::SYN,
        1 => tcp::SYN | tcp::ACK,
        7 => what | flags,
        _ => tcp::ACK,
    };
    let build = build.tcp_flags(flags).tcp_seq(number(s0, s1)).tcp_ack(number(a0, a1));
    let build = if net & 6 == 2 { build.vlan(9) } else { build };
    let build = if net & 6 == 4 { build.pppoe(9) } else { build };
    let build = if net & 0xf8 == 8 { build.fragment(0, true, 3) } else { build };
    let build = build.tcp_window(u16::from_be_bytes([w0, w1])).tcp_options(options);
    build.payload_len(usize::from(data & 0xfe) * 5).to_vec()
}

fn check(before: &[u8], after: &[u8], headers: &Headers) {
    let (Some(was), Some(is)) = (Tcp::of(before, headers), Tcp::of(after, headers)) else {
        assert_eq!(before, after, "something else than TCP was changed");
        return;
    };
    assert!(is.window() <= was.window(), "a window grew");
    let at = usize::from(headers.transport_at);
    let differ = |range: std::ops::Range<usize>| {
        range.filter(|&at| before[at] != after[at]).collect::<Vec<_>>()
    };
    assert_eq!(differ(0..at + 14), [0; 0], "something else was changed");
    assert_eq!(differ(usize::from(headers.payload_at)..before.len()), [0; 0], "data were changed");
    let options = differ(at + 18..usize::from(headers.payload_at));
    if let (Some(first), Some(last)) = (options.first(), options.last()) {
        assert!(was.has(tcp::SYN) && last - first <= 1, "something else was changed");
    }
    assert_eq!(sum(before, headers), sum(after, headers), "the checksum");
}

/// The sum over a segment with its pseudo header; both zeros of one's complement are one.
fn sum(bytes: &[u8], headers: &Headers) -> u16 {
    let net = usize::from(headers.net_at);
    let addresses = match headers.net {
        Net::V4 => &bytes[net + 12..net + 20],
        _ => &bytes[net + 8..net + 40],
    };
    let segment = &bytes[usize::from(headers.transport_at)..usize::from(headers.end)];
    checksum::fold(checksum::sum(checksum::sum(0, addresses), segment)) % u16::MAX
}
