//! `cargo x live` and `cargo x soak`: weir built for speed and proven on real namespaces and real
//! traffic. Without root nothing of it can run; then the line is said that would.

use std::path::Path;

use crate::{Done, near, shell};

/// What `weir live` can prove in minutes; `soak` takes its own time.
const KNOWN: [&str; 9] =
    ["path", "accuracy", "edits", "failure", "handover", "evening", "garbage", "margin", "tcp"];

pub(crate) fn run(arguments: &[String]) -> Done {
    let split = arguments.iter().position(|a| a.starts_with('-')).unwrap_or(arguments.len());
    let (names, rest) = arguments.split_at(split);
    for name in names {
        if !KNOWN.contains(&name.as_str()) {
            let meant = near::nearest(name, KNOWN)
                .map_or_else(String::new, |known| format!("; did you mean \"{known}\"?"));
            return Err(format!("nothing \"{name}\", there is {}{meant}", KNOWN.join(", ")));
        }
    }
    let all = KNOWN.map(str::to_owned);
    let names = if names.is_empty() { &all[..] } else { names };
    prove(names, rest)
}

pub(crate) fn soak(arguments: &[String]) -> Done {
    prove(&["soak".to_owned()], arguments)
}

/// What every change is tried with: nothing that a busy machine could make fail, both ways of I/O.
pub(crate) fn short() -> Done {
    if shell::is_root() && !has_namespaces() {
        return Err(
            "skipped: no network namespace can be made here; a machine, or a container with \
                    CAP_SYS_ADMIN, has them"
                .to_owned(),
        );
    }
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let both = words(&["--short", "--through", "xdp", "--through", "packet"]);
    let proven = prove(&words(&["path", "edits", "handover", "evening", "garbage", "tcp"]), &both)?;
    let soaked = prove(&words(&["soak"]), &words(&["--minutes", "1", "--through", "xdp"]))?;
    Ok(proven && soaked)
}

/// Whether this place lets root make a namespace; a missing `ip` is told later, with its cure.
fn has_namespaces() -> bool {
    let name = format!("weirlive-{}-probe", std::process::id());
    let ip = |word: &str| shell::keep(&mut shell::program("ip", &["netns", word, &name]));
    match ip("add") {
        Err(_) => true,
        Ok(output) if !output.status.success() => false,
        Ok(_) => ip("del").is_ok(),
    }
}

fn prove(names: &[String], rest: &[String]) -> Done {
    let weir = shell::build_weir()?;
    let line = line(&weir, names, rest);
    if !shell::is_root() {
        let names = names.join(", ");
        return Err(format!("skipped: {names}: network namespaces need root; run: sudo {line}"));
    }
    let there = || {
        [("ip", "-V"), ("ethtool", "--version"), ("sysctl", "--version"), ("nft", "--version")]
            .iter()
            .all(|(tool, argument)| shell::present(tool, &[argument]))
    };
    shell::ensure_packages(&["iproute2", "ethtool", "procps", "nftables"], there)
        .map_err(|line| format!("skipped: {}: a tool is missing; run: {line}", names.join(", ")))?;
    let mut command = std::process::Command::new(&weir);
    shell::show(command.arg("live").args(names).args(rest).current_dir(shell::root()))
}

fn line(weir: &Path, names: &[String], rest: &[String]) -> String {
    let weir = weir.strip_prefix(shell::root()).unwrap_or(weir);
    let words = names.iter().chain(rest).map(String::as_str);
    let words: Vec<&str> = std::iter::once("live").chain(words).collect();
    format!("{} {}", weir.display(), words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_not_root_is_told_the_whole_line() {
        let weir = shell::root().join("target/release/weir");
        let words = ["accuracy".to_owned(), "edits".to_owned()];
        let line = line(&weir, &words, &["--short".to_owned()]);
        assert_eq!(line, "target/release/weir live accuracy edits --short");
    }

    #[test]
    fn a_mistyped_name_is_answered_before_anything_is_built() {
        let error = run(&["acuracy".to_owned()]).unwrap_err();
        assert!(error.contains("\"accuracy\""), "{error}");
    }
}
