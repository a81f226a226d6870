//! What the frames come from and go to: two interfaces, opened so that traffic goes on whatever
//! becomes of weir. The helper opens them; what it hands over becomes ports here.

use std::net::IpAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weir_io::page::Page;
use weir_io::{FrameSize, PacketPort, PacketSockets, Port, Umem, XskPort, XskSpec};
use weir_packet::{BySide, Pool, Side};
use weir_units::limits;
use weir_xdp::Heart;

use crate::Via;
use crate::claim::Claims;
use crate::helper::{Answer, Ask, Helper, Interface, Said};
use crate::pulse::{BYPASSED, LEAVING, Pulse};

/// How to open the ports.
pub(crate) struct Wanted<'a> {
    pub(crate) link: &'a str,
    pub(crate) names: BySide<&'a str>,
    pub(crate) via: Via,
    pub(crate) bypass: bool,
    /// Frames that wait for each port at most.
    pub(crate) queue: usize,
    /// The policy's files, which the helper opens later.
    pub(crate) files: &'a [PathBuf],
    /// The link's socket.
    pub(crate) socket: &'a Path,
}

/// The ports, ready to turn.
pub(crate) struct Opened {
    pub(crate) pool: Pool,
    pub(crate) ports: BySide<Option<Port>>,
    pub(crate) pulse: Pulse,
    pub(crate) kept: Kept,
}

/// What control keeps of the ports, to open one again when its interface comes back.
pub(crate) struct Kept {
    pub(crate) names: BySide<String>,
    /// The bridge that carries the traffic when weir does not.
    pub(crate) bridge: Option<String>,
    pub(crate) backend: Backend,
    /// Shared with who reads the policy again.
    pub(crate) helper: Arc<Mutex<Helper>>,
    /// What the operator should know.
    pub(crate) notes: Vec<String>,
    /// Why an interface that is back is not in use, as it was said last.
    pub(crate) refused: BySide<Option<String>>,
    /// The box's own addresses, as the programs were told them last.
    pub(crate) own: ([u8; 6], Vec<IpAddr>),
    /// By side, whether weir completes checksums that were left to hardware.
    pub(crate) completes: BySide<bool>,
    /// By side, the receive queues that weir serves; 0 with packet sockets, which see all.
    pub(crate) queues: BySide<u32>,
    _claims: Claims,
}

/// How frames come and go, and what decides whether the bridge carries them.
pub(crate) enum Backend {
    Xdp {
        umem: Umem,
        doors: BySide<Option<Door>>,
    },
    Packet {
        watch: Option<Watch>,
        /// The program at the bridge, which the kernel sees all frames at.
        face: Option<Door>,
    },
}

/// The program at a port, which is there as long as this is held.
pub(crate) struct Door {
    pub(crate) heart: Heart,
    _link: OwnedFd,
}

/// What the guard looks at.
pub(crate) struct Watch {
    pub(crate) page: Arc<Page>,
    /// Nothing is ever written; its end tells the guard that weir has died.
    pub(crate) _life: OwnedFd,
}

impl Backend {
    pub(crate) fn name(&self) -> &'static str {
        self.via().word()
    }

    pub(crate) fn via(&self) -> Via {
        match self {
            Backend::Xdp { .. } => Via::Xdp,
            Backend::Packet { .. } => Via::Packet,
        }
    }
}

