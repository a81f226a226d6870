//! Policing: what happens to frames above a rate, without a queue.

use weir_units::limits::POLICE_BURST_BYTES;
use weir_units::{Bytes, Rate};

use crate::leaf::code_point;
use crate::problem::Problems;
use crate::reader::{Entry, Table};

/// What happens to frames above a rate, in each direction by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// The committed rate.
    pub rate: Rate,
    /// What may come at once.
    pub burst: Option<Bytes>,
    /// A second, higher rate; above it everything is dropped.
    pub peak: Option<Rate>,
    /// What may come at once at the peak. Without a peak, what may come at once beyond `burst`, out
    /// of the rate's unused time.
    pub peak_burst: Option<Bytes>,
    /// What happens to frames between: dropped, or marked with this code point.
    pub excess: Option<u8>,
    /// The code points of frames within the rate, between, and above; then none is dropped.
    pub colours: Option<[u8; 3]>,
    /// Whether a frame whose code point says that it is to be dropped early is never taken for a
    /// better one.
    pub aware: bool,
}

const WORDS: [&str; 7] = ["rate", "burst", "peak", "peak-burst", "excess", "colours", "aware"];
/// A full Ethernet frame.
const FULL_FRAME: Bytes = Bytes::new(1_518);

pub(crate) fn read(entry: Entry<'_>, problems: &mut Problems) -> Option<Police> {
    const RATE: &str = "a rate such as \"1mbit\"";
    let mut table = entry.table("\"police\"", problems)?;
    let rate = table.take("rate").map(|e| e.read("rate", RATE, problems));
    if rate.is_none() {
        let help = "write police = { rate = \"1mbit\", burst = \"15kb\" }";
        problems.error(entry.place, "\"police\" has no \"rate\"", help);
    }
    let burst = size("burst", &mut table, problems);
    let peak = table.take("peak").and_then(|e| e.read("peak", RATE, problems));
    let peak_burst = size("peak-burst", &mut table, problems);
    let (says_excess, excess) = match table.take("excess") {
        None => (false, None),
        Some(e) if e.value.as_str() == Some("drop") => (true, None),
        Some(e) => (true, code_point("excess", e, problems)),
    };
    let colours = table.take("colours");
    let says_colours = colours.is_some();
    let colours = colours.and_then(|e| three("colours", e, problems));
    let aware = table.take("aware").and_then(|e| e.yes_no("aware", problems)).unwrap_or(false);
    table.finish(&WORDS, problems);
    let rate: Rate = rate??;
    if peak.is_some_and(|peak| peak < rate) {
        let what = format!("\"peak\" is below \"rate\" {rate}");
        problems.error(entry.place, what, "make the peak rate the higher of the two");
    }
    let has_second = peak.is_some() || peak_burst.is_some();
    if says_colours && says_excess {
        let help = "\"colours\" decides about all frames; remove \"excess\"";
        problems.error(entry.place, "\"police\" has both \"colours\" and \"excess\"", help);
    } else if says_colours && !has_second {
        let help = "add peak = \"2mbit\", or peak-burst = \"30kb\"";
        problems.error(entry.place, "three \"colours\" need a second bound", help);
    } else if has_second && !says_colours && excess.is_none() {
        let help = "mark what is between with excess = \"af12\", or remove the second bound";
        let what = "all frames above \"rate\" are dropped, so \"peak\" and \"peak-burst\" have no \
            effect";
        problems.warning(entry.place, what, help);
    }
    Some(Police { rate, burst, peak, peak_burst, excess, colours, aware })
}

/// What a bucket holds.
fn size(name: &str, table: &mut Table<'_>, problems: &mut Problems) -> Option<Bytes> {
    let entry = table.take(name)?;
    let size: Bytes = entry.read(name, "an amount of bytes such as \"15kb\"", problems)?;
    let most = Bytes::new(POLICE_BURST_BYTES);
    if size > most {
        let what = format!("\"{name}\" {size} is too large");
        problems.error(entry.place, what, "write at most \"1gib\"");
        return None;
    }
    if size < FULL_FRAME {
        let what = format!("\"{name}\" {size} is less than a full frame");
        problems.warning(entry.place, what, "a larger frame always exceeds the rate");
    }
    Some(size)
}

/// The code points of the three colours.
fn three(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<[u8; 3]> {
    let list = entry.list();
    if list.len() != 3 || !entry.value.is_array() {
        let help = "write colours = [\"af11\", \"af12\", \"af13\"]";
        problems.error(entry.place, format!("\"{name}\" is not three code points"), help);
        return None;
    }
    // all of them are read, so that all that is wrong is said
    let read = list.into_iter().map(|e| code_point(name, e, problems)).collect::<Vec<_>>();
    let read: Vec<u8> = read.into_iter().flatten().collect();
    read.try_into().ok()
}
