//! What joins the two sides in the box: weir, or the kernel's bridge for the same figures without
//! weir. Whatever is asked of weir here goes through its own commands, as an operator would.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use serde::de::DeserializeOwned;
use weir_control::{Counters, Ports, RowKind, Status, Tree};
use weir_units::Span;

use super::clock;
use super::family;
use super::world::{Place, World};

/// What joins the two sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Middle {
    /// The kernel's bridge: no policy, nothing to kill.
    Bridge,
    /// weir with AF_XDP.
    Xdp,
    /// weir with packet sockets.
    Packet,
}

impl Middle {
    /// All of them.
    pub const ALL: [Middle; 3] = [Middle::Bridge, Middle::Xdp, Middle::Packet];

    /// As it is said on the command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Middle::Bridge => "bridge",
            Middle::Xdp => "xdp",
            Middle::Packet => "packet",
        }
    }

    /// What it is, for help.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Middle::Bridge => "The kernel's bridge: no policy, nothing to kill",
            Middle::Xdp => "weir with AF_XDP",
            Middle::Packet => "weir with packet sockets",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Middle::Bridge => "bridge",
            Middle::Xdp => "weir, AF_XDP",
            Middle::Packet => "weir, packet sockets",
        }
    }

    fn io(self) -> Option<&'static str> {
        match self {
            Middle::Bridge => None,
            Middle::Xdp => Some("xdp"),
            Middle::Packet => Some("packet"),
        }
    }
}

/// A signal that a daemon cannot refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Kill,
    Stop,
    Continue,
    /// To end in good order.
    End,
}

/// The middle at work in a box.
pub(crate) struct Joined<'a> {
    box_: &'a Place,
    folder: &'a Path,
    pub(crate) middle: Middle,
    how: Start,
    daemon: Option<Child>,
}

/// How `weir run` is started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The binary.
    pub(crate) weir: PathBuf,
    /// What its policy, its socket and its history are called, where a world has two links.
    pub(crate) name: String,
    /// Further arguments.
    pub(crate) arguments: Vec<String>,
}

/// One class and direction of weir's books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Book {
    pub(crate) class: String,
    pub(crate) way: &'static str,
    pub(crate) leaf: bool,
    pub(crate) counters: Counters,
}

/// Memory of a process in KiB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    pub(crate) now: u64,
    /// The most that it ever was, as the kernel has seen it.
    pub(crate) most: u64,
}

/// What a daemon may take until it answers.
const READY: Span = Span::from_secs(15);
const ASK_AGAIN: Span = Span::from_ms(50);

impl<'a> Joined<'a> {
    /// Joins the two sides under a policy; returns when frames pass.
    pub(crate) fn start(world: &'a World, middle: Middle, policy: &str) -> Result<Self, String> {
        let mut joined = Joined::prepare(world, middle, policy, Start::plain()?)?;
        joined.run()?;
        Ok(joined)
    }

    /// The same, but nothing is started yet.
    pub(crate) fn prepare(
        world: &'a World,
        middle: Middle,
        policy: &str,
        how: Start,
    ) -> Result<Self, String> {
        Joined::at(&world.box_, &world.folder, middle, policy, how)
    }

    /// The same for a box that stands somewhere, with its files in a folder.
    pub(crate) fn at(
        box_: &'a Place,
        folder: &'a Path,
        middle: Middle,
        policy: &str,
        how: Start,
    ) -> Result<Self, String> {
        let joined = Joined { box_, folder, middle, how, daemon: None };
        joined.write(policy)?;
        Ok(joined)
    }

    /// Starts what is not running, under the policy as it was last.
    pub(crate) fn run(&mut self) -> Result<(), String> {
        let Some(io) = self.middle.io() else {
            return self.box_.bridge("br0", &["eth1", "eth2"]);
        };
        let mut command = self.box_.command(&self.how.weir.display().to_string());
        command.args(self.run_arguments(io));
        let failed = |e| format!("{}: {e}", self.folder.display());
        let said = fs::File::options().create(true).append(true).open(self.file("said"));
        let said = said.map_err(failed)?;
        let again = said.try_clone().map_err(failed)?;
        self.start_by(command.stdin(Stdio::null()).stdout(said).stderr(again))
    }

    /// Starts the daemon by a command of the caller's, which has [`Self::run_line`] in it.
    pub(crate) fn start_by(&mut self, command: &mut Command) -> Result<(), String> {
        self.daemon = Some(command.spawn().map_err(|e| format!("cannot start weir: {e}"))?);
        self.wait()
    }

    /// `weir run` with all its arguments; the bridge has none.
    pub(crate) fn run_line(&self) -> Vec<String> {
        let arguments = self.middle.io().map(|io| self.run_arguments(io)).unwrap_or_default();
        std::iter::once(self.how.weir.display().to_string()).chain(arguments).collect()
    }

