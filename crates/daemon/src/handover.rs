//! What a weir leaves to the next one of the same link, so that a restart forgets no connection:
//! all that the engine exports, the rates that were found of the line, and the secret by which
//! hosts are told apart. It lies in a file beside the history, for as long as no weir runs: the
//! next one reads it before its first frame and removes it, whatever it says. Traffic does not
//! depend on it: without the file connections are classified anew.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weir_engine::{Cursor, Engine, Exchange, Exported, FoundRate, Imported};
use weir_io::Port;
use weir_io::wait::{now, since_boot};
use weir_packet::{Burst, BySide, Member, Pool};
use weir_units::limits::{FLOW_IDLE_TCP_SECS, HANDOVER_BYTES};
use weir_units::{ByWay, Bytes, Instant, Rate, Span};

use crate::files;
use crate::log::say;
use crate::revision::check;
use crate::wheel::Stopped;

const NAME: &str = "connections";
/// How the name of a file begins that is being written, beside it (`files::replace_secret`).
const UNFINISHED: &str = "connections.weir-";

/// Changes with every change of what stands in the file around the engine's batches, which have a
/// version of their own.
const VERSION: u32 = 2;

/// Older than that, no connection in it would still be known.
const OLDEST: Span = Span::from_secs(FLOW_IDLE_TCP_SECS);

/// A number that is another one after each boot: the time since boot means nothing then.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_BYTES: u64 = 64;

/// Bytes at the end of the file, a checksum of all before.
const CHECK_BYTES: usize = 8;

/// What one weir knew of its connections.
#[derive(Debug)]
pub(crate) struct Connections {
    /// By which hosts are told apart.
    pub(crate) seed: u128,
    found: ByWay<Option<FoundRate>>,
    /// The engine's batches, each behind its length.
    batches: Vec<u8>,
    /// Connections in them.
    pub(crate) flows: u64,
    /// Connections that are not, because there was no room.
    pub(crate) left_out: u64,
}

/// What was left, and how long ago.
#[derive(Debug)]
pub(crate) struct Handed {
    pub(crate) connections: Connections,
    pub(crate) age: Span,
}

/// What became of what the weir before has left.
#[derive(Clone, Debug, Default)]
pub(crate) struct TakenOver {
    /// Connections that were taken over, where it has left any.
    pub(crate) flows: Option<u64>,
    /// Why others were not.
    pub(crate) lost: Option<String>,
}

impl TakenOver {
    /// Gives it to an engine that has had no frame yet.
    pub(crate) fn of(left: Result<Option<Handed>, String>, engine: &mut Engine) -> TakenOver {
        match left {
            Ok(None) => TakenOver::default(),
            Ok(Some(handed)) => handed.goes_to(engine),
            Err(why) => {
                say(&format!("weir: {why}"));
                TakenOver { flows: None, lost: Some(why) }
            }
        }
    }
}

/// The first line of the file.
#[derive(Serialize, Deserialize)]
struct Head {
    version: u32,
    boot: String,
    /// Time since boot, that asleep too.
    at_ns: u64,
    seed: String,
    /// Down, up.
    found: [Option<Found>; 2],
}

#[derive(Serialize, Deserialize)]
struct Found {
    told: u64,
    costs: [u64; 2],
    rate: u64,
    line: Option<u64>,
}

impl Connections {
    /// All that the engine knows. Acknowledgements that it has held join their queues.
    pub(crate) fn of(engine: &mut Engine, seed: u128, now: Instant) -> Connections {
        let found = engine.found_rates();
        let mut connections =
            Connections { seed, found, batches: Vec::new(), flows: 0, left_out: 0 };
        let mut batch = Exported::with_room();
        let mut cursor = Some(Cursor::START);
        while let Some(from) = cursor {
            cursor = engine.export(now, from, &mut batch);
            connections.add(&batch);
        }
        connections
    }

