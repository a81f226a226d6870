//! `weir remove`: takes back what weir has changed of the interfaces of a link that does not run.
//! A weir that was stopped leaves its bridge, because that carries the traffic; whoever wants the
//! interfaces for something else, or has no use for weir any more, removes it.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weir_io::netdev;

use super::bypass::name_for;
use super::helper::{Undo, undo_path};
use super::socket::{self, path_of};
use crate::out::{Out, problem};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The link [default: all that do not run]
    #[arg(long, value_name = "NAME", conflicts_with = "socket")]
    link: Option<String>,
    /// The control socket that it had, if it was started with one of its own
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let folder = Path::new(socket::FOLDER);
    let sockets = match (&args.link, &args.socket) {
        (_, Some(socket)) => vec![socket.clone()],
        (Some(link), None) => vec![path_of(folder, link)],
        (None, None) => left_over(folder),
    };
    let mut out = Out::new();
    if sockets.is_empty() {
        out.line("there is nothing to remove");
    }
    for socket in sockets {
        if UnixStream::connect(&socket).is_ok() {
            let which = match (&args.socket, socket.file_stem()) {
                (None, Some(link)) => format!("--link {}", link.to_string_lossy()),
                _ => format!("--socket {}", socket.display()),
            };
            return problem(&format!("this link is running; `weir stop {which}` ends it"));
        }
        let mut undo = Undo::open(undo_path(&socket));
        if let Some(link) = args.link.as_ref().filter(|_| undo.is_empty()) {
            // the record lies in memory; the bridge is known by its name
            let name = name_for(link);
            if netdev::index_of(&name).is_err() {
                return problem(&format!(
                    "nothing is left of a link \"{link}\": there is no {} and no bridge {name}",
                    undo_path(&socket).display()
                ));
            }
            undo.bridge(&name);
        }
        undo.remove().iter().for_each(|line| out.line(line));
    }
    out.end()
}

/// The sockets of links that have left something, whether they run or not.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "undo"))
        .map(|path| path.with_extension("sock"))
        .filter(|socket| UnixStream::connect(socket).is_err())
        .collect();
    sockets.sort();
    sockets
}
