//! Files that the process may still touch once traffic flows, by Landlock: a rule set that the
//! kernel keeps for this thread and those that it starts, whatever user it is.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::kernel::process;

/// Accesses to files by the version of Landlock that first knew them (`linux/landlock.h`).
const READ: u64 = 1 << 2 | 1 << 3;
const CHANGE: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const DEVICE_IOCTL: u64 = 1 << 15;
/// Of a file that is no directory, what a rule may speak of: run, write, read, cut.
const OF_FILES: u64 = 1 | 1 << 1 | 1 << 2 | TRUNCATE | DEVICE_IOCTL;
const EXECUTE: u64 = 1;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    /// Only the given paths can be reached.
    Yes,
    /// This kernel has no Landlock (5.13 brought it) or does not use it; nothing was changed.
    Unsupported,
}

/// Leaves this thread, and those that it starts, only the given paths and what is beneath them, to
/// read or to read and write. Descriptors that are open stay open. A path that is not there is left
/// out.
pub fn confine(read: &[&Path], write: &[&Path]) -> io::Result<Confined> {
    govern(read, write, u64::MAX)
}

/// The same for a process that goes on starting programs: which, is not governed.
pub fn confine_but_run(read: &[&Path], write: &[&Path]) -> io::Result<Confined> {
    govern(read, write, !EXECUTE)
}

fn govern(read: &[&Path], write: &[&Path], accesses: u64) -> io::Result<Confined> {
    let Ok(version) = process::landlock_version() else { return Ok(Confined::Unsupported) };
    let all = governed(version) & accesses;
    let rules = process::landlock_rules(all)?;
    let read = read.iter().map(|path| (*path, READ));
    for (path, accesses) in read.chain(write.iter().map(|path| (*path, all & !EXECUTE))) {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC);
        let beneath = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let files = if beneath.metadata()?.is_dir() { u64::MAX } else { OF_FILES };
        process::landlock_allow(rules.as_fd(), beneath.as_fd(), accesses & all & files)?;
    }
    super::no_new_privileges()?;
    process::landlock_restrict(rules.as_fd())?;
    Ok(Confined::Yes)
}

/// All accesses that a version can forbid.
fn governed(version: usize) -> u64 {
    let since = |first, accesses| if version >= first { accesses } else { 0 };
    CHANGE | since(2, REFER) | since(3, TRUNCATE) | since(5, DEVICE_IOCTL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_not_named_cannot_be_reached() {
        let base = std::env::temp_dir().join(format!("weir-landlock-{}", std::process::id()));
        let (shown, kept, hidden) = (base.join("shown"), base.join("kept"), base.join("hidden"));
        for dir in [&shown, &kept, &hidden] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("file"), "x").unwrap();
        }
        let path = base.clone();
        let thread = std::thread::spawn(move || {
            let absent = path.join("absent");
            let confined = confine(&[&shown, &absent], &[&kept]).unwrap();
            if confined == Confined::Unsupported {
                eprintln!("skipped: this kernel has no Landlock");
                return;
            }
            assert_eq!(fs::read(shown.join("file")).unwrap(), b"x");
            assert!(fs::write(shown.join("file"), "y").is_err());
            fs::write(kept.join("file"), "y").unwrap();
            fs::write(kept.join("new"), "y").unwrap();
            assert!(fs::read(hidden.join("file")).is_err());
        });
        thread.join().unwrap();
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn an_older_version_is_not_asked_for_what_it_does_not_know() {
        assert_eq!(governed(1), 0x1fff);
        assert_eq!(governed(2), 0x3fff);
        assert_eq!(governed(4), 0x7fff);
        assert_eq!(governed(9), 0xffff);
    }
}
