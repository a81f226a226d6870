//! What weir may do once its ports are open: answer the operator and write its own files. What
//! takes a right after that is the helper's. The thread that reads packets from strangers may do
//! nothing at all.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;

use weir_io::privileges::{self, Calls, Capabilities, Capability, Confined};

use crate::files;

/// The user that weir becomes, unless the operator names another.
pub(crate) const USER: &str = "weir";

/// Numbers that no distribution gives to anybody for good (systemd's range for services whose user
/// is made at their start).
const FREE_USERS: std::ops::RangeInclusive<u32> = 61_184..=65_519;

/// Bytes of the table of users that are read.
const USERS_BYTES: u64 = 1 << 20;

/// The user that weir becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    id: u32,
    group: u32,
}

impl User {
    /// The user of that name; without a name `weir`, or a number that nobody has. `None` if we are
    /// no superuser: then we stay who we are.
    pub(crate) fn find(name: Option<&str>) -> Result<Option<User>, String> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0);
        if !is_root {
            return Ok(None);
        }
        let users = files::read("/etc/passwd".as_ref(), USERS_BYTES).unwrap_or_default();
        User::named(&String::from_utf8_lossy(&users), name).map(Some)
    }

    fn named(users: &str, name: Option<&str>) -> Result<User, String> {
        let lines = || users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let of = |fields: &[&str]| {
            let (id, group) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
            Some(User { id, group })
        };
        let known = lines().find(|fields| fields[0] == name.unwrap_or(USER));
        match (known.and_then(|fields| of(&fields)), name) {
            (Some(User { id: 0, .. }), _) => {
                Err("weir does not run as root: name another --user".to_owned())
            }
            (Some(user), _) => Ok(user),
            (None, Some(name)) => Err(format!(
                "there is no user \"{name}\"; create it with `useradd --system {name}`, or omit \
                 --user to use an unused number"
            )),
            (None, None) => {
                let taken: Vec<u32> = lines().filter_map(|f| Some(of(&f)?.id)).collect();
                let mut free = FREE_USERS.filter(|id| !taken.contains(id));
                let id = free.next().ok_or("no unused user number is left; name a --user")?;
                Ok(User { id, group: id })
            }
        }
    }

    /// Makes the folder of the link's history this user's, and the one above it reachable.
    pub(crate) fn own(self, state: &Path, link: &str) -> Result<(), String> {
        let said = |path: &Path, e: &std::io::Error| {
            format!("{} cannot be given to the user: {}", path.display(), files::why_not_written(e))
        };
        let folder = state.join(link);
        fs::create_dir_all(&folder).map_err(|e| said(&folder, &e))?;
        for path in [state, &folder] {
            let about = fs::symlink_metadata(path).map_err(|e| said(path, &e))?;
            if !about.is_dir() {
                return Err(format!("{} is no folder", path.display()));
            }
        }
        // whoever owned it before goes on owning it: only the group is let through
        if fs::symlink_metadata(state).is_ok_and(|about| about.mode() & 0o001 == 0) {
            chown(state, None, Some(self.group)).map_err(|e| said(state, &e))?;
        }
        let entries = fs::read_dir(&folder).map_err(|e| said(&folder, &e))?;
        for entry in entries.flatten() {
            let path = entry.path();
            // a link could lead anywhere
            if fs::symlink_metadata(&path).is_ok_and(|about| about.is_file() && about.nlink() == 1)
            {
                chown(&path, Some(self.id), Some(self.group)).map_err(|e| said(&path, &e))?;
            }
        }
        chown(&folder, Some(self.id), Some(self.group)).map_err(|e| said(&folder, &e))?;
        // who was a customer of what is nobody else's business
        let mode = fs::Permissions::from_mode(0o750);
        fs::set_permissions(&folder, mode).map_err(|e| said(&folder, &e))
    }
}

/// Gives up files and the user, keeps memory, and of the rights only those that starting the packet
/// thread takes: [`keep_none`] there, [`keep_least`] here follow. To be called before threads are
/// made. Returns what the operator should know.
///
/// # Errors
/// What could not be given up: weir does not start with more than it needs.
pub(crate) fn give_up(user: Option<User>, written: &Path) -> Result<Vec<String>, String> {
    let mut notes = Vec::new();
    let read = [Path::new("/etc/passwd")];
    match privileges::confine(&read, &[written]) {
        Ok(confined) => notes.extend(unconfined(confined).map(str::to_owned)),
        Err(error) => return Err(format!("access to files cannot be given up: {error}")),
    }
    // before the user falls; where the limit stands, a right does the same
    let may_lock = privileges::lock_any_memory().is_ok();
    // a packet thread that waits for a page from the disk is late, and one that gets none is dead
    if let Err(error) = weir_io::wait::keep_memory() {
        notes.push(format!("weir's memory may be swapped out when it is short: {error}"));
    }
    if let Some(user) = user {
        privileges::become_user(user.id, user.group)
            .map_err(|error| format!("weir cannot become user {}: {error}", user.id))?;
    }
    let mut keep = vec![Capability::SysNice];
    keep.extend((!may_lock).then_some(Capability::IpcLock));
    keep_of(&keep)?;
    Ok(notes)
}

