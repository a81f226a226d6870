//! What the frames come from and go to: two interfaces, opened so that traffic goes on whatever
//! becomes of weir.

use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;

use weir_io::netdev::{self, Feature, Netdev, Unfit};
use weir_io::page::Page;
use weir_io::{FrameSize, PacketPort, Port, Umem, XskPort, XskSpec};
use weir_packet::{Pool, Side};
use weir_xdp::{Attached, Mode, Program};

use super::Via;
use super::bypass::Bridge;
use super::guard::Guard;
use super::pulse::Pulse;

/// Frames that are on their way into or out of the kernel, at most, beside those that wait in the
/// queues.
const UNDER_WAY: usize = 8_192;

/// How to open the ports.
pub(crate) struct Wanted<'a> {
    pub(crate) link: &'a str,
    pub(crate) names: [&'a str; 2],
    pub(crate) via: Via,
    pub(crate) bypass: bool,
    /// Frames that wait for each port at most.
    pub(crate) queue: usize,
}

/// The ports, ready to turn.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) ports: [Option<Port>; 2],
    pub(crate) pulse: Pulse,
    pub(crate) kept: Kept,
}

/// What control keeps of the ports, to open one again when its interface comes back.
pub(crate) struct Kept {
    pub(crate) names: [String; 2],
    pub(crate) bridge: Option<Bridge>,
    pub(crate) way: Way,
    /// What the operator should know.
    pub(crate) notes: Vec<String>,
    /// Why an interface that is back is not in use, as it was said last.
    pub(crate) refused: [Option<String>; 2],
    _claims: [UnixDatagram; 2],
}

/// How frames come and go, and what decides whether the bridge carries them.
pub(crate) enum Way {
    Xdp { umem: Umem, programs: [Option<(Program, Attached)>; 2] },
    Packet { guard: Option<Guard> },
}

impl Way {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Way::Xdp { .. } => "xdp",
            Way::Packet { .. } => "packet",
        }
    }
}

/// Opens both ports.
///
/// # Errors
/// All that stands against it, each with its cure.
pub(crate) fn open(wanted: &Wanted<'_>) -> Result<Opened, Vec<String>> {
    let (netdevs, mut notes) = examine(wanted.names)?;
    let claims = claim(wanted).map_err(|why| vec![why])?;
    let bridge = match wanted.bypass {
        true => Some(Bridge::over(wanted.link, &netdevs).map_err(|why| vec![why])?),
        false => None,
    };
    let opened = match wanted.via {
        Via::Packet => packet(wanted, &netdevs, bridge.is_some()),
        Via::Xdp => xdp(wanted, &netdevs),
        Via::Auto => xdp(wanted, &netdevs).or_else(|why| {
            notes.push(format!("AF_XDP is not used: {why}"));
            packet(wanted, &netdevs, bridge.is_some())
        }),
    };
    let (pool, ports, pulse, way) = opened.map_err(|why| vec![why])?;
    let names = wanted.names.map(str::to_owned);
    let mut kept = Kept { names, bridge, way, notes, refused: [None, None], _claims: claims };
    kept.close_ranks().map_err(|why| vec![why])?;
    Ok(Opened { pool, ports, pulse, kept })
}

/// Says to every other weir that these interfaces are taken: by a name that the kernel frees
/// however we end, and that is of this network namespace, as interfaces are.
fn claim(wanted: &Wanted<'_>) -> Result<[UnixDatagram; 2], String> {
    let one = |port: &str| {
        let name = SocketAddr::from_abstract_name(format!("weir/port/{port}"));
        name.and_then(|name| UnixDatagram::bind_addr(&name)).map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => {
                format!(
                    "another weir carries {port}: `weir status` tells which, `weir stop` ends it"
                )
            }
            _ => format!("{port} cannot be claimed: {error}"),
        })
    };
    Ok([one(wanted.names[0])?, one(wanted.names[1])?])
}

/// What the interfaces are, or everything that stands against them.
fn examine(names: [&str; 2]) -> Result<([Netdev; 2], Vec<String>), Vec<String>> {
    let mut notes = Vec::new();
    let mut against = Vec::new();
    let mut found = Vec::new();
    for name in names {
        match usable(name, &mut notes) {
            Ok(netdev) => found.push(netdev),
            Err(why) => against.extend(why),
        }
    }
    let Ok([lan, wan]) = <[Netdev; 2]>::try_from(found) else { return Err(against) };
    if lan.mtu != wan.mtu {
        let (small, large) = if lan.mtu < wan.mtu { (&lan, &wan) } else { (&wan, &lan) };
        notes.push(format!(
            "{} carries {} bytes and {} {}: longer frames go no further; `ip link set {} mtu {}` \
             makes both alike",
            large.name, large.mtu, small.name, small.mtu, large.name, small.mtu
        ));
    }
    for port in [&lan, &wan] {
        if !port.link {
            notes.push(format!("{} has no link: is the cable in? weir waits for it", port.name));
        }
    }
    Ok(([lan, wan], notes))
}

/// One interface; what weir can cure by itself is cured and said.
pub(crate) fn usable(name: &str, notes: &mut Vec<String>) -> Result<Netdev, Vec<String>> {
    let Err(reasons) = netdev::examine(name) else { return ready(name).map_err(|why| vec![why]) };
    let mut against = Vec::new();
    for reason in reasons {
        match reason {
            Unfit::Down(_) => match netdev::set_up(name, true) {
                Ok(()) => notes.push(format!("{name} was down and is up now")),
                Err(_) => against.push(reason.to_string()),
            },
            // the bridge that they are in becomes the way around weir
            Unfit::Bridged(_) => {}
            other => against.push(other.to_string()),
        }
    }
    if against.is_empty() { ready(name).map_err(|why| vec![why]) } else { Err(against) }
}

