//! The helper itself: one thread that answers the daemon, and in between looks at its pulse where
//! that is the guard's work. It ends when the daemon does, however that was.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use weir_io::netdev::{self, Netdev};
use weir_io::page::Page;
use weir_io::privileges::{self, Capabilities, Capability};
use weir_io::signals::Signals;
use weir_io::wait::now;
use weir_packet::{BySide, Side};
use weir_units::Span;

use super::open;
use super::{
    Args, Ask, Message, Number, Said, Unanswered, Undo, ends_within, is_readable, receive, send,
    undo_path,
};
use crate::Via;
use crate::bypass::{self, Bridge};
use crate::guard::{Duty, LOOK, Watcher};
use crate::log::{print_aside, problem, say};

/// How long a guard may take to end that is replaced.
const GUARD_ENDS: Span = Span::from_ms(100);

/// How a table of subscribers ends that the policy did not name when weir was started.
const TABLE: &str = "csv";

/// What an answer is made of.
type Given = (Said, Vec<OwnedFd>);

/// The helper itself. Its standard input is the socket to the daemon.
#[must_use]
pub fn run(args: &Args) -> ExitCode {
    // the daemon decides when all ends, not a terminal or a service manager
    let _ = privileges::own_session();
    let signals = Signals::block();
    // how it is called where only the name of a process is shown
    let _ = std::fs::write("/proc/self/comm", "weir-helper");
    let Ok(socket) = std::io::stdin().as_fd().try_clone_to_owned() else {
        return problem("weir starts its helper itself");
    };
    let [lan, wan] = &args.ports[..] else { return problem("weir starts its helper itself") };
    let names = BySide { lan: lan.clone(), wan: wan.clone() };
    let undo = Undo::open(undo_path(&args.socket));
    let door = inode(&args.socket);
    let mut helper = Serving {
        args,
        names,
        bridge: None,
        watcher: None,
        guard: None,
        undo,
        door,
        carried: false,
        was_there: false,
        opened: BySide::default(),
        via: args.io,
    };
    if let Err(why) = give_up(args) {
        say(&format!("weir helper: {why}"));
        return ExitCode::from(2);
    }
    drop(signals);
    // a thread has the rights of the one that makes it
    print_aside();
    helper.serve(&socket);
    helper.end();
    ExitCode::SUCCESS
}

/// Keeps what opening a port takes, and starting a guard. Files: those of the policy to read, what
/// the kernel says of interfaces; to write, what it lets be set of bridges and the network, and the
/// link's own beside its socket.
fn give_up(args: &Args) -> Result<(), String> {
    let rights = [Capability::NetRaw, Capability::NetAdmin, Capability::Bpf, Capability::SysNice];
    let had =
        Capabilities::effective().map_err(|e| format!("its privileges cannot be read: {e}"))?;
    let rights: Vec<Capability> = rights.into_iter().filter(|one| had.has(*one)).collect();
    let folder = |file: &'_ Path| match file.parent() {
        // a bare file name lies in the folder that we are in
        Some(folder) if folder.as_os_str().is_empty() => PathBuf::from("."),
        Some(folder) => folder.to_owned(),
        None => PathBuf::from("/"),
    };
    // where a link leads now, too
    let real = args.file.iter().filter_map(|file| std::fs::canonicalize(file).ok());
    let policy: Vec<PathBuf> =
        args.file.iter().cloned().chain(real).map(|file| folder(&file)).collect();
    // programs are found, and their libraries, wherever the system keeps them
    const PROGRAMS: [&str; 9] = [
        "/proc",
        "/sys",
        "/proc/self/exe",
        "/usr",
        "/bin",
        "/sbin",
        "/lib",
        "/lib64",
        "/etc/ld.so.cache",
    ];
    let read = PROGRAMS.map(Path::new);
    let read: Vec<&Path> = read.into_iter().chain(policy.iter().map(PathBuf::as_path)).collect();
    let beside = args.socket.parent().unwrap_or(Path::new("/"));
    let written = ["/proc/sys/net", "/sys/devices/virtual/net", "/dev/null"].map(Path::new);
    let written: Vec<&Path> = written.into_iter().chain([beside]).collect();
    // where the kernel cannot confine it, the daemon says so for both
    privileges::confine_but_run(&read, &written)
        .map_err(|error| format!("it cannot give up access to files: {error}"))?;
    privileges::drop_to(Capabilities::of(&rights))
        .map_err(|error| format!("it cannot give up privileges: {error}"))?;
    // a superuser's programs have them anyway
    if !std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0) {
        let guards = Capabilities::of(&[Capability::NetAdmin]);
        privileges::pass_on(guards)
            .map_err(|e| format!("it cannot give the guard its privileges: {e}"))?;
    }
    Ok(())
}

