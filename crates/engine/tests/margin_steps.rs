//! What `margin = "auto"` makes of what it is told, window by window, as a table: windows drawn at
//! random, in any order; upstream it is a modem that is drawn. Each row is a while of windows that
//! are alike, and the rate after each, in kbit/s; "=9": nine times as before. Another law has other
//! rows: look at them, then accept them.

use std::fmt::Write as _;

use weir_engine::{Count, Look, Margin, RoundTrip, Uploads};
use weir_policy::{Source, read};
use weir_units::{Instant, Span, Way};

struct Told {
    margin: Margin,
    now: Instant,
    look: Look,
    draw: u64,
    row: u64,
    same: u32,
}

/// One window.
#[derive(Clone, Copy, Debug)]
struct Window {
    ms: u64,
    /// What came, in kbit/s as the line counts.
    came: u64,
    waited_us: u64,
    raised_us: u64,
    sank_ms: u64,
    is_known: bool,
    is_fresh: bool,
    hosts: u32,
}

impl Told {
    fn new(draw: u64) -> Told {
        let counts = if draw.is_multiple_of(2) { "ip" } else { "ethernet" };
        Told::of(draw, Way::Down, &format!("up = \"10mbit\"\ncounts = \"{counts}\""), "\"auto\"")
    }

    fn of(draw: u64, way: Way, link: &str, margin: &str) -> Told {
        let text = format!(
            "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100mbit\"\n{link}\n\
             margin = {margin}\n[class.\"/all\"]\nmatch = \"any\"\n"
        );
        let reading = read(Source::new("p", text), &mut |_| Err(String::new())).expect("is text");
        let margin = Margin::of(&reading.plans[0], way).expect("is auto");
        let now = Instant::ZERO + Span::from_secs(1);
        Told { margin, now, look: Look::default(), draw, row: 0, same: 0 }
    }

    /// A number below `end` (splitmix64).
    fn draw(&mut self, end: u64) -> u64 {
        self.draw = self.draw.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.draw;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end
    }

    fn one_of<T: Copy>(&mut self, list: &[T]) -> T {
        list[usize::try_from(self.draw(list.len() as u64)).expect("is small")]
    }

    fn kbit(&self) -> u64 {
        self.margin.rate().bps() / 1_000
    }

    fn tell(&mut self, window: &Window, to: &mut String) {
        self.now += Span::from_ms(window.ms);
        // of 1 250 bytes with what they have more on the line
        let frames = window.came * window.ms / 10_000;
        self.look.arrived = Count {
            frames: self.look.arrived.frames + frames,
            bytes: self.look.arrived.bytes + frames * 1_226,
        };
        self.look.left += frames;
        self.look.waited += Span::from_us(window.waited_us * frames);
        let until = if window.is_fresh { self.now } else { self.look.round_trip.until };
        self.look.round_trip = RoundTrip {
            until,
            taken: 9,
            compared: if window.is_known { 9 } else { 0 },
            hosts: window.hosts,
            raised: Span::from_us(window.raised_us),
            sank: Span::from_ms(window.sank_ms),
            ..RoundTrip::default()
        };
        self.step(to);
    }

    fn step(&mut self, to: &mut String) {
        self.margin.step(self.now, &self.look);
        let kbit = self.kbit();
        if kbit == self.row {
            self.same += 1;
            return;
        }
        self.tell_same(to);
        let _ = write!(to, " {kbit}");
        self.row = kbit;
    }

    fn tell_same(&mut self, to: &mut String) {
        let _ = if self.same > 0 { write!(to, " ={}", self.same) } else { Ok(()) };
        self.same = 0;
    }
}