/// Opens both ports.
///
/// # Errors
/// All that stands against it, each with its cure.
pub(crate) fn open(wanted: &Wanted<'_>) -> Result<Opened, Vec<String>> {
    let one = |why: String| vec![why];
    let claims = Claims::take(wanted.names.both(), wanted.socket).map_err(one)?;
    let how = (wanted.via, wanted.bypass);
    let mut helper =
        Helper::start(wanted.link, wanted.names.both(), how, wanted.files, wanted.socket)
            .map_err(one)?;
    let Said { mut notes, bridge, .. } = helper.ask(&Ask::Begin, &[])?.said;
    let opened = match wanted.via {
        Via::Packet => packet(wanted, &mut helper, bridge.is_some(), &mut notes),
        Via::Xdp => xdp(wanted, &mut helper, &mut notes),
        Via::Auto => xdp(wanted, &mut helper, &mut notes).or_else(|why| {
            notes.push(format!("AF_XDP is not used: {}", why.join("; ")));
            packet(wanted, &mut helper, bridge.is_some(), &mut notes)
        }),
    };
    let (pool, ports, pulse, backend, completes, queues) = opened?;
    for side in Side::ALL {
        let joined = helper.ask(&Ask::Join { side, via: backend.via() }, &[])?;
        notes.extend(joined.said.notes);
    }
    let kept = Kept {
        names: wanted.names.map(str::to_owned),
        bridge,
        backend,
        helper: Arc::new(Mutex::new(helper)),
        notes,
        refused: BySide::default(),
        own: ([0; 6], Vec::new()),
        completes,
        queues,
        _claims: claims,
    };
    Ok(Opened { pool, ports, pulse, kept })
}

/// By packet sockets weir completes checksums at both ports.
pub(crate) const ALL_ARE_COMPLETED: BySide<bool> = BySide { lan: true, wan: true };

type Open = (Pool, BySide<Option<Port>>, Pulse, Backend, BySide<bool>, BySide<u32>);

fn xdp(
    wanted: &Wanted<'_>,
    helper: &mut Helper,
    told: &mut Vec<String>,
) -> Result<Open, Vec<String>> {
    let one = |why: String| vec![why];
    let mut open = |side: Side| {
        let mut answer = helper.ask(&Ask::Open { side, via: Via::Xdp }, &[])?;
        told.append(&mut answer.said.notes);
        Given::of(wanted.names[side], answer).map_err(one)
    };
    let given = BySide { lan: open(Side::Lan)?, wan: open(Side::Wan)? };
    let mtu = given.values().map(|given| given.opened.mtu).max().unwrap_or(0);
    let size = FrameSize::for_mtu(mtu).ok_or_else(|| {
        one(format!("an MTU of {mtu} is more than a buffer of it holds; `--io packet` carries it"))
    })?;
    let buffers = given.values().map(|given| buffers_of(given.opened.queues)).sum::<usize>();
    let buffers = buffers + waiting(wanted.queue);
    let (umem, mut pool) = Umem::with_pool(buffers, size)
        .map_err(|e| one(format!("no memory for {buffers} frames: {e}")))?;
    let (mut ports, mut doors) = (BySide::default(), BySide::default());
    let mut pulse = Pulse::default();
    let completes = given.as_ref().map(Given::completes);
    let queues = given.as_ref().map(Given::queues);
    for (side, given) in Side::ALL.into_iter().zip(given.both()) {
        let spec = given.spec();
        let (mut port, door, heart) = given.port(&umem, &spec).map_err(one)?;
        port.settle(&mut pool);
        // a port without buffers would take frames and drop them all
        if port.held() < spec.queues.len() * spec.ring_frames {
            return Err(one(format!("{}: there are too few buffers for its queues", spec.port)));
        }
        ports[side] = Some(Port::Xsk(Box::new(port)));
        pulse.hearts[side] = Some(heart);
        doors[side] = Some(door);
    }
    Ok((pool, ports, pulse, Backend::Xdp { umem, doors }, completes, queues))
}

/// Buffers that the kernel may hold of a port: to receive into for every queue, and to send.
fn buffers_of(queues: u32) -> usize {
    queues as usize * ring_for(queues) + limits::XSK_RING_FRAMES + limits::XSK_RESERVE_FRAMES
}

/// Buffers that may wait in weir: in the queues of both ports, as held acknowledgements, and on
/// their way between the stages.
fn waiting(queue: usize) -> usize {
    2 * queue + limits::HELD_ACKS + 4 * limits::BURST_FRAMES
}

/// Slots of the rings of each queue: all queues of a port together have as many as a fast link
/// fills in some milliseconds, however many there are.
pub(crate) fn ring_for(queues: u32) -> usize {
    const OF_A_PORT: usize = 8_192;
    const LEAST: usize = 256;
    let each = OF_A_PORT / queues.max(1) as usize;
    // rounded down to a power of two
    let each = 1 << each.max(1).ilog2();
    each.clamp(LEAST, limits::XSK_RING_FRAMES)
}

