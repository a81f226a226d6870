//! What weir may do once its ports are open: open one of them again, read and write its own files,
//! and nothing else. The thread that reads packets from strangers may do nothing at all.

use std::path::Path;

use weir_io::privileges::{self, Capabilities, Capability, Confined};

/// Keeps what is needed, memory too, and gives up the rest; returns what the operator should know.
/// To be called before threads are made.
pub(crate) fn give_up(policy: Option<&Path>, written: [&Path; 2]) -> Vec<String> {
    let mut notes = Vec::new();
    // a bare file name lies in the folder that we are in
    let policy = policy.filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let read =
        [policy, Path::new("/sys"), Path::new("/proc"), Path::new("/etc"), Path::new("/dev")];
    match privileges::confine(&read, &written) {
        Ok(Confined::Yes) => {}
        Ok(Confined::Unsupported) => {
            notes.push("this kernel has no Landlock: weir can reach all files of its user".into());
        }
        Err(error) => notes.push(format!("weir can reach all files of its user: {error}")),
    }
    // a packet thread that waits for a page from the disk is late, and one that gets none is dead
    if let Err(error) = weir_io::wait::keep_memory() {
        notes.push(format!("weir's memory may be swapped out when it is short: {error}"));
    }
    let keep = Capabilities::of(&[
        Capability::NetRaw,
        Capability::NetAdmin,
        Capability::Bpf,
        Capability::IpcLock,
        Capability::SysNice,
    ]);
    if let Err(error) = privileges::drop_to(keep) {
        notes.push(format!("weir keeps all rights that it was started with: {error}"));
    }
    notes
}

/// The packet thread's share of rights.
pub(crate) fn keep_none() {
    // what cannot be given up was never had
    let _ = privileges::drop_to(Capabilities::NONE);
}
