//! `weir pages FOLDER`: the manual pages, and the completions of bash, zsh and fish, from the same
//! definitions as the help. It is for those who make a package, and hidden from the help.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::aot::{Shell, generate_to};
use weir_daemon::files;

use crate::out::problem;
use crate::{Command, Weir};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to write them; the folder is created
    folder: PathBuf,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    match write(&args.folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let why = files::why_not_written(&error);
            problem(&format!("{} cannot be written: {why}", args.folder.display()))
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    // of the commands that the help lists: the generators know nothing of hidden ones
    let mut weir = Weir::<Command>::command();
    clap_mangen::generate_to(weir.clone(), folder)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut weir, "weir", folder)?;
    }
    Ok(())
}
