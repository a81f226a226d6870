//! `cargo x demo`: build weir for speed and let it show itself.

use crate::{Done, shell};

pub(crate) fn run(arguments: &[String]) -> Done {
    let weir = shell::build_weir()?;
    let mut command = std::process::Command::new(weir);
    // beside what cargo builds, so that a tour leaves nothing in the working tree
    command.args(["demo", "--folder", "target/demo"]).args(arguments);
    shell::show(command.current_dir(shell::root()))
}
