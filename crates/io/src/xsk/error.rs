//! What can go wrong when a port is opened, in words that say what to do.

use std::{error, fmt, io};

/// A port that could not be opened.
#[derive(Debug)]
pub struct XskError {
    port: String,
    queue: u32,
    step: Step,
    why: io::Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Pool,
    Queues,
    Socket,
    Memory,
    Rings,
    Bind,
    Wait,
}

impl XskError {
    pub(crate) fn new(port: &str, queue: u32, step: Step, why: io::Error) -> XskError {
        XskError { port: port.to_owned(), queue, step, why }
    }

    /// What the kernel answered, for who decides by it.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.why.raw_os_error()
    }

    fn cure(&self) -> &'static str {
        match (self.step, self.why.raw_os_error()) {
            (Step::Pool, _) => "give the pool that came with this memory",
            (Step::Queues, _) => "set fewer with \"ethtool -L PORT combined N\"",
            (_, Some(libc::EPERM | libc::EACCES)) => {
                "run as root, or with the capabilities CAP_NET_RAW and CAP_NET_ADMIN"
            }
            (Step::Socket, Some(libc::EAFNOSUPPORT)) => {
                "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS); AF_PACKET works without it"
            }
            (Step::Memory, Some(libc::ENOBUFS)) => {
                "the limit for locked memory is too small: \"ulimit -l unlimited\", or \
                 LimitMEMLOCK=infinity in the unit file"
            }
            (_, Some(libc::ENOMEM | libc::ENOBUFS)) => "the machine is short of memory",
            (Step::Bind, Some(libc::EBUSY)) => {
                "another program holds this queue with a socket of its own: stop it first"
            }
            (Step::Bind, Some(libc::EINVAL)) => {
                "the port has no such queue: see \"ethtool -l PORT\""
            }
            (_, Some(libc::ENODEV | libc::ENETDOWN | libc::ENXIO)) => {
                "there is no such port now: see \"ip link\""
            }
            _ => "AF_PACKET may work where this does not",
        }
    }
}

impl fmt::Display for XskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let XskError { port, queue, step, why } = self;
        let what = match step {
            Step::Pool => "cannot use this pool",
            Step::Queues => "cannot serve so many queues",
            Step::Socket => "cannot make an AF_XDP socket",
            Step::Memory => "cannot register memory",
            Step::Rings => "cannot make rings",
            Step::Bind => "cannot bind",
            Step::Wait => "cannot wait for several queues",
        };
        write!(f, "\"{port}\", queue {queue}: {what}: {why}; {}", self.cure())
    }
}

impl error::Error for XskError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cure_fits_the_fault() {
        let told = |step, errno| {
            XskError::new("eth1", 3, step, io::Error::from_raw_os_error(errno)).to_string()
        };
        assert!(told(Step::Bind, libc::EBUSY).starts_with("\"eth1\", queue 3: cannot bind: "));
        assert!(told(Step::Bind, libc::EBUSY).contains("another program"));
        assert!(told(Step::Bind, libc::EINVAL).contains("ethtool -l"));
        assert!(told(Step::Socket, libc::EPERM).contains("CAP_NET_RAW"));
        assert!(told(Step::Socket, libc::EAFNOSUPPORT).contains("AF_PACKET"));
        assert!(told(Step::Memory, libc::ENOBUFS).contains("ulimit -l"));
        assert!(told(Step::Bind, libc::ENODEV).contains("ip link"));
    }
}
