//! `cargo x bench --count`: instructions per packet, counted by callgrind, held to a limit.
//!
//! Time depends on the machine and its mood; the number of instructions does not. Each entry of
//! `bench/instructions.toml` is run with two numbers of packets, and the difference is what the
//! packets themselves cost: start-up, policy and tables fall out. An entry may say within which
//! functions to count; the benchmark around them falls out then, too. What is left out: cache
//! misses.

use std::path::Path;

use crate::{Done, shell};

const FILE: &str = "bench/instructions.toml";
/// Parts per hundred above the limit that pass, and below it that call for a lower limit.
const SLACK_ABOVE: u64 = 2;
const SLACK_BELOW: u64 = 5;

/// One line of the gate.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    /// Arguments of `weir`, with `{n}` for the number of packets.
    command: String,
    n: (u64, u64),
    limit: u64,
    /// Count only while one of these runs, by the names that callgrind prints; none calls another.
    /// Empty: all the time.
    within: Vec<String>,
}

pub(crate) fn run() -> Done {
    let entries = entries()?;
    if entries.is_empty() {
        println!("{FILE} has no entries: nothing to count");
        return Ok(true);
    }
    shell::ensure("valgrind").map_err(|line| format!("valgrind is missing; run: {line}"))?;
    gate(&entries)
}

/// Whether there is anything to hold to a limit.
pub(crate) fn has_entries() -> Result<bool, String> {
    entries().map(|entries| !entries.is_empty())
}

fn gate(entries: &[Entry]) -> Done {
    let weir = shell::build_weir()?;
    let directory = shell::root().join("target/callgrind");
    std::fs::create_dir_all(&directory)
        .map_err(|e| format!("cannot make {}: {e}", directory.display()))?;
    let mut fine = true;
    println!("{:<28} {:>10} {:>10}", "instructions per packet", "measured", "limit");
    for entry in entries {
        let few = instructions(&weir, entry, entry.n.0, &directory)?;
        let many = instructions(&weir, entry, entry.n.1, &directory)?;
        let measured = per_packet(few, many, entry.n);
        let (held, note) = judge(measured, entry.limit);
        println!("{:<28} {measured:>10} {:>10}  {note}", entry.name, entry.limit);
        fine &= held;
    }
    Ok(fine)
}

fn per_packet(few: u64, many: u64, n: (u64, u64)) -> u64 {
    many.saturating_sub(few).div_ceil(n.1 - n.0)
}

fn judge(measured: u64, limit: u64) -> (bool, String) {
    if measured * 100 > limit * (100 + SLACK_ABOVE) {
        (false, format!("above the limit by more than {SLACK_ABOVE} %"))
    } else if measured * 100 < limit * (100 - SLACK_BELOW) {
        (true, format!("better: lower the limit in {FILE} to {measured}"))
    } else {
        (true, String::new())
    }
}

fn instructions(weir: &Path, entry: &Entry, n: u64, directory: &Path) -> Result<u64, String> {
    let out = directory.join(format!("{}.{n}.out", entry.name));
    let mut command = shell::program("valgrind", &["--tool=callgrind"]);
    command.arg(format!("--callgrind-out-file={}", out.display()));
    if !entry.within.is_empty() {
        command.arg("--collect-atstart=no");
        command.args(entry.within.iter().map(|function| format!("--toggle-collect={function}")));
    }
    command.arg(weir);
    command.args(entry.command.split_whitespace().map(|w| w.replace("{n}", &n.to_string())));
    let output = shell::keep(&mut command)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("\"{}\" failed under valgrind:\n{said}", entry.name));
    }
    let text =
        std::fs::read_to_string(&out).map_err(|e| format!("cannot read {}: {e}", out.display()))?;
    if let Some(function) = entry.within.iter().find(|function| !ran(&text, function)) {
        return Err(format!("[{}] counts within \"{function}\", which never ran", entry.name));
    }
    total(&text).ok_or_else(|| format!("{} names no total", out.display()))
}

/// Whether callgrind's file knows the function. One that was renamed or inlined away is counted as
/// nothing, and would hold any limit.
fn ran(callgrind: &str, function: &str) -> bool {
    let mut names =
        callgrind.lines().filter_map(|line| line.split_once("fn=(")?.1.split_once(") "));
    names.any(|(_, name)| name == function)
}

