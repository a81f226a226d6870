//! What README and docs show is what the commands print today: runs in virtual time give the same
//! figures everywhere, so a figure that is not printed any more is a mistake.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weir"))
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("weir runs");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("is text")
}

/// The lines of a document below a command, up to the next command or the end of the indented
/// block; those left out are marked by dots.
fn shown(document: &str, command: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(document)).expect("the document");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(&format!("    $ {command}")));
    lines.next().unwrap_or_else(|| panic!("{document} does not show {command}"));
    let block = lines.take_while(|line| {
        line.is_empty() || (line.starts_with("    ") && !line.starts_with("    $"))
    });
    let block = block.map(|line| line.trim().to_owned());
    let block: Vec<String> = block.filter(|line| !line.is_empty() && line != "...").collect();
    assert!(block.len() > 2, "{document} shows nothing of {command}");
    block
}

fn holds(document: &str, command: &str, printed: &str) {
    let lines: Vec<&str> = printed.lines().map(str::trim).collect();
    for line in shown(document, command) {
        assert!(
            lines.contains(&&*line),
            "{document}, {command}: is not printed: {line}\n{printed}"
        );
    }
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let folder = std::env::temp_dir().join(format!("weir-documents-{}", std::process::id()));
    let demo = printed(&["demo", "--virtual", "--folder", &folder.display().to_string()]);
    let _ = std::fs::remove_dir_all(&folder);
    holds("README.md", "weir replay", &demo);
    holds("README.md", "weir lab run home", &demo);
}

#[test]
fn the_readme_shows_all_that_explain_says() {
    let packet = "tcp 10.0.1.5:5000 > 192.0.2.1:873";
    let said = printed(&["explain", "examples/office.toml", "--packet", packet]);
    let said: Vec<&str> = said.lines().map(str::trim).collect();
    let command = format!("weir explain examples/office.toml --packet '{packet}'");
    assert_eq!(shown("README.md", &command), said);
}

#[test]
fn the_rehearsal_is_what_it_says() {
    let rehearsal = printed(&["lab", "run", "examples/rehearsal"]);
    holds("docs/lab.md", "weir lab run examples/rehearsal", &rehearsal);
}
