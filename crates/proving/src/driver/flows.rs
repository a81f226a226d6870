//! Who says what: the kernel's TCP and datagrams, from the addresses that the scenario says, seen
//! by the same account as in virtual time.

use std::collections::BTreeSet;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use weir_io::netns::{TcpInfo, TcpSocket, set_congestion, set_dscp, tcp_info};
use weir_lab::run::Live;
use weir_lab::scenario::Scenario;
use weir_sim::Source;
use weir_sim::flow::{EndReport, FlowSpec, Report};
use weir_sim::tcp::Control;
use weir_units::{Bytes, Instant, Rate, Span};

use super::stage::{Stage, only_v4, own_address};
use crate::clock;
use crate::traffic::{End, LOOK, Paced, STAMP, Stop, is_timeout, joined, read, stamp, stamped};
use crate::world::Place;

/// All flows of a run.
pub(super) struct Flows {
    all: Vec<Vec<Arc<Flow>>>,
    stop: Stop,
    threads: Vec<JoinHandle<Result<(), String>>>,
}

/// One of them.
struct Flow {
    spec: FlowSpec,
    from: SocketAddrV4,
    to: SocketAddrV4,
    /// When the world began.
    begin: Instant,
    report: Mutex<Report>,
    /// Both ends of its connection, and what the kernel said of the sender at first.
    near: Mutex<Option<(TcpStream, TcpInfo)>>,
    far: Mutex<Option<TcpStream>>,
}

/// The first port of those who start a flow, and the usual one of those whom it is with.
const FIRST_PORT: u16 = 20_000;
const USUAL_PORT: u16 = 5_001;
const CHUNK: usize = 64 << 10;
/// What a datagram of the scenario has in front of its payload, as frames are counted.
const HEADERS: usize = 42;
/// Threads have their price, and ports an end.
const MOST: usize = 1_000;

/// Why these flows of a scenario cannot be played live.
pub(super) fn cannot(scenario: &Scenario, flows: &[Vec<FlowSpec>]) -> Vec<String> {
    let mut why = Vec::new();
    let mut taken = BTreeSet::new();
    for (flow, specs) in scenario.flows.iter().zip(flows) {
        let reason = specs.first().and_then(|spec| match spec.source {
            _ if spec.away > Span::ZERO => Some("it is further away than its host"),
            Source::Cbr { .. } if spec.traffic_class & 3 != 0 => {
                Some("live, datagrams are not marked for ECN")
            }
            Source::Bulk { .. } | Source::Cbr { .. } => None,
            _ => Some("live, \"bulk\" and \"cbr\" are played"),
        });
        let datagrams = specs.iter().filter(|spec| !spec.source.is_tcp() && spec.to_port != 0);
        let mut places = datagrams.map(|spec| (spec.to, spec.to_address, spec.to_port));
        let is_taken = !places.all(|place| taken.insert(place));
        let reason = reason.or(is_taken.then_some("its datagrams go to the port of others"));
        why.extend(reason.map(|reason| format!("flow \"{}\": {reason}", flow.name)));
    }
    let count = flows.iter().map(Vec::len).sum::<usize>();
    if count > MOST {
        why.push(format!("it has {count} flows, and live there are {MOST} at most"));
    }
    why
}

impl Flows {
    /// Makes all sockets; each flow starts at its moment.
    pub(super) fn start(
        scenario: &Scenario,
        live: &Live,
        stage: &Stage,
        begin: Instant,
    ) -> Result<Flows, String> {
        let mut flows = Flows { all: Vec::new(), stop: Stop::default(), threads: Vec::new() };
        let mut port = FIRST_PORT;
        for specs in &live.flows {
            let mut all = Vec::new();
            for spec in specs {
                let from = end((spec.from, spec.from_address), port, scenario)?;
                // each stream of datagrams has a socket of its own
                let usual = match spec.to_port {
                    0 if spec.source.is_tcp() => USUAL_PORT,
                    0 => port,
                    told => told,
                };
                let to = end((spec.to, spec.to_address), usual, scenario)?;
                let report = Mutex::new(Report::new(spec));
                let (spec, near, far) = (spec.clone(), Mutex::default(), Mutex::default());
                all.push(Arc::new(Flow { spec, from, to, begin, report, near, far }));
                port += 1;
            }
            flows.all.push(all);
        }
        flows.listen(stage)?;
        for flow in flows.all.iter().flatten() {
            let (near, far) = (stage.place(flow.spec.from)?, stage.place(flow.spec.to)?);
            flows.threads.extend(flow.threads(near, far, &flows.stop)?);
        }
        Ok(flows)
    }

