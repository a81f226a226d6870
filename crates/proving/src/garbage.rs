//! Hostile bytes: both ports are fed with noise, with real frames of which a few bytes are wrong,
//! and with flows that never end, as fast as the machine makes them. The daemon must not die, must
//! account for what it took, and must carry a ping as before when it is over.

use std::net::SocketAddr;

use weir_io::{PacketPort, Port};
use weir_packet::{Build, Burst, Pool};
use weir_sim::Random;
use weir_units::Span;

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Joined, Middle};
use super::policy::{self, PING_PORT};
use super::traffic::{Ping, Stop};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Place, Sketch, World};

/// Different frames of each sender, sent over and over with other numbers in them.
const FRAMES: usize = 4_096;

/// What the daemon shall have worked in all: ten minutes of a CPU, or a few seconds.
const LONG: Span = Span::from_secs(600);
const SHORT: Span = Span::from_secs(5);

/// A daemon that has not worked so much in this time is not fed fast enough.
const PATIENCE: Span = Span::from_secs(3_600);

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let world = World::make(Sketch { hosts: 4, line: None }, run.shell.clone())?;
    let mut joined = Joined::start(&world, middle, &policy::edited(3))?;
    let work = if run.short { SHORT } else { LONG };
    run.out.line(&format!(
        "garbage into both ports of {}, until it has worked {} s of a CPU",
        middle.name(),
        work.ns() / 1_000_000_000
    ));
    run.out.flush();
    let stop = Stop::default();
    let late = Lateness::watch();
    let senders = [(&world.lan, "lan0", 1), (&world.wan, "wan0", 2)]
        .map(|(place, port, seed)| feed(place, port, seed, stop.clone()));
    let began = clock::now();
    while joined.is_alive()
        && joined.worked().is_none_or(|so_far| so_far < work)
        && clock::now().since(began) < PATIENCE
        && !(joined.middle == Middle::Bridge && clock::now().since(began) > SHORT)
    {
        clock::sleep(Span::from_ms(200));
    }
    stop.now();
    let mut sent = 0;
    for sender in senders {
        sent += sender.join().map_err(|_| "a sender panicked".to_owned())??;
    }
    let late = late.stop();
    let worked = joined.worked().unwrap_or(Span::ZERO);
    clock::sleep(Span::from_secs(2));
    let (lan, wan) = world.ends(1, PING_PORT);
    let ping = Ping::start(&lan, &wan)?;
    clock::sleep(Span::from_secs(1));
    let echoes = ping.stop()?;
    let alive = joined.is_alive();
    let books = if alive { joined.books()? } else { None };
    let said = joined.said();
    drop(joined);

    let mut table = Table::new(1, &["what", "seen", "bar"]);
    let mut row = |what: &str, seen: String, bar: &str, verdict: Verdict| {
        table.row(vec![what.to_owned(), seen, bar.to_owned()], verdict);
    };
    row("frames of garbage", sent.to_string(), "", Verdict::Seen);
    row("the daemon worked, s", (worked.ns() / 1_000_000_000).to_string(), "", Verdict::Seen);
    row("daemon", if alive { "runs" } else { "ended" }.to_owned(), "runs", Verdict::of(alive));
    let back = echoes.delays.count();
    let pinged = format!("{back} of {}", echoes.sent);
    row("pings afterwards", pinged, "some", Verdict::of(back > 0));
    if let Some(books) = &books {
        let inexact = books.iter().filter(|book| !book.counters.is_balanced()).count();
        row("books that do not balance", inexact.to_string(), "0", Verdict::of(inexact == 0));
    }
    let p99 = echoes.delays.at_most(990).unwrap_or(Span::ZERO);
    row("pings: 99 % within, ms", ms(p99), "", Verdict::Seen);
    row("late, ms p99/max", lateness(&late), "", Verdict::Seen);
    let held = run.conclude(&table);
    if !alive {
        run.out.line(&format!("the daemon's last words:\n{said}"));
    }
    Ok(held)
}

