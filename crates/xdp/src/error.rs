//! What can go wrong between the program and a netdev, in words that say what to do.

use std::{error, fmt, io};

/// A program that could not be loaded or attached.
#[derive(Debug)]
pub struct XdpError {
    step: Step,
    why: io::Error,
    /// What the kernel's verifier said last, if it was asked.
    log: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Map,
    Load,
    Share,
    Native,
    Generic,
    Socket,
}

impl XdpError {
    pub(crate) fn new(step: Step, why: io::Error) -> XdpError {
        XdpError { step, why, log: String::new() }
    }

    pub(crate) fn refused(why: io::Error, log: String) -> XdpError {
        XdpError { step: Step::Load, why, log }
    }

    /// What the kernel answered, for who decides by it.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.why.raw_os_error()
    }

    /// Whether it is the driver that says no, so that attaching above the driver may work.
    pub(crate) fn is_of_the_driver(&self) -> bool {
        !matches!(
            self.raw_os_error(),
            Some(libc::EPERM | libc::EACCES | libc::EBUSY | libc::EEXIST | libc::ENODEV)
        )
    }

    fn cure(&self) -> &'static str {
        match (self.step, self.raw_os_error()) {
            (_, Some(libc::EPERM | libc::EACCES)) if self.log.is_empty() => {
                "run as root, or with the capabilities CAP_BPF and CAP_NET_ADMIN (kernels before \
                 5.11 also want \"ulimit -l unlimited\")"
            }
            (_, Some(libc::ENOSYS)) => "this kernel has no bpf(2) (CONFIG_BPF_SYSCALL)",
            (Step::Map, Some(libc::EINVAL)) => {
                "this kernel has no map for AF_XDP sockets (CONFIG_XDP_SOCKETS, Linux 5.5 or newer)"
            }
            (Step::Load, _) => "this kernel's verifier does not take the program; AF_PACKET works",
            (Step::Native | Step::Generic, Some(libc::EBUSY | libc::EEXIST)) => {
                "another XDP program is attached: see \"ip link show dev PORT\", stop what put it \
                 there, or take it off with \"ip link set dev PORT xdp off\""
            }
            (Step::Native | Step::Generic, Some(libc::ENODEV)) => {
                "there is no such port now: see \"ip link\""
            }
            (Step::Native, Some(libc::EOPNOTSUPP)) => {
                "the driver has no XDP of its own: attach above the driver (generic)"
            }
            (Step::Native, Some(libc::ERANGE | libc::E2BIG)) => {
                "the MTU is too large for the driver's XDP: \"ip link set dev PORT mtu 1500\" (on \
                 veth the peer's, too), or attach above the driver (generic)"
            }
            (Step::Native, Some(libc::ENOSPC)) => {
                "the port has fewer receive queues than its peer sends on, or the driver has no \
                 queues left for XDP: see \"ethtool -l PORT\""
            }
            (Step::Native, _) => {
                "the driver refused, \"dmesg\" may say why (often the MTU, large receive offload \
                 or the number of queues)"
            }
            (Step::Generic, Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
                "there is no such port now (see \"ip link\"), or this kernel does not attach XDP \
                 programs by link (Linux 5.9 or newer does)"
            }
            (Step::Socket, Some(libc::E2BIG)) => "load the program for as many queues as there are",
            _ => "AF_PACKET may work where this does not",
        }
    }
}

impl fmt::Display for XdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step {
            Step::Map => "cannot make a BPF map",
            Step::Load => "cannot load the XDP program",
            Step::Share => "cannot share memory with the XDP program",
            Step::Native => "cannot attach the XDP program in the driver",
            Step::Generic => "cannot attach the XDP program above the driver",
            Step::Socket => "cannot give the socket to the XDP program",
        };
        write!(f, "{what}: {}; {}", self.why, self.cure())?;
        if !self.log.is_empty() {
            write!(f, "\n{}", self.log)?;
        }
        Ok(())
    }
}

impl error::Error for XdpError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cure_fits_the_fault() {
        let told = |step, errno| XdpError::new(step, io::Error::from_raw_os_error(errno));
        let cases = [
            (Step::Map, libc::EPERM, "CAP_BPF"),
            (Step::Map, libc::ENOSYS, "CONFIG_BPF_SYSCALL"),
            (Step::Native, libc::EBUSY, "xdp off"),
            (Step::Generic, libc::EEXIST, "xdp off"),
            (Step::Native, libc::EOPNOTSUPP, "generic"),
            (Step::Native, libc::ERANGE, "mtu 1500"),
            (Step::Native, libc::ENOSPC, "queues"),
            (Step::Native, libc::ENODEV, "ip link"),
        ];
        for (step, errno, word) in cases {
            let text = told(step, errno).to_string();
            assert!(text.contains(word), "{text}");
        }
        assert!(told(Step::Native, libc::ERANGE).is_of_the_driver());
        assert!(!told(Step::Native, libc::EBUSY).is_of_the_driver());
    }
}
