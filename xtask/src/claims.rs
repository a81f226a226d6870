//! `cargo x claims`: each claim of every experiment must fail under one of the changes that are
//! listed beside it, and how many wait or are known to differ may only become fewer.

use std::process::Command;

use crate::experiments;
use crate::{Done, shell};

/// How many claims may be without effect, by the word with which `weir lab claims` counts them.
const CEILINGS: &str = "xtask/claims.toml";

/// All of them, or those of these experiments; `--verbose` lists what each change does.
pub(crate) fn run(arguments: &[String]) -> Done {
    let is_verbose = |argument: &String| argument == "--verbose" || argument == "-v";
    let (words, names): (Vec<_>, Vec<_>) = arguments.iter().cloned().partition(is_verbose);
    let weir = shell::build_weir()?;
    let mut fine = true;
    let mut sums: Vec<(String, u64)> = Vec::new();
    for folder in experiments::of(&names)? {
        let mut command = Command::new(&weir);
        command.args(["lab", "claims"]).args(words.first()).arg(&folder);
        let output = shell::keep(&mut command)?;
        let text = String::from_utf8_lossy(&output.stdout);
        // the sum of one folder is that of its first line
        let mut lines: Vec<&str> = text.lines().collect();
        let sum = lines.pop().unwrap_or_default();
        lines.iter().for_each(|line| println!("{line}"));
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        fine &= output.status.success();
        for (word, count) in counts(sum) {
            match sums.iter_mut().find(|(known, _)| *known == word) {
                Some((_, sum)) => *sum += count,
                None => sums.push((word, count)),
            }
        }
    }
    let all: u64 = sums.iter().map(|(_, count)| count).sum();
    let each: Vec<String> = sums.iter().map(|(word, count)| format!("{count} {word}")).collect();
    println!("{all} claims: {}", each.join(", "));
    if names.is_empty() {
        fine &= keep(&sums)?;
    }
    Ok(fine)
}

/// The numbers of a line such as `5 claims: 4 fail under a change, 1 pending`.
fn counts(line: &str) -> Vec<(String, u64)> {
    let parts = line.split_once(": ").map_or("", |(_, parts)| parts).split(", ");
    let parts = parts.filter_map(|part| part.split_once(' '));
    parts.filter_map(|(count, word)| Some((word.to_owned(), count.parse().ok()?))).collect()
}

/// Compares what is excused with its ceilings.
fn keep(sums: &[(String, u64)]) -> Done {
    let path = shell::root().join(CEILINGS);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{CEILINGS}: {error}"))?;
    let mut fine = true;
    for line in text.lines() {
        let Some((word, most)) = line.split_once(" = ") else { continue };
        let word = word.trim_matches('"');
        let most: u64 = most.parse().map_err(|_| format!("{CEILINGS}: no number: {line}"))?;
        let count = sums.iter().find(|(known, _)| known == word).map_or(0, |(_, count)| *count);
        match count {
            _ if count > most => println!("{count} {word}: more than the {most} of {CEILINGS}"),
            _ if count < most => println!("{count} {word}: write that into {CEILINGS}, not {most}"),
            _ => continue,
        }
        fine = false;
    }
    Ok(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_read() {
        let read = counts("7 claims: 4 fail under a change, 1 known to differ, 2 pending");
        let read: Vec<(&str, u64)> = read.iter().map(|(word, n)| (word.as_str(), *n)).collect();
        assert_eq!(read, [("fail under a change", 4), ("known to differ", 1), ("pending", 2)]);
        assert!(counts("").is_empty());
    }
}
