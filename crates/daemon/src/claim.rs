//! Says to every other weir that an interface is taken: by a lock on a file in a folder that only
//! root writes to, so that no other user can keep weir from starting. The kernel frees the lock
//! however we end.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::files;
use weir_control::FOLDER;

/// The locks of a link's ports.
#[derive(Debug)]
pub(crate) struct Claims {
    _files: [File; 2],
}

impl Claims {
    /// Claims both interfaces. Who may not write where all weirs do, claims them beside its own
    /// socket.
    pub(crate) fn take(ports: [&str; 2], socket: &Path) -> Result<Claims, String> {
        let of_all = Path::new(FOLDER).join("ports");
        match in_folder(&of_all, ports) {
            Err(Untaken::Denied(_)) => in_folder(&socket.with_file_name("ports"), ports),
            other => other,
        }
        .map_err(|untaken| match untaken {
            Untaken::Denied(why) | Untaken::Refused(why) => why,
        })
    }
}

/// Why a port is not ours.
enum Untaken {
    /// We may not write there.
    Denied(String),
    Refused(String),
}

fn in_folder(folder: &Path, ports: [&str; 2]) -> Result<Claims, Untaken> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
        .map_err(|error| untaken(folder, &error))?;
    Ok(Claims { _files: [one(folder, ports[0])?, one(folder, ports[1])?] })
}

fn untaken(path: &Path, error: &std::io::Error) -> Untaken {
    let why = format!("{}: {}", path.display(), files::why_not_written(error));
    match error.kind() {
        ErrorKind::PermissionDenied => Untaken::Denied(why),
        _ => Untaken::Refused(why),
    }
}

fn one(folder: &Path, port: &str) -> Result<File, Untaken> {
    // interfaces are of one network namespace, folders of all of them
    let space = std::fs::read_link("/proc/thread-self/ns/net").unwrap_or_default();
    let space: String = space.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    // a name of an interface may have anything in it but a slash
    let path = folder.join(format!("{space}-{}.lock", port.replace('/', "_")));
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(
            (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits().cast_signed(),
        )
        .open(&path)
        .map_err(|error| untaken(&path, &error))?;
    if file.try_lock().is_err() {
        return Err(Untaken::Refused(format!(
            "another weir uses {port}: `weir status` shows it, `weir stop` ends it"
        )));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    #[test]
    fn a_port_is_claimed_once_and_no_trap_is_followed() {
        let folder = Folder::new("claim");
        let Ok(first) = one(&folder.0, "eth1") else { panic!("it is free") };
        let Err(Untaken::Refused(why)) = one(&folder.0, "eth1") else { panic!("twice") };
        assert!(why.contains("another weir uses eth1"), "{why}");
        assert!(one(&folder.0, "eth2").is_ok());
        let path = std::fs::read_dir(&folder.0).unwrap().flatten();
        let path = path
            .map(|e| e.path())
            .find(|p| p.ends_with("eth1.lock") || p.to_string_lossy().contains("eth1"))
            .unwrap();
        drop(first);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(one(&folder.0, "eth1").is_err(), "a link is not followed");
        std::fs::remove_file(&path).unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(&path).status();
        if pipe.is_ok_and(|status| status.success()) {
            assert!(one(&folder.0, "eth1").is_err(), "a pipe without a reader");
        }
    }
}
