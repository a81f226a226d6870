//! How far a long run is, on standard error: shown where that is a terminal, and removed when the
//! run ends. Anywhere else nothing is written, so what a command prints does not depend on it.

use std::fs::File;

use indicatif::{ProgressBar, ProgressFinish, ProgressStyle};

const RUNS: &str = "{prefix}: {pos} of {len} runs {wide_bar} {eta} left";
const BYTES: &str = "{prefix}: {bytes} of {total_bytes} {wide_bar} {eta} left";
const READ: &str = "{prefix}: {bytes}";

/// Of runs, by their number.
pub(crate) fn of_runs(name: &str) -> impl Fn(usize, usize) + Sync + use<> {
    let bar = bar(RUNS).with_prefix(name.to_owned());
    move |done, of| {
        bar.set_length(of as u64);
        // threads report in any order
        bar.update(|state| state.set_pos(state.pos().max(done as u64)));
        if done == of {
            bar.finish_and_clear();
        }
    }
}

/// Of a file that is read to its end; of a pipe, which has no length, only what has been read.
pub(crate) fn of_file(name: &str, file: &File) -> ProgressBar {
    let length = file.metadata().ok().filter(std::fs::Metadata::is_file).map(|about| about.len());
    let bar = match length {
        Some(length) => {
            let bar = bar(BYTES);
            bar.set_length(length);
            bar
        }
        None => bar(READ),
    };
    bar.with_prefix(name.to_owned())
}

fn bar(template: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template);
    ProgressBar::no_length()
        .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        .with_finish(ProgressFinish::AndClear)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_is_one() {
        for template in [RUNS, BYTES, READ] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
