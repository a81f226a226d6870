//! `cargo x bench`: speed as this machine has it now. Figures in nanoseconds depend on the machine
//! and are informational; `--peers` compares them with a rival's in the same run; the gate is
//! `--count`, which counts instructions.

use crate::{Done, count, near, peers, shell};

/// What `weir bench` can measure.
const KNOWN: [&str; 10] = [
    "classify",
    "condition",
    "edit",
    "enforce",
    "lab",
    "police",
    "policy",
    "sched",
    "share",
    "turn",
];

pub(crate) fn run(arguments: &[String]) -> Done {
    if arguments.first().is_some_and(|a| a == "--count") {
        crate::no_arguments(&arguments[1..])?;
        return count::run();
    }
    if arguments.first().is_some_and(|a| a == "--peers") {
        return peers::run(&arguments[1..]);
    }
    let split = arguments.iter().position(|a| a.starts_with('-')).unwrap_or(arguments.len());
    let (names, rest) = arguments.split_at(split);
    let rest = rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest);
    for name in names {
        if !KNOWN.contains(&name.as_str()) {
            let meant = near::nearest(name, KNOWN)
                .map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"));
            return Err(format!("no benchmark \"{name}\", there is {}{meant}", KNOWN.join(", ")));
        }
    }
    let all = KNOWN.map(str::to_owned);
    let names = if names.is_empty() { &all[..] } else { names };
    let weir = shell::build_weir()?;
    let mut fine = true;
    for name in names {
        let mut command = std::process::Command::new(&weir);
        command.args(["bench", name]).args(rest).current_dir(shell::root());
        fine &= shell::show(&mut command)?;
    }
    Ok(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_command_can_measure_is_known() {
        let path = shell::root().join("crates/cli/src/bench.rs");
        let text = std::fs::read_to_string(path).unwrap();
        let module = |line: &str| Some(line.strip_prefix("mod ")?.strip_suffix(';')?.to_owned());
        let modules: Vec<String> = text.lines().filter_map(module).collect();
        assert_eq!(modules, KNOWN);
    }
}
