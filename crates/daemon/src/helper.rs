//! The helper: a small process of the same binary that keeps the rights which the daemon gives up.
//! It opens ports and hands over bare sockets, puts ports into the bridge, starts the guard, reads
//! the policy's files, and looks at what the kernel has become of all that. The daemon, which reads
//! what strangers send, can ask for nothing else, and only for the ports, the link and the folder
//! that the helper was started with.
//!
//! This file is the daemon's end and what is said between the two; `serve.rs` is the helper itself.

mod look;
mod open;
mod serve;
mod undo;
mod words;

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use weir_io::wait::now;
use weir_units::{Span, limits};

use crate::Via;
use crate::socket::left;

pub use serve::run;
pub(crate) use undo::{Undo, path_of as undo_path};
pub(crate) use words::{Ask, Interface, Look, Said};
use words::{Number, Numbered};

/// What the helper is started with.
#[derive(Clone, Debug)]
pub struct Args {
    /// The link.
    pub link: String,
    /// The two ports.
    pub ports: Vec<String>,
    /// Whether the kernel's bridge carries the traffic when weir does not.
    pub bypass: bool,
    /// How frames come and go.
    pub io: Via,
    /// The policy, and the table that it names.
    pub file: Vec<PathBuf>,
    /// The socket of the link, to be removed in the end.
    pub socket: PathBuf,
}

/// How long the helper may take to open something, for which it may have to wait for the kernel;
/// and for anything else.
const TO_OPEN: Span = Span::from_secs(5);
const TO_ANSWER: Span = Span::from_ms(500);

const LATE: &str = "the helper does not respond";

/// Bytes of a request or an answer.
const MESSAGE_BYTES: usize = 64 << 10;

/// Descriptors that come with one answer: two for each queue of a port, its page and its program.
const DESCRIPTORS: usize = 2 * limits::XSK_QUEUES + 2;

/// The daemon's end.
#[derive(Debug)]
pub(crate) struct Helper {
    /// None at the very end.
    socket: Option<OwnedFd>,
    child: Child,
    /// The number of the last request: an answer that was given up on is known by its own.
    asked: u64,
    /// An answer was given up on: nothing more is asked until it has come.
    late: bool,
    /// Why it does not answer any more.
    lost: Option<String>,
}

/// An answer, with the descriptors that came with it.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) said: Said,
    pub(crate) fds: Vec<OwnedFd>,
}

/// A message as it came.
struct Message {
    bytes: Vec<u8>,
    fds: Vec<OwnedFd>,
}

impl Message {
    /// What it says; none if it is not that.
    fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.bytes).ok()
    }
}

impl Helper {
    /// Starts it. To be called before rights are given up.
    pub(crate) fn start(
        link: &str,
        ports: [&str; 2],
        (via, bypass): (Via, bool),
        files: &[PathBuf],
        socket: &Path,
    ) -> Result<Helper, String> {
        let pair = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        );
        let (ours, theirs) = pair.map_err(|e| format!("no socket for the helper: {e}"))?;
        // this very file, even if another has taken its name since
        let mut command = Command::new("/proc/self/exe");
        command.arg0("weir").arg("helper").args(["--link", link, "--ports"]).args(ports);
        command.args(["--io", via.word()]);
        command.args(bypass.then_some("--bypass"));
        command.args(files.iter().flat_map(|file| ["--file".as_ref(), file.as_os_str()]));
        command.arg("--socket").arg(socket);
        command.stdin(Stdio::from(theirs)).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("the helper cannot be started: {e}"))?;
        Ok(Helper { socket: Some(ours), child, asked: 0, late: false, lost: None })
    }

    /// Asks, hands over descriptors, and waits for the answer.
    ///
    /// # Errors
    /// What stands against it, or why the helper does not answer.
    pub(crate) fn ask(&mut self, ask: &Ask, fds: &[BorrowedFd<'_>]) -> Result<Answer, Vec<String>> {
        if let Some(why) = &self.lost {
            return Err(vec![why.clone()]);
        }
        let Some(socket) = self.socket.as_ref().map(AsFd::as_fd) else {
            return Err(vec![LATE.to_owned()]);
        };
        if self.late && !is_readable(socket, Some(Duration::ZERO)) {
            return Err(vec![LATE.to_owned()]);
        }
        self.late = false;
        self.asked += 1;
        let request = Numbered { number: self.asked, ask };
        let answered = send(socket, &request, fds)
            .and_then(|()| answer_to(self.asked, socket, ask.patience()));
        match answered {
            Ok(answer) if answer.said.against.is_empty() => Ok(answer),
            Ok(answer) => Err(answer.said.against),
            Err(Unanswered::Late) => {
                self.late = true;
                Err(vec![LATE.to_owned()])
            }
            Err(Unanswered::Gone) => {
                let status = self.child.try_wait().ok().flatten();
                let how = status.map_or_else(String::new, |status| format!(" ({status})"));
                let why = format!("the helper has died{how}");
                self.lost = Some(why.clone());
                Err(vec![why])
            }
        }
    }

    /// How everything is that the helper looks after.
    pub(crate) fn look(&mut self) -> Result<Look, String> {
        let answer = self.ask(&Ask::Look, &[]).map_err(|why| why.join("; "))?;
        answer.said.look.ok_or_else(|| "the helper does not report its state".to_owned())
    }

    /// Opens a file of the policy with the rights that weir has given up.
    pub(crate) fn read(&mut self, file: &Path) -> Result<std::fs::File, String> {
        let ask = Ask::Read { file: file.to_owned() };
        let answer = self.ask(&ask, &[]).map_err(|why| why.join("; "))?;
        answer.fds.into_iter().next().map(Into::into).ok_or_else(|| "no file came".to_owned())
    }
}