    fn run_arguments(&self, io: &str) -> Vec<String> {
        let path = |path: PathBuf| path.display().to_string();
        let mut words = ["run", "--io", io, "--config"].map(str::to_owned).to_vec();
        words.extend([path(self.policy()), "--socket".to_owned(), path(self.socket())]);
        words.extend(["--state".to_owned(), path(self.file("state"))]);
        words.extend(self.how.arguments.iter().cloned());
        words
    }

    /// Returns when the daemon answers, or says why it does not.
    fn wait(&mut self) -> Result<(), String> {
        let end = clock::now() + READY;
        loop {
            if self.status().is_ok() {
                return Ok(());
            }
            let ended = self.daemon.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || clock::now() > end {
                let said = self.said();
                return Err(format!("`weir run` does not answer; it said:\n{said}"));
            }
            clock::sleep(ASK_AGAIN);
        }
    }

    /// Starts a second daemon on the same interfaces, and tells how that ended: its exit status and
    /// what it said; none if it had not ended in time (and was killed).
    pub(crate) fn second(&self, within: Span) -> Result<Option<(Option<i32>, String)>, String> {
        let Some(io) = self.middle.io() else { return Ok(None) };
        let socket = self.folder.join("second.sock");
        let mut command = self.box_.command(&self.how.weir.display().to_string());
        command.args(["run", "--io", io, "--config"]).arg(self.policy());
        command.arg("--socket").arg(socket).arg("--state").arg(self.folder.join("second"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("cannot start weir: {e}"))?;
        let end = clock::now() + within;
        while clock::now() < end {
            if let Ok(Some(status)) = child.try_wait() {
                let output = child.wait_with_output().map_err(|e| e.to_string())?;
                let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
                return Ok(Some((status.code(), said)));
            }
            clock::sleep(ASK_AGAIN);
        }
        let _ = child.kill();
        let _ = child.wait();
        Ok(None)
    }

    /// The next policy, in effect when this returns. To be swapped for one connection kept open,
    /// should starting a process for each be too slow.
    pub(crate) fn apply(&self, policy: &str) -> Result<(), String> {
        self.write(policy)?;
        match self.middle {
            // the bridge has none; checking it takes the machine about the same
            Middle::Bridge => {
                self.weir(&["check", "--quiet", &self.policy().display().to_string()])
            }
            _ => self.ask(&["apply", &self.policy().display().to_string()]),
        }
        .map(drop)
    }

    pub(crate) fn observe(&self) -> Result<(), String> {
        self.told("observe")
    }

    pub(crate) fn shape(&self) -> Result<(), String> {
        self.told("shape")
    }

    fn told(&self, word: &str) -> Result<(), String> {
        match self.middle {
            Middle::Bridge => Ok(()),
            _ => self.ask(&[word]).map(drop),
        }
    }

    /// The books by class; none of a bridge.
    pub(crate) fn books(&self) -> Result<Option<Vec<Book>>, String> {
        if self.middle == Middle::Bridge {
            return Ok(None);
        }
        self.tree().map(|tree| Some(books(tree)))
    }

    /// What the classes of weir have had.
    pub(crate) fn tree(&self) -> Result<Tree, String> {
        self.told_of("tree")
    }

    /// Frames that weir's ports could not take or send, so that no book has them; none of a bridge.
    pub(crate) fn lost_at_ports(&self) -> Result<Option<u64>, String> {
        if self.middle == Middle::Bridge {
            return Ok(None);
        }
        self.status().map(|status| Some(lost_at(&status.ports)))
    }

    /// `weir status`, also one that lists trouble, for which its exit status is 1.
    pub(crate) fn status(&self) -> Result<Status, String> {
        let (_, printed, said) = self.try_ask(&["status", "--json"])?;
        serde_json::from_str(&printed).map_err(|_| format!("weir status: {said}"))
    }

    /// What `weir status` says is wrong.
    pub(crate) fn trouble(&self) -> Result<Vec<String>, String> {
        self.status().map(|status| status.trouble)
    }

    fn told_of<T: DeserializeOwned>(&self, word: &str) -> Result<T, String> {
        let text = self.ask(&[word, "--json"])?;
        serde_json::from_str(&text).map_err(|e| format!("weir {word}: {e}"))
    }

    /// Memory of the daemon, as the kernel counts it.
    pub(crate) fn memory(&self) -> Option<Memory> {
        let pid = self.daemon.as_ref()?.id();
        let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let of = |name| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse().ok()
        };
        Some(Memory { now: of("VmRSS:")?, most: of("VmHWM:")? })
    }

    /// What the daemon has worked, all its threads together.
    pub(crate) fn worked(&self) -> Option<Span> {
        /// `sysconf(_SC_CLK_TCK)` of every Linux that there is.
        const TICKS_A_SECOND: u64 = 100;
        let pid = self.daemon.as_ref()?.id();
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // behind the name, which may have spaces: state is field 3, times are 14 and 15
        let mut words = text.rsplit_once(')')?.1.split_whitespace().skip(11);
        let mut time = || words.next()?.parse::<u64>().ok();
        let ticks = time()? + time()?;
        Some(Span::from_ms(ticks * 1_000 / TICKS_A_SECOND))
    }