    fn add(&mut self, batch: &Exported) {
        if batch.leaves.is_empty() && batch.flows.is_empty() {
            return;
        }
        let before = self.batches.len();
        self.batches.extend([0; 4]);
        batch.write(&mut self.batches);
        let len = u32::try_from(self.batches.len() - before - 4).unwrap_or(u32::MAX);
        self.batches[before..before + 4].copy_from_slice(&len.to_be_bytes());
        if self.batches.len() as u64 > HANDOVER_BYTES - ABOUT_BYTES {
            self.batches.truncate(before);
            self.left_out += batch.flows.len() as u64;
        } else {
            self.flows += batch.flows.len() as u64;
        }
    }

    /// Gives it to an engine that has had no frame yet; `at` is when it was left, by that engine's
    /// clock.
    ///
    /// What became of them, and why the first batch that cannot be read cannot; the others are the
    /// engine's.
    fn bring(&self, engine: &mut Engine, at: Instant) -> (Imported, Option<String>) {
        let mut batch = Exported::with_room();
        let (mut sum, mut unread) = (Imported::default(), None);
        let mut rest = &self.batches[..];
        while !rest.is_empty() {
            let Some((bytes, behind)) = first_batch(rest) else {
                unread = unread.or(Some("a batch ends too early".to_owned()));
                break;
            };
            match batch.read(bytes) {
                Ok(()) => sum.join(engine.import(at, &batch)),
                Err(why) => unread = unread.or(Some(why.to_string())),
            }
            rest = behind;
        }
        (sum, unread)
    }

    /// Something follows the last batch that is none.
    #[cfg(test)]
    pub(crate) fn damage(&mut self) {
        self.batches.push(0);
    }

    fn write(&self, boot: &str, at: Instant) -> Result<Vec<u8>, String> {
        let found = [self.found.down, self.found.up].map(|found| {
            let FoundRate { told, costs, rate, line } = found?;
            let (told, rate, line) = (told.bps(), rate.bps(), line.map(Rate::bps));
            Some(Found { told, costs, rate, line })
        });
        let head = Head {
            version: VERSION,
            boot: boot.to_owned(),
            at_ns: at.ns(),
            seed: format!("{:032x}", self.seed),
            found,
        };
        let mut bytes = serde_json::to_vec(&head).map_err(|e| e.to_string())?;
        bytes.push(b'\n');
        bytes.extend_from_slice(&self.batches);
        bytes.extend(check(&bytes).to_be_bytes());
        Ok(bytes)
    }
}

/// The first batch, and what stands behind it.
fn first_batch(batches: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, behind) = batches.split_first_chunk()?;
    behind.split_at_checked(u32::from_be_bytes(*len) as usize)
}

/// What stands in the file beside the batches, at most.
const ABOUT_BYTES: u64 = 1 << 10;

impl Handed {
    /// Gives it to an engine that has had no frame yet, and says what became of it.
    fn goes_to(&self, engine: &mut Engine) -> TakenOver {
        let now = now();
        engine.begin_with_rates(now, &self.connections.found);
        let (imported, unread) = self.connections.bring(engine, now - self.age);
        say(&format!("weir: {}", said(&imported, self.age)));
        let lost = unread.map(|why| format!("not all connections left by it can be read: {why}"));
        lost.iter().for_each(|why| say(&format!("weir: {why}")));
        TakenOver { flows: Some(u64::from(taken(&imported))), lost }
    }