/// Windows that have nothing to do with each other, in whiles of some that are alike.
fn drawn(seed: u64, to: &mut String) {
    let mut told = Told::new(seed);
    let _ = writeln!(to, "\ndrawn from {seed}");
    for _ in 0..8 {
        let binds = told.one_of(&[true, true, false]);
        let part = if binds {
            told.one_of(&[950, 960, 1_000, 1_040])
        } else {
            told.one_of(&[30, 440, 700, 940, 960, 985, 1_000, 1_100])
        };
        let line = told.kbit() * 1_080 / 1_000;
        let waited_us =
            if binds { told.one_of(&[2_000, 5_000, 40_000]) } else { told.one_of(&[0, 0, 900]) };
        let raised_us = told.one_of(&[0, 3_000, 5_000, 7_000, 20_000, 60_000, 150_000, 600_000]);
        let window = Window {
            ms: told.one_of(&[100, 100, 100, 76, 74, 30, 250]),
            came: line * part / 1_080,
            waited_us,
            raised_us,
            sank_ms: told.one_of(&[0, 0, 0, 1, 2, 9]),
            is_known: told.draw(6) > 0,
            is_fresh: told.draw(6) > 0,
            hosts: told.one_of(&[1, 3]),
        };
        let _ = write!(
            to,
            "{:3} ms, came {:6}{}, waited {:5} us, raised {:6} us, sank {} ms{}{}, {} hosts:",
            window.ms,
            window.came,
            if binds { " and follows" } else { "" },
            window.waited_us,
            window.raised_us,
            window.sank_ms,
            if window.is_known { "" } else { ", not known" },
            if window.is_fresh { "" } else { ", old" },
            window.hosts,
        );
        for at in 0..told.one_of(&[4, 9, 20, 45, 90]) {
            let shrinks = window.raised_us * (90 - at) / 90;
            let raised_us = if at % 7 < 3 { window.raised_us } else { shrinks };
            // what binds follows the rate, up to a line
            let came = (told.kbit() * part / 1_000).min(line);
            let came = if binds { came } else { window.came };
            told.tell(&Window { raised_us, came, ..window }, to);
        }
        told.tell_same(to);
        to.push('\n');
    }
}

#[test]
fn what_is_told_and_what_follows() {
    let mut table = String::new();
    for seed in 1..=80 {
        drawn(seed, &mut table);
    }
    insta::assert_snapshot!(table.trim());
}

/// A modem: the queue before its line, and what hosts behind that say of it.
#[derive(Default)]
struct Modem {
    /// All bytes that ever left for it, and those that wait there.
    left: u64,
    queue: u64,
    /// When some left, and how long these waited there.
    past: Vec<(Instant, Span)>,
}

/// A window upstream.
#[derive(Clone, Copy, Debug)]
struct Upload {
    ms: u64,
    /// What hosts would send, and what the line carries, in kbit/s.
    offered: u64,
    line: u64,
    /// How much of that is TCP's data, and how much of these is acknowledged, window by window, in
    /// thousandths.
    data: u64,
    acks: [u64; 3],
    /// How much longer ways are behind the line.
    behind_ms: u64,
    sank_ms: u64,
    /// So many in ten windows, somebody says how long ways are.
    heard: u64,
    is_known: bool,
    hosts: u32,
}

/// From a host of the WAN side to weir and back, without a queue.
const AWAY: Span = Span::from_ms(40);

impl Modem {
    fn pass(&mut self, told: &mut Told, window: &Upload, at: u64) {
        told.now += Span::from_ms(window.ms);
        let rate = told.kbit();
        let bytes = window.offered.min(rate) * window.ms / 8;
        let before = self.queue;
        self.left += bytes;
        self.queue = (before + bytes).saturating_sub(window.line * window.ms / 8);
        let arrived = before + bytes - self.queue;
        let wait = Span::from_us(self.queue * 8_000 / window.line);
        self.past.push((told.now, wait));
        // frames of 1 250 bytes with their IP headers
        let frames = self.left / 1_250;
        let more = frames - told.look.left;
        told.look.arrived = Count { frames, bytes: frames * 1_264 };
        told.look.left = frames;
        told.look.waited += Span::from_ms(if window.offered > rate { 9 * more } else { 0 });
        let acks = window.acks[usize::try_from(at % 3).expect("is small")];
        told.look.uploads = Uploads {
            left: told.look.uploads.left + bytes * window.data / 1_000,
            arrived: told.look.uploads.arrived + arrived * window.data / 1_000 * acks / 1_000,
        };
        if told.draw(10) < window.heard {
            self.hear(told, window);
        }
    }

