//! A program loaded for one port, and the attachment that lasts as long as someone holds it.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use weir_units::limits::XSK_QUEUES;

use crate::XdpError;
use crate::error::Step;
use crate::heart::Heart;
use crate::kernel::{self, Page};
use crate::program::{Last, PAGE_WORDS, program};

/// The program of one port: its code, its sockets, its page.
#[derive(Debug)]
pub struct Program {
    code: OwnedFd,
    sockets: OwnedFd,
    page: OwnedFd,
}

/// Where in the kernel the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the driver, before the kernel makes anything of a frame.
    Native,
    /// Above the driver: any driver will do, at about twice the cost.
    Generic,
    /// In the driver if it can, else above it.
    Auto,
}

/// The program is at the netdev for as long as this lives. When the process ends, however it
/// ends, the kernel takes the program off.
#[derive(Debug)]
pub struct Attached {
    mode: Mode,
    note: Option<XdpError>,
    _link: OwnedFd,
}

impl Program {
    /// Loads a program with room for the sockets of so many queues. It passes all frames to the
    /// kernel until its [`Heart`] says otherwise.
    pub fn load(queues: u32) -> Result<Program, XdpError> {
        Program::with(queues, Last::Up)
    }

    /// Loads the program of the bridge that both ports are in, where frames come to weir another
    /// way: it lets pass what is for the box itself, and nothing that the kernel would forward.
    pub fn of_bridge() -> Result<Program, XdpError> {
        Program::with(1, Last::Nowhere)
    }

    fn with(queues: u32, last: Last) -> Result<Program, XdpError> {
        let failed = |step| move |why| XdpError::new(step, why);
        let queues = queues.clamp(1, u32::try_from(XSK_QUEUES).unwrap_or(u32::MAX));
        let page = kernel::shared_page(PAGE_WORDS).map_err(failed(Step::Map))?;
        let sockets = kernel::socket_map(queues).map_err(failed(Step::Map))?;
        // tried now, so that `heart` is known to work
        Page::map(&page, PAGE_WORDS).map_err(failed(Step::Share))?;
        let code = kernel::load(&program(page.as_raw_fd(), sockets.as_raw_fd(), last))
            .map_err(|(why, log)| XdpError::refused(why, log))?;
        Ok(Program { code, sockets, page })
    }

    /// Puts it at a netdev of this network namespace.
    pub fn attach(&self, ifindex: u32, mode: Mode) -> Result<Attached, XdpError> {
        let try_at = |mode, flags, step, note| {
            let link = kernel::link(&self.code, ifindex, flags);
            link.map(|_link| Attached { mode, note, _link }).map_err(|why| XdpError::new(step, why))
        };
        let native = || try_at(Mode::Native, kernel::IN_THE_DRIVER, Step::Native, None);
        let generic = |note| try_at(Mode::Generic, kernel::ABOVE_THE_DRIVER, Step::Generic, note);
        match mode {
            Mode::Native => native(),
            Mode::Generic => generic(None),
            Mode::Auto => match native() {
                Err(why) if why.is_of_the_driver() => generic(Some(why)),
                other => other,
            },
        }
    }

    /// Frames of this queue go to this socket from now on, instead of to the one before. A closed
    /// socket is taken off by the kernel, and the queue's frames pass.
    pub fn put(&self, queue: u32, socket: BorrowedFd<'_>) -> Result<(), XdpError> {
        kernel::put_socket(&self.sockets, queue, socket)
            .map_err(|why| XdpError::new(Step::Socket, why))
    }

    /// The daemon's hand on it. There may be several, over the same page.
    pub fn heart(&self) -> Result<Heart, XdpError> {
        Heart::at(&self.page)
    }

    /// The page alone, for [`Heart::at`] in another process.
    #[must_use]
    pub fn into_page(self) -> OwnedFd {
        self.page
    }

    #[cfg(test)]
    fn verdict(&self, frame: &[u8]) -> std::io::Result<u32> {
        kernel::test_run(&self.code, frame, 1).map(|(verdict, _)| verdict)
    }
}

impl Attached {
    /// Where it runs now: native or generic.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What keeps it there, for another process to hold.
    #[must_use]
    pub fn into_link(self) -> OwnedFd {
        self._link
    }

