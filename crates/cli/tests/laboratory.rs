//! `weir lab` called in the wrong way, or where nothing can be written: what it says, and with
//! which exit status.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A line of 1 Mbit/s with one flow, for a tenth of a second.
const SCENARIO: &str = r#"
[scenario]
run = "100ms"
seeds = 1
[node.a]
[node.box]
kind = "box"
[node.b]
[link.lan]
between = ["a", "box"]
[link.line]
between = ["box", "b"]
rate = "1mbit"
[flow.call]
from = "a"
to = "b"
source = "cbr"
rate = "80kbit"
[profile.none]
[metric.rate]
kind = "rate"
flows = ["call"]
"#;

/// A folder of its own for one test, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(path.join("empty")).expect("a folder for the test");
        std::fs::write(path.join("scenario.toml"), SCENARIO).expect("a file for the test");
        Folder(path)
    }

    /// Exit status, standard output, standard error of `weir lab` in the folder.
    fn lab(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
        command.arg("lab").args(arguments).current_dir(&self.0);
        let output = command.output().expect("weir runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code().expect("an exit status"), text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn figures_are_written_as_csv() {
    let folder = Folder::new("lab-csv");
    let (status, text, err) = folder.lab(&["run", ".", "--csv", "-"]);
    assert_eq!(status, 0, "{err}");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("experiment,profile,metric,mean,deviation,seeds"));
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 1, "{text}");
    assert_eq!((rows[0][1], rows[0][2], rows[0][5]), ("none", "rate", "1"));
    assert!(rows[0][3].parse::<f64>().is_ok(), "{text}");
}

#[test]
fn what_cannot_be_written_is_told_after_the_figures() {
    let folder = Folder::new("unwritten");
    let (full, no_folder) = ("the disk is full", "there is no such folder");
    for (option, to, why) in [
        ("--json", "/dev/full", full),
        ("--json", "none/x.json", no_folder),
        ("--report", "scenario.toml", "a file is where a folder should be"),
        ("--report", "scenario.toml/x", "a file is where a folder should be"),
    ] {
        let (status, out, err) = folder.lab(&["run", ".", option, to]);
        assert_eq!(status, 2, "{err}");
        assert!(err.contains(to) && err.contains(why), "{option} {to}: {err}");
        assert!(out.contains("rate"), "{option} {to}: {out}");
    }
    for (to, why) in [("/dev/full", full), ("none/x.pcap", no_folder)] {
        let (status, _, err) = folder.lab(&["run", ".", "--pcap", &format!("line={to}")]);
        assert_eq!(status, 2, "{err}");
        assert!(err.contains(to) && err.contains(why), "{to}: {err}");
    }
    // a report makes its folder
    let (status, _, err) = folder.lab(&["run", ".", "--report", "new/deep"]);
    assert!(status == 0 && err.contains("new/deep"), "{err}");
}

#[test]
fn names_that_are_not_there_are_said_with_those_that_are() {
    let folder = Folder::new("unnamed");
    for (arguments, parts) in [
        (&["run", "hoem"][..], ["\"hoem\"", "weir lab list"]),
        (&["run", "empty"], ["\"empty\" has no scenario.toml", "weir lab list"]),
        (&["run", ".", "--profile", "wier"], ["no profile \"wier\"", "there are none"]),
        (&["run", ".", "--pcap", "wan=x.pcap"], ["no link \"wan\"", "there are lan, line"]),
        (&["run", ".", "--pcap", "line"], ["\"line\"", "write LINK=FILE"]),
        (&["run", ".", "--pcap", "line="], ["\"line=\"", "write LINK=FILE"]),
        (&["run", "hsdba-example", "--pcap", "x=y"], ["no link \"x\"", "nor any other"]),
        (&["compare", "x.json", "y.json"], ["x.json", "there is no such file"]),
        (&["report", "scenario.toml"], ["scenario.toml", "no result that --json has written"]),
    ] {
        let (status, out, err) = folder.lab(arguments);
        assert!(status == 2 && out.is_empty(), "{arguments:?}: {status} {out}");
        assert!(parts.iter().all(|part| err.contains(part)), "{arguments:?}: {err}");
    }
}

#[test]
fn a_system_that_is_not_there_is_a_mistake_in_the_scenario() {
    let folder = Folder::new("systems");
    let text = format!("{SCENARIO}[policy]\ntext = \"\"\n[profile.x]\nsystem = \"wier\"\n");
    std::fs::write(folder.0.join("scenario.toml"), text).expect("a file for the test");
    let (status, _, err) = folder.lab(&["run", "."]);
    assert_eq!(status, 1, "{err}");
    assert!(err.contains("there is no system \"wier\"") && err.contains("packetshaper"), "{err}");
}