    /// What left last of what was answered by now says how long it took.
    fn hear(&mut self, told: &mut Told, window: &Upload) {
        let behind = Span::from_ms(window.behind_ms);
        let half = Span::from_ms(25);
        let is_answered =
            |&&(at, wait): &&(Instant, Span)| at + AWAY + wait + behind + half <= told.now;
        let Some(&(at, wait)) = self.past.iter().rev().find(is_answered) else { return };
        let mean = AWAY + wait + behind;
        told.look.round_trip = RoundTrip {
            until: (at + mean + half).max(told.look.round_trip.until),
            taken: 9,
            mean,
            compared: if window.is_known { 9 } else { 0 },
            hosts: window.hosts,
            raised: wait + behind,
            sank: Span::from_ms(window.sank_ms),
            ..RoundTrip::default()
        };
    }
}

/// Whiles upstream that have nothing to do with each other.
fn drawn_up(seed: u64, to: &mut String) {
    let up = [1_000, 10_000, 60_000][usize::try_from(seed % 3).expect("is small")];
    let link = format!("up = \"{up}kbit\"\ncounts = \"ip\"");
    let mut told = Told::of(seed, Way::Up, &link, "{ up = \"auto\" }");
    let mut modem = Modem::default();
    let _ = writeln!(to, "\ndrawn from {seed}, {up} kbit/s");
    for _ in 0..8 {
        let window = Upload {
            ms: told.one_of(&[100, 100, 100, 100, 76, 74, 30, 250]),
            offered: up * told.one_of(&[2_000, 2_000, 2_000, 2_000, 900, 500, 100]) / 1_000,
            line: up * told.one_of(&[1_200, 950, 900, 800, 700, 500, 300]) / 1_000,
            data: told.one_of(&[1_000, 960, 960, 500, 100, 50]),
            acks: told.one_of(&[
                [1_000; 3],
                [1_000; 3],
                [400, 1_000, 1_600],
                [1_160, 1_000, 840],
                [700; 3],
                [300, 1_000, 1_000],
            ]),
            behind_ms: told.one_of(&[0, 0, 0, 0, 3, 30, 200]),
            sank_ms: told.one_of(&[0, 0, 0, 1, 2, 9]),
            heard: told.one_of(&[10, 10, 10, 7, 1, 0]),
            is_known: told.draw(8) > 0,
            hosts: told.one_of(&[1, 3]),
        };
        let _ = write!(
            to,
            "{:3} ms, {:6} on {:5}, data {:4}, acks {:?}, behind {:3} ms, sank {} ms, heard {}{}, \
             {} hosts:",
            window.ms,
            window.offered,
            window.line,
            window.data,
            window.acks,
            window.behind_ms,
            window.sank_ms,
            window.heard,
            if window.is_known { "" } else { ", not known" },
            window.hosts,
        );
        for at in 0..told.one_of(&[4, 9, 20, 45, 90]) {
            modem.pass(&mut told, &window, at);
            told.step(to);
        }
        told.tell_same(to);
        let line = told.margin.line().map_or(0, |line| line.bps() / 1_000);
        let _ = writeln!(to, "; line {line}");
    }
}

#[test]
fn what_is_told_upstream_and_what_follows() {
    let mut table = String::new();
    for seed in 1..=60 {
        drawn_up(seed, &mut table);
    }
    insta::assert_snapshot!(table.trim());
}
