//! The local socket at which a running link is asked: one owner at a time, and no more left behind
//! than the next start clears away.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{
    FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use weir_io::wait::now;
use weir_units::{Instant, Span, limits};

use crate::files;

/// A socket that is listened at. It goes away with its owner.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    inode: u64,
    /// Held as long as the socket is: the kernel lets go of it however the owner ends.
    _lock: File,
}

impl Socket {
    /// Listens at `path`, unless another weir does.
    pub(crate) fn open(path: &Path) -> Result<Socket, String> {
        let why = |error: &std::io::Error| format!("{}: {}", path.display(), files::why(error));
        if let Some(folder) = path.parent().filter(|folder| *folder != Path::new("")) {
            std::fs::create_dir_all(folder).map_err(|e| why(&e))?;
            // where others can write, a link may lead anywhere
            if !std::fs::symlink_metadata(folder).map_err(|e| why(&e))?.is_dir() {
                let name = folder.display();
                return Err(format!(
                    "{name} is not a directory: if it is a symbolic link, give the directory \
                     behind it"
                ));
            }
        }
        let lock = lock_file(&path.with_extension("lock"))?;
        if lock.try_lock().is_err() {
            return Err(format!("another weir holds {}", path.display()));
        }
        clear(path)?;
        // nobody may talk to it before its mode is right, so it gets its name last
        let beside = path.with_extension(format!("weir-{}", std::process::id()));
        let _ = std::fs::remove_file(&beside);
        let listener = UnixListener::bind(&beside).map_err(|e| why(&e))?;
        let mode = std::fs::Permissions::from_mode(0o660);
        let named = std::fs::set_permissions(&beside, mode)
            .and_then(|()| Ok(std::fs::metadata(&beside)?.ino()))
            .and_then(|inode| std::fs::rename(&beside, path).map(|()| inode))
            .and_then(|inode| listener.set_nonblocking(true).map(|()| inode));
        match named {
            Ok(inode) => Ok(Socket { listener, path: path.to_owned(), inode, _lock: lock }),
            Err(error) => {
                let _ = std::fs::remove_file(&beside);
                Err(why(&error))
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // another may have taken the name by hand
        if std::fs::metadata(&self.path).is_ok_and(|file| file.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// The file whose lock says that a link has an owner: a file and nothing else, whatever lies there.
fn lock_file(path: &Path) -> Result<File, String> {
    let name = path.display();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o640)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let is_file = |file: &File| file.metadata().is_ok_and(|about| about.is_file());
    match opened {
        Ok(file) if is_file(&file) => Ok(file),
        Err(error) if error.raw_os_error() != Some(Errno::LOOP.raw_os_error()) => {
            Err(format!("{name}: {}", files::why(&error)))
        }
        Ok(_) | Err(_) => Err(format!("{name} exists and is not a file: move it away")),
    }
}

/// Takes away a socket at which nobody answers any more, and nothing else.
fn clear(path: &Path) -> Result<(), String> {
    let name = path.display();
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(format!("{name}: {}", files::why(&error))),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(format!("{name} exists and is not a socket: move it away"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(format!("another process already serves {name}")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| format!("{name}: {}", files::why(&e)))
        }
        Err(error) => Err(format!("{name}: {error}")),
    }
}

/// Lines from and to who asks; both may take so long and no longer.
#[derive(Debug)]
pub(crate) struct Lines {
    stream: UnixStream,
    came: Vec<u8>,
}

/// Why no line came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLine {
    /// The other side has gone, or is silent.
    Gone,
    TooLong,
    /// It is a large one, and another is being received.
    Busy,
}

/// Room for a large request: so much that the C library maps it by itself, and gives it back to the
/// kernel as soon as it is free (M_MMAP_THRESHOLD_MAX is 32 MiB).
const AT_ONCE: usize = 33 << 20;

const SILENCE: Span = Span::from_secs(limits::CONTROL_SILENCE_SECS);

impl Lines {
    pub(crate) fn new(stream: UnixStream) -> Lines {
        Lines { stream, came: Vec::new() }
    }

    /// The next line without its end.
    #[cfg(test)]
    pub(crate) fn read(&mut self) -> Result<Vec<u8>, NoLine> {
        self.read_if(|| true)
    }

    /// The same, if it is short or `may_be_large` says yes.
    pub(crate) fn read_if(
        &mut self,
        may_be_large: impl FnOnce() -> bool,
    ) -> Result<Vec<u8>, NoLine> {
        let mut may_be_large = Some(may_be_large);
        let until = now() + SILENCE;
        let mut looked = 0;
        let mut piece = [0; 1 << 14];
        loop {
            if let Some(at) = self.came[looked..].iter().position(|&byte| byte == b'\n') {
                let rest = self.came.split_off(looked + at + 1);
                let mut line = std::mem::replace(&mut self.came, rest);
                line.pop();
                return Ok(line);
            }
            looked = self.came.len();
            if looked > limits::CONTROL_LINE_BYTES {
                return Err(NoLine::TooLong);
            }
            if looked > limits::CONTROL_SMALL_BYTES
                && let Some(may) = may_be_large.take()
            {
                if !may() {
                    return Err(NoLine::Busy);
                }
                self.came.reserve_exact(AT_ONCE);
            }
            let left = left(until).ok_or(NoLine::Gone)?;
            self.stream.set_read_timeout(Some(left)).map_err(|_| NoLine::Gone)?;
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(NoLine::Gone),
                Ok(len) => self.came.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(NoLine::Gone),
            }
        }
    }

    /// Writes all of `text`, or says that the other side does not fetch it.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), NoLine> {
        let until = now() + SILENCE;
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            let left = left(until).ok_or(NoLine::Gone)?;
            self.stream.set_write_timeout(Some(left)).map_err(|_| NoLine::Gone)?;
            match self.stream.write(rest) {
                Ok(0) => return Err(NoLine::Gone),
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(NoLine::Gone),
            }
        }
        Ok(())
    }
}

