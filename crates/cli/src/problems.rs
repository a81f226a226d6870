//! Problems of a policy, on standard error.

use std::io::IsTerminal as _;

use weir_control::shown;
use weir_daemon::log::say_all;
use weir_policy::{Problem, Reading, Source};

pub(crate) use weir_control::shown::text;
pub(crate) use weir_daemon::log::problems as print;

/// Prints all problems, with the notes and each row that was skipped.
pub(crate) fn print_all(reading: &Reading) {
    say_all(&shown::everything(reading, std::io::stderr().is_terminal()));
}

/// Prints the problems of any file.
pub(crate) fn print_of(problems: &[Problem], sources: &[Source]) {
    say_all(&shown::text_of(problems, sources, std::io::stderr().is_terminal()));
}
