//! A day in half an hour: two hundred hosts that come and go, edits every few seconds, links that
//! flap, shaping turned off and on. The daemon must not die, must not grow, and must account for
//! every frame.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use weir_units::Span;

use super::Run;
use super::clock::{self, Lateness};
use super::middle::{Book, Joined, Memory, Middle};
use super::policy::{self, CALL_PORT, PING_PORT};
use super::traffic::{Call, Crowd, Heard, Ping};
use super::verdict::{Table, Verdict, lateness, ms};
use super::world::{Sketch, World};

const HOSTS: u16 = 200;

/// Seconds between two of each.
const EDIT: u64 = 3;
const LOOK_AT_BOOKS: u64 = 5;
const TOGGLE: u64 = 20;
const FLAP: u64 = 60;
/// How long shaping stays off, a link down.
const OFF: Span = Span::from_ms(1_000);
const DOWN: Span = Span::from_ms(200);

/// Tables fill and allocators settle at first: memory counts from the fifth minute on, in a short
/// run after a third of it.
const WARM_SECS: u64 = 300;
/// From then on it may grow by a hundredth, or this, whichever is more.
const GROWTH_KIB: u64 = 1_024;
/// Reading a policy and answering take memory for some milliseconds and give it back. So what stays
/// is the least that was seen in as many seconds; the kernel knows the most at any moment.
const STAYS_SECS: u64 = 10;

/// What is left to wait after the last packet, so that no frame is held any more.
const DRAIN: Span = Span::from_secs(5);

/// What was seen on the way.
#[derive(Default)]
struct Diary {
    edits: u32,
    /// Commands that were refused: how many, by what they said.
    refused: BTreeMap<String, u32>,
    books_looked_at: u64,
    /// The first book that did not balance.
    inexact: Option<Book>,
    /// KiB that stay, and the most at any moment.
    stays: Growth,
    most: Growth,
    /// The least since the last whole [`STAYS_SECS`].
    least: Option<u64>,
}

/// Memory that should not grow.
#[derive(Default)]
struct Growth {
    last: u64,
    /// KiB when it was warm.
    warm: Option<u64>,
    /// The largest since.
    largest: u64,
}

impl Growth {
    fn note(&mut self, kib: u64, is_warm: bool) {
        self.last = kib;
        if is_warm {
            self.warm.get_or_insert(kib);
            self.largest = self.largest.max(kib);
        }
    }

    /// What was seen, and whether that is within the bar; none before it was warm.
    fn seen(&self) -> Option<(String, bool)> {
        let warm = self.warm?;
        let growth = self.largest.saturating_sub(warm);
        Some((format!("{growth} over {warm}"), growth <= GROWTH_KIB.max(warm / 100)))
    }
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let seconds = u64::from(run.minutes) * 60;
    let world = World::make(Sketch { hosts: HOSTS, line: None }, run.shell.clone())?;
    let mut joined = Joined::start(&world, middle, &policy::crowd(0))?;
    run.out.line(&format!(
        "soak of {}: {} minutes, {HOSTS} hosts; an edit every {EDIT} s, shaping off and on every \
         {TOGGLE} s,\na link down and up every {FLAP} s",
        middle.name(),
        run.minutes
    ));
    run.out.flush();
    let late = Lateness::watch();
    let (lan, wan) = world.ends(0, CALL_PORT);
    let call = Call::start(&lan, &wan)?;
    let (lan, wan) = world.ends(1, PING_PORT);
    let ping = Ping::start(&lan, &wan)?;
    let crowd = Crowd::start(&world, HOSTS)?;
    let mut diary = Diary::default();
    let start = clock::now();
    for second in 1..=seconds {
        clock::sleep_until(start + Span::from_secs(second));
        if !joined.is_alive() {
            break;
        }
        diary.second(second, seconds, &world, &joined)?;
        if second % 60 == 0 && second < seconds {
            run.out.line(&format!("  minute {}: {}", second / 60, diary.so_far()));
            run.out.flush();
        }
    }
    let end = clock::now();
    let count = crowd.stop()?;
    let (echoes, heard) = (ping.stop()?, call.stop()?);
    let late = late.stop();
    clock::sleep(DRAIN);
    let alive = joined.is_alive();
    let said = joined.said();
    let books = if alive { joined.books()? } else { None };
    drop(joined);

