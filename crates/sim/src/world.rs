//! The world: nodes, the links between them, the flows over them, and one queue of events. It runs
//! in virtual nanoseconds, on one thread, and the same world with the same seed gives the same
//! bytes; runs that do not know each other may go side by side on as many threads as there are.

mod boxed;
mod outside;
mod switch;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::net::IpAddr;

use weir_engine::{Config, Engine};
use weir_packet::{Headers, ethernet};
use weir_policy::Plan;
use weir_units::limits::ROUTERS;
use weir_units::{Instant, Rate, Span};

use crate::events::{Event, Events};
use crate::flow::{Flow, FlowSpec, Report};
use crate::frames::{Frame, Frames};
use crate::impair::Impairments;
use crate::link::{Link, LinkCounts, LinkSpec, Todo};
use crate::random::Chance;
use crate::wire::{self, Mac};
use boxed::Boxed;
use switch::Switch;

/// A node's number.
pub type NodeId = usize;
/// A link's number: one direction of a wire.
pub type LinkId = usize;
/// A flow's number.
pub type FlowId = usize;

/// Gets each frame as it leaves a line: which link, when, and its bytes.
pub type Tap = Box<dyn FnMut(LinkId, Instant, &[u8]) + Send>;

/// The port of a host at which frames come that have taken a detour of their flow.
const DETOUR: usize = usize::MAX;

/// Where a wire is plugged in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) node: NodeId,
    pub(crate) port: usize,
}

/// Everything there is.
pub struct World {
    now: Instant,
    seed: u64,
    events: Events,
    frames: Frames,
    nodes: Vec<Node>,
    links: Vec<Link>,
    flows: Vec<Flow>,
    /// By flow, the host that its frames take a longer way from, and that way.
    detours: Vec<Option<(NodeId, LinkId)>>,
    /// When each flow is to be woken at the latest that is queued.
    armed: Vec<Instant>,
    tap: Option<Tap>,
    /// Frames for nodes that somebody else plays.
    left: Vec<(Place, Instant, Frame)>,
    count: u64,
    /// Some link makes wrong bits, so hosts look at sums.
    checks: bool,
}

struct Node {
    kind: Kind,
    /// The links that lead away, by port.
    out: Vec<LinkId>,
}

enum Kind {
    Host(Host),
    Switch(Switch),
    Box(Box<Boxed>),
    Outside,
}

/// A host: one port, an address, and the flows that end here.
struct Host {
    mac: Mac,
    address: IpAddr,
    ends: HashMap<Key, (FlowId, usize), BuildHasherDefault<Mix>>,
    unclaimed: u64,
    wrong: u64,
}

/// Which flow a frame belongs to: source, target, ports, protocol.
pub(crate) type Key = (u128, u128, u64);

