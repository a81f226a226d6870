//! The engine as a gate: the tree as a policy with `enforce`, real frames from one host for each
//! leaf, and what leaves the box and when.

use std::net::Ipv4Addr;

use weir_engine::{Config, Driver, Engine, LINK, Planner, Single};
use weir_packet::{Build, Member, Pool, Reason, Side};
use weir_policy::Source;
use weir_share::Node;
use weir_units::{Instant, Rate, Way};

use super::bits;

/// Whom the engine is told to share by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// `enforce = "weir"`.
    Weir,
    /// `enforce = "hsdba"`.
    Hsdba,
    /// Queues: the word is left out.
    Queue,
}

/// The engine, and the frames it is given.
pub(crate) struct Boxed {
    driver: Driver,
    /// By node of the list: the longest frame of its host; empty for nodes with children.
    frames: Vec<Vec<u8>>,
    /// The number of each node in the engine.
    slots: Vec<Option<u32>>,
    /// How long a byte takes on the line, in ns.
    byte: f64,
    sent: Vec<Sent>,
    /// When it was driven last.
    then: Instant,
}

/// A frame that has left.
pub(crate) struct Sent {
    /// Its leaf in the list of nodes.
    pub(crate) node: u32,
    /// When it came, and when its last bit was on the line, in ns.
    pub(crate) came: u64,
    pub(crate) left: u64,
    /// As the policy counts it: the network header and what follows.
    pub(crate) bytes: u32,
}

/// The shortest and the longest frame that can be told apart, from the network header on.
const LENGTHS: (u32, u32) = (64, 1_500);
/// Bytes before the network header, and before the payload.
const ETHERNET: usize = 14;
const HEADERS: usize = 42;
/// Leaves are hosts 10.1.0.0 and on, by their places in the list.
const FIRST: u32 = 0x0a01_0000;

impl Boxed {
    /// A box for this tree; none where no policy can say it.
    pub(crate) fn new(nodes: &[Node], word: Word, seed: u64) -> Option<Boxed> {
        let link = nodes.first()?.peak;
        let promised: u64 =
            nodes.iter().skip(1).filter(|node| node.parent == 0).map(|n| n.floor.bps()).sum();
        // a policy promises no more than is surely there, but the line may carry less than was told
        let told = if promised > link.bps() { promised / 95 * 100 } else { link.bps() };
        let host = |at| Ipv4Addr::from_bits(FIRST + at);
        let text = policy(nodes, word, Rate::from_bps(told), ["a", "b"], host);
        let reading = weir_policy::read(Source::new("tree", text), &mut |_| Err(String::new()));
        let plan =
            reading.ok().filter(|reading| !reading.is_at_fault())?.plans.into_iter().next()?;
        let flows = 4 * nodes.len().max(256);
        let config = Config { flows, seed: u128::from(seed), ..Config::default() };
        let pool = Pool::new(2 * config.queue_frames + 64, 1_600);
        let first = Planner::of(&config).prepare(&plan).ok()?;
        let mut engine = Engine::new(config, pool, first, Instant::ZERO);
        if told > link.bps() {
            engine.limits(Instant::ZERO, &[(LINK, Way::Up, link)]);
        }
        let to = "192.0.2.1:53".parse().ok()?;
        let frame = |(at, node): (u32, &Node)| {
            let from = (host(at), 7).into();
            let len = LENGTHS.1 as usize + ETHERNET - HEADERS;
            if node.is_leaf { Build::udp(from, to).payload_len(len).to_vec() } else { Vec::new() }
        };
        let frames = (0_u32..).zip(nodes).map(frame).collect();
        let slot = |path: &String| engine.layout().slot(plan.find(path)?);
        let slots = paths(nodes).iter().map(slot).collect();
        let driver = Driver::new(engine, &Member::ONE_EACH);
        Some(Boxed {
            driver,
            frames,
            slots,
            byte: 8e9 / bits(link),
            sent: Vec::new(),
            then: Instant::ZERO,
        })
    }

    /// A frame of a leaf; whether it was let in.
    pub(crate) fn receive(&mut self, now: u64, node: u32, len: u32) -> bool {
        self.serve(now);
        let Some(frame) = self.frames.get_mut(node as usize).filter(|f| !f.is_empty()) else {
            return false;
        };
        let bytes = sized(frame, len.clamp(LENGTHS.0, LENGTHS.1), now);
        let before = refused(self.driver.engine());
        let (byte, sent) = (self.byte, &mut self.sent);
        let left = |_, bytes: &[u8]| sent.push(Sent::read(now, bytes, byte));
        self.then = Instant::from_ns(now);
        self.driver.poll(self.then, &mut Single { came: Some((Side::Lan, bytes)), left });
        refused(self.driver.engine()) == before
    }

