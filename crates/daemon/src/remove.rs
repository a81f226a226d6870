//! `weir remove`: takes back what weir has changed of the interfaces of a link that does not run.
//! A weir that was stopped leaves its bridge, because that carries the traffic; whoever wants the
//! interfaces for something else, or has no use for weir any more, removes it.

use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use weir_io::netdev;

use crate::bypass::name_for;
use crate::helper::{Undo, undo_path};
use weir_control::path_of;

/// Takes it back and says what was done, a line each: of one link, by its name or its socket, or of
/// all; those that run are told and stay. What was done before an error has been said.
///
/// # Errors
///
/// Why that cannot be.
pub fn run(
    link: Option<&str>,
    socket: Option<&Path>,
    said: &mut dyn FnMut(&str),
) -> Result<(), String> {
    let folder = Path::new(weir_control::FOLDER);
    let sockets = match (link, socket) {
        (_, Some(socket)) => vec![socket.to_owned()],
        (Some(link), None) => vec![path_of(folder, link)],
        (None, None) => left_over(folder),
    };
    let mut is_said = false;
    let mut say = |line: &str| {
        is_said = true;
        said(line);
    };
    for path in sockets {
        if UnixStream::connect(&path).is_ok() {
            let which = match (socket, path.file_stem()) {
                (None, Some(link)) => format!("--link {}", link.to_string_lossy()),
                _ => format!("--socket {}", path.display()),
            };
            let cure = format!("`weir stop {which}` ends it");
            if link.is_some() || socket.is_some() {
                return Err(format!("this link is running; {cure}"));
            }
            say(&format!("a link is running and keeps its interfaces; {cure}"));
            continue;
        }
        let mut undo = Undo::open(undo_path(&path));
        if let Some(link) = link.filter(|_| undo.is_empty()) {
            // the record lies in memory; the bridge is known by its name
            let name = name_for(link);
            if netdev::index_of(&name).is_err() {
                return Err(format!(
                    "nothing is left of a link \"{link}\": there is no {} and no bridge {name}",
                    undo_path(&path).display()
                ));
            }
            undo.bridge(&name);
        }
        undo.remove().iter().for_each(|line| say(line));
        // nobody is behind it; who named another file keeps that
        if std::fs::symlink_metadata(&path).is_ok_and(|file| file.file_type().is_socket()) {
            let _ = std::fs::remove_file(&path);
        }
    }
    if !is_said {
        said("there is nothing to remove");
    }
    Ok(())
}

/// The sockets of links that have left something, whether they run or not.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "undo"))
        .map(|path| path.with_extension("sock"))
        .collect();
    sockets.sort();
    sockets
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::tests::Folder;

    #[test]
    fn a_socket_that_nobody_serves_goes_and_any_other_file_stays() {
        let folder = Folder::new("remove");
        let [socket, file] = ["a.sock", "b.sock"].map(|name| folder.0.join(name));
        let listener = UnixListener::bind(&socket).unwrap();
        let mut said = Vec::new();
        let running = run(None, Some(&socket), &mut |line| said.push(line.to_owned()));
        assert!(running.unwrap_err().contains("weir stop --socket"));
        drop(listener);
        std::fs::write(&file, "mine").unwrap();
        for path in [&socket, &file] {
            run(None, Some(path), &mut |line| said.push(line.to_owned())).unwrap();
        }
        assert_eq!(said, ["there is nothing to remove"; 2]);
        assert!(!socket.exists() && file.exists());
    }
}
