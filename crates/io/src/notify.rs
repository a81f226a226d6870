//! What systemd wants to know of a service (`sd_notify`): one datagram per message to a Unix socket
//! whose name is in `$NOTIFY_SOCKET`. Who started us without systemd gave no name, and nothing is
//! sent.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Where messages to the one who started us go.
#[derive(Debug)]
pub struct Notify {
    to: Option<(UnixDatagram, SocketAddr)>,
}

impl Notify {
    /// Opens the socket that `$NOTIFY_SOCKET` names, if it is set; a leading `@` means a name
    /// outside the file system.
    pub fn open(socket: Option<&OsStr>) -> io::Result<Self> {
        let Some(name) = socket.filter(|name| !name.is_empty()) else {
            return Ok(Notify { to: None });
        };
        let address = match name.as_bytes().strip_prefix(b"@") {
            Some(name) => SocketAddr::from_abstract_name(name)?,
            None => SocketAddr::from_pathname(name)?,
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Notify { to: Some((socket, address)) })
    }

    /// Traffic flows.
    pub fn ready(&self) -> io::Result<()> {
        self.send("READY=1")
    }

    /// Still alive.
    pub fn watchdog(&self) -> io::Result<()> {
        self.send("WATCHDOG=1")
    }

    /// What `systemctl status` shows; the first line of it.
    pub fn status(&self, text: &str) -> io::Result<()> {
        self.send(&format!("STATUS={}", text.lines().next().unwrap_or_default()))
    }

    /// About to end.
    pub fn stopping(&self) -> io::Result<()> {
        self.send("STOPPING=1")
    }

    fn send(&self, message: &str) -> io::Result<()> {
        let Some((socket, address)) = &self.to else { return Ok(()) };
        socket.send_to_addr(message.as_bytes(), address).map(drop)
    }
}

/// How often the watchdog wants to hear of us, from the microseconds in `$WATCHDOG_USEC`: half of
/// it, as systemd advises. `None` if there is no watchdog.
#[must_use]
pub fn watchdog_span(usec: Option<&OsStr>) -> Option<weir_units::Span> {
    let usec: u64 = usec?.to_str()?.parse().ok()?;
    (usec > 0).then(|| weir_units::Span::from_us(usec / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(socket: &UnixDatagram) -> String {
        let mut bytes = [0; 200];
        let len = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    }

    #[test]
    fn messages_reach_a_name_outside_the_file_system() {
        let name = format!("weir-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        let notify = Notify::open(Some(OsStr::new(&format!("@{name}")))).unwrap();
        notify.ready().unwrap();
        notify.status("2 links\nREADY=0").unwrap();
        notify.watchdog().unwrap();
        notify.stopping().unwrap();
        let all: Vec<_> = (0..4).map(|_| heard(&socket)).collect();
        assert_eq!(all, ["READY=1", "STATUS=2 links", "WATCHDOG=1", "STOPPING=1"]);
    }

    #[test]
    fn messages_reach_a_path() {
        let path = std::env::temp_dir().join(format!("weir-notify-{}", std::process::id()));
        let socket = UnixDatagram::bind(&path).unwrap();
        Notify::open(Some(path.as_os_str())).unwrap().ready().unwrap();
        assert_eq!(heard(&socket), "READY=1");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn without_systemd_nothing_is_sent() {
        Notify::open(None).unwrap().ready().unwrap();
        Notify::open(Some(OsStr::new(""))).unwrap().stopping().unwrap();
    }

    #[test]
    fn the_watchdog_hears_twice_in_its_time() {
        let span = |text| watchdog_span(Some(OsStr::new(text)));
        assert_eq!(span("30000000"), Some(weir_units::Span::from_secs(15)));
        assert_eq!((span("0"), span("soon"), watchdog_span(None)), (None, None, None));
    }
}
