//! The line to a running link: found by name, or the only one there is.

use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::de::DeserializeOwned;
use weir_control::{Client, Failure, Fault, Refused, Request, path_of};
use weir_units::limits;

use super::{Whom, folder};
use crate::out::{problem, say};
use weir_daemon::files;

/// A connection to a link.
pub(super) struct Line(Client);

impl Line {
    /// Connects, or says why that cannot be.
    pub(super) fn open(whom: &Whom) -> Result<Line, ExitCode> {
        Line::open_for(whom, &[])
    }

    /// The same; where the operator does not say which link, it is the one of these that runs.
    pub(super) fn open_for(whom: &Whom, links: &[&str]) -> Result<Line, ExitCode> {
        let path = match (&whom.socket, &whom.link) {
            (Some(path), _) => path.clone(),
            (None, Some(link)) => path_of(folder(), link),
            (None, None) => only(folder(), links).map_err(|why| problem(&why))?,
        };
        let client = Client::open(&path).map_err(|error| {
            let name = path.display();
            problem(&match error.kind() {
                ErrorKind::ConnectionRefused => format!("{name}: the link has ended; {START}"),
                ErrorKind::NotFound => format!("no link runs at {name}; {START}"),
                ErrorKind::PermissionDenied => {
                    format!(
                        "{name}: permission denied: run this as root, or as a member of its group"
                    )
                }
                _ => format!("{name}: {}", files::why(&error)),
            })
        })?;
        Ok(Line(client))
    }

    /// Where the link is asked.
    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Asks, and gives the answer if it is one. What is wrong has been said otherwise.
    pub(super) fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ExitCode> {
        self.0.ask(request).map_err(|failure| failed(self.path(), failure))
    }
}

/// Says why there is no answer.
fn failed(path: &Path, failure: Failure) -> ExitCode {
    let name = path.display();
    problem(&match failure {
        Failure::TooLong => format!(
            "the policy and its table exceed the {} MiB of a request: write them to the file \
             that weir was started with, and send it SIGHUP",
            limits::CONTROL_LINE_BYTES >> 20
        ),
        Failure::Silent => format!(
            "{name}: weir does not respond: it hangs, or gets no CPU time; the kernel's bridge \
             forwards the traffic if there is one; restart weir"
        ),
        Failure::Broken(why) => format!("{name}: {}", files::why(&why)),
        Failure::Unreadable => format!("{name}: the response cannot be read"),
        Failure::Refused(refused) => return refused_by(&refused),
    })
}

const START: &str = "start one with `weir run -c POLICY`";

/// Says what a link answered that did not do what it was asked.
fn refused_by(refused: &Refused) -> ExitCode {
    if !refused.text.is_empty() {
        say(refused.text.trim_end());
    }
    let colon = if refused.cure.is_empty() { "" } else { ": " };
    let code = problem(&format!("{}{colon}{}", refused.what, refused.cure));
    if refused.fault == Fault::Content { ExitCode::from(1) } else { code }
}

/// The only socket there is, among those of `links` if one of them is there.
fn only(folder: &Path, links: &[&str]) -> Result<PathBuf, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sock"))
        .collect();
    found.sort();
    // a weir that was killed has left its socket behind, and nobody listens there
    let (mut found, dead): (Vec<PathBuf>, Vec<PathBuf>) =
        found.into_iter().partition(|path| !is_dead(path));
    let wanted =
        |path: &Path| path.file_stem().is_some_and(|s| links.iter().any(|link| s == *link));
    if found.iter().any(|path| wanted(path)) {
        found.retain(|path| wanted(path));
    }
    match &found[..] {
        [] => match dead.first() {
            None => Err(format!("no link runs here; {START}")),
            Some(path) => Err(format!("{}: the link has ended; {START}", path.display())),
        },
        [one] => Ok(one.clone()),
        several => {
            let names = several.iter().filter_map(|path| path.file_stem()?.to_str());
            let lines: String = names.map(|name| format!("\n  --link {name}")).collect();
            Err(format!("several links run here; choose one:{lines}"))
        }
    }
}

/// Whether nobody listens at a socket any more.
fn is_dead(path: &Path) -> bool {
    UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_only_link_is_meant_and_of_several_none() {
        let folder = std::env::temp_dir().join(format!("weir-only-{}", std::process::id()));
        let only = |links: &[&str]| only(&folder, links);
        assert!(only(&[]).unwrap_err().contains("weir run -c POLICY"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("office.lock"), "").unwrap();
        assert!(only(&[]).is_err());
        let listen = |name: &str| UnixListener::bind(folder.join(name)).unwrap();
        // what a killed one leaves is no link
        drop(listen("dead.sock"));
        assert!(only(&[]).unwrap_err().contains("dead.sock: the link has ended"));
        let _office = listen("office.sock");
        assert_eq!(only(&["dead"]), Ok(folder.join("office.sock")));
        assert_eq!(only(&["other"]), Ok(folder.join("office.sock")));
        let _home = listen("home.sock");
        let several = only(&[]).unwrap_err();
        assert!(several.ends_with("choose one:\n  --link home\n  --link office"), "{several}");
        assert_eq!(only(&["home", "x"]), Ok(folder.join("home.sock")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
