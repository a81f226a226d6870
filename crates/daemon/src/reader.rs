//! Reads what a running link counts, while others change it. Nobody needs to hold control for that:
//! the reader has mail of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use weir_engine::{Books, Layout, Report, Snapshot};
use weir_io::{PortCounters, PortState};
use weir_packet::BySide;
use weir_policy::Plan;

use crate::mail::{Answer, Ask, Mail};

/// How the ports of a link are, by the word of the packet thread.
pub(crate) struct Ports {
    pub(crate) state: BySide<PortState>,
    pub(crate) counters: BySide<Option<PortCounters>>,
    /// Connections that are known.
    pub(crate) flows: usize,
}

/// The policy by which the books are read: what the packet thread has, or will have when it has
/// opened all letters.
#[derive(Clone)]
pub(crate) struct Terms {
    /// How many changes had been sent.
    pub(crate) version: u64,
    pub(crate) plan: Arc<Plan>,
    pub(crate) layout: Arc<Layout>,
}

/// The cursor behind a slice of the books, and the slice.
type Slice = (Option<u32>, Box<Snapshot>);

pub(crate) struct Reader {
    mail: Mail,
    /// How many changes have been sent to the packet thread.
    sent: Arc<AtomicU64>,
}

impl Reader {
    pub(crate) fn new(mail: Mail, sent: Arc<AtomicU64>) -> Reader {
        Reader { mail, sent }
    }

    /// How the ports are.
    pub(crate) fn ports(&mut self) -> Result<Ports, String> {
        self.mail.send(Ask::Ports)?;
        self.mail.answer(|answer| match answer {
            Answer::Ports { state, counters, flows } => Some(Ports { state, counters, flows }),
            _ => None,
        })
    }

    /// The books as they are now, slice by slice while traffic flows.
    pub(crate) fn books(&mut self) -> Result<Books, String> {
        let mut books = Books::default();
        let mut cursor = 0;
        let mut slice = Box::new(Snapshot::with_room());
        loop {
            let (next, filled) = self.slice(cursor, slice)?;
            books.add(&filled);
            match next {
                Some(from) => (cursor, slice) = (from, filled),
                None => return Ok(books),
            }
        }
    }

    /// What the link counts as a whole.
    pub(crate) fn totals(&mut self) -> Result<Box<Snapshot>, String> {
        self.slice(u32::MAX, Box::default()).map(|(_, slice)| slice)
    }

    /// The books by class; none if another policy was sent to the packet thread meanwhile, so that
    /// nobody knows which class is meant.
    pub(crate) fn report(&mut self, terms: &Terms) -> Result<Option<Report>, String> {
        let is_still = |sent: &AtomicU64| sent.load(SeqCst) == terms.version;
        if !is_still(&self.sent) {
            return Ok(None);
        }
        let books = self.books()?;
        let report = || Report::from_books(&books, &terms.plan, &terms.layout);
        Ok(is_still(&self.sent).then(report))
    }

    fn slice(&mut self, cursor: u32, slice: Box<Snapshot>) -> Result<Slice, String> {
        self.mail.send(Ask::Look { cursor, slice })?;
        self.mail.answer(|answer| match answer {
            Answer::Slice { next, slice } => Some((next, slice)),
            _ => None,
        })
    }
}
