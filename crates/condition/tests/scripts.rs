//! The scripts in `scripts/`, each in every world: over IPv4, IPv6, VLAN and PPPoE, with sequence
//! numbers and clocks that come around in the middle. What comes out is the same in all of them.

mod text;
mod world;

use std::fmt::Write;
use std::path::Path;

use weir_condition::{Leaf, Loss, RoundTrip, Spec, Told};
use weir_packet::{Build, Flow, Side};
use weir_units::{Instant, Rate, Span};
use world::{Left, World};

/// The leaf that scripts are about.
const LEAF: u32 = 3;
const NETS: [&str; 5] = ["v4", "v6", "vlan", "pppoe", "pppoe6"];
/// First sequence numbers; the last ones come around within a few segments.
const BASES: [text::Bases; 3] = [[0, 0], [u32::MAX - 2_000, 0x7fff_f000], [77, u32::MAX - 5_000]];
/// When scripts begin, in microseconds: one where the clock comes around soon, and one where what
/// never happened seems to lie ahead.
const STARTS: [u64; 3] = [0, (1 << 32) - 700_000, 3_000_000_000];

#[test]
fn every_script_comes_out_as_it_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 20, "the scripts are there");
    let mut failures = String::new();
    for path in &files {
        let script = std::fs::read_to_string(path).expect("is readable");
        if let Err(why) = play(&script) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let _ = write!(failures, "\n--- {name} {why}");
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn play(script: &str) -> Result<(), String> {
    let named: Vec<&str> = script.lines().filter_map(|line| line.strip_prefix("net ")).collect();
    let nets = match named[..] {
        [] => NETS.to_vec(),
        [nets, ..] => nets.split_whitespace().collect(),
    };
    let said = lines(script);
    for net in nets {
        for bases in BASES {
            for start in STARTS {
                let stage = Stage::new(net, bases, start);
                let heard = stage.play(&said)?;
                if said != heard {
                    return Err(format!(
                        "over {net}, numbers from {bases:?}, beginning at {start} us:\n{}",
                        difference(&said, &heard)
                    ));
                }
            }
        }
    }
    Ok(())
}

/// What a script says, without comments and with one space between words.
fn lines(script: &str) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let plain = script.lines().map(|line| words(line.split("//").next().unwrap_or_default()));
    plain.filter(|line| !line.is_empty()).collect()
}

struct Stage<'n> {
    world: World,
    net: &'n str,
    bases: text::Bases,
    start: Instant,
    heard: Vec<String>,
    spec: Spec,
}