    /// One listener for each address and port that connections go to.
    fn listen(&mut self, stage: &Stage) -> Result<(), String> {
        let mut targets: Vec<(usize, SocketAddrV4)> = Vec::new();
        let tcp = self.all.iter().flatten().filter(|flow| flow.spec.source.is_tcp());
        for flow in tcp {
            if !targets.contains(&(flow.spec.to, flow.to)) {
                targets.push((flow.spec.to, flow.to));
            }
        }
        for (node, at) in targets {
            let failed = move |e| format!("tcp {at}: {e}");
            let place = stage.place(node)?;
            let listener = place.within(move || TcpListener::bind(at).map_err(failed))?;
            listener.set_nonblocking(true).map_err(failed)?;
            let flows: Vec<Arc<Flow>> =
                self.all.iter().flatten().filter(|flow| flow.to == at).cloned().collect();
            let stop = self.stop.clone();
            self.threads.push(place.spawn(move || accept(&listener, &flows, &stop)));
        }
        Ok(())
    }

    /// What senders have sent counts from now on, or no longer.
    pub(super) fn counts(&self, begins: bool) {
        for flow in self.all.iter().flatten() {
            flow.counts(begins);
        }
    }

    /// Ends them; what both ends have seen.
    pub(super) fn stop(self) -> Result<Vec<Vec<[EndReport; 2]>>, String> {
        for flow in self.all.iter().flatten() {
            flow.ends();
        }
        self.stop.now();
        for thread in self.threads {
            joined(thread)??;
        }
        let ends = |flow: &Arc<Flow>| locked(&flow.report).ends.clone();
        Ok(self.all.iter().map(|all| all.iter().map(ends).collect()).collect())
    }
}

fn end(
    (node, address): (usize, Option<std::net::IpAddr>),
    port: u16,
    scenario: &Scenario,
) -> Result<SocketAddrV4, String> {
    let address: Ipv4Addr = match address {
        Some(address) => only_v4(address)?,
        None => own_address(scenario, node)?,
    };
    Ok(SocketAddrV4::new(address, port))
}

fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes connections in, each to its flow by the port that it comes from.
fn accept(listener: &TcpListener, flows: &[Arc<Flow>], stop: &Stop) -> Result<(), String> {
    let mut readers = Vec::new();
    while !stop.is_said() {
        let Ok((stream, peer)) = listener.accept() else {
            clock::sleep(Span::from_ms(5));
            continue;
        };
        let Some(flow) = flows.iter().find(|flow| flow.from.port() == peer.port()) else {
            continue;
        };
        let (flow, stop) = (Arc::clone(flow), stop.clone());
        let _ = stream.set_nonblocking(false);
        *locked(&flow.far) = stream.try_clone().ok();
        readers.push(std::thread::spawn(move || flow.reads(stream, &stop)));
    }
    readers.into_iter().try_for_each(joined)
}

impl Flow {
    /// Virtual time: what the scenario speaks of.
    fn now(&self) -> Instant {
        Instant::ZERO + clock::now().since(self.begin)
    }

    fn threads(
        self: &Arc<Flow>,
        near: &Place,
        far: &Place,
        stop: &Stop,
    ) -> Result<Vec<JoinHandle<Result<(), String>>>, String> {
        let (flow, stopped) = (Arc::clone(self), stop.clone());
        let Source::Cbr { rate, bytes } = self.spec.source else {
            return Ok(vec![near.spawn(move || flow.writes(&stopped))]);
        };
        let (from, to) = (self.from, self.to);
        let sends = End { place: near.clone(), at: from }.socket()?;
        let hears = End { place: far.clone(), at: to }.socket()?;
        let ready = hears.connect(from).and_then(|()| sends.connect(to));
        ready.map_err(|e| format!("udp {from} to {to}: {e}"))?;
        set_dscp(&sends, self.spec.traffic_class >> 2).map_err(|e| format!("udp {from}: {e}"))?;
        let (hearer, heard) = (Arc::clone(self), stop.clone());
        Ok(vec![
            near.spawn(move || flow.sends(&sends, (rate, bytes), &stopped)),
            far.spawn(move || hearer.hears(&hears, &heard)),
        ])
    }

