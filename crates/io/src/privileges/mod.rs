//! What the process may do, and giving up what it does not need. Everything here is of the calling
//! thread and of those that it starts later, so it is done before any other thread is started.

mod landlock;
mod seccomp;

use std::fmt;
use std::io;

use rustix::process::{Resource, Rlimit, setrlimit, setsid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, remove_capability_from_bounding_set, set_capabilities,
    set_keep_capabilities, set_no_new_privs,
};

use crate::kernel::process;

pub use landlock::{Confined, confine, confine_but_run};
pub use seccomp::{Calls, leave_only};

/// What to do when a right is missing.
pub(crate) const CURE: &str = "run weir by sudo, or give it the right once: \
                        `sudo setcap cap_net_raw,cap_net_admin,cap_bpf+ep /usr/bin/weir`";

/// A right that weir may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Packet sockets.
    NetRaw,
    /// Interfaces: offloads, bridges, tap devices, programs on them.
    NetAdmin,
    /// Programs and maps of the kernel path.
    Bpf,
    /// Memory that stays in RAM.
    IpcLock,
    /// `SCHED_FIFO` and CPUs.
    SysNice,
    /// Becoming another user.
    SetUid,
    /// Becoming another group.
    SetGid,
}

/// A set of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities(CapabilitySet);

/// Rights that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(Vec<Capability>);

impl Capabilities {
    /// No rights.
    pub const NONE: Capabilities = Capabilities(CapabilitySet::empty());

    /// Those and no others.
    #[must_use]
    pub fn of(all: &[Capability]) -> Self {
        Capabilities(all.iter().map(|one| one.alone()).collect())
    }

    /// Those that this thread has in effect.
    pub fn effective() -> io::Result<Self> {
        Ok(Capabilities(capabilities(None)?.effective))
    }

    /// Whether that one is among them.
    #[must_use]
    pub const fn has(self, one: Capability) -> bool {
        self.0.contains(one.alone())
    }

    /// All of `needed`, or those that are missing, with the cure.
    pub fn require(self, needed: &[Capability]) -> Result<(), Missing> {
        let missing: Vec<_> = needed.iter().copied().filter(|&one| !self.has(one)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Missing(missing)) }
    }
}

impl Capability {
    const fn alone(self) -> CapabilitySet {
        match self {
            Capability::NetRaw => CapabilitySet::NET_RAW,
            Capability::NetAdmin => CapabilitySet::NET_ADMIN,
            Capability::Bpf => CapabilitySet::BPF,
            Capability::IpcLock => CapabilitySet::IPC_LOCK,
            Capability::SysNice => CapabilitySet::SYS_NICE,
            Capability::SetUid => CapabilitySet::SETUID,
            Capability::SetGid => CapabilitySet::SETGID,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("weir lacks the right to ")?;
        for (n, one) in self.0.iter().enumerate() {
            let (what, name) = match one {
                Capability::NetRaw => ("open packet sockets", "CAP_NET_RAW"),
                Capability::NetAdmin => ("change interfaces", "CAP_NET_ADMIN"),
                Capability::Bpf => ("load programs into the kernel", "CAP_BPF"),
                Capability::IpcLock => ("keep its memory in RAM", "CAP_IPC_LOCK"),
                Capability::SysNice => ("schedule itself first", "CAP_SYS_NICE"),
                Capability::SetUid => ("become another user", "CAP_SETUID"),
                Capability::SetGid => ("become another group", "CAP_SETGID"),
            };
            write!(f, "{}{what} ({name})", if n == 0 { "" } else { ", " })?;
        }
        write!(f, "; {CURE}")
    }
}

impl std::error::Error for Missing {}

/// Gives up every right but those, and the ways to get any back: by running another program, or by
/// what a program inherits.
pub fn drop_to(keep: Capabilities) -> io::Result<()> {
    set_no_new_privs(true)?;
    clear_ambient_capability_set()?;
    // also those that are newer than this program
    for one in (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number)) {
        // without CAP_SETPCAP it cannot be done, and need not be: what is not permitted below and
        // not gained by running programs stays away; a number that the kernel does not know ends it
        if !keep.0.contains(one) && remove_capability_from_bounding_set(one).is_err() {
            break;
        }
    }
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: keep.0, permitted: keep.0, inheritable };
    Ok(set_capabilities(None, sets)?)
}