    /// Sends what leaves up to then.
    pub(crate) fn serve(&mut self, now: u64) {
        while let Some(at) = self.driver.next_at(self.then).filter(|at| at.ns() <= now) {
            self.then = at;
            let (byte, sent) = (self.byte, &mut self.sent);
            let left = |_, bytes: &[u8]| sent.push(Sent::read(at.ns(), bytes, byte));
            self.driver.poll(at, &mut Single { came: None, left });
        }
    }

    /// What has left since this was asked last.
    pub(crate) fn sent(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    /// What a node may send now; none where it has queues.
    pub(crate) fn share(&self, node: u32) -> Option<f64> {
        self.driver.engine().may_send(Way::Up, (*self.slots.get(node as usize)?)?).map(bits)
    }
}

impl Sent {
    /// A frame that leaves now, where a byte takes so long.
    fn read(now: u64, bytes: &[u8], byte: f64) -> Sent {
        let word = |at: usize| bytes[at..at + 4].try_into().map_or(0, u32::from_be_bytes);
        let len = u32::try_from(bytes.len() - ETHERNET).unwrap_or(0);
        Sent {
            node: word(ETHERNET + 12) - FIRST,
            came: u64::from(word(HEADERS)) << 32 | u64::from(word(HEADERS + 4)),
            left: now + super::number(f64::from(len) * byte),
            bytes: len,
        }
    }
}

/// Frames from the LAN that found no place; those that were dropped out of their queues had one.
fn refused(engine: &Engine) -> u64 {
    let counted = engine.total(Way::Up);
    counted.dropped_in_all().frames - counted.dropped[Reason::Managed.index()].frames
}

/// The paths of the classes of a list of nodes; the first, the link, has none.
fn paths(nodes: &[Node]) -> Vec<String> {
    let mut paths = vec![String::new()];
    for (at, node) in nodes.iter().enumerate().skip(1) {
        paths.push(format!("{}/c{at}", paths[node.parent as usize]));
    }
    paths
}

/// The policy of such a tree between two ports; each leaf is a host's.
pub(super) fn policy(
    nodes: &[Node],
    word: Word,
    told: Rate,
    [lan, wan]: [&str; 2],
    host: impl Fn(u32) -> Ipv4Addr,
) -> String {
    let rate = |rate: Rate| format!("\"{}bit\"", rate.bps());
    let told = rate(told);
    let enforce = match word {
        Word::Weir => "enforce = \"weir\"\n",
        Word::Hsdba => "enforce = \"hsdba\"\n",
        Word::Queue => "",
    };
    let mut text = format!("[link.l]\nlan = \"{lan}\"\nwan = \"{wan}\"\ncounts = \"ip\"\n");
    text += &format!("down = {told}\nup = {told}\n{enforce}");
    let paths = paths(nodes);
    for ((at, node), path) in (0_u32..).zip(nodes).zip(&paths).skip(1) {
        text += &format!("[class.\"{path}\"]\nweight = {}\n", node.weight);
        if node.floor > Rate::ZERO {
            text += &format!("rate = {}\n", rate(node.floor));
        }
        if node.peak < Rate::MAX {
            text += &format!("ceil = {}\n", rate(node.peak));
        }
        if node.is_leaf {
            text += &format!("match = \"lan {}\"\n", host(at));
        }
    }
    text
}

/// A frame cut to so many bytes from the network header on, with when it came in its payload.
fn sized(frame: &mut [u8], len: u32, now: u64) -> &[u8] {
    let end = ETHERNET + len as usize;
    let short = |len: u32| u16::try_from(len).unwrap_or(0).to_be_bytes();
    frame[16..18].copy_from_slice(&short(len));
    frame[38..40].copy_from_slice(&short(len - 20));
    // no checksum of the payload; that of the header changes with its length
    frame[40..42].fill(0);
    frame[24..26].fill(0);
    let sum = weir_packet::checksum::of(&frame[ETHERNET..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame[HEADERS..HEADERS + 8].copy_from_slice(&now.to_be_bytes());
    &frame[..end]
}
