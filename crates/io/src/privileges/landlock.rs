//! What the process may still reach once traffic flows, by Landlock: a rule set that the kernel
//! keeps for this thread and those that it starts, whatever user it is. Which version of the kernel
//! can forbid what is known to the crate of that name.

use std::io;
use std::path::Path;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, PathBeneath, PathFd,
    PathFdError, RestrictionStatus, Ruleset, RulesetAttr as _, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope,
};

/// The accesses to files that are governed. A later version also governs connecting to sockets by
/// their path, which notifying systemd needs.
const FILES: ABI = ABI::V5;
/// The accesses to TCP.
const TCP: ABI = ABI::V4;

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Confined {
    /// Only the given paths can be reached, as far as this kernel can see to it.
    Yes,
    /// Nothing was changed: this kernel has Landlock but was not started with it.
    Disabled,
    /// Nothing was changed: this kernel has no Landlock.
    Absent,
}

/// Leaves this thread, and those that it starts, only the given paths and what is beneath them, to
/// read or to read and write. It can open no TCP connection and listen at no other port of TCP, and
/// signal only itself and what it starts. Descriptors that are open stay open. A path that is not
/// there is left out.
pub fn confine(read: &[&Path], write: &[&Path]) -> io::Result<Confined> {
    govern(read, write, AccessFs::from_all(FILES))
}

/// The same for a process that goes on starting programs: which, is not governed.
pub fn confine_but_run(read: &[&Path], write: &[&Path]) -> io::Result<Confined> {
    govern(read, write, AccessFs::from_all(FILES) & !BitFlags::from(AccessFs::Execute))
}

fn govern(read: &[&Path], write: &[&Path], all: BitFlags<AccessFs>) -> io::Result<Confined> {
    let reads = AccessFs::ReadFile | AccessFs::ReadDir;
    let writes = all & !BitFlags::from(AccessFs::Execute);
    let read = read.iter().map(|path| (*path, reads));
    let rules = read.chain(write.iter().map(|path| (*path, writes)));
    let rules: Vec<_> = rules
        .filter_map(|(path, may)| rule(path, may).transpose())
        .collect::<Result<_, PathFdError>>()
        .map_err(io::Error::other)?;
    let restricted = restrict(all, rules).map_err(io::Error::other)?;
    Ok(match (restricted.ruleset, restricted.landlock) {
        (RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced, _) => Confined::Yes,
        (RulesetStatus::NotEnforced, LandlockStatus::NotEnabled) => Confined::Disabled,
        (RulesetStatus::NotEnforced, _) => Confined::Absent,
    })
}

/// What a path allows; none if it is not there.
fn rule(path: &Path, may: BitFlags<AccessFs>) -> Result<Option<PathBeneath<PathFd>>, PathFdError> {
    match PathFd::new(path) {
        Ok(beneath) => Ok(Some(PathBeneath::new(beneath, may))),
        Err(PathFdError::OpenCall { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn restrict(
    all: BitFlags<AccessFs>,
    rules: Vec<PathBeneath<PathFd>>,
) -> Result<RestrictionStatus, RulesetError> {
    Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(TCP))?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(rules.into_iter().map(Ok::<_, RulesetError>))?
        .restrict_self()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn what_was_not_named_cannot_be_reached() {
        let base = std::env::temp_dir().join(format!("weir-landlock-{}", std::process::id()));
        let (shown, kept, hidden) = (base.join("shown"), base.join("kept"), base.join("hidden"));
        for dir in [&shown, &kept, &hidden] {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join("file"), "x").unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let path = base.clone();
        let thread = std::thread::spawn(move || {
            let absent = path.join("absent");
            // of a file, too, which has fewer accesses than a folder
            let confined = confine(&[&shown.join("file"), &absent], &[&kept]).unwrap();
            if confined != Confined::Yes {
                eprintln!("skipped: this kernel has no Landlock");
                return;
            }
            assert_eq!(fs::read(shown.join("file")).unwrap(), b"x");
            assert!(fs::write(shown.join("file"), "y").is_err());
            fs::write(kept.join("file"), "y").unwrap();
            fs::write(kept.join("new"), "y").unwrap();
            let denied = fs::read(hidden.join("file")).unwrap_err();
            assert_eq!(denied.kind(), io::ErrorKind::PermissionDenied);
            assert!(TcpStream::connect(address).is_err());
            assert!(TcpListener::bind("127.0.0.1:0").is_err());
        });
        thread.join().unwrap();
        // what listened before goes on
        TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn an_access_of_a_path_that_cannot_be_opened_is_an_error() {
        let beneath_a_file = Path::new("/proc/self/exe/none");
        assert!(rule(beneath_a_file, AccessFs::ReadFile.into()).is_err());
        assert!(rule("/proc/self/none".as_ref(), AccessFs::ReadFile.into()).unwrap().is_none());
    }
}
