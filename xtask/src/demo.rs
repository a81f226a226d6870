//! `cargo x demo`: build weir for speed and let it show itself.

use crate::{Done, shell};

pub(crate) fn run(arguments: &[String]) -> Done {
    let weir = shell::build_weir()?;
    let mut command = std::process::Command::new(weir);
    shell::show(command.arg("demo").args(arguments).current_dir(shell::root()))
}
