//! The line to a running link: found by name, or the only one there is.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::Value;
use weir_units::limits;

use super::{Whom, folder, text};
use crate::files;
use crate::out::{problem, say};
use crate::run::protocol::Request;
use crate::run::socket::path_of;

/// A connection to a link.
pub(super) struct Line {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

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
        let stream = UnixStream::connect(&path).map_err(|error| {
            let name = path.display();
            problem(&match error.kind() {
                ErrorKind::ConnectionRefused => format!("the weir of {name} has ended; {START}"),
                ErrorKind::NotFound => format!("no weir runs at {name}: {START}"),
                ErrorKind::PermissionDenied => {
                    format!("{name}: permission denied: ask as root, or as a user of its group")
                }
                _ => format!("{name}: {}", files::why(&error)),
            })
        })?;
        // it waits as long as a silent packet thread may take, several times over
        let patience = Some(Duration::from_secs(limits::CONTROL_SILENCE_SECS));
        let _ = stream.set_read_timeout(patience);
        let _ = stream.set_write_timeout(patience);
        Ok(Line { stream: BufReader::new(stream), path })
    }

    /// Where the link is asked.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Asks, and gives the answer if it is one. What is wrong has been said otherwise.
    pub(super) fn ask(&mut self, request: &Request) -> Result<Value, ExitCode> {
        let line = request.line();
        if line.len() > limits::CONTROL_LINE_BYTES {
            return Err(problem(&format!(
                "the policy and its table are more than the {} MiB that a request may have: write \
                 them to the file that weir was started with, and send it SIGHUP",
                limits::CONTROL_LINE_BYTES >> 20
            )));
        }
        if !matches!(request, Request::Apply(_) | Request::Rollback { .. }) {
            let _ = self.stream.get_ref().set_read_timeout(Some(PATIENCE));
        }
        let came = self.exchange(&line).map_err(|why| {
            problem(&match why.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
                    "{}: weir does not answer: it hangs, or its machine has no time for it; the \
                     kernel's bridge carries the traffic if there is one, and a new start cures it",
                    self.path.display()
                ),
                _ => format!("{}: {}", self.path.display(), files::why(&why)),
            })
        })?;
        let name = self.path.display();
        let answer: Value = serde_json::from_slice(&came)
            .map_err(|_| problem(&format!("{name}: the answer cannot be read")))?;
        if answer["ok"] == true { Ok(answer) } else { Err(refused(&answer)) }
    }

    fn exchange(&mut self, line: &str) -> std::io::Result<Vec<u8>> {
        let written = self.stream.get_mut().write_all(line.as_bytes());
        let mut came = Vec::new();
        let most = limits::CONTROL_ANSWER_BYTES as u64;
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut came);
        match (written, read) {
            // one that is refused has its answer before it has asked
            (_, Ok(len)) if len > 0 => Ok(came),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(()), Ok(_)) => Err(std::io::Error::other("it ended without an answer")),
        }
    }
}

/// How long a link may take to answer what takes it no time.
const PATIENCE: Duration = Duration::from_secs(10);

const START: &str = "start one with `weir run -c POLICY`";

/// Says what a link answered that did not do what it was asked.
fn refused(answer: &Value) -> ExitCode {
    let (problems, cure) = (text(answer, "/error/text"), text(answer, "/error/cure"));
    if !problems.is_empty() {
        say(problems.trim_end());
    }
    let colon = if cure.is_empty() { "" } else { ": " };
    let code = problem(&format!("{}{colon}{cure}", text(answer, "/error/what")));
    if text(answer, "/error/fault") == "content" { ExitCode::from(1) } else { code }
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
            None => Err(format!("no weir runs here: {START}")),
            Some(path) => Err(format!("the weir of {} has ended; {START}", path.display())),
        },
        [one] => Ok(one.clone()),
        several => {
            let names = several.iter().filter_map(|path| path.file_stem()?.to_str());
            let lines: String = names.map(|name| format!("\n  --link {name}")).collect();
            Err(format!("several links run here; say which:{lines}"))
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
        assert!(only(&[]).unwrap_err().contains("dead.sock has ended"));
        let _office = listen("office.sock");
        assert_eq!(only(&["dead"]), Ok(folder.join("office.sock")));
        assert_eq!(only(&["other"]), Ok(folder.join("office.sock")));
        let _home = listen("home.sock");
        let several = only(&[]).unwrap_err();
        assert!(several.ends_with("say which:\n  --link home\n  --link office"), "{several}");
        assert_eq!(only(&["home", "x"]), Ok(folder.join("home.sock")));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