/// The answer to the request of that number; those to earlier ones come too late.
fn answer_to(number: u64, socket: BorrowedFd<'_>, patience: Span) -> Result<Answer, Unanswered> {
    let until = now() + patience;
    loop {
        let left = left(until).ok_or(Unanswered::Late)?;
        if !is_readable(socket, Some(left)) {
            return Err(Unanswered::Late);
        }
        let message = receive(socket).ok_or(Unanswered::Gone)?;
        let said: Said = message.read().unwrap_or_default();
        if said.number == number {
            return Ok(Answer { said, fds: message.fds });
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // it ends when nobody is at the other end; one that is stopped is not waited for
        self.socket = None;
        ends_within(&mut self.child, Span::from_ms(500));
    }
}

/// Waits until a process has ended, but no longer than that.
fn ends_within(child: &mut Child, span: Span) {
    let until = now() + span;
    while matches!(child.try_wait(), Ok(None)) {
        let Some(left) = left(until) else { return };
        std::thread::park_timeout(left.min(Duration::from_millis(1)));
    }
}

enum Unanswered {
    Late,
    Gone,
}

impl Ask {
    fn patience(&self) -> Span {
        match self {
            Ask::Begin | Ask::Open { .. } | Ask::Join { .. } | Ask::Face | Ask::Guard => TO_OPEN,
            Ask::Carry | Ask::Look | Ask::Read { .. } | Ask::Leave => TO_ANSWER,
        }
    }
}

/// Waits until a message has come, or the other end has gone.
fn is_readable(socket: BorrowedFd<'_>, span: Option<Duration>) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    let span = span.and_then(|span| Timespec::try_from(span).ok());
    matches!(poll(&mut asked, span.as_ref()), Ok(1..))
}

fn send(
    socket: BorrowedFd<'_>,
    says: &impl Serialize,
    fds: &[BorrowedFd<'_>],
) -> Result<(), Unanswered> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        beside.push(SendAncillaryMessage::ScmRights(fds));
    }
    let text = serde_json::to_vec(says).map_err(|_| Unanswered::Late)?;
    let parts = [std::io::IoSlice::new(&text)];
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    match rustix::net::sendmsg(socket, &parts, &mut beside, flags) {
        Ok(_) => Ok(()),
        Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Err(Unanswered::Gone),
        // no room now, or for so much ever
        Err(_) => Err(Unanswered::Late),
    }
}

/// The next message; `None` when the other end has gone.
fn receive(socket: BorrowedFd<'_>) -> Option<Message> {
    let mut bytes = vec![0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [std::io::IoSliceMut::new(&mut bytes)];
    let came = loop {
        match rustix::net::recvmsg(socket, &mut parts, &mut beside, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            came => break came.ok()?.bytes,
        }
    };
    let mut fds = Vec::new();
    for message in beside.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    if came == 0 {
        return None;
    }
    bytes.truncate(came);
    Some(Message { bytes, fds })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn messages_carry_descriptors_and_an_end_is_seen() {
        let (a, b) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        let file = File::open("/dev/null").unwrap();
        let many = vec![file.as_fd(); DESCRIPTORS];
        let said = Said { number: 1, ..Said::default() };
        assert!(send(a.as_fd(), &said, &many).is_ok());
        assert!(is_readable(b.as_fd(), None));
        let came = receive(b.as_fd()).unwrap();
        assert_eq!((came.read(), came.fds.len()), (Some(said), DESCRIPTORS));
        drop(a);
        assert!(is_readable(b.as_fd(), None) && receive(b.as_fd()).is_none());
        assert!(matches!(send(b.as_fd(), &Said::default(), &[]), Err(Unanswered::Gone)));
    }
}