/// What a port must be before frames come from it: whole, single and with their tags.
fn ready(name: &str) -> Result<Netdev, String> {
    // what cannot be turned off is met frame by frame: cut, or too long and counted
    let _ = netdev::see_single_frames(name);
    let _ = netdev::set_feature(name, Feature::RxVlan, false);
    netdev::facts(name).map_err(|e| format!("{name}: {e}"))
}

type Open = (Pool, [Option<Port>; 2], Pulse, Way);

fn xdp(wanted: &Wanted<'_>, netdevs: &[Netdev; 2]) -> Result<Open, String> {
    let mtu = netdevs.iter().map(|netdev| netdev.mtu).max().unwrap_or(0);
    let size = FrameSize::for_mtu(mtu).ok_or_else(|| {
        format!("an MTU of {mtu} is more than a buffer of it holds; `--io packet` carries it")
    })?;
    let (umem, mut pool) = Umem::with_pool(2 * wanted.queue + UNDER_WAY, size)
        .map_err(|e| format!("no memory for frames: {e}"))?;
    let mut ports = [None, None];
    let mut programs = [None, None];
    let mut pulse = Pulse::default();
    for (slot, netdev) in netdevs.iter().enumerate() {
        let spec = xsk_spec(netdev);
        let port = XskPort::open(&umem, &mut pool, &spec).map_err(|e| e.to_string())?;
        let (program, attached) = attach(netdev, &port)?;
        let heart = program.heart().map_err(|e| format!("{}: {e}", netdev.name))?;
        pulse.hearts[slot] = Some(heart);
        programs[slot] = Some((program, attached));
        ports[slot] = Some(Port::Xsk(Box::new(port)));
    }
    Ok((pool, ports, pulse, Way::Xdp { umem, programs }))
}

pub(crate) fn xsk_spec(netdev: &Netdev) -> XskSpec {
    let queues = receive_queues(&netdev.name);
    XskSpec { queues, ..XskSpec::of(&netdev.name, netdev.index) }
}

/// Says to a program that frames shall come.
pub(crate) fn take(program: &Program) {
    // the page was mapped once already when the port was opened
    if let Ok(heart) = program.heart() {
        heart.take(true);
    }
}

/// Puts the program at an interface and gives it the sockets; frames still pass by.
pub(crate) fn attach(netdev: &Netdev, port: &XskPort) -> Result<(Program, Attached), String> {
    let said = |error: weir_xdp::XdpError| format!("{}: {error}", netdev.name);
    let program = Program::load(receive_queues(&netdev.name)).map_err(said)?;
    for (queue, socket) in port.sockets() {
        program.put(queue, socket).map_err(said)?;
    }
    let attached = program.attach(netdev.index, Mode::Auto).map_err(said)?;
    Ok((program, attached))
}

fn receive_queues(name: &str) -> u32 {
    let queues = std::fs::read_dir(format!("/sys/class/net/{name}/queues"));
    let receive = queues.into_iter().flatten().flatten();
    let receive = receive.filter(|entry| entry.file_name().to_string_lossy().starts_with("rx-"));
    u32::try_from(receive.count()).unwrap_or(1).max(1)
}

fn packet(wanted: &Wanted<'_>, netdevs: &[Netdev; 2], bypass: bool) -> Result<Open, String> {
    /// Ethernet header and tags beyond the MTU.
    const HEADERS: usize = 14 + 4 * 4;
    let mtu = netdevs.iter().map(|netdev| netdev.mtu).max().unwrap_or(0);
    let pool = Pool::new(2 * wanted.queue + UNDER_WAY, (mtu + HEADERS).next_multiple_of(64));
    let mut ports = [None, None];
    for (slot, netdev) in netdevs.iter().enumerate() {
        let port = PacketPort::open(&netdev.name).map_err(|e| e.to_string())?;
        ports[slot] = Some(Port::Packet(Box::new(port)));
    }
    let mut pulse = Pulse::default();
    let mut guard = None;
    if bypass {
        let page = Page::new().map_err(|e| format!("no memory to share with the guard: {e}"))?;
        // until the guard has looked for the first time, the bridge carries all
        page.set(super::pulse::BYPASSED, 1);
        guard = Some(Guard::start(&page, wanted.names)?);
        pulse.page = Some(Arc::new(page));
    }
    Ok((pool, ports, pulse, Way::Packet { guard }))
}

impl Kept {
    /// Puts both ports into the bridge, last of all, and says to the programs which address is the
    /// box's own.
    fn close_ranks(&mut self) -> Result<(), String> {
        let Some(bridge) = &self.bridge else {
            for name in &self.names {
                netdev::set_promiscuous(name, true).map_err(|e| format!("{name}: {e}"))?;
            }
            return Ok(());
        };
        for name in &self.names {
            bridge.take_in(name)?;
        }
        if let Way::Xdp { programs, .. } = &self.way {
            for (program, _) in programs.iter().flatten() {
                if let Ok(heart) = program.heart() {
                    bridge.tell(&heart);
                }
            }
        }
        Ok(())
    }

    /// From now on frames come to weir.
    pub(crate) fn take_over(&self) {
        if let Way::Xdp { programs, .. } = &self.way {
            for (program, _) in programs.iter().flatten() {
                take(program);
            }
        }
    }

    /// From now on frames go past weir.
    pub(crate) fn let_go(&self) {
        if let Way::Xdp { programs, .. } = &self.way {
            for heart in programs.iter().flatten().filter_map(|(program, _)| program.heart().ok()) {
                heart.take(false);
            }
        }
    }

    /// The interface of a side.
    pub(crate) fn name(&self, side: Side) -> &str {
        &self.names[side as usize]
    }
}
