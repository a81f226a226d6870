//! The proving ground itself, through the kernel's bridge: that it carries, measures and leaves
//! nothing behind. Without root there are no namespaces, and it says so.

use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

#[test]
fn frames_pass_between_two_namespaces_and_nothing_is_left_behind() {
    if std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() != 0) {
        println!("skipped: network namespaces need root; run: sudo -E cargo test -p weir-cli");
        return;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_weir"));
    command.args(["live", "path", "--short"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("weir runs");
    let ours = format!("weirlive-{}-", child.id());
    let output = child.wait_with_output().expect("weir ends");
    let (said, problems) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if problems.contains("a tool is missing") {
        println!("skipped: {problems}");
        return;
    }
    assert!(output.status.success(), "{said}\n{problems}");
    for traffic in ["numbered up", "call", "ping", "tcp down"] {
        let row = said.lines().find(|line| line.starts_with(traffic));
        assert!(row.is_some_and(|row| row.ends_with("held")), "{traffic}:\n{said}");
    }
    let names = Command::new("ip").args(["netns", "list"]).output().expect("ip runs");
    assert!(!String::from_utf8_lossy(&names.stdout).contains(&ours));
    assert!(!std::env::temp_dir().join(format!("{ours}files")).exists());
}

#[test]
fn who_wants_nothing_proven_is_told_what_there_is() {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(["live", "nothing"]).output();
    let output = output.expect("weir runs");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("accuracy"));
}