/// Lets programs that this process runs have those of its rights, without which a user who is no
/// superuser would lose them there. To be called after [`drop_to`].
pub fn pass_on(rights: Capabilities) -> io::Result<()> {
    let sets = CapabilitySets { inheritable: rights.0, ..capabilities(None)? };
    set_capabilities(None, sets)?;
    for one in rights.0 {
        configure_capability_in_ambient_set(one, true)?;
    }
    Ok(())
}

/// Lets this process lock as much memory as it likes; without the right to raise a limit
/// (`CAP_SYS_RESOURCE`) it fails, and [`Capability::IpcLock`] does the same.
pub fn lock_any_memory() -> io::Result<()> {
    Ok(setrlimit(Resource::Memlock, Rlimit { current: None, maximum: None })?)
}

/// Puts this process into a session of its own: the terminal's Ctrl-C does not reach it.
pub fn own_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// Becomes another user and group, and keeps the rights that it has until [`drop_to`] gives up what
/// is too much.
pub fn become_user(user: u32, group: u32) -> io::Result<()> {
    let before = capabilities(None)?;
    set_keep_capabilities(true)?;
    process::become_user(user, group)?;
    set_keep_capabilities(false)?;
    // the change of user left what is permitted, and took what is in effect
    let inheritable = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { inheritable, ..before })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_the_cure() {
        let have = Capabilities::of(&[Capability::NetRaw]);
        assert_eq!(have.require(&[Capability::NetRaw]), Ok(()));
        let missing = have.require(&[Capability::NetRaw, Capability::NetAdmin, Capability::Bpf]);
        let text = missing.unwrap_err().to_string();
        let want = "weir lacks the right to change interfaces (CAP_NET_ADMIN), load programs into \
                    the kernel (CAP_BPF); run weir by sudo";
        assert!(text.starts_with(want), "{text}");
        assert!(text.contains("setcap"));
    }

    #[test]
    fn another_user_keeps_the_rights_that_were_kept() {
        if Capabilities::effective().unwrap().require(&[Capability::SetUid]).is_err() {
            eprintln!("skipped: becoming another user needs root");
            return;
        }
        // a user is of the whole process, so it is one of its own that changes
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        own.args(["--exact", "--ignored", "privileges::tests::in_a_process_of_its_own"]);
        let done = own.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
    }

    #[test]
    #[ignore = "changes the user of the whole process: another test runs it in one of its own"]
    fn in_a_process_of_its_own() {
        const NOBODY: u32 = 65_534;
        become_user(NOBODY, NOBODY).unwrap();
        let keep = Capabilities::of(&[Capability::NetRaw, Capability::NetAdmin]);
        drop_to(keep).unwrap();
        assert_eq!(Capabilities::effective().unwrap(), keep);
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = |word: &str| status.lines().find(|line| line.starts_with(word)).unwrap();
        assert_eq!(line("Uid:"), "Uid:\t65534\t65534\t65534\t65534");
        assert_eq!(line("Groups:").trim_end(), "Groups:");
        assert_eq!(line("CapBnd:"), "CapBnd:\t0000000000003000");
        assert_eq!(line("NoNewPrivs:"), "NoNewPrivs:\t1");
        assert!(become_user(0, 0).is_err());
    }

    #[test]
    fn a_thread_keeps_what_it_asked_for_and_nothing_else() {
        // of one thread only, so the others of the test keep what they have
        let thread = std::thread::spawn(|| {
            let before = Capabilities::effective().unwrap();
            let keep = Capabilities(before.0 & CapabilitySet::NET_RAW);
            drop_to(keep).unwrap();
            assert_eq!(Capabilities::effective().unwrap(), keep);
            assert!(drop_to(Capabilities::of(&[Capability::NetAdmin])).is_err());
            drop_to(Capabilities::NONE).unwrap();
            assert_eq!(Capabilities::effective().unwrap(), Capabilities::NONE);
        });
        thread.join().unwrap();
    }
}