    /// Whether the daemon runs, or there is none to run.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.daemon.as_mut().is_none_or(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// A signal to the daemon alone; a bridge is taken away, as nobody could do worse.
    pub(crate) fn signal(&mut self, signal: Signal) -> Result<(), String> {
        let Some(child) = &mut self.daemon else {
            return match signal {
                Signal::Kill | Signal::End => self.box_.ip("link del br0"),
                Signal::Stop => self.box_.ip("link set br0 down"),
                Signal::Continue => self.box_.ip("link set br0 up"),
            };
        };
        let number = match signal {
            Signal::Kill => "-KILL",
            Signal::Stop => "-STOP",
            Signal::Continue => "-CONT",
            Signal::End => "-TERM",
        };
        let pid = child.id().to_string();
        let done = Command::new("kill").args([number, &pid]).status();
        if signal == Signal::Kill {
            let _ = child.wait();
        }
        match done {
            Ok(status) if status.success() => Ok(()),
            _ => Err(format!("kill {number} {pid} failed")),
        }
    }

    /// Waits until the daemon has ended, and tells whether it did in time.
    pub(crate) fn ends_within(&mut self, span: Span) -> bool {
        let Some(child) = &mut self.daemon else { return true };
        let end = clock::now() + span;
        while matches!(child.try_wait(), Ok(None)) {
            if clock::now() > end {
                return false;
            }
            clock::sleep(Span::from_ms(2));
        }
        self.daemon = None;
        true
    }

    /// After the interfaces were made anew. weir finds them by itself; a bridge must be told.
    pub(crate) fn plugged_again(&self) -> Result<(), String> {
        match self.middle {
            Middle::Bridge => self.box_.ip("link set eth1 master br0"),
            _ => Ok(()),
        }
    }

    /// What the daemon has said, its last lines.
    pub(crate) fn said(&self) -> String {
        let text = fs::read_to_string(self.file("said")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    pub(crate) fn ask(&self, words: &[&str]) -> Result<String, String> {
        let socket = self.socket().display().to_string();
        self.weir(&[words, &["--socket", &socket]].concat())
    }

    /// A command to the daemon: how it ended, what it printed and what it said.
    pub(crate) fn try_ask(&self, words: &[&str]) -> Result<(ExitStatus, String, String), String> {
        let socket = self.socket().display().to_string();
        self.try_weir(&[words, &["--socket", &socket]].concat())
    }

    fn weir(&self, words: &[&str]) -> Result<String, String> {
        match self.try_weir(words)? {
            (status, printed, _) if status.success() => Ok(printed),
            (_, _, said) => Err(format!("`weir {}`: {said}", words.join(" "))),
        }
    }

    fn try_weir(&self, words: &[&str]) -> Result<(ExitStatus, String, String), String> {
        // inside, because some commands look at interfaces too
        let mut command = self.box_.command(&self.how.weir.display().to_string());
        let output = command.args(words).stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("cannot start weir: {e}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok((output.status, text(&output.stdout), text(&output.stderr)))
    }

    pub(crate) fn write(&self, policy: &str) -> Result<(), String> {
        weir_daemon::files::write(&self.policy(), policy)
    }

    pub(crate) fn policy(&self) -> PathBuf {
        self.file("toml")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    /// A file of this link's.
    fn file(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}.{ending}", self.how.name))
    }
}

impl Start {
    /// This very binary, under a policy that joins the two sides.
    pub(crate) fn plain() -> Result<Start, String> {
        let weir = std::env::current_exe().map_err(|e| format!("the running binary: {e}"))?;
        Ok(Start { weir, name: "weir".to_owned(), arguments: Vec::new() })
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let Some(child) = &self.daemon else {
            let _ = self.box_.ip("link del br0");
            return;
        };
        // asked first, so that it can put things back
        family::signal("-TERM", &[child.id()]);
        family::signal("-CONT", &[child.id()]);
        self.ends_within(Span::from_secs(3));
        if let Some(mut child) = self.daemon.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn books(tree: Tree) -> Vec<Book> {
    let rows = tree.rows.into_iter().flat_map(|row| {
        let leaf = matches!(row.kind, RowKind::Leaf | RowKind::Made);
        let ways = [("down", row.down.counters), ("up", row.up.counters)];
        ways.map(|(way, counters)| Book { class: row.class.clone(), way, leaf, counters })
    });
    rows.collect()
}

/// What the ports could not take or send.
fn lost_at(ports: &Ports) -> u64 {
    ports.named().iter().filter_map(|(_, port)| port.counters).map(|counters| counters.lost()).sum()
}

#[cfg(test)]
mod tests {
    use weir_control::{Port, PortCounters};

    use super::*;

    #[test]
    fn what_ports_lose_is_added_up() {
        let counters =
            PortCounters { no_buffer: 2, not_sent: 1, sent_frames: 9, ..PortCounters::default() };
        let lan = Port { counters: Some(counters), ..Port::default() };
        assert_eq!(lost_at(&Ports { lan, wan: Port::default() }), 3);
    }
}
