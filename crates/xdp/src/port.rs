//! A program loaded for one port, and the attachment that lasts as long as someone holds it.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use weir_units::limits::XSK_QUEUES;

use crate::XdpError;
use crate::error::Step;
use crate::heart::Heart;
use crate::kernel::{self, Page};
use crate::program::{PAGE_WORDS, program};

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
    /// Loads a program with room for the sockets of so many queues. It stands aside until its
    /// [`Heart`] says otherwise.
    pub fn load(queues: u32) -> Result<Program, XdpError> {
        let failed = |step| move |why| XdpError::new(step, why);
        let queues = queues.clamp(1, u32::try_from(XSK_QUEUES).unwrap_or(u32::MAX));
        let page = kernel::shared_page(PAGE_WORDS).map_err(failed(Step::Map))?;
        let sockets = kernel::socket_map(queues).map_err(failed(Step::Map))?;
        // tried now, so that `heart` is known to work
        Page::map(&page, PAGE_WORDS).map_err(failed(Step::Share))?;
        let code = kernel::load(&program(page.as_raw_fd(), sockets.as_raw_fd()))
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
        let page = Page::map(&self.page, PAGE_WORDS);
        page.map(Heart::over).map_err(|why: io::Error| XdpError::new(Step::Share, why))
    }

    #[cfg(test)]
    fn verdict(&self, frame: &[u8]) -> io::Result<u32> {
        kernel::test_run(&self.code, frame, 1).map(|(verdict, _)| verdict)
    }
}

impl Attached {
    /// Where it runs now: native or generic.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Why it is not in the driver, if it should have been.
    #[must_use]
    pub fn note(&self) -> Option<&XdpError> {
        self.note.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;
    use crate::program::{XDP_PASS, XDP_REDIRECT};

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
        assert!(fd >= 0, "{}", io::Error::last_os_error());
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
        assert_eq!((verdict(OWN), verdict(other)), (XDP_PASS, XDP_REDIRECT));
        for bit in 0..48 {
            let mut near = OWN;
            near[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(verdict(near), XDP_REDIRECT, "{near:x?} is not the box's");
        }
        heart.own_mac([0xff; 6]);
        assert_eq!(verdict([0xff; 6]), XDP_REDIRECT, "a broadcast is everyone's");
        heart.beat(dead);
        assert_eq!(verdict(other), XDP_PASS, "no turn for twice as long as may be");
        heart.beat(alive);
        heart.take(false);
        assert_eq!(verdict(other), XDP_PASS, "stands aside");
        heart.take(true);
        drop(socket);
        assert_eq!(verdict(other), XDP_PASS, "the socket is closed");

        let counts = Counts { taken: 51, aside: 2, stale: 2, to_box: 1, no_socket: 1 };
        assert_eq!(heart.counts(), counts);
    }

    #[test]
    fn who_looks_for_the_box_finds_it() {
        let Some((program, _socket)) = loaded() else { return };
        let heart = program.heart().unwrap();
        heart.take(true);
        heart.beat(now_ns() + 3_600_000 * NS_PER_MS);
        let verdict = |frame: &[u8]| program.verdict(frame).unwrap().cast_signed();
        let arp = |target: [u8; 4]| {
            let mut frame = frame_to([0xff; 6]);
            frame[12..14].copy_from_slice(&[0x08, 0x06]);
            frame[38..42].copy_from_slice(&target);
            frame
        };
        let group = [0x33, 0x33, 0xff, 0x12, 0x34, 0x56];
        heart.own_ipv4([10, 0, 0, 1].into());
        heart.own_ipv6([0xfe80, 0, 0, 0, 0, 0, 0xab12, 0x3456].into());
        assert_eq!(verdict(&arp([10, 0, 0, 1])), XDP_REDIRECT, "a box without a MAC has no face");
        heart.own_mac(OWN);
        assert_eq!(verdict(&arp([10, 0, 0, 1])), XDP_PASS);
        assert_eq!(verdict(&arp([10, 0, 0, 2])), XDP_REDIRECT);
        assert_eq!(verdict(&arp([10, 0, 0, 1])[..41]), XDP_REDIRECT, "a byte is missing");
        let mut no_arp = arp([10, 0, 0, 1]);
        no_arp[13] = 0;
        assert_eq!(verdict(&no_arp), XDP_REDIRECT, "IPv4 to everyone");
        assert_eq!(verdict(&frame_to(group)), XDP_PASS);
        assert_eq!(verdict(&frame_to([0x33, 0x33, 0xff, 0x12, 0x34, 0x57])), XDP_REDIRECT);
        heart.own_ipv6([0; 16].into());
        heart.own_ipv4([0; 4].into());
        assert_eq!(verdict(&frame_to(group)), XDP_REDIRECT);
        assert_eq!(verdict(&arp([0; 4])), XDP_REDIRECT);
        assert_eq!(verdict(&frame_to([0; 6])), XDP_REDIRECT);
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
        best("stands aside");
        heart.take(true);
        best("stale");
        heart.beat(now_ns() + 3_600_000 * NS_PER_MS);
        best("takes");
        heart.own_mac(OWN);
        heart.own_ipv4([10, 0, 0, 1].into());
        heart.own_ipv6([1; 16].into());
        best("takes, with addresses of its own");
    }
}
