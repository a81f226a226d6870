//! What control asks the packet thread, and what that answers. Everything that costs memory or time
//! is made and freed on control's side; a letter only carries it over. Two ask: who changes the
//! link, and who reads what it counts, so that neither waits for an answer to the other. Their
//! letters are opened in the order in which they were sent.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use weir_engine::{Change, Snapshot};
use weir_io::wait::Waker;
use weir_io::{Port, PortCounters, PortState};
use weir_packet::{BySide, Member};
use weir_xdp::Heart;

/// Letters that wait in either direction at most.
pub(crate) const LETTERS: usize = 16;

/// How long the packet thread may take to answer before it is said to be stuck.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) enum Ask {
    /// Apply a change of policy.
    Change(Box<Change>),
    /// Copy the books from this leaf on.
    Look { cursor: u32, slice: Box<Snapshot> },
    /// Tell how the ports are.
    Ports,
    /// Use this port from now on, and beat this heart.
    Put { member: Member, port: Box<Port>, heart: Option<Heart> },
    /// Let go of a port.
    Take { member: Member },
    /// The end is near: send what waits as fast as the ports take it, whatever the rates say, and
    /// let frames go past weir when none is on its way.
    Empty,
    /// Stop turning.
    Stop,
}

pub(crate) enum Answer {
    /// The change is done; here is what it replaced, to be freed.
    Changed(Box<Change>),
    /// A slice, and where the next begins.
    Slice { next: Option<u32>, slice: Box<Snapshot> },
    /// How the ports are, by side, and how many connections are known.
    Ports { state: BySide<PortState>, counters: BySide<Option<PortCounters>>, flows: usize },
    /// The port that was there is not used any more.
    Away,
    /// Nothing waits any more, and frames go past weir where the packet thread can see to that.
    Emptied,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    /// Who changes the link.
    Link,
    /// Who reads what it counts.
    Reader,
}

/// One end of it: asks, and waits for the answers.
pub(crate) struct Mail {
    who: Who,
    asks: SyncSender<(Who, Ask)>,
    answers: Receiver<Answer>,
    waker: Waker,
    /// Answers that were given up on and may still come.
    owed: usize,
}

/// The other end, on the packet thread.
pub(crate) struct Post {
    pub(crate) asks: Receiver<(Who, Ask)>,
    /// By [`Who`].
    pub(crate) answers: [SyncSender<Answer>; 2],
}

/// Both ends; `waker` wakes the packet thread.
pub(crate) fn post(waker: &Waker) -> ([Mail; 2], Post) {
    let (asks, inbox) = sync_channel(LETTERS);
    let (to_link, of_link) = sync_channel(LETTERS);
    let (to_reader, of_reader) = sync_channel(LETTERS);
    let mail =
        |who, answers| Mail { who, asks: asks.clone(), answers, waker: waker.clone(), owed: 0 };
    let ends = [mail(Who::Link, of_link), mail(Who::Reader, of_reader)];
    (ends, Post { asks: inbox, answers: [to_link, to_reader] })
}

impl Mail {
    pub(crate) fn send(&mut self, ask: Ask) -> Result<(), String> {
        match self.asks.try_send((self.who, ask)) {
            Ok(()) => {
                self.waker.call();
                Ok(())
            }
            Err(TrySendError::Full(_)) => {
                Err("the packet thread does not read its messages".to_owned())
            }
            Err(TrySendError::Disconnected(_)) => Err("the packet thread has ended".to_owned()),
        }
    }

    /// The answer to what was asked last.
    pub(crate) fn answer<T>(&mut self, wanted: impl Fn(Answer) -> Option<T>) -> Result<T, String> {
        self.answer_within(PATIENCE, wanted)
    }

    /// The same, if it comes so soon.
    pub(crate) fn answer_within<T>(
        &mut self,
        patience: Duration,
        wanted: impl Fn(Answer) -> Option<T>,
    ) -> Result<T, String> {
        loop {
            match self.answers.recv_timeout(patience) {
                Ok(_) if self.owed > 0 => self.owed -= 1,
                Ok(answer) => {
                    return wanted(answer).ok_or_else(|| "an answer to no question".to_owned());
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.owed += 1;
                    return Err(format!("the packet thread has not responded for {patience:?}"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the packet thread has ended".to_owned());
                }
            }
        }
    }
}