/// Sends until it is told to stop; returns how many frames.
fn feed(
    place: &Place,
    port: &'static str,
    seed: u64,
    stop: Stop,
) -> std::thread::JoinHandle<Result<u64, String>> {
    place.spawn(move || {
        let port = PacketPort::open(port).map_err(|e| e.to_string())?;
        let mut port = Port::Packet(Box::new(port));
        let mut pool = Pool::new(256, 2_048);
        let mut dice = Dice::of(seed);
        let frames: Vec<Vec<u8>> = (0..FRAMES).map(|_| dice.frame()).collect();
        let (mut burst, mut sent) = (Burst::new(), 0);
        while !stop.is_said() {
            while !burst.is_full() {
                let bytes = &frames[dice.below(FRAMES)];
                let Some(frame) = pool.fill(bytes) else { break };
                // other numbers each time: new flows, other sequence numbers
                if let [.., a, b, c, d] = pool.bytes_mut(&frame).get_mut(..42).unwrap_or_default() {
                    [*a, *b, *c, *d] = [dice.byte(), dice.byte(), dice.byte(), dice.byte()];
                }
                if let Err(frame) = burst.push(frame) {
                    pool.give(frame);
                }
            }
            let full = burst.len();
            port.transmit(&mut pool, &mut burst);
            sent += (full - burst.len()) as u64;
            // what comes back is thrown away
            let mut echo = Burst::new();
            port.receive(&mut pool, &mut echo);
            echo.drain().for_each(|frame| pool.give(frame));
        }
        burst.drain().for_each(|frame| pool.give(frame));
        Ok(sent)
    })
}

/// What makes the frames, the same for a seed.
struct Dice(Random);

impl Dice {
    fn of(seed: u64) -> Dice {
        Dice(Random::new(seed, 0))
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.0.below(n as u64)).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.0.bits().to_le_bytes()[0]
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Noise, or a real frame with a few of its bytes changed or its end cut off.
    fn frame(&mut self) -> Vec<u8> {
        const MOST: usize = 1_514;
        if self.below(4) == 0 {
            let len = 14 + self.below(MOST - 14);
            return (0..len).map(|_| self.byte()).collect();
        }
        let host = |v6: bool, n: u16, end: u16| match v6 {
            false => SocketAddr::from(([10, 77, 1, end.to_le_bytes()[0]], n)),
            true => SocketAddr::from(([0x2001, 0xdb8, 0, 0, 0, 0, 0, end], n)),
        };
        let v6 = self.below(2) == 0;
        let (a, b) = (host(v6, self.word(), 1), host(v6, self.word(), 2));
        let build = if self.below(2) == 0 { Build::tcp(a, b) } else { Build::udp(a, b) };
        let build = match self.below(6) {
            0 => build.vlan(self.word()),
            1 => build.pppoe(self.word()),
            2 => build.fragment(self.word() & 0x1fff, self.below(2) == 0, self.word().into()),
            _ => build,
        };
        let mut frame = build.payload_len(self.below(1_400)).to_vec();
        for _ in 0..self.below(8) {
            let at = self.below(frame.len().min(100));
            frame[at] = self.byte();
        }
        if self.below(4) == 0 {
            frame.truncate(14 + self.below(frame.len() - 14));
        }
        frame.truncate(MOST);
        frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn garbage_is_of_all_sizes_and_the_same_for_a_seed() {
        let frames = |seed| -> Vec<Vec<u8>> {
            let mut dice = Dice::of(seed);
            (0..2_000).map(|_| dice.frame()).collect()
        };
        let made = frames(7);
        assert_eq!(made, frames(7));
        assert!(made.iter().all(|frame| (14..=1_514).contains(&frame.len())));
        assert!(made.iter().any(|frame| frame.len() < 40));
        assert!(made.iter().any(|frame| frame.len() > 1_400));
    }
}
