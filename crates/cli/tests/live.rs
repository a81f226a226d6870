//! The proving ground itself, through the kernel's bridge: that it carries, measures and leaves
//! nothing behind. Without root there are no namespaces, and it says so.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Only one world at a time: two would disturb each other's figures.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn frames_pass_between_two_namespaces_and_nothing_is_left_behind() {
    let words = ["path", "--short", "--through", "bridge"];
    let Some(said) = live(&words) else { return };
    for traffic in ["numbered up", "call", "ping", "tcp down"] {
        // the last: what missed its bar on a busy machine is proven once more
        let row = said.lines().rfind(|line| line.starts_with(traffic));
        assert!(row.is_some_and(|row| row.ends_with("held")), "{traffic}:\n{said}");
    }
}

#[test]
fn a_fault_of_a_bad_evening_is_played_and_nothing_is_left_behind() {
    let words = ["evening", "--short", "--through", "packet", "--fault", "C3"];
    let Some(said) = live(&words) else { return };
    let rows: Vec<&str> = said.lines().filter(|line| line.starts_with("C3 ")).collect();
    assert!(rows.len() >= 2, "{said}");
    assert!(rows.iter().rev().take(2).all(|row| row.ends_with("held")), "{said}");
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
    command.arg("live").args(words).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("weir runs");
    let ours = format!("weirlive-{}-", child.id());
    let output = child.wait_with_output().expect("weir ends");
    let (said, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if problems.contains("a tool is missing") {
        println!("skipped: {problems}");
        return None;
    }
    assert!(output.status.success(), "{said}\n{problems}");
    let names = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
    assert!(!String::from_utf8_lossy(&names.stdout).contains(&ours));
    assert!(!std::env::temp_dir().join(format!("{ours}files")).exists());
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