    fn read(bytes: &[u8], boot: &str, now: Instant) -> Result<Handed, String> {
        let not_whole = || "it is not what was written there".to_owned();
        let (text, sum) = bytes
            .split_last_chunk::<CHECK_BYTES>()
            .filter(|_| !bytes.is_empty())
            .ok_or_else(not_whole)?;
        if check(text) != u64::from_be_bytes(*sum) {
            return Err(not_whole());
        }
        let end = text.iter().position(|&byte| byte == b'\n').ok_or_else(not_whole)?;
        // first the version alone: others may have other words
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let said: Version = serde_json::from_slice(&text[..end]).map_err(|e| e.to_string())?;
        if said.version != VERSION {
            return Err(format!(
                "it is of version {}, and this weir reads {VERSION}",
                said.version
            ));
        }
        let head: Head = serde_json::from_slice(&text[..end]).map_err(|e| e.to_string())?;
        if head.boot != boot {
            return Err("the machine has been restarted since".to_owned());
        }
        let age = now.since(Instant::from_ns(head.at_ns));
        if age > OLDEST || head.at_ns > now.ns() {
            return Err(format!(
                "it was left {} s ago, and no connection is known for more than {} s without a \
                 frame",
                age.ns() / 1_000_000_000,
                FLOW_IDLE_TCP_SECS
            ));
        }
        let seed = u128::from_str_radix(&head.seed, 16).map_err(|e| e.to_string())?;
        let [down, up] = head.found.map(|found| {
            found.map(|Found { told, costs, rate, line }| FoundRate {
                told: Rate::from_bps(told),
                costs,
                rate: Rate::from_bps(rate),
                line: line.map(Rate::from_bps),
            })
        });
        let batches = text[end + 1..].to_vec();
        let found = ByWay { down, up };
        Ok(Handed { connections: Connections { seed, found, batches, flows: 0, left_out: 0 }, age })
    }
}

/// The file in which they lie.
#[derive(Debug)]
pub(crate) struct HandoverFile {
    path: PathBuf,
    /// None if the kernel does not tell.
    boot: Option<String>,
}

impl HandoverFile {
    /// In the folder of the link's history. To be called before files are given up.
    pub(crate) fn at(folder: &Path) -> HandoverFile {
        let boot = files::read(BOOT_ID.as_ref(), BOOT_ID_BYTES).ok();
        let boot = boot.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        HandoverFile { path: folder.join(NAME), boot }
    }

    #[cfg(test)]
    pub(crate) fn of_boot(folder: &Path, boot: &str) -> HandoverFile {
        HandoverFile { path: folder.join(NAME), boot: Some(boot.to_owned()) }
    }

    /// What an earlier weir has left, if it has. It then lies aside until this one is at work
    /// ([`is_at_work`](Self::is_at_work)) or has failed to begin ([`put_back`](Self::put_back)).
    ///
    /// # Errors
    /// Why that cannot be used, in a sentence with its consequence; it is gone then.
    pub(crate) fn take(&self) -> Result<Option<Handed>, String> {
        let path = self.path.display();
        let unusable = |why: String| {
            format!("connections begin anew, because those left in {path} cannot be used: {why}")
        };
        self.remove_unfinished();
        // what a weir took that was killed before it was at work is no other one's
        self.remove_aside();
        match std::fs::symlink_metadata(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(unusable(format!("it cannot be looked at: {}", files::why(&e)))),
            Ok(about) if about.is_dir() => {
                let why = "it is a directory; remove it, or no weir can leave its connections";
                return Err(unusable(why.to_owned()));
            }
            Ok(_) => {}
        }
        let moved = self.moves_aside();
        let handed = moved.and_then(|()| {
            let bytes = files::read_own(&self.aside(), HANDOVER_BYTES)?;
            let boot = self.boot.as_ref().ok_or_else(|| format!("{BOOT_ID} cannot be read"))?;
            Handed::read(&bytes, boot, since_boot())
        });
        handed.map(Some).map_err(|why| {
            self.remove_aside();
            unusable(why)
        })
    }

    /// Nobody takes it a second time, whatever becomes of it: what it says is of now.
    fn moves_aside(&self) -> Result<(), String> {
        std::fs::rename(&self.path, self.aside()).map_err(|e| {
            // it holds the secret
            let _ = std::fs::remove_file(&self.path);
            let aside = self.aside();
            let cure = if aside.is_dir() { "; remove that directory" } else { "" };
            let (aside, why) = (aside.display(), files::why_not_written(&e));
            format!("it cannot be moved to {aside}: {why}{cure}")
        })
    }

