//! The manual pages and completions that a package carries say what the help says.

use std::fs;
use std::path::Path;
use std::process::Command;

fn help(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_weir")).args(arguments).arg("--help").output();
    String::from_utf8(output.expect("weir runs").stdout).expect("is text")
}

/// The first words of the indented lines below `heading`, such as the names of commands.
fn below<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let own = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    own.filter_map(|line| line.split_whitespace().next()).filter(|word| *word != "help").collect()
}

#[test]
fn pages_and_completions_list_what_the_help_lists() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = fs::remove_dir_all(&folder);
    let status = Command::new(env!("CARGO_BIN_EXE_weir")).arg("pages").arg(&folder).status();
    assert!(status.expect("weir runs").success());
    let text = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let shells = ["weir.bash", "_weir", "weir.fish"].map(text);
    let overview = help(&[]);
    let commands = below(&overview, "Commands:");
    assert!(commands.len() > 15, "{commands:?}");
    for command in commands {
        let page = text(&format!("weir-{command}.1")).replace('\\', "");
        let of_command = help(&[command]);
        let words = of_command.split(|c: char| !c.is_alphanumeric() && c != '-');
        for option in words.filter(|word| word.starts_with("--") && word.len() > 2) {
            assert!(page.contains(option), "weir-{command}.1 has no {option}");
            for shell in &shells {
                assert!(shell.contains(&option[2..]), "a shell does not complete {option}");
            }
        }
        assert!(shells.iter().all(|shell| shell.contains(command)), "{command}");
    }
    let names: Vec<_> = fs::read_dir(&folder).expect("pages").flatten().collect();
    for hidden in ["guard", "helper", "live", "pages"] {
        assert!(!folder.join(format!("weir-{hidden}.1")).exists(), "{names:?}");
        assert!(!shells[0].contains(&format!("subcmd__{hidden}")), "bash completes {hidden}");
    }
    let _ = fs::remove_dir_all(&folder);
}
