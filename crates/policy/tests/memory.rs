//! What a text costs that nobody can mean: memory in proportion to the file, whatever is in it.
//! Each case is read in a process of its own, whose highest memory the kernel tells.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::fmt::Write as _;
use std::process::Command;

use weir_policy::{Source, read};

const POLICY: &str = "[link.l]\nlan = \"a\"\nwan = \"b\"\ndown = \"100gbit\"\nup = \"100gbit\"\n\
    [class.\"/s\"]\n[subscribers]\nfile = \"s.csv\"\nunder = \"/s\"\n";
const HEADER: &str = "id,addresses\n";
const MIB: usize = 1 << 20;

/// Reads the case that the environment names, as the process of its own.
#[test]
fn one_case() {
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments of its own")]
    let Ok(name) = std::env::var("WEIR_MEMORY_CASE") else { return };
    let (policy, table) = case(&name);
    let size = policy.len() + table.len();
    // the highest so far is that of making the case: the kernel forgets it
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = highest();
    let mut table = Some(table);
    let mut load = |name: &str| Ok(Source::new(name, table.take().unwrap_or_default()));
    let reading = read(Source::new("weir.toml", policy), &mut load).unwrap();
    let problems = reading.problems.len();
    println!("MEASURED {} {} {problems}", highest() - before, size / 1024);
}

/// The highest memory of this process so far, in KiB.
fn highest() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn case(name: &str) -> (Vec<u8>, Vec<u8>) {
    let policy = |text: String| (text.into_bytes(), Vec::new());
    let table = |text: String| (POLICY.as_bytes().to_vec(), text.into_bytes());
    let rows = |row: &str| table(HEADER.to_owned() + &row.repeat(100 * MIB / row.len()));
    match name {
        "names" => policy("a=1\n".repeat(4 * MIB)),
        "fewer names" => policy("a=1\n".repeat(262_000)),
        "brackets" => policy("[".repeat(16 * MIB)),
        "lists" => policy(format!("a = [{}]", "1,".repeat(8 * MIB - 8))),
        "dots" => policy(format!("a{} = 1", ".a".repeat(8 * MIB - 8))),
        "quotes" => policy("\"".repeat(16 * MIB)),
        "commas" => table(",".repeat(100 * MIB)),
        "commas in a row" => rows(&",".repeat(10 * MIB)),
        "rows of commas" => rows(",,,,,,,\n"),
        "an open quote" => table(HEADER.to_owned() + "\"" + &"x".repeat(100 * MIB)),
        "open quotes" => rows("\"x\n"),
        "rows of one letter" => rows("x\n"),
        "good rows" => {
            let mut text = HEADER.to_owned();
            for n in 0..300_000u32 {
                let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + n);
                let _ = writeln!(text, "subscriber-{n},{address}");
            }
            table(text)
        }
        other => panic!("no case {other}"),
    }
}

/// `(KiB that reading cost beyond the file, KiB of the file, problems)`.
fn measured(name: &str) -> (usize, usize, usize) {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["one_case", "--exact", "--nocapture"])
        .env("WEIR_MEMORY_CASE", name)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let line = said.lines().find_map(|line| line.split_once("MEASURED ")).map(|(_, rest)| rest);
    let line = line.unwrap_or_else(|| panic!("{name}: {:?} {said}", child.status));
    let numbers: Vec<usize> = line.split(' ').map(|n| n.trim().parse().unwrap()).collect();
    (numbers[0], numbers[1], numbers[2])
}

#[test]
fn nonsense_costs_twice_its_size_at_most() {
    for name in [
        "names",
        "brackets",
        "lists",
        "dots",
        "quotes",
        "commas",
        "commas in a row",
        "rows of commas",
        "an open quote",
        "open quotes",
        "rows of one letter",
    ] {
        let (cost, size, problems) = measured(name);
        println!("{name}: {cost} KiB for {size} KiB, {problems} problems");
        // with the file itself: three times
        assert!(cost <= 2 * size, "{name}: {cost} KiB for {size} KiB");
        assert!((1..=10_001).contains(&problems), "{name}: {problems} problems");
    }
}

/// What is as dense as a policy may be is small, so that its cost is: 100 MiB is what fills the
/// bound on tokens with nothing but mistakes. Rows that are good become a plan, which is larger.
#[test]
fn the_densest_policy_and_the_densest_table_have_a_bound() {
    for (name, most) in [("fewer names", 100), ("good rows", 200)] {
        let (cost, size, problems) = measured(name);
        println!("{name}: {cost} KiB for {size} KiB, {problems} problems");
        assert!(cost <= most * 1024, "{name}: {cost} KiB for {size} KiB");
    }
}