    let mut table = Table::new(1, &["what", "seen", "bar"]);
    let mut row = |what: &str, seen: String, bar: &str, verdict: Verdict| {
        table.row(vec![what.to_owned(), seen, bar.to_owned()], verdict);
    };
    row("daemon", if alive { "runs" } else { "ended" }.to_owned(), "runs", Verdict::of(alive));
    diary.rows(&mut row);
    books.iter().for_each(|books| in_the_end(books, &mut row));
    let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let transfers = of(&count.transfers);
    row("transfers", transfers.to_string(), "some", Verdict::of(transfers > 0));
    row("transfers given up", of(&count.given_up).to_string(), "", Verdict::Seen);
    row("bursts of datagrams", of(&count.bursts).to_string(), "", Verdict::Seen);
    let Heard { sent, lost, p99, mos } = heard;
    let sound = format!("MOS {mos:.2}, {lost} of {sent} lost, p99 {} ms", ms(p99));
    row("call", sound, "", Verdict::Seen);
    row("longest silence, ms", ms(echoes.silence(start, end)), "", Verdict::Seen);
    row("machine late, ms p99/max", lateness(&late), "", Verdict::Seen);
    if !alive {
        run.out.line(&format!("weir has ended; it said:\n{said}"));
    }
    Ok(run.conclude(&table))
}

/// What the books say when nobody has sent for a while.
fn in_the_end(books: &[Book], row: &mut impl FnMut(&str, String, &str, Verdict)) {
    let held: u64 =
        books.iter().filter(|book| book.leaf).map(|book| book.counters.backlog.frames).sum();
    row("frames held in the end", held.to_string(), "0", Verdict::of(held == 0));
    let links = books.iter().filter(|book| book.class == "/");
    let came: u64 = links.map(|book| book.counters.received.frames).sum();
    row("frames carried", came.to_string(), "", Verdict::Seen);
}

impl Diary {
    /// What is due in this second.
    fn second(&mut self, at: u64, of: u64, world: &World, joined: &Joined) -> Result<(), String> {
        if at.is_multiple_of(EDIT) {
            self.edits += 1;
            self.note(joined.apply(&policy::crowd(self.edits)));
        }
        if at.is_multiple_of(TOGGLE) {
            self.note(joined.observe());
            clock::sleep(OFF);
            self.note(joined.shape());
        }
        if at % FLAP == FLAP / 2 {
            let port = if (at / FLAP).is_multiple_of(2) { "eth1" } else { "eth2" };
            world.box_.ip(&format!("link set {port} down"))?;
            clock::sleep(DOWN);
            world.box_.ip(&format!("link set {port} up"))?;
        }
        if at.is_multiple_of(LOOK_AT_BOOKS) {
            match joined.books() {
                Ok(Some(books)) => self.balance(books),
                Ok(None) => {}
                Err(why) => self.note(Err(why)),
            }
        }
        if let Some(memory) = joined.memory() {
            self.remember(memory, at, of);
        }
        Ok(())
    }

    fn remember(&mut self, memory: Memory, at: u64, of: u64) {
        let is_warm = at >= WARM_SECS.min(of / 3);
        let least = self.least.map_or(memory.now, |least| least.min(memory.now));
        self.least = Some(least);
        if at.is_multiple_of(STAYS_SECS) {
            self.stays.note(least, is_warm);
            self.least = None;
        }
        // how long it takes until all that takes memory has once met by chance is not a third of a
        // short run
        self.most.note(memory.most, at >= WARM_SECS);
    }