    fn has_ended(&self, stop: &Stop) -> bool {
        stop.is_said() || self.now() >= self.spec.stop
    }

    /// The sender of a connection.
    fn writes(&self, stop: &Stop) -> Result<(), String> {
        clock::sleep_until(self.begin + self.spec.start.since(Instant::ZERO));
        let failed = |e| format!("tcp {} to {}: {e}", self.from, self.to);
        let socket = TcpSocket::new(false).map_err(failed)?;
        socket.bind(self.from).map_err(failed)?;
        let mut stream = socket.connect(self.to).map_err(failed)?;
        let law = match self.spec.tcp[0].control {
            Control::Reno => "reno",
            Control::Cubic => "cubic",
            Control::Bbr => "bbr",
        };
        set_congestion(&stream, law).map_err(failed)?;
        set_dscp(&stream, self.spec.traffic_class >> 2).map_err(failed)?;
        stream.set_write_timeout(Some(clock::duration(LOOK))).map_err(failed)?;
        let info = tcp_info(&stream).map_err(failed)?;
        *locked(&self.near) = Some((stream.try_clone().map_err(failed)?, info));
        let chunk = vec![0; CHUNK];
        let Source::Bulk { bytes } = self.spec.source else { return Ok(()) };
        let mut left = bytes.unwrap_or(u64::MAX);
        while left > 0 && !self.has_ended(stop) {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            match stream.write(&chunk[..most]) {
                Ok(sent) => left -= sent as u64,
                // what does not fit now is tried again
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }

    fn reads(&self, stream: TcpStream, stop: &Stop) {
        read(stream, stop, |bytes| locked(&self.report).deliver(self.now(), 1, bytes));
    }

    /// What the kernel has sent by now is where what counts begins or ends.
    fn counts(&self, begins: bool) {
        let mut near = locked(&self.near);
        let Some((stream, before)) = near.as_mut() else { return };
        let Ok(info) = tcp_info(&*stream) else { return };
        if begins {
            *before = info;
            return;
        }
        let sender = &mut locked(&self.report).ends[0];
        sender.measured_sent = u64::from(info.sent.wrapping_sub(before.sent));
        sender.measured_again = u64::from(info.retransmitted.wrapping_sub(before.retransmitted));
    }

    /// What the kernel says in the end.
    fn ends(&self) {
        let report = &mut locked(&self.report).ends;
        if let Some(info) = locked(&self.near).as_ref().and_then(|(near, _)| tcp_info(near).ok()) {
            (report[0].sent, report[0].retransmitted) =
                (info.sent.into(), info.retransmitted.into());
        }
        if let Some(info) = locked(&self.far).as_ref().and_then(|far| tcp_info(far).ok()) {
            report[1].received = info.received.into();
        }
    }

    /// Datagrams at a rate of Ethernet frames.
    fn sends(
        &self,
        socket: &UdpSocket,
        (rate, bytes): (Rate, usize),
        stop: &Stop,
    ) -> Result<(), String> {
        let mut datagram = vec![0; bytes.saturating_sub(HEADERS).max(STAMP)];
        let frame = rate.time_for(Bytes::new(bytes as u64));
        let start = self.begin + self.spec.start.since(Instant::ZERO);
        let mut paced = Paced::new(start, frame, Span::ZERO);
        let mut number = 0;
        while !self.has_ended(stop) {
            let Some(now) = paced.next() else { continue };
            stamp(&mut datagram, number, now);
            if socket.send(&datagram).is_ok() {
                number += 1;
                let mut report = locked(&self.report);
                let counts = report.counts(self.now());
                let sender = &mut report.ends[0];
                sender.sent += 1;
                sender.sent_bytes += datagram.len() as u64;
                sender.measured_sent += u64::from(counts);
            }
        }
        Ok(())
    }

    fn hears(&self, socket: &UdpSocket, stop: &Stop) -> Result<(), String> {
        let mut datagram = [0; 2_048];
        while !stop.is_said() {
            let Ok(length) = socket.recv(&mut datagram) else { continue };
            let now = clock::now();
            let Some((_, sent)) = stamped(&datagram[..length]) else { continue };
            let mut report = locked(&self.report);
            report.deliver(self.now(), 1, length as u64);
            report.ends[1].received += 1;
            report.ends[1].delays.add(now.since(sent));
        }
        Ok(())
    }
}