impl Stage<'_> {
    fn new(net: &str, bases: text::Bases, start: u64) -> Stage<'_> {
        let start = Instant::from_ns(start * 1_000);
        let spec = Spec { told: vec![Told::default()], ..Spec::default() };
        Stage { world: World::new(start), net, bases, start, heard: Vec::new(), spec }
    }

    /// What is heard when the lines that say something are played.
    fn play(mut self, said: &[String]) -> Result<Vec<String>, String> {
        for line in said.iter().filter(|line| !line.starts_with('*')) {
            let problem = |why: String| format!("\"{line}\": {why}");
            if let Some(counters) = line.strip_prefix("counted ") {
                let heard = self.counted(counters).map_err(problem)?;
                self.heard.push(heard);
                continue;
            }
            let step = line.split_once(' ').ok_or_else(|| problem("too short".to_owned()))?;
            match step {
                ("net", _) => self.heard.push(line.clone()),
                ("leaf", words) => {
                    self.tell(words).map_err(problem)?;
                    self.heard.push(line.clone());
                    self.report(None);
                }
                ("waiting", words) => {
                    let (side, bytes) = words.split_once(' ').unwrap_or_default();
                    let side = side_of(side).map_err(problem)?;
                    self.world.waiting[side as usize] = bytes.parse().unwrap_or(0);
                    self.heard.push(line.clone());
                }
                (time, words) => self.segment(line, time, words).map_err(problem)?,
            }
        }
        self.world.pass_until(Instant::from_ns(u64::MAX / 2));
        self.report(None);
        Ok(self.heard)
    }

    fn segment(&mut self, line: &str, time: &str, words: &str) -> Result<(), String> {
        let at = Span::from_us(micros(time)?);
        self.world.pass_until(self.start + at);
        self.report(None);
        self.heard.push(line.to_owned());
        let (side, words) = words.split_once(' ').ok_or("expected > or <")?;
        let side = side_of(side)?;
        let (number, words) = match words.strip_prefix('#').and_then(|w| w.split_once(' ')) {
            Some((number, words)) => (number.parse().unwrap_or(0), words),
            None => (0u16, words),
        };
        let build = text::read(self.build(side, number), words, side as usize, self.bases)?;
        let flow = Flow { index: u32::from(number), generation: 9 };
        let bytes = build.to_vec();
        let until = self.world.arrive(side, flow, LEAF, &bytes);
        self.report(until.is_none().then_some(()));
        if let Some(until) = until.filter(|until| *until > self.world.now) {
            self.heard.push(format!("* waits until {}", self.shown(until)));
        }
        Ok(())
    }

    fn build(&self, side: Side, number: u16) -> Build {
        let port = 1_000 + number;
        let (lan, wan) = match self.net {
            "v6" | "pppoe6" => (format!("[fd00::1]:{port}"), "[2001:db8::2]:80"),
            _ => (format!("10.0.0.1:{port}"), "192.0.2.2:80"),
        };
        let (lan, wan) = (lan.parse().expect("is right"), wan.parse().expect("is right"));
        let build = match side {
            Side::Lan => Build::tcp(lan, wan),
            Side::Wan => Build::tcp(wan, lan),
        };
        match self.net {
            "vlan" => build.vlan(7).padded_to(64),
            "pppoe" | "pppoe6" => build.pppoe(5).padded_to(60),
            _ => build.padded_to(60),
        }
    }

    /// Writes down what left; one that just came, alone and as it came, has no line.
    fn report(&mut self, just_came: Option<()>) {
        let left = std::mem::take(&mut self.world.left);
        if just_came.is_some()
            && let [one] = &left[..]
            && one.came == one.bytes
        {
            return;
        }
        for Left { at, side, flow, bytes, .. } in left {
            let arrow = if side == Side::Lan { '>' } else { '<' };
            let number = if flow.index == 0 { String::new() } else { format!("#{} ", flow.index) };
            let segment = text::show(&bytes, side as usize, self.bases);
            self.heard.push(format!("* {} {arrow} {number}{segment}", self.shown(at)));
        }
    }

    fn shown(&self, at: Instant) -> String {
        let us = at.since(self.start).ns() / 1_000;
        let text = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
        let zeros = text.len() - text.trim_end_matches('0').len();
        text[..text.len() - zeros.min(3)].to_owned()
    }

    /// `> 64kbit window pace-acks least 4`: what is done to data from that side.
    fn tell(&mut self, words: &str) -> Result<(), String> {
        let mut words = words.split_whitespace();
        let side = side_of(words.next().unwrap_or_default())?;
        let rate = words.next().ok_or("no rate")?;
        self.spec.leaves[side.way()].clear();
        if rate != "none" {
            let rate: Rate = rate.parse().map_err(|_| format!("\"{rate}\" is no rate"))?;
            let (told, fixed) = told(words)?;
            let at = self.spec.told.iter().position(|t| *t == told).unwrap_or_else(|| {
                self.spec.told.push(told);
                self.spec.told.len() - 1
            });
            let told = u16::try_from(at).unwrap_or(0);
            self.spec.leaves[side.way()].push(Leaf { number: LEAF, told, rate, fixed });
        }
        if self.spec.is_idle() {
            self.spec.told.truncate(1);
        }
        self.world.tell(&self.spec);
        Ok(())
    }

    fn counted(&self, names: &str) -> Result<String, String> {
        let c = self.world.conditioner.counters();
        let mut text = "counted".to_owned();
        for word in names.split(',') {
            let name = word.split_whitespace().next().unwrap_or_default();
            let number = match name {
                "sized" => c.sized,
                "paced" => c.paced,
                "answers_held" => c.answers_held,
                "clamped" => c.clamped,
                "unknown" => c.unknown,
                "left_alone" => c.left_alone,
                "no_room" => c.no_room,
                "repeated" => c.repeated,
                "rejected" => c.rejected,
                other => return Err(format!("\"{other}\" is not counted")),
            };
            let comma = if text == "counted" { "" } else { "," };
            let _ = write!(text, "{comma} {name} {number}");
        }
        Ok(text)
    }
}

fn told<'w>(mut words: impl Iterator<Item = &'w str>) -> Result<(Told, bool), String> {
    let mut told = Told { least: 4, ..Told::default() };
    let mut fixed = false;
    while let Some(word) = words.next() {
        let mut number = || words.next().and_then(|w| w.parse::<u16>().ok()).ok_or("no number");
        match word {
            "window" => told.window = true,
            "pace-acks" => told.pace_acks = true,
            "least" => told.least = u8::try_from(number()?).unwrap_or(u8::MAX),
            "mss" => told.mss = number()?,
            "release" => told.loss = Loss::Release,
            "coarse" => told.round_trip = RoundTrip::Coarse,
            "fixed" => fixed = true,
            other => return Err(format!("\"{other}\" says nothing")),
        }
    }
    Ok((told, fixed))
}

fn side_of(arrow: &str) -> Result<Side, String> {
    match arrow {
        ">" => Ok(Side::Lan),
        "<" => Ok(Side::Wan),
        other => Err(format!("\"{other}\" is not > or <")),
    }
}

fn micros(time: &str) -> Result<u64, String> {
    let (seconds, rest) = time.split_once('.').ok_or("no time such as 0.100")?;
    let rest = format!("{rest:0<6}");
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("\"{word}\" is no time"));
    Ok(number(seconds)? * 1_000_000 + number(&rest)?)
}

/// Both side by side as a diff: `-` is what the script says, `+` is what came.
fn difference(said: &[String], heard: &[String]) -> String {
    let mut common = vec![vec![0usize; heard.len() + 1]; said.len() + 1];
    for a in (0..said.len()).rev() {
        for b in (0..heard.len()).rev() {
            common[a][b] = match said[a] == heard[b] {
                true => common[a + 1][b + 1] + 1,
                false => common[a + 1][b].max(common[a][b + 1]),
            };
        }
    }
    let (mut a, mut b, mut text) = (0, 0, String::new());
    while a < said.len() || b < heard.len() {
        if a < said.len() && b < heard.len() && said[a] == heard[b] {
            let _ = writeln!(text, "  {}", said[a]);
            (a, b) = (a + 1, b + 1);
        } else if b == heard.len() || a < said.len() && common[a + 1][b] >= common[a][b + 1] {
            let _ = writeln!(text, "- {}", said[a]);
            a += 1;
        } else {
            let _ = writeln!(text, "+ {}", heard[b]);
            b += 1;
        }
    }
    text
}