/// What the helper hands over for a port by AF_XDP.
pub(crate) struct Given {
    name: String,
    opened: Interface,
    /// The program's page, what keeps it attached, sockets.
    fds: Vec<OwnedFd>,
}

impl Given {
    pub(crate) fn of(name: &str, answer: Answer) -> Result<Given, String> {
        let opened = answer.said.opened;
        let opened =
            opened.ok_or_else(|| format!("{name}: the helper does not report what it is"))?;
        Ok(Given { name: name.to_owned(), opened, fds: answer.fds })
    }

    pub(crate) fn queues(&self) -> u32 {
        self.opened.queues
    }

    /// Whether weir completes checksums there.
    pub(crate) fn completes(&self) -> bool {
        self.opened.is_virtual
    }

    pub(crate) fn spec(&self) -> XskSpec {
        XskSpec {
            queues: 0..self.opened.queues,
            ring_frames: ring_for(self.opened.queues),
            completes: self.completes(),
            ..XskSpec::of(&self.name, self.opened.index)
        }
    }

    /// The port, the program at it, and a hand on that for the packet thread.
    pub(crate) fn port(
        self,
        umem: &Umem,
        spec: &XskSpec,
    ) -> Result<(XskPort, Door, Heart), String> {
        let mut fds = self.fds.into_iter();
        let (Some(page), Some(link)) = (fds.next(), fds.next()) else {
            return Err(format!("{}: the helper handed over nothing", self.name));
        };
        let heart = || Heart::at(&page).map_err(|e| format!("{}: {e}", self.name));
        let door = Door { heart: heart()?, _link: link };
        let port = XskPort::over(umem, spec, fds.collect()).map_err(|e| e.to_string())?;
        Ok((port, door, heart()?))
    }

    /// The same of packet sockets.
    pub(crate) fn packet_port(self) -> Result<PacketPort, String> {
        let Given { name, opened, fds } = self;
        let Interface { index, mtu, .. } = opened;
        let mut fds = fds.into_iter();
        let (Some(arriving), Some(leaving)) = (fds.next(), fds.next()) else {
            return Err(format!("{name}: the helper handed over nothing"));
        };
        let sockets = PacketSockets { arriving, leaving, index, mtu };
        PacketPort::over(&name, sockets).map_err(|e| e.to_string())
    }
}

fn packet(
    wanted: &Wanted<'_>,
    helper: &mut Helper,
    bypass: bool,
    told: &mut Vec<String>,
) -> Result<Open, Vec<String>> {
    /// Ethernet header and tags beyond the MTU.
    const HEADERS: usize = 14 + 4 * 4;
    let one = |why: String| vec![why];
    let mut open = |side: Side| {
        let answer = helper.ask(&Ask::Open { side, via: Via::Packet }, &[])?;
        Given::of(wanted.names[side], answer).map_err(one)
    };
    let given = BySide { lan: open(Side::Lan)?, wan: open(Side::Wan)? };
    let mtu = given.values().map(|given| given.opened.mtu).max().unwrap_or(0);
    let pool = Pool::new(waiting(wanted.queue), (mtu + HEADERS).next_multiple_of(64));
    let port = |given: Given| -> Result<_, Vec<String>> {
        Ok(Some(Port::Packet(Box::new(given.packet_port().map_err(one)?))))
    };
    let ports = BySide { lan: port(given.lan)?, wan: port(given.wan)? };
    let mut pulse = Pulse::default();
    let (mut watch, mut face) = (None, None);
    if bypass {
        match helper.ask(&Ask::Face, &[]).and_then(|answer| Door::of(answer).map_err(one)) {
            Ok((door, heart)) => {
                face = Some(door);
                pulse.bridge = Some(heart);
            }
            Err(why) => told.push(format!(
                "frames for the box itself are not limited, and if it routes (ip_forward), routed \
                 traffic is not shaped: {}; keep its MAC address unknown to hosts, or use a \
                 kernel with BPF",
                why.join("; ")
            )),
        }
        let page = Page::new().map_err(|e| one(format!("no memory for the guard: {e}")))?;
        // until the guard has looked for the first time, the bridge carries all
        page.set(BYPASSED, 1);
        let page = Arc::new(page);
        watch = Some(Watch::start(&page, helper)?);
        pulse.page = Some(page);
    }
    Ok((pool, ports, pulse, Backend::Packet { watch, face }, ALL_ARE_COMPLETED, BySide::default()))
}