    /// What was taken is of no more use.
    pub(crate) fn is_at_work(&self) {
        self.remove_aside();
    }

    fn remove_aside(&self) {
        let _ = std::fs::remove_file(self.aside());
    }

    /// What was taken is left to the next weir: this one has not begun.
    pub(crate) fn put_back(&self) {
        let _ = std::fs::rename(self.aside(), &self.path);
    }

    /// What a weir was writing that was killed meanwhile: it holds the secret. One that lives may
    /// be at it.
    fn remove_unfinished(&self) {
        let Some(entries) = self.path.parent().and_then(|folder| folder.read_dir().ok()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let writer = name.as_bytes().strip_prefix(UNFINISHED.as_bytes());
            if writer.is_some_and(|pid| !Path::new("/proc").join(OsStr::from_bytes(pid)).exists()) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    fn aside(&self) -> PathBuf {
        self.path.with_extension("taken")
    }

    /// Leaves it to the next weir, in place of what may lie there.
    ///
    /// # Errors
    /// Why it could not be written, in a sentence with its consequence.
    pub(crate) fn leave(
        &self,
        connections: &Connections,
        left_at: Instant,
    ) -> Result<String, String> {
        let path = self.path.display();
        let lost = |why: String| format!("connections are not left to the next weir: {why}");
        let boot = self.boot.as_ref().ok_or_else(|| lost(format!("{BOOT_ID} cannot be read")))?;
        let bytes = connections.write(boot, left_at).map_err(lost)?;
        self.remove_unfinished();
        files::replace_secret(&self.path, bytes)
            .map_err(|e| lost(format!("{path}: {}", files::why_not_written(&e))))?;
        let left_out = match connections.left_out {
            0 => String::new(),
            n => format!("; {n} are not, because {} are the most", Bytes::new(HANDOVER_BYTES)),
        };
        Ok(format!(
            "{} connections are left to the next weir in {path}{left_out}",
            connections.flows
        ))
    }
}

/// What was taken over, in a sentence.
fn said(imported: &Imported, age: Span) -> String {
    let lost = match lost(imported) {
        0 => String::new(),
        lost => format!("; {lost} found no place and begin anew"),
    };
    let (taken, ms) = (taken(imported), age.ns() / 1_000_000);
    format!("{taken} connections of the weir before were taken over after {ms} ms{lost}")
}

/// Those that are known now. The table was empty: who was given another's place has taken that of
/// one of them.
const fn taken(imported: &Imported) -> u32 {
    imported.placed + imported.renewed
}

const fn lost(imported: &Imported) -> u32 {
    imported.in_all() - taken(imported) - imported.known
}

/// Ports that only send.
struct Leaving<'p>(&'p mut BySide<Option<Port>>);

impl Exchange for Leaving<'_> {
    fn receive(&mut self, _: Member, _: &mut Pool, _: &mut Burst) -> usize {
        0
    }

    fn transmit(&mut self, port: Member, pool: &mut Pool, out: &mut Burst) {
        match &mut self.0[port.side] {
            Some(open) => {
                open.transmit(pool, out);
                open.settle(pool);
            }
            None => out.drain().for_each(|frame| pool.give(frame)),
        }
    }
}

/// Sends what an engine still has that receives no more, as fast as the ports take it, for so long
/// at most. It has exported, so its time may run ahead as far as it likes.
pub(crate) fn send_the_rest(stopped: Stopped, patience: Span) {
    let Stopped { mut driver, mut ports, ahead } = stopped;
    let until = now() + patience;
    let mut at = now() + ahead;
    while now() < until {
        driver.poll(at, &mut Leaving(&mut ports));
        if driver.unsent() > 0 {
            std::thread::park_timeout(A_PORT_IS_FULL);
            continue;
        }
        let Some(next) = driver.next_at(at) else { return };
        at = next.max(at);
    }
}

/// How soon a port that takes no more is asked again.
const A_PORT_IS_FULL: Duration = Duration::from_micros(50);
