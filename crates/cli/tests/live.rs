//! The live tests themselves, through the kernel's bridge: that it carries, measures and leaves
//! nothing behind. Without root there are no namespaces, and it says so.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Only one world at a time: two would disturb each other's figures.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn frames_pass_between_two_namespaces_and_nothing_is_left_behind() {
    let words = ["live", "path", "--short", "--through", "bridge"];
    let Some(said) = live(&words) else { return };
    for traffic in ["numbered up", "call", "ping", "tcp down"] {
        // the last: what missed its bar on a busy machine is proven once more
        let row = said.lines().rfind(|line| line.starts_with(traffic));
        assert!(row.is_some_and(|row| row.ends_with("held")), "{traffic}:\n{said}");
    }
}

#[test]
fn a_fault_of_a_bad_evening_is_played_and_nothing_is_left_behind() {
    let words = ["live", "evening", "--short", "--through", "packet", "--fault", "C3"];
    let Some(said) = live(&words) else { return };
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("C3 ")).collect();
    assert!(rows.len() >= 2, "{said}");
    assert!(rows.iter().rev().take(2).all(|row| row.ends_with("held")), "{said}");
}

/// Two classes of a line, over TCP of the kernel, and a stream of datagrams.
const EXPERIMENT: &str = r#"
[scenario]
about = "Who gets what?"
run = "4s"
from = "2s"
to = "4s"
seeds = 2

[node.client]
[node.box]
kind = "box"
[node.router]
kind = "switch"
[node.server]

[link.lan]
between = ["client", "box"]
[link.line]
between = ["box", "router"]
rate = "10mbit"
counts = "ip"
queue = "40 frames"
[link.wan]
between = ["router", "server"]
delay = "5ms"

[flow.bulk]
from = "client"
to = "server"
source = "bulk"
count = 2
from-address = "10.0.1.1"
[flow.stream]
from = "client"
to = "server"
source = "cbr"
count = 2
rate = "500kbit"
bytes = "500b"
from-address = "10.0.2.1"

[metric."goodput.bulk"]
kind = "goodput"
flows = ["bulk"]
[metric."retransmission.bulk"]
kind = "retransmission"
flows = ["bulk"]
[metric."goodput.stream"]
kind = "goodput"
flows = ["stream"]
[metric."delay.stream"]
kind = "delay"
flows = ["stream"]
[metric."waited"]
kind = "class-queue"
class = "/bulk"

[profile.weir]
policy = '''
[link.l]
lan = "eth1"
wan = "eth2"
down = "10mbit"
up = "5mbit"
counts = "ip"
[class."/bulk"]
match = "lan 10.0.1.0/24"
ceil = { up = "2mbit" }
'''
"#;

#[test]
fn an_experiment_is_played_by_real_hosts_and_a_real_box() {
    let file = std::env::temp_dir().join(format!("weir-live-{}.toml", std::process::id()));
    std::fs::write(&file, EXPERIMENT).expect("a file");
    let words = ["lab", "run", &file.display().to_string(), "--driver", "live"];
    let said = live(&words);
    let _ = std::fs::remove_file(&file);
    let Some(said) = said else { return };
    let figure = |name: &str| {
        let row = said.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        let figure = row.split_whitespace().next().unwrap_or_default().replace(',', "");
        figure.parse::<f64>().unwrap_or_else(|_| panic!("no {name} in\n{said}"))
    };
    // at most the payload of 2 Mbit/s, and of 1 Mbit/s of frames in two streams;
    // how much less depends on the machine
    for (name, most) in [("goodput.bulk", 2_000.0), ("goodput.stream", 1_000.0)] {
        let figure = figure(name);
        assert!(figure > 100.0 && figure < most, "{name} {figure}:\n{said}");
    }
    // as far as the wires make it
    assert!(figure("delay.stream") > 5.0, "{said}");
    assert!(figure("retransmission.bulk") < 0.5, "{said}");
}

#[test]
fn what_cannot_be_played_live_is_said() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    let output = command.args(["lab", "run", "survey-voip", "--driver", "live"]).output();
    let output = output.expect("weir runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot be played live") && said.contains("flow \""), "{said}");
}

/// What it printed when it ended well and had removed all that it made; none where it cannot run.
#[expect(clippy::print_stdout, reason = "says why a test is skipped")]
fn live(words: &[&str]) -> Option<String> {
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        println!("skipped: network namespaces need root; run: sudo -E cargo test -p weir-cli");
        return None;
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("weir runs");
    let ours = format!("weirlive-{}-", child.id());
    let output = child.wait_with_output().expect("weir ends");
    let (said, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if problems.contains("a tool is missing") {
        println!("skipped: {problems}");
        return None;
    }
    if problems.contains("all runs are void") {
        println!("skipped: {problems}");
        return None;
    }
    assert!(output.status.success(), "{said}\n{problems}");
    let names = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
    assert!(!String::from_utf8_lossy(&names.stdout).contains(&ours));
    let files = std::fs::read_dir(std::env::temp_dir()).expect("a folder");
    let mut files = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
    assert!(!files.any(|file| file.starts_with(&ours)));
    Some(said.into_owned())
}

#[test]
fn who_wants_nothing_proven_is_told_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["live", "nothing"]).output();
    let output = output.expect("weir runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("accuracy"));
}

#[test]
fn a_fault_that_nobody_knows_is_answered_with_those_there_are() {
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        return;
    }
    let words = ["live", "evening", "--through", "packet", "--fault", "Z9"];
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(words).output();
    let output = output.expect("weir runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("a tool is missing") || said.contains("H4 killed"), "{said}");
}