/// A hash that is the same every time; nobody attacks a simulation.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    fn write_u128(&mut self, word: u128) {
        self.write_u64(word as u64 ^ (word >> 64) as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl World {
    /// An empty world. The seed is the only luck there is.
    #[must_use]
    pub fn new(seed: u64) -> World {
        World {
            now: Instant::ZERO,
            seed,
            events: Events::default(),
            frames: Frames::default(),
            nodes: Vec::new(),
            links: Vec::new(),
            flows: Vec::new(),
            detours: Vec::new(),
            armed: Vec::new(),
            tap: None,
            left: Vec::new(),
            count: 0,
            checks: false,
        }
    }

    /// A host with this address. Flows may use others on it.
    pub fn host(&mut self, address: IpAddr) -> NodeId {
        self.node(Kind::Host(Host {
            mac: mac(self.nodes.len()),
            address,
            ends: HashMap::default(),
            unclaimed: 0,
            wrong: 0,
        }))
    }

    /// A switch that learns who is where.
    pub fn switch(&mut self) -> NodeId {
        self.node(Kind::Switch(Switch::default()))
    }

    /// A box: the engine with this policy. Its port 0 is the LAN, port 1 the WAN, in the order in
    /// which they are connected. A node here stands for as many hosts as it has addresses, so for
    /// the box the first of them are routers.
    ///
    /// # Errors
    /// When the policy has more than an engine takes.
    pub fn engine(&mut self, plan: &Plan, config: Config) -> Result<NodeId, weir_engine::NoRoom> {
        let mut plan = plan.clone();
        plan.routers.extend((0..ROUTERS).map(mac));
        plan.routers.sort_unstable();
        let boxed = Boxed::new(&plan, config)?;
        Ok(self.node(Kind::Box(Box::new(boxed))))
    }

    fn node(&mut self, kind: Kind) -> NodeId {
        self.nodes.push(Node { kind, out: Vec::new() });
        self.nodes.len() - 1
    }

    /// A wire between the next free ports of two nodes: what it is like from `a` to `b`, and back.
    pub fn connect(
        &mut self,
        a: NodeId,
        b: NodeId,
        there: &LinkSpec,
        back: &LinkSpec,
    ) -> (LinkId, LinkId) {
        let first = self.links.len();
        let (from, to) = (self.free_port(a), self.free_port(b));
        for (spec, to) in [(there, to), (back, from)] {
            let stream = self.links.len() as u64;
            self.links.push(Link::new(spec, to, self.seed, stream));
            self.checks |= spec.path.corrupt != Chance::NEVER;
        }
        self.nodes[a].out.push(first);
        self.nodes[b].out.push(first + 1);
        (first, first + 1)
    }

    fn free_port(&self, node: NodeId) -> Place {
        Place { node, port: self.nodes[node].out.len() }
    }

    /// A flow between two hosts.
    ///
    /// # Panics
    /// When one of its ends is no host.
    pub fn flow(&mut self, spec: &FlowSpec) -> FlowId {
        let id = self.flows.len();
        let [from, to] = [spec.from, spec.to].map(|node| match &self.nodes[node].kind {
            Kind::Host(host) => (host.mac, host.address),
            _ => panic!("node {node} is no host"),
        });
        let addresses = [spec.from_address.unwrap_or(from.1), spec.to_address.unwrap_or(to.1)];
        let flow = Flow::new(spec, id, [from.0, to.0], addresses, self.seed);
        self.flows.push(flow);
        let detour = (spec.away > Span::ZERO).then(|| (spec.from, self.detour(spec)));
        self.detours.push(detour);
        self.armed.push(Instant::MAX);
        self.bind(id);
        self.arm(id);
        id
    }

    /// A line of a flow's own that leads back to its host, and out of it.
    fn detour(&mut self, spec: &FlowSpec) -> LinkId {
        let path = Impairments { delay: spec.away, ..Impairments::default() };
        let line = LinkSpec { path, ..LinkSpec::default() };
        let to = Place { node: spec.from, port: DETOUR };
        let id = self.links.len();
        self.links.push(Link::new(&line, to, self.seed, id as u64));
        id
    }

    /// Sees every frame that leaves the line of these links.
    pub fn tap(&mut self, links: &[LinkId], tap: Tap) {
        for link in &mut self.links {
            link.is_tapped = false;
        }
        for &link in links {
            self.links[link].is_tapped = true;
        }
        self.tap = Some(tap);
    }

    /// Changes the rate of a link, from the next frame on.
    pub fn set_rate(&mut self, link: LinkId, rate: Rate) {
        self.links[link].set_rate(rate);
    }

    /// Lets everything happen up to and with `until`.
    pub fn run_until(&mut self, until: Instant) {
        while let Some((at, event)) = self.events.pop(until) {
            self.now = at;
            self.count += 1;
            match event {
                Event::Sent(link) => self.sent(link as LinkId),
                Event::Arrives(link) => self.arrives(link as LinkId),
                Event::Box(node) => self.wake_box(node as NodeId),
                Event::Flow(flow) => self.wake_flow(flow as FlowId),
            }
        }
        self.now = self.now.max(until);
    }

    fn sent(&mut self, link: LinkId) {
        let (frame, todo) = self.links[link].sent(self.now, &mut self.frames);
        if let Some(frame) = frame {
            self.depart(link, frame);
        }
        self.todo(link, todo);
    }

    fn todo(&mut self, link: LinkId, todo: Todo) {
        match todo {
            Todo::Nothing => {}
            Todo::SentAt(at) => self.events.push(at, Event::Sent(number(link))),
            Todo::Through(frame) => self.depart(link, frame),
        }
    }

    fn depart(&mut self, link: LinkId, frame: Frame) {
        let wire = &mut self.links[link];
        if wire.is_tapped
            && let Some(tap) = &mut self.tap
        {
            tap(link, self.now, self.frames.bytes(&frame));
        }
        if let Some(at) = wire.depart(self.now, frame, &mut self.frames) {
            self.events.push(at, Event::Arrives(number(link)));
        }
    }

    fn arrives(&mut self, link: LinkId) {
        let now = self.now;
        if self.links[link].asked_at <= now {
            self.links[link].asked_at = Instant::MAX;
        }
        while let Some(frame) = self.links[link].arrived(now) {
            let to = self.links[link].to;
            self.deliver(to, frame);
        }
        if let Some(at) = self.links[link].ask() {
            self.events.push(at, Event::Arrives(number(link)));
        }
    }

    fn deliver(&mut self, to: Place, frame: Frame) {
        match &mut self.nodes[to.node].kind {
            Kind::Host(_) if to.port == DETOUR => self.send(to.node, 0, frame),
            Kind::Host(host) => {
                let bytes = self.frames.bytes(&frame);
                let headers = Headers::parse(bytes);
                let is_right = !self.checks || wire::is_right(bytes, &headers);
                let found = host.whose(is_right, bytes, &headers);
                if let Some((flow, end)) = found {
                    self.flows[flow].receive(self.now, end, bytes, &headers);
                    self.frames.give(frame);
                    self.work(flow);
                } else {
                    self.frames.give(frame);
                }
            }
            Kind::Switch(_) => self.switch_frame(to, frame),
            Kind::Box(_) => self.box_frame(to, frame),
            Kind::Outside => self.leaves(to, frame),
        }
    }

    /// Sends a frame out of a node.
    fn send(&mut self, node: NodeId, port: usize, frame: Frame) {
        let Some(&link) = self.nodes[node].out.get(port) else { return self.frames.give(frame) };
        let todo = self.links[link].offer(self.now, frame, &mut self.frames);
        self.todo(link, todo);
    }

    fn wake_flow(&mut self, flow: FlowId) {
        if self.armed[flow] != self.now {
            // it was put forward after this was queued
            return;
        }
        self.armed[flow] = Instant::MAX;
        if self.flows[flow].deadline() <= self.now {
            self.flows[flow].wake(self.now);
            self.work(flow);
        } else {
            // it was put off
            self.arm(flow);
        }
    }

    /// Sends what a flow has to send now.
    fn work(&mut self, flow: FlowId) {
        while let Some((node, frame)) = self.flows[flow].transmit(self.now, &mut self.frames) {
            match self.detours[flow] {
                Some((from, link)) if from == node => {
                    let todo = self.links[link].offer(self.now, frame, &mut self.frames);
                    self.todo(link, todo);
                }
                _ => self.send(node, 0, frame),
            }
        }
        if let Some(left) = self.flows[flow].take_left() {
            for (node, key) in left {
                if let Kind::Host(host) = &mut self.nodes[node].kind {
                    host.ends.remove(&key);
                }
            }
            self.bind(flow);
        }
        self.arm(flow);
    }

    fn arm(&mut self, flow: FlowId) {
        let at = self.flows[flow].deadline().max(self.now);
        if at < self.armed[flow] {
            self.armed[flow] = at;
            self.events.push(at, Event::Flow(number(flow)));
        }
    }

    /// Tells both hosts which frames are a flow's.
    fn bind(&mut self, flow: FlowId) {
        for (end, (node, key)) in self.flows[flow].keys().into_iter().enumerate() {
            if let Kind::Host(host) = &mut self.nodes[node].kind {
                host.ends.insert(key, (flow, end));
            }
        }
    }

    /// Virtual time.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How many events have happened.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.count
    }

    /// What a flow has done.
    #[must_use]
    pub fn report(&self, flow: FlowId) -> &Report {
        self.flows[flow].report()
    }

    /// What a link has done.
    #[must_use]
    pub fn link(&self, link: LinkId) -> &LinkCounts {
        &self.links[link].counts
    }

    /// The engine in a box.
    #[must_use]
    pub fn engine_of(&self, node: NodeId) -> Option<&Engine> {
        match &self.nodes[node].kind {
            Kind::Box(boxed) => Some(boxed.driver.engine()),
            _ => None,
        }
    }

    /// Frames that a host got and that were no flow's, and frames with a wrong sum.
    #[must_use]
    pub fn refused(&self, node: NodeId) -> (u64, u64) {
        match &self.nodes[node].kind {
            Kind::Host(host) => (host.unclaimed, host.wrong),
            _ => (0, 0),
        }
    }
}

/// The MAC address of a node.
fn mac(node: NodeId) -> Mac {
    let [.., a, b, c] = node.to_be_bytes();
    [2, 0, 0, a, b, c]
}

impl Host {
    fn whose(&mut self, is_right: bool, bytes: &[u8], h: &Headers) -> Option<(FlowId, usize)> {
        if !is_right {
            self.wrong += 1;
            return None;
        }
        if ethernet::target_mac(bytes) != Some(self.mac) {
            return None;
        }
        let found = self.ends.get(&key_of(h)).copied();
        self.unclaimed += u64::from(found.is_none());
        found
    }
}

fn key_of(h: &Headers) -> Key {
    let ports = u64::from(h.source_port) << 24 | u64::from(h.target_port) << 8;
    (h.source, h.target, ports | u64::from(h.protocol))
}

/// The key of the frames that go from the first address and port to the second.
pub(crate) fn key(addresses: [IpAddr; 2], ports: [u16; 2], protocol: u8) -> Key {
    let [source, target] = addresses.map(|address| match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    });
    let ports = u64::from(ports[0]) << 24 | u64::from(ports[1]) << 8;
    (source, target, ports | u64::from(protocol))
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