/// The time until then; `None` when it has come.
pub(crate) fn left(until: Instant) -> Option<Duration> {
    let left = until.since(now());
    (left > Span::ZERO).then(|| Duration::from_nanos(left.ns()))
}

#[cfg(test)]
mod tests {
    use crate::tests::Folder;
    use weir_control::path_of;

    use super::*;

    #[test]
    fn one_weir_at_a_time_and_what_a_dead_one_left_is_cleared() {
        let folder = Folder::new("socket");
        let path = path_of(&folder.0, "l");
        let first = Socket::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o660);
        let no = Socket::open(&path).unwrap_err();
        assert!(no.contains("another weir holds"), "{no}");
        assert!(UnixStream::connect(&path).is_ok());
        drop(first);
        assert!(!path.exists());
        // killed: the file stays, nobody answers
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let second = Socket::open(&path).unwrap();
        assert!(UnixStream::connect(&path).is_ok());
        drop(second);
        // somebody who knows nothing of locks
        let other = UnixListener::bind(&path).unwrap();
        let no = Socket::open(&path).unwrap_err();
        assert!(
            no.contains("another process already serves") && UnixStream::connect(&path).is_ok(),
            "{no}"
        );
        drop(other);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a file").unwrap();
        assert!(Socket::open(&path).unwrap_err().contains("is not a socket"));
        assert!(path.exists());
    }

    #[test]
    fn what_lies_where_the_lock_should_be_is_not_followed_nor_waited_for() {
        let folder = Folder::new("lock");
        let path = path_of(&folder.0, "l");
        let lock = folder.0.join("l.lock");
        let other = folder.0.join("other");
        std::fs::write(&other, "of somebody").unwrap();
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        assert!(Socket::open(&path).unwrap_err().contains("is not a file"));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "of somebody");
        std::fs::remove_file(&lock).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&lock).status().unwrap().success());
        assert!(Socket::open(&path).unwrap_err().contains("is not a file"));
        std::fs::remove_file(&lock).unwrap();
        let real = folder.0.join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink(&real, folder.0.join("link")).unwrap();
        let no = Socket::open(&path_of(&folder.0.join("link"), "l")).unwrap_err();
        assert!(no.contains("is not a directory"), "{no}");
        drop(Socket::open(&path_of(&real, "l")).unwrap());
    }

    #[test]
    fn lines_come_one_by_one_and_have_a_bound() {
        let (here, there) = UnixStream::pair().unwrap();
        let mut lines = Lines::new(here);
        let writer = std::thread::spawn(move || {
            let mut there = there;
            there.write_all(b"one\ntwo\n").unwrap();
            let _ = there.write_all(&vec![b'x'; limits::CONTROL_LINE_BYTES + (1 << 15)]);
        });
        assert_eq!(lines.read(), Ok(b"one".to_vec()));
        assert_eq!(lines.read(), Ok(b"two".to_vec()));
        assert_eq!(lines.read(), Err(NoLine::TooLong));
        drop(lines);
        writer.join().unwrap();
    }
}