/// What to say where Landlock does nothing, and what would enable it.
fn unconfined(confined: Confined) -> Option<&'static str> {
    match confined {
        Confined::Yes => None,
        Confined::Disabled => Some(
            "weir can reach all files of its user, because Landlock is off in this kernel; to \
             enable it, boot with lsm=landlock, followed by what /sys/kernel/security/lsm lists",
        ),
        Confined::Absent => Some(
            "weir can reach all files of its user, because this kernel has no Landlock; Linux \
             5.13 or later with CONFIG_SECURITY_LANDLOCK=y has it",
        ),
    }
}

/// What is left once the packet thread has begun: no right, but for memory that stays where the
/// system's limit is too low.
pub(crate) fn keep_least() -> Result<(), String> {
    keep_of(&[Capability::IpcLock])?;
    filter(Calls::Control)
}

/// Keeps those of these rights that there are.
fn keep_of(keep: &[Capability]) -> Result<(), String> {
    let had = Capabilities::effective().map_err(|e| format!("privileges cannot be read: {e}"))?;
    let keep: Vec<Capability> = keep.iter().copied().filter(|one| had.has(*one)).collect();
    privileges::drop_to(Capabilities::of(&keep))
        .map_err(|error| format!("privileges cannot be given up: {error}"))
}

/// The packet thread's share of rights.
pub(crate) fn keep_none() -> Result<(), String> {
    privileges::drop_to(Capabilities::NONE)
        .map_err(|error| format!("privileges cannot be given up: {error}"))?;
    filter(Calls::Packets)
}

fn filter(calls: Calls) -> Result<(), String> {
    match privileges::leave_only(calls) {
        // a kernel that is built without seccomp
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
        done => done.map_err(|error| format!("system calls cannot be given up: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names the folder in which the process of its own works.
    const STATE: &str = "WEIR_RIGHTS_TEST";

    #[test]
    fn a_user_is_found_by_name_or_one_is_made_up_that_nobody_is() {
        let users = "root:x:0:0::/:\nweir:x:991:990::/:\nanna:x:1000:100::/:\nx:x:61184:1::/:\n";
        let named = |users: &str, name| User::named(users, name);
        assert_eq!(named(users, None), Ok(User { id: 991, group: 990 }));
        assert_eq!(named(users, Some("anna")), Ok(User { id: 1_000, group: 100 }));
        let without = users.replace("weir", "other");
        assert_eq!(named(&without, None), Ok(User { id: 61_185, group: 61_185 }));
        assert!(named(users, Some("root")).unwrap_err().contains("name another --user"));
        assert!(named(users, Some("bert")).unwrap_err().contains("useradd --system bert"));
    }

    #[test]
    fn afterwards_only_the_history_can_be_reached() {
        // a user is of the whole process, so it is one of its own that changes
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "--ignored", "rights::tests::in_a_process_of_its_own"]);
        // that one can remove nothing afterwards
        let state = std::env::temp_dir().join(format!("weir-rights-{}", std::process::id()));
        let done = own.env(STATE, &state).output().unwrap();
        fs::remove_dir_all(&state).unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "confines the whole process: another test runs it in one of its own"]
    fn in_a_process_of_its_own() {
        let Some(state) = std::env::var_os(STATE).map(std::path::PathBuf::from) else {
            eprintln!("skipped: afterwards_only_the_history_can_be_reached runs it");
            return;
        };
        fs::create_dir_all(&state).unwrap();
        fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
        let (beside, hidden) = (state.join("other"), state.join("hidden"));
        fs::write(&hidden, "x").unwrap();
        // everyone may read it, but for Landlock
        fs::set_permissions(&hidden, fs::Permissions::from_mode(0o666)).unwrap();
        let user = User::find(None).unwrap();
        let folder = state.join("l");
        match user {
            Some(user) => user.own(&state, "l").unwrap(),
            None => fs::create_dir_all(&folder).unwrap(),
        }
        assert_eq!(fs::read(&hidden).unwrap(), b"x");

        let notes = give_up(user, &folder).unwrap();
        keep_least().unwrap();
        if notes.iter().any(|note| note.contains("Landlock")) {
            eprintln!("skipped: {}", notes.join("; "));
            return;
        }
        let denied = |tried: std::io::Result<()>| {
            let kind = tried.unwrap_err().kind();
            assert_eq!(kind, std::io::ErrorKind::PermissionDenied);
        };
        let check = move || {
            denied(fs::read(&hidden).map(drop));
            denied(fs::write(&hidden, "y"));
            denied(fs::write(&beside, "y"));
            denied(fs::read_dir("/proc/self").map(drop));
            denied(fs::read_dir("/").map(drop));
            // what the commands of the operator need
            assert!(files::read("/etc/passwd".as_ref(), USERS_BYTES).is_ok());
            files::replace_own(&folder.join("1"), "y").unwrap();
            assert_eq!(files::read_own(&folder.join("1"), 9).unwrap(), b"y");
            fs::remove_file(folder.join("1")).unwrap();
        };
        check();
        std::thread::spawn(check).join().unwrap();
    }

    #[test]
    fn a_kernel_that_confines_nothing_is_said_with_what_would() {
        assert_eq!(unconfined(Confined::Yes), None);
        assert!(unconfined(Confined::Disabled).is_some_and(|note| note.contains("lsm=landlock")));
        assert!(unconfined(Confined::Absent).is_some_and(|note| note.contains("5.13")));
    }
}
