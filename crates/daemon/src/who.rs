//! Who is at the other end of a local socket, by the kernel's word.

use std::os::unix::net::UnixStream;

use crate::files;

/// Bytes of the table of users that are read; what a directory service knows has a number only.
const USERS_BYTES: u64 = 1 << 20;

/// The name of the user, or the number where it has none.
pub(crate) fn is_at(stream: &UnixStream) -> String {
    match rustix::net::sockopt::socket_peercred(stream) {
        Ok(peer) => name(peer.uid.as_raw()),
        Err(_) => "unknown".to_owned(),
    }
}

fn name(uid: u32) -> String {
    let users = files::read("/etc/passwd".as_ref(), USERS_BYTES).unwrap_or_default();
    named(&String::from_utf8_lossy(&users), uid).unwrap_or_else(|| format!("uid {uid}"))
}

/// The user's name in a table as passwd(5) describes it.
fn named(users: &str, uid: u32) -> Option<String> {
    let number = uid.to_string();
    let line = users.lines().find(|line| line.split(':').nth(2) == Some(&number))?;
    line.split(':').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_name() {
        let users = "root:x:0:0:root:/root:/bin/sh\n\nanna:x:1000:1000::/:\n:x:7:7\n";
        assert_eq!(named(users, 1000).as_deref(), Some("anna"));
        assert_eq!((named(users, 100), named(users, 7)), (None, None));
    }

    #[test]
    fn the_kernel_says_who_it_is() {
        let (here, _there) = UnixStream::pair().unwrap();
        let me = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap());
        assert_eq!(is_at(&here), name(me));
    }
}