    /// Why it is not in the driver, if it should have been.
    #[must_use]
    pub fn note(&self) -> Option<&XdpError> {
        self.note.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::sync::atomic::Ordering;

    use weir_units::limits::{XDP_ASKED_PER_SEC, XDP_TO_BOX_PER_SEC};

    use super::*;
    use crate::Counts;
    use crate::program::{XDP_DROP, XDP_PASS, XDP_REDIRECT, word};

    const OWN: [u8; 6] = [2, 0, 0, 0, 0xab, 0xcd];
    const NS_PER_MS: u64 = 1_000_000;

    /// The kernel's clock, as the daemon reads it.
    fn now_ns() -> u64 {
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        #[expect(unsafe_code, reason = "the clock that the kernel compares with")]
        // SAFETY: `now` outlives the call.
        let done = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
        assert_eq!(done, 0);
        now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
    }

    /// A program with a socket at queue 0, or `None` where we may not load one.
    fn loaded() -> Option<(Program, OwnedFd)> {
        use std::os::fd::{AsFd, FromRawFd};
        let program = match Program::load(1) {
            Err(why) if why.raw_os_error() == Some(libc::EPERM) => {
                println!("skipped, needs root: {why}");
                return None;
            }
            other => other.unwrap(),
        };
        #[expect(unsafe_code, reason = "a socket to send frames to")]
        // SAFETY: the call takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        #[expect(unsafe_code, reason = "as above")]
        // SAFETY: the kernel just made this descriptor for us.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        program.put(0, socket.as_fd()).unwrap();
        Some((program, socket))
    }

    fn frame_to(mac: [u8; 6]) -> [u8; 64] {
        let mut frame = [0x11; 64];
        frame[..6].copy_from_slice(&mac);
        frame
    }

    #[test]
    fn a_frame_comes_up_only_if_a_daemon_that_lives_wants_it() {
        let Some((program, socket)) = loaded() else { return };
        let heart = program.heart().unwrap();
        let verdict = |mac| program.verdict(&frame_to(mac)).unwrap().cast_signed();
        let other = [2, 0, 0, 0, 0xab, 0xce];
        // a beat far ahead is one that does not age while the test runs, and none of these is
        // judged by how fast the test is
        let (alive, dead) = (now_ns() + 3_600_000 * NS_PER_MS, now_ns() - 100 * NS_PER_MS);

        assert_eq!(verdict(other), XDP_PASS, "nobody said take");
        heart.take(true);
        assert_eq!(verdict(other), XDP_PASS, "no beat yet");
        heart.beat(alive);
        assert_eq!(verdict(other), XDP_REDIRECT);
        heart.own_mac(OWN);
        heart.own_addresses(&[V4.into()]);
        let to = |mac| program.verdict(&ipv4(mac, 0x45, V4)).unwrap().cast_signed();
        assert_eq!((to(OWN), to(other)), (XDP_PASS, XDP_REDIRECT));
        for bit in 0..48 {
            let mut near = OWN;
            near[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(to(near), XDP_REDIRECT, "{near:x?} is not the box's");
        }
        heart.own_mac([0xff; 6]);
        assert_eq!(verdict([0xff; 6]), XDP_REDIRECT, "a broadcast is everyone's");
        heart.beat(dead);
        assert_eq!(verdict(other), XDP_PASS, "no turn for twice as long as may be");
        heart.beat(alive);
        heart.take(false);
        assert_eq!(verdict(other), XDP_PASS, "bypass");
        heart.take(true);
        drop(socket);
        assert_eq!(verdict(other), XDP_PASS, "the socket is closed");

        let counts =
            Counts { taken: 51, aside: 2, stale: 2, to_box: 1, no_socket: 1, ..Counts::default() };
        assert_eq!(heart.counts(), counts);
    }

    const BROADCAST: [u8; 6] = [0xff; 6];
    const GROUP: [u8; 6] = [0x33, 0x33, 0xff, 0x12, 0x34, 0x56];
    const V4: [u8; 4] = [10, 0, 0, 1];
    const V6: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xab, 0x12, 0x34, 0x56];

    fn frame(mac: [u8; 6], kind: [u8; 2], len: usize, parts: &[(usize, &[u8])]) -> Vec<u8> {
        let mut frame = vec![0x11; len];
        frame[..6].copy_from_slice(&mac);
        frame[12..14].copy_from_slice(&kind);
        for (at, bytes) in parts {
            frame[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        frame
    }

    fn arp(mac: [u8; 6], target: [u8; 4], len: usize) -> Vec<u8> {
        frame(mac, [0x08, 0x06], len, &[(38, &target)])
    }

    fn ipv4(mac: [u8; 6], start: u8, target: [u8; 4]) -> Vec<u8> {
        frame(mac, [0x08, 0x00], 1_514, &[(14, &[start]), (30, &target)])
    }

    fn ipv6(mac: [u8; 6], next: u8, target: [u8; 16]) -> Vec<u8> {
        frame(mac, [0x86, 0xdd], 1_514, &[(14, &[0x60]), (20, &[next]), (38, &target)])
    }

    fn solicitation(group: [u8; 6], next: u8, kind: u8, len: usize) -> Vec<u8> {
        frame(group, [0x86, 0xdd], len, &[(14, &[0x60]), (20, &[next]), (54, &[kind])])
    }

    /// A program that lives and takes, of a box with these addresses and more.
    fn of_a_box() -> Option<(Program, OwnedFd, Heart)> {
        let (program, socket) = loaded()?;
        let heart = program.heart().unwrap();
        heart.take(true);
        heart.beat(now_ns() + 3_600_000 * NS_PER_MS);
        let more = [[9, 9, 9, 9].into(), V6.into(), V4.into(), [7; 16].into()];
        assert_eq!(heart.own_addresses(&more), 0);
        Some((program, socket, heart))
    }

    #[test]
    fn who_looks_for_the_box_finds_it() {
        let Some((program, _socket, heart)) = of_a_box() else { return };
        let verdict = |frame: &[u8]| program.verdict(frame).unwrap().cast_signed();
        assert_eq!(verdict(&arp(BROADCAST, V4, 60)), XDP_REDIRECT, "without a MAC it has no face");
        heart.own_mac(OWN);
        for (mac, len) in [(BROADCAST, 42), (BROADCAST, 60), (OWN, 64)] {
            assert_eq!(verdict(&arp(mac, V4, len)), XDP_PASS, "{mac:x?} {len}");
        }
        assert_eq!(verdict(&arp(BROADCAST, [9; 4], 60)), XDP_PASS);
        let others = [
            (arp(BROADCAST, [10, 0, 0, 2], 60), "for another host"),
            (arp(BROADCAST, V4, 42)[..41].to_vec(), "a byte is missing"),
            (arp(BROADCAST, V4, 65), "it carries more than a question"),
            (arp(BROADCAST, V4, 1_514), "it carries more than a question"),
            (arp([2; 6], V4, 60), "to another host"),
            (arp(BROADCAST, [0; 4], 60), "for nobody"),
            (frame(BROADCAST, [0x08, 0x00], 60, &[(38, &V4)]), "IPv4 to everyone"),
        ];
        for (frame, why) in others {
            assert_eq!(verdict(&frame), XDP_REDIRECT, "{why}");
        }
        assert_eq!(verdict(&solicitation(GROUP, 58, 135, 86)), XDP_PASS);
        assert_eq!(verdict(&solicitation([0x33, 0x33, 0xff, 7, 7, 7], 58, 135, 86)), XDP_PASS);
        // and whom the box looks for answers it, and asks whether it is still there
        assert_eq!(verdict(&solicitation(OWN, 58, 136, 86)), XDP_PASS);
        assert_eq!(verdict(&solicitation(OWN, 58, 135, 86)), XDP_PASS);
        let others = [
            (solicitation([0x33, 0x33, 0xff, 0x12, 0x34, 0x57], 58, 135, 86), "another group"),
            (solicitation(GROUP, 17, 135, 86), "UDP to the group"),
            (solicitation(GROUP, 58, 128, 86), "a ping to the group"),
            (solicitation(GROUP, 58, 135, 97), "it carries more than a question"),
            (solicitation([0; 6], 58, 135, 86), "to nobody"),
            (solicitation(OWN, 58, 136, 97), "it carries more than an answer"),
            (solicitation(OWN, 58, 128, 86), "a ping to another address"),
            (solicitation(OWN, 17, 136, 86), "UDP to another address"),
        ];
        for (frame, why) in others {
            assert_eq!(verdict(&frame), XDP_REDIRECT, "{why}");
        }
        assert_eq!(verdict(&frame(GROUP, [0x08, 0x00], 60, &[])), XDP_REDIRECT);
        let Counts { to_box, arp: asked, neighbour, asked_too_often, .. } = heart.counts();
        assert_eq!((to_box, asked, neighbour, asked_too_often), (0, 4, 4, 0));
        heart.own_addresses(&[]);
        for frame in [arp(BROADCAST, V4, 60), arp(BROADCAST, [0; 4], 60)] {
            assert_eq!(verdict(&frame), XDP_REDIRECT);
        }
        assert_eq!(verdict(&solicitation(GROUP, 58, 135, 86)), XDP_REDIRECT);
        assert_eq!(verdict(&solicitation([0; 6], 58, 135, 86)), XDP_REDIRECT);
    }

    #[test]
    fn what_the_kernel_would_forward_is_not_for_the_box() {
        let Some((program, _socket, heart)) = of_a_box() else { return };
        heart.own_mac(OWN);
        let verdict = |frame: &[u8]| program.verdict(frame).unwrap().cast_signed();
        let to_box = [ipv4(OWN, 0x45, V4), ipv6(OWN, 6, V6), ipv6(OWN, 17, [7; 16])];
        for frame in &to_box {
            assert_eq!(verdict(frame), XDP_PASS);
        }
        let mut half = V6;
        half[15] ^= 1;
        let others = [
            (ipv4(OWN, 0x45, [192, 0, 2, 1]), "through the box"),
            (ipv4([2; 6], 0x45, V4), "to another MAC"),
            (ipv4(OWN, 0x46, V4), "a route may stand in the options"),
            (ipv4(OWN, 0x45, V4)[..33].to_vec(), "cut short"),
            (ipv4(OWN, 0x45, [0; 4]), "to nobody"),
            (ipv6(OWN, 6, [3; 16]), "through the box"),
            (ipv6(OWN, 6, half), "through the box"),
            (ipv6(OWN, 43, V6), "a route leads on"),
            (ipv6(OWN, 0, V6), "a route may lead on"),
            (ipv6(OWN, 60, V6), "a route may lead on"),
            (ipv6(OWN, 6, [0; 16]), "to nobody"),
            (frame(OWN, [0x88, 0xb5], 1_514, &[]), "of no type that the box knows"),
            (frame(OWN, [0x81, 0x00], 1_514, &[(16, &[0x08, 0x00])]), "with a tag"),
        ];
        for (frame, why) in &others {
            assert_eq!(verdict(frame), XDP_REDIRECT, "{why}");
        }
        let counts = heart.counts();
        assert_eq!((counts.to_box, counts.taken), (to_box.len() as u64, others.len() as u64));
        let named = counts.named();
        assert!(named.contains(&("to-box", 3)));
        assert_eq!(named.map(|(_, count)| count).iter().sum::<u64>(), counts.taken + 3);
    }

    #[test]
    fn who_asks_too_often_is_shaped_like_any_other() {
        let Some((program, _socket, heart)) = of_a_box() else { return };
        heart.own_mac(OWN);
        let begun = now_ns();
        let kinds = [arp(BROADCAST, V4, 60), solicitation(GROUP, 58, 135, 86)];
        for frame in &kinds {
            for _ in 0..5 * XDP_ASKED_PER_SEC {
                program.verdict(frame).unwrap();
            }
        }
        let Counts { arp, neighbour, asked_too_often, taken, .. } = heart.counts();
        // a machine that is slow sees another second, or several
        let seconds = 1 + (now_ns() - begun).div_ceil(1_000 * NS_PER_MS);
        for passed in [arp, neighbour] {
            assert!((XDP_ASKED_PER_SEC..=XDP_ASKED_PER_SEC * seconds).contains(&passed));
        }
        assert_eq!(arp + neighbour + asked_too_often, 10 * XDP_ASKED_PER_SEC);
        assert_eq!(asked_too_often, taken);
        // nor can the box be made a mirror, by who writes an address of the other side as his own
        let begun = now_ns();
        let mirror = ipv4(OWN, 0x45, [10, 0, 0, 1]);
        for _ in 0..5 * XDP_TO_BOX_PER_SEC {
            program.verdict(&mirror).unwrap();
        }
        let seconds = 1 + (now_ns() - begun).div_ceil(1_000 * NS_PER_MS);
        let passed = heart.counts().to_box;
        assert!((XDP_TO_BOX_PER_SEC..=XDP_TO_BOX_PER_SEC * seconds).contains(&passed), "{passed}");
        // a second later it is found again
        let page = Page::map(&program.page, PAGE_WORDS).unwrap();
        let second = page.word(word::QUEUES + word::ARP_SECOND);
        second.fetch_sub(1_000 * NS_PER_MS, Ordering::Relaxed);
        assert_eq!(program.verdict(&kinds[0]).unwrap().cast_signed(), XDP_PASS);
    }

    #[test]
    fn what_reaches_the_bridge_itself_is_for_the_box_or_goes_nowhere() {
        if of_a_box().is_none() {
            return;
        }
        let program = Program::of_bridge().unwrap();
        let heart = program.heart().unwrap();
        let verdict = |frame: &[u8]| program.verdict(frame).unwrap().cast_signed();
        let group = [0x01, 0, 0x5e, 0, 0, 0xfb];
        let to_box = ipv4(OWN, 0x45, [10, 0, 0, 1]);
        let behind = ipv4(OWN, 0x45, [192, 0, 2, 1]);
        assert_eq!(verdict(&behind), XDP_PASS, "weir does not turn");
        heart.take(true);
        heart.beat(now_ns() + 3_600_000 * NS_PER_MS);
        for frame in [&to_box, &behind, &ipv4(group, 0x45, [224, 0, 0, 251])] {
            assert_eq!(verdict(frame), XDP_DROP, "a bridge without an address");
        }
        heart.own_mac(OWN);
        heart.own_addresses(&[[10, 0, 0, 1].into()]);
        assert_eq!((verdict(&to_box), verdict(&behind)), (XDP_PASS, XDP_DROP));
        assert_eq!(verdict(&ipv4(group, 0x45, [224, 0, 0, 251])), XDP_PASS);
        for _ in 0..5 * XDP_TO_BOX_PER_SEC {
            verdict(&to_box);
        }
        assert_eq!((verdict(&to_box), verdict(&behind)), (XDP_DROP, XDP_DROP), "too often");
    }

    #[test]
    fn more_addresses_than_there_is_room_for_are_told() {
        let Some((program, _socket, heart)) = of_a_box() else { return };
        heart.own_mac(OWN);
        let v4 = |last: u8| [10, 0, 0, last];
        let addresses: Vec<IpAddr> = (1..=6).map(|last| v4(last).into()).collect();
        assert_eq!(heart.own_addresses(&addresses), 2);
        let verdict = |frame: &[u8]| program.verdict(frame).unwrap().cast_signed();
        let found = (1..=6).map(|last| verdict(&ipv4(OWN, 0x45, v4(last))) == XDP_PASS);
        assert_eq!(found.collect::<Vec<_>>(), [true, true, true, true, false, false]);
    }

    #[test]
    fn the_verifier_is_quoted_when_it_refuses() {
        let Some(_) = loaded() else { return };
        let mut at = crate::assembler::Assembler::default();
        let (why, log) = kernel::load(&at.exit().finish()).unwrap_err();
        let text = XdpError::refused(why, log).to_string();
        assert!(text.contains("R0 !read_ok"), "{text}");
    }

    /// `cargo test -p weir-xdp --release -- --ignored --nocapture cost`
    #[test]
    #[ignore = "a measurement"]
    fn cost() {
        let Some((program, _socket)) = loaded() else { return };
        let heart = program.heart().unwrap();
        let frame = frame_to([2; 6]);
        let best = |what: &str| {
            let runs =
                (0..7).map(|_| kernel::test_run(&program.code, &frame, 1_000_000).unwrap().1);
            println!("{what}: {} ns", runs.min().unwrap());
        };
        best("bypass");
        heart.take(true);
        best("stale");
        heart.beat(now_ns() + 3_600_000 * NS_PER_MS);
        best("takes");
        heart.own_mac(OWN);
        heart.own_addresses(&[V4.into(), [1; 16].into()]);
        best("takes, with addresses of its own");
    }
}
