//! `weir fmt FILE`: the policy in its canonical form, written back in one step or not at all.

use std::path::Path;
use std::process::ExitCode;

use weir_units::limits;

use crate::out::{Out, problem, say};
use weir_daemon::files;

/// What to do with the canonical form.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
    Show,
}

pub(crate) fn run(file: &Path, mode: Mode) -> ExitCode {
    let name = file.display();
    let text = match files::read(file, limits::POLICY_BYTES).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => return problem(&format!("{name}: it is not text (UTF-8)")),
        Err(why) => return problem(&format!("{name}: {why}")),
    };
    let neat = match weir_policy::format(&text) {
        Ok(neat) => neat,
        Err(why) => {
            say(&format!(
                "{name} stays as it is, for it is not TOML:\n{why}\n`weir check {name}` says it all"
            ));
            return ExitCode::from(1);
        }
    };
    match mode {
        Mode::Show => {
            let mut out = Out::new();
            out.text(&neat);
            out.end()
        }
        Mode::Check if neat != text => {
            say(&format!("{name} is not in canonical form; `weir fmt {name}` writes it"));
            ExitCode::from(1)
        }
        Mode::Write if neat != text => match files::replace(file, &neat) {
            Ok(()) => {
                let mut out = Out::new();
                out.line(&format!("{name}: written in canonical form"));
                out.end()
            }
            Err(why) => {
                problem(&format!("{name} stays as it is: {}", files::why_not_written(&why)))
            }
        },
        Mode::Check | Mode::Write => ExitCode::SUCCESS,
    }
}
