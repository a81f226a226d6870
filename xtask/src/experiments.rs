//! `cargo x experiments`: every experiment that `weir` carries, and whether its claims hold.
//! `cargo x test` runs them with one seed, which the claims must survive too.

use crate::{Done, shell};

const GROUPS: [&str; 4] = ["demo", "survey", "edge", "hsdba"];

/// All of them as the scenarios say.
pub(crate) fn all(arguments: &[String]) -> Done {
    crate::no_arguments(arguments)?;
    run(&[])
}

/// All of them with one seed; what does not hold is shown.
pub(crate) fn smoke() -> Done {
    run(&["--seeds", "1"])
}

fn run(more: &[&str]) -> Done {
    let weir = shell::build_weir()?;
    let mut fine = true;
    for group in GROUPS {
        let mut command = std::process::Command::new(&weir);
        command.args(["lab", "run", group]).args(more);
        let output = shell::keep(&mut command)?;
        let text = String::from_utf8_lossy(&output.stdout);
        for line in text.lines().filter(|line| is_told(line, more.is_empty())) {
            println!("{group}: {line}");
        }
        if !output.status.success() {
            print!("{}", String::from_utf8_lossy(&output.stderr));
            fine = false;
        }
    }
    Ok(fine)
}

/// The sums of claims, and those that do not hold; or everything.
fn is_told(line: &str, everything: bool) -> bool {
    everything || line.contains("claims:") || line.starts_with("does not hold")
}