pub(super) struct Serving<'a> {
    pub(super) args: &'a Args,
    pub(super) names: BySide<String>,
    pub(super) bridge: Option<Bridge>,
    /// Looks at the daemon's pulse while the guard does not.
    watcher: Option<Watcher>,
    pub(super) guard: Option<Child>,
    pub(super) undo: Undo,
    /// The link's socket as it was when the helper was started.
    door: Option<u64>,
    /// Frames have come to weir.
    carried: bool,
    /// The ports were in the bridge already.
    was_there: bool,
    /// What the interfaces were when they were opened last: number and MTU.
    pub(super) opened: BySide<Option<(u32, usize)>>,
    pub(super) via: Via,
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|file| file.ino())
}

impl Serving<'_> {
    fn serve(&mut self, socket: &OwnedFd) {
        loop {
            let span = self.watcher.is_some().then_some(LOOK);
            if let Some(watcher) = &mut self.watcher {
                watcher.look(now());
            }
            if !is_readable(socket.as_fd(), span) {
                continue;
            }
            let Some(request) = receive(socket.as_fd()) else { return };
            let Number { number } = request.read().unwrap_or_default();
            let (said, fds) = match self.answer(request) {
                Ok(given) => given,
                Err(against) => (Said { against, ..Said::default() }, Vec::new()),
            };
            let said = Said { number, ..said };
            let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
            match send(socket.as_fd(), &said, &fds) {
                // a daemon that does not read its answers asks again
                Ok(()) | Err(Unanswered::Late) => {}
                Err(Unanswered::Gone) => return,
            }
        }
    }

    fn answer(&mut self, request: Message) -> Result<Given, Vec<String>> {
        let one = |why: String| vec![why];
        let done = || (Said::default(), Vec::new());
        match request.read() {
            None => Err(one("the helper does not know this request".to_owned())),
            Some(Ask::Begin) => self.begin(),
            Some(Ask::Open { side, via }) => self.open(side, via),
            Some(Ask::Join { side, via }) => match self.join(side, via) {
                Ok(note) => {
                    let notes = note.into_iter().collect();
                    Ok((Said { notes, ..Said::default() }, Vec::new()))
                }
                Err(why) => Err(one(why)),
            },
            Some(Ask::Face) => match &self.bridge {
                Some(bridge) => {
                    open::face(&bridge.name).map(|fds| (Said::default(), fds)).map_err(one)
                }
                None => Err(one("there is no bridge".to_owned())),
            },
            Some(Ask::Guard) => self.guard(request.fds).map_err(one),
            Some(Ask::Carry) => {
                self.carried = true;
                Ok(done())
            }
            Some(Ask::Look) => {
                let look = Some(self.look());
                Ok((Said { look, ..Said::default() }, Vec::new()))
            }
            Some(Ask::Read { file }) => self.read(&file).map_err(one),
            Some(Ask::Leave) => {
                // now, for who ends us may not wait: the bridge goes on carrying
                self.undo.leave();
                Ok(done())
            }
        }
    }

    fn begin(&mut self) -> Result<Given, Vec<String>> {
        let names = self.names.as_ref().map(String::as_str).both();
        let (netdevs, notes) = open::examine(names, &mut self.undo)?;
        let one = |why: String| vec![why];
        if self.args.bypass {
            self.was_there = netdevs.iter().any(|netdev| netdev.master.is_some());
            let bridge = Bridge::over(&self.args.link, &netdevs).map_err(one)?;
            if !bridge.is_theirs {
                self.undo.bridge(&bridge.name);
                bridge.make_silent().map_err(one)?;
            }
            self.bridge = Some(bridge);
        } else {
            self.leave_bridges(&netdevs).map_err(one)?;
        }
        let bridge = self.bridge.as_ref().map(|bridge| bridge.name.clone());
        Ok((Said { notes, bridge, ..Said::default() }, Vec::new()))
    }

    /// Without a way around weir its ports lie in no bridge: one that an earlier weir has left
    /// there would carry the traffic of a dead one.
    fn leave_bridges(&mut self, netdevs: &[Netdev; 2]) -> Result<(), String> {
        let name = bypass::name_for(&self.args.link);
        if let Ok(bridge) = netdev::index_of(&name) {
            let ours = Bridge { name: name.clone(), is_theirs: false };
            let strangers = ours.strangers([&netdevs[0].name, &netdevs[1].name])?;
            for netdev in netdevs.iter().filter(|netdev| netdev.master == Some(bridge)) {
                netdev::remove_from_bridge(&netdev.name)
                    .map_err(|e| format!("{} cannot leave the bridge {name}: {e}", netdev.name))?;
            }
            if strangers.is_empty() {
                self.undo.remove_bridge(&name);
            }
        }
        for netdev in netdevs {
            let now = netdev::facts(&netdev.name).map_err(|e| format!("{}: {e}", netdev.name))?;
            if now.master.is_some() {
                return Err(format!(
                    "{0} is in a bridge, which would forward traffic unshaped if weir dies; run \
                     `ip link set {0} nomaster`, or omit --no-bypass",
                    netdev.name
                ));
            }
        }
        Ok(())
    }

    fn open(&mut self, side: Side, via: Via) -> Result<Given, Vec<String>> {
        let mut notes = Vec::new();
        let netdev = open::usable(&self.names[side], &mut notes, &mut self.undo)?;
        let opened = match via {
            Via::Packet => open::packet(&netdev),
            Via::Xdp | Via::Auto => {
                let whole = open::tags_are_whole(&netdev, self.args.io);
                whole.and_then(|note| {
                    notes.extend(note);
                    open::xdp(&netdev)
                })
            }
        };
        let (opened, fds) = opened.map_err(|why| vec![why])?;
        self.opened[side] = Some((opened.index, opened.mtu));
        self.via = via;
        Ok((Said { notes, opened: Some(opened), ..Said::default() }, fds))
    }

    /// Returns what the operator should know.
    fn join(&mut self, side: Side, via: Via) -> Result<Option<String>, String> {
        let name = &self.names[side];
        let Some(bridge) = &self.bridge else {
            if netdev::facts(name).is_ok_and(|netdev| !netdev.promiscuous) {
                self.undo.promiscuous(name);
            }
            return netdev::set_promiscuous(name, true)
                .map(|()| None)
                .map_err(|e| format!("{name}: {e}"));
        };
        bridge.take_in(name)?;
        if bridge.is_theirs {
            self.undo.isolated(name);
        }
        let isolate = |yes| netdev::set_isolated(name, yes).map_err(|e| format!("{name}: {e}"));
        match via {
            // the program decides frame by frame; what a weir with packet sockets has left there
            // would make the bridge a cut
            Via::Xdp | Via::Auto => isolate(false)?,
            // a port that has come back while weir carries
            Via::Packet if self.is_carried_by_weir() => isolate(true)?,
            Via::Packet => {}
        }
        let is_last = side == Side::Wan && !bridge.is_theirs;
        Ok(is_last.then(|| bridge.keep_from_tracking().err()).flatten())
    }

    pub(super) fn is_carried_by_weir(&self) -> bool {
        self.watcher.as_ref().is_some_and(|watcher| !watcher.is_bypassed())
    }

    /// Starts a guard in place of the one that was there.
    fn guard(&mut self, fds: Vec<OwnedFd>) -> Result<Given, String> {
        let page = fds.into_iter().next().ok_or("a guard needs a page")?;
        let (end, life) = std::io::pipe().map_err(|e| format!("no pipe for a guard: {e}"))?;
        if let Some(guard) = &mut self.guard {
            let _ = guard.kill();
            ends_within(guard, GUARD_ENDS);
        }
        // this copy is inherited, all others are not
        let inherited = rustix::io::dup(&page).map_err(|e| format!("no page: {e}"))?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weir").arg("guard");
        command
            .args(["--page", &inherited.as_raw_fd().to_string(), "--ports"])
            .args(self.names.values());
        command.stdin(Stdio::from(end)).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("the guard cannot be started: {e}"))?;
        self.guard = Some(child);
        let page = Page::of(page).map_err(|e| format!("no page: {e}"))?;
        self.watcher = Some(Watcher::new(page, self.names.clone().both().to_vec(), Duty::Helper));
        Ok((Said::default(), vec![life.into()]))
    }

    /// A file of the policy: one that the link was started with, or a table in the same folder. The
    /// daemon may be anybody's by now, and the folder may be /etc.
    fn read(&self, path: &Path) -> Result<Given, String> {
        let is_known = self.args.file.iter().any(|known| {
            known == path
                || (known.parent() == path.parent() && path.extension() == Some(TABLE.as_ref()))
        });
        if !is_known || path.components().any(|part| part == Component::ParentDir) {
            return Err(
                "weir reads a new table only if it is beside the policy and ends in .csv; \
                restart weir to read this one"
                    .to_owned(),
            );
        }
        // a pipe without a writer must not hold up who watches the daemon
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
            .open(path);
        let file: File = file.map_err(|error| crate::files::why(&error))?;
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return Err("it is not a file".to_owned());
        }
        Ok((Said::default(), vec![file.into()]))
    }

    /// A start that came to nothing leaves what it found: a bridge of an earlier weir goes on
    /// carrying, one that was made for this start does not begin to.
    fn take_back(&mut self) {
        if self.was_there {
            self.undo.leave();
        } else {
            self.undo.remove();
        }
    }

    /// The daemon has gone: let the bridge carry, whatever the guard does.
    fn end(mut self) {
        match &mut self.watcher {
            Some(watcher) => watcher.open_the_way(),
            None if self.bridge.is_some() => {
                for name in self.names.values() {
                    // where AF_XDP was used there is nothing to undo
                    let _ = netdev::set_isolated(name, false);
                }
            }
            None => {}
        }
        if !self.carried {
            self.take_back();
        }
        // the daemon may not; another weir may have made one of the same name meanwhile, and been
        // given the same number
        let is_ours = self.door.is_some() && inode(&self.args.socket) == self.door;
        if is_ours && UnixStream::connect(&self.args.socket).is_err() {
            let _ = std::fs::remove_file(&self.args.socket);
        }
        if let Some(mut guard) = self.guard {
            ends_within(&mut guard, GUARD_ENDS);
        }
    }
}
