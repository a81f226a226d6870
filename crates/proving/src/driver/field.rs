//! Experiments on shares: a host of the LAN for each leaf sends numbered datagrams through the box,
//! at its rate and in its time. There are no wires to be played: the box is the narrow place.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread::JoinHandle;

use weir_io::wait::be_punctual;
use weir_lab::run::Run;
use weir_lab::scenario::{Field, Passage, Profile, Scenario, Sender};
use weir_units::{Bytes, Instant, Span};

use super::SOON;
use crate::clock::{self, Lateness};
use crate::middle::Joined;
use crate::traffic::{End, Paced, SILENCE, STAMP, Stop, joined, stamp, stamped};
use crate::world::{Sketch, WAN_HOST, World, lan_host};

/// The port of the first sender, there and here.
const FIRST_PORT: u16 = 20_000;
/// Bytes of an IPv4 and a UDP header.
const HEADERS: u32 = 28;

/// The address of a leaf, by its place in the list of nodes.
fn host(leaf: u32) -> Ipv4Addr {
    lan_host(u16::try_from(leaf).unwrap_or(u16::MAX))
}

/// A case under a profile, ready to be played.
pub(super) fn field(scenario: &Scenario, profile: &Profile) -> Result<Field, String> {
    Field::new(scenario, profile, ["eth1", "eth2"], host)
}

/// All cases of a run, and how late the machine was.
pub(super) fn one(scenario: &Scenario, profile: &Profile) -> Result<(Run, Span), String> {
    let (mut run, mut late) = case(scenario, profile)?;
    for other in &scenario.more {
        let same = other.profiles.iter().find(|other| other.name == profile.name);
        let same = same.ok_or_else(|| format!("{} is not in all cases", profile.name))?;
        let (seen, was_late) = case(other, same)?;
        late = late.max(was_late);
        run.more.push(seen);
    }
    Ok((run, late))
}

fn case(scenario: &Scenario, profile: &Profile) -> Result<(Run, Span), String> {
    let field = field(scenario, profile)?;
    let most = scenario.sharing.as_ref().map_or(0, weir_lab::scenario::Sharing::nodes);
    let hosts = u16::try_from(most).map_err(|_| "there are too many leaves".to_owned())?;
    let world = World::make(Sketch { hosts, line: None }, super::SHELL)?;
    let _boxed = Joined::start(&world, super::MIDDLE, &field.policy)?;
    let begin = clock::now() + SOON;
    let (ends, over) = (begin + field.lasts, Stop::default());
    let mut streams = Vec::new();
    for (sender, port) in field.senders.iter().zip(FIRST_PORT..) {
        streams.push(Stream::start(&world, *sender, port, (begin, ends), &over)?);
    }
    let lateness = Lateness::watch();
    clock::sleep_until(ends);
    let late = lateness.stop().at_most(990).unwrap_or(Span::ZERO);
    let mut passages = Vec::new();
    let mut heard = Vec::new();
    for stream in streams {
        heard.push((joined(stream.sends)??, stream.hears));
    }
    over.now();
    for (sender, (sent, hears)) in heard.into_iter().enumerate() {
        let came = joined(hears)??;
        for (number, sent) in sent.into_iter().enumerate() {
            let came = came.get(number).copied().flatten();
            passages.push(Passage { sender, sent, came });
        }
    }
    if passages.iter().all(|passage| passage.came.is_none()) {
        return Err("nothing came through the box".to_owned());
    }
    Ok((field.seen(passages.into_iter()), late))
}

/// A sender at work: when each datagram was sent, and when it came, by its number.
struct Stream {
    sends: JoinHandle<Result<Vec<Instant>, String>>,
    hears: JoinHandle<Result<Vec<Option<Instant>>, String>>,
}

impl Stream {
    fn start(
        world: &World,
        sender: Sender,
        port: u16,
        (begin, ends): (Instant, Instant),
        over: &Stop,
    ) -> Result<Stream, String> {
        let from = End::new(&world.lan, sender.host, port);
        let to = End::new(&world.wan, WAN_HOST, port);
        let (sending, hearing) = (from.socket()?, to.socket()?);
        sending.connect(to.at).map_err(|e| format!("udp {} to {}: {e}", from.at, to.at))?;
        let sends = world.lan.spawn(move || {
            let _ = be_punctual();
            Ok(send(&sending, sender, begin, ends))
        });
        let over = over.clone();
        let hears = world.wan.spawn(move || Ok(hear(&hearing, begin, &over)));
        Ok(Stream { sends, hears })
    }
}

/// When what was sent: in the time of the experiment.
fn send(socket: &UdpSocket, sender: Sender, begin: Instant, ends: Instant) -> Vec<Instant> {
    let payload = usize::try_from(sender.bytes.saturating_sub(HEADERS)).unwrap_or(STAMP);
    let mut datagram = vec![0; payload.max(STAMP)];
    let frame = sender.rate.time_for(Bytes::new(sender.bytes.into()));
    let stop = ends.min(begin + sender.times.1);
    let mut paced = Paced::new(begin + sender.times.0, frame, Span::ZERO);
    let mut sent = Vec::new();
    while clock::now() < stop {
        let Some(now) = paced.next() else { continue };
        stamp(&mut datagram, sent.len() as u64, now);
        if socket.send(&datagram).is_ok() {
            sent.push(Instant::ZERO + now.since(begin));
        }
    }
    sent
}

/// When what came: in the time of the experiment.
fn hear(socket: &UdpSocket, begin: Instant, over: &Stop) -> Vec<Option<Instant>> {
    let mut came: Vec<Option<Instant>> = Vec::new();
    let mut datagram = [0; 2_048];
    let mut heard = clock::now();
    loop {
        let length = socket.recv(&mut datagram).ok();
        let now = clock::now();
        if let Some(length) = length {
            heard = now;
            let Some((number, _)) = stamped(&datagram[..length]) else { continue };
            let Ok(number) = usize::try_from(number) else { continue };
            if number >= came.len() {
                came.resize(number + 1, None);
            }
            came[number] = Some(Instant::ZERO + now.since(begin));
        } else if over.is_said() && now.since(heard) > SILENCE {
            return came;
        }
    }
}