    fn note(&mut self, done: Result<(), String>) {
        if let Err(why) = done {
            *self.refused.entry(why).or_default() += 1;
        }
    }

    fn balance(&mut self, books: Vec<Book>) {
        let told = |book: &Book| book.leaf || book.class == "/";
        for book in books.into_iter().filter(told) {
            self.books_looked_at += 1;
            if !book.counters.is_balanced() && self.inexact.is_none() {
                self.inexact = Some(book);
            }
        }
    }

    fn so_far(&self) -> String {
        format!(
            "{} edits, {} commands refused, {} books, {} KiB stay, {} at most",
            self.edits,
            self.refused.values().sum::<u32>(),
            self.books_looked_at,
            self.stays.last,
            self.most.last
        )
    }

    fn rows(&self, row: &mut impl FnMut(&str, String, &str, Verdict)) {
        let grown = [("memory that stays", &self.stays), ("memory at most", &self.most)];
        for (what, growth) in grown {
            match growth.seen() {
                Some((seen, held)) => {
                    row(&format!("{what}, grown, KiB"), seen, "1 % or 1 024", Verdict::of(held));
                }
                None => row(&format!("{what}, KiB"), growth.last.to_string(), "", Verdict::Seen),
            }
        }
        if self.books_looked_at > 0 {
            let seen = match &self.inexact {
                None => format!("{} balance", self.books_looked_at),
                Some(book) => format!("{book:?}"),
            };
            row("books", seen, "all", Verdict::of(self.inexact.is_none()));
        }
        row("edits", self.edits.to_string(), "", Verdict::Seen);
        let refused: u32 = self.refused.values().sum();
        let why = self.refused.keys().next().map_or(String::new(), |why| format!(": {why}"));
        row("commands refused", format!("{refused}{why}"), "0", Verdict::of(refused == 0));
    }
}

#[cfg(test)]
mod tests {
    use weir_control::{Count, Counters};

    use super::*;

    fn verdicts(diary: &Diary) -> BTreeMap<String, Verdict> {
        let mut all = BTreeMap::new();
        diary.rows(&mut |what, _, _, verdict| {
            all.insert(what.to_owned(), verdict);
        });
        all
    }

    #[test]
    fn a_daemon_that_grows_or_miscounts_fails() {
        let count = |frames| Count { frames, bytes: 0 };
        let counters = Counters {
            received: count(3),
            sent: count(2),
            backlog: count(1),
            ..Counters::default()
        };
        let book = Book { class: "/a".to_owned(), way: "up", leaf: true, counters };
        let mut diary = Diary::default();
        let minute = |diary: &mut Diary, from: u64, now: u64, most: u64| {
            for at in from..from + 60 {
                // a policy is read every three seconds
                let now = if at % 3 == 0 { most } else { now };
                diary.remember(Memory { now, most }, at, 1_800);
            }
        };
        minute(&mut diary, 180, 40_000, 44_000);
        minute(&mut diary, 240, 50_000, 54_000);
        minute(&mut diary, 300, 50_000, 54_000);
        minute(&mut diary, 360, 51_000, 55_000);
        diary.balance(vec![book.clone()]);
        let fine = verdicts(&diary);
        assert!(fine.values().all(|v| *v != Verdict::Failed), "{fine:?}");
        minute(&mut diary, 420, 51_025, 55_000);
        assert_eq!(verdicts(&diary)["memory that stays, grown, KiB"], Verdict::Failed);
        minute(&mut diary, 480, 51_025, 55_025);
        let mut wrong = book;
        wrong.counters.sent = count(1);
        diary.balance(vec![wrong]);
        diary.note(Err("no".to_owned()));
        let bad = verdicts(&diary);
        for what in ["memory at most, grown, KiB", "books", "commands refused"] {
            assert_eq!(bad[what], Verdict::Failed, "{what}");
        }
    }
}