impl Door {
    /// The program that the helper has put somewhere, and a hand on it for the packet thread.
    fn of(answer: Answer) -> Result<(Door, Heart), String> {
        let mut fds = answer.fds.into_iter();
        let (Some(page), Some(link)) = (fds.next(), fds.next()) else {
            return Err("the helper handed over nothing".to_owned());
        };
        let heart = || Heart::at(&page).map_err(|e| e.to_string());
        Ok((Door { heart: heart()?, _link: link }, heart()?))
    }
}

impl Watch {
    /// Lets the helper start a guard over the page.
    pub(crate) fn start(page: &Arc<Page>, helper: &mut Helper) -> Result<Watch, Vec<String>> {
        let answer = helper.ask(&Ask::Guard, &[page.as_fd()])?;
        let life = answer.fds.into_iter().next();
        let life = life.ok_or_else(|| vec!["the helper handed over no pipe".to_owned()])?;
        Ok(Watch { page: page.clone(), _life: life })
    }
}

impl Kept {
    /// The programs that weir has put somewhere.
    pub(crate) fn doors(&self) -> impl Iterator<Item = &Door> {
        let (doors, face) = match &self.backend {
            Backend::Xdp { doors, .. } => (doors.as_ref().both(), &None),
            Backend::Packet { face, .. } => ([&None, &None], face),
        };
        doors.into_iter().chain([face]).flatten()
    }

    /// From now on frames come to weir.
    pub(crate) fn take_over(&mut self) {
        let look = held(&self.helper).look();
        if let Ok(look) = look {
            self.tell((look.mac, look.addresses));
        }
        // without an answer a later end only undoes more than it should
        let _ = held(&self.helper).ask(&Ask::Carry, &[]);
        self.doors().for_each(|door| door.heart.take(true));
    }

    /// From now on frames go past weir; returns when that is so, or why it is not.
    pub(crate) fn let_go(&mut self) -> Result<(), String> {
        self.doors().for_each(|door| door.heart.take(false));
        let Backend::Packet { watch: Some(watch), .. } = &self.backend else { return Ok(()) };
        watch.page.set(LEAVING, 1);
        // a watcher looks every 5 ms; with both dead nobody answers, and nothing helps
        for _ in 0..100 {
            if watch.page.get(BYPASSED) != 0 {
                return Ok(());
            }
            std::thread::park_timeout(std::time::Duration::from_millis(2));
        }
        let BySide { lan, wan } = &self.names;
        Err(format!(
            "neither guard nor helper has opened the bridge: the link is cut; run `bridge link \
             set dev {lan} isolated off` and `bridge link set dev {wan} isolated off`"
        ))
    }

    /// Ends in good order: the interfaces are left as they were found.
    pub(crate) fn leave(self) {
        // a helper that does not answer has left a record for `weir remove`
        let _ = held(&self.helper).ask(&Ask::Leave, &[]);
    }

    /// The interface of a side.
    pub(crate) fn name(&self, side: Side) -> &str {
        &self.names[side]
    }
}

/// The helper, for one request.
pub(crate) fn held(helper: &Mutex<Helper>) -> MutexGuard<'_, Helper> {
    helper.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_of_every_port_has_its_buffers() {
        for queues in 1..=64 {
            let ring = ring_for(queues);
            assert!(ring.is_power_of_two() && (256..=2_048).contains(&ring), "{queues}: {ring}");
            assert!(buffers_of(queues) >= queues as usize * ring + 2_048);
        }
        assert_eq!([1, 4, 5, 8, 16, 64].map(ring_for), [2_048, 2_048, 1_024, 1_024, 512, 256]);
        assert!(waiting(4_096) > 2 * 4_096 + limits::HELD_ACKS);
    }
}