/// The instructions of the whole run, from callgrind's own file.
fn total(callgrind: &str) -> Option<u64> {
    let lines = || callgrind.lines().rev();
    let line = lines()
        .find_map(|line| line.strip_prefix("totals:"))
        .or_else(|| lines().find_map(|line| line.strip_prefix("summary:")))?;
    line.split_whitespace().next()?.parse().ok()
}

fn entries() -> Result<Vec<Entry>, String> {
    let path = shell::root().join(FILE);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("cannot read {FILE}: {e}"))?;
    read(&text)
}

fn read(text: &str) -> Result<Vec<Entry>, String> {
    let table: toml::Table = text.parse().map_err(|e| format!("{FILE}: {e}"))?;
    table.iter().map(|(name, value)| entry(name, value)).collect()
}

fn entry(name: &str, value: &toml::Value) -> Result<Entry, String> {
    let wrong = |what: &str| format!("{FILE}: [{name}] {what}");
    let number = |value: &toml::Value| value.as_integer().and_then(|n| u64::try_from(n).ok());
    let command = value.get("command").and_then(toml::Value::as_str);
    let command = command.filter(|c| c.contains("{n}")).ok_or_else(|| {
        wrong("needs command = \"...\", the arguments of weir, with {n} for the number of packets")
    })?;
    let n = value.get("n").and_then(toml::Value::as_array).and_then(|n| match &n[..] {
        [few, many] => number(few).zip(number(many)).filter(|(few, many)| few < many),
        _ => None,
    });
    let n = n.ok_or_else(|| wrong("needs n = [few, many], the packets of its two runs"))?;
    let limit = value.get("limit").and_then(number);
    let limit = limit.ok_or_else(|| wrong("needs limit = N, in instructions per packet"))?;
    let within = match value.get("within") {
        None => Some(Vec::new()),
        Some(list) => list.as_array().and_then(|list| {
            list.iter().map(|f| f.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>()
        }),
    };
    let within =
        within.ok_or_else(|| wrong("has a within that is no list of names of functions"))?;
    Ok(Entry { name: name.to_owned(), command: command.to_owned(), n, limit, within })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_read() {
        let text = "[known]\ncommand = \"bench classify --packets {n}\"\nn = [1, 3]\nlimit = 7\n";
        let entries = read(text).unwrap();
        assert_eq!(entries[0].n, (1, 3));
        assert_eq!(entries[0].limit, 7);
        assert!(entries[0].within.is_empty());
        let entries = read(&format!("{text}within = [\"push\", \"pop\"]\n")).unwrap();
        assert_eq!(entries[0].within, ["push", "pop"]);
        assert_eq!(read("# none yet\n").unwrap(), []);
    }

    #[test]
    fn an_entry_with_a_fault_is_named() {
        let error = read("[known]\ncommand = \"bench {n}\"\nn = [3, 1]\nlimit = 7\n").unwrap_err();
        assert!(error.contains("[known]") && error.contains("n = "), "{error}");
        let text = "[known]\ncommand = \"bench {n}\"\nn = [1, 3]\nlimit = 7\nwithin = \"push\"\n";
        let error = read(text).unwrap_err();
        assert!(error.contains("[known]") && error.contains("within"), "{error}");
    }

    #[test]
    fn start_up_falls_out() {
        assert_eq!(per_packet(1_000_500, 1_002_500, (100, 120)), 100);
    }

    #[test]
    fn two_percent_pass_and_more_do_not() {
        assert!(judge(102, 100).0);
        assert!(!judge(103, 100).0);
        assert!(judge(95, 100).1.is_empty());
        assert!(judge(94, 100).1.contains("94"));
    }

    #[test]
    fn a_function_that_never_ran_is_missed() {
        let text = "fn=(2) a::push\n1 2\ncfn=(4) a::pop\ncalls=1 3\nfn=(4)\n";
        assert!(ran(text, "a::push") && ran(text, "a::pop"));
        assert!(!ran(text, "push") && !ran(text, "a::po"));
    }

    #[test]
    fn the_total_is_in_the_last_lines() {
        assert_eq!(total("events: Ir\nsummary: 12\n\nfn=1\ntotals: 34\n"), Some(34));
        assert_eq!(total("events: Ir\nsummary: 12\n"), Some(12));
        assert_eq!(total(""), None);
    }
}
