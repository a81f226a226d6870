//! A tap device: an interface of the kernel whose other end is this process. For machines that run
//! beside weir and for tests; one system call per frame. The kernel finishes checksums and cuts
//! large frames itself, because it is not told that we could.

use std::fs::{File, OpenOptions};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use weir_packet::{Burst, Pool};

use crate::kernel::ioctl::{self, Interface, Request};
use crate::kernel::{process, socket};
use crate::netdev::index_of;
use crate::packet::is_too_long;
use crate::port::{OpenError, PortCounters, PortState};

const DEVICE: &str = "/dev/net/tun";

/// A tap device. It disappears with the port, unless it was made to persist by somebody else.
#[derive(Debug)]
pub struct TapPort {
    device: File,
    /// Asks about the interface.
    questions: OwnedFd,
    name: String,
    index: u32,
    mtu: usize,
    gone: bool,
    counters: PortCounters,
}

impl TapPort {
    /// Opens the tap device of that name; makes it if it is not there. It comes down:
    /// [`set_up`](crate::netdev::set_up) sets it up.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        let failed = |doing| move |error| OpenError::new(name, doing, error);
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        let device = options.open(DEVICE).map_err(failed("needs /dev/net/tun, which fails"))?;
        let kind = (libc::IFF_TAP | libc::IFF_NO_PI) as u32;
        ioctl::ask(device.as_fd(), Request::MakeTap, Interface::named(name).with(kind))
            .map_err(failed("cannot be made a tap device"))?;
        let questions = socket::open(libc::AF_INET, libc::SOCK_DGRAM, 0);
        let index = index_of(name).map_err(failed("cannot be found"))?;
        let mut port = TapPort {
            device,
            questions: questions.map_err(failed("cannot be asked about"))?,
            name: name.to_owned(),
            index,
            mtu: 0,
            gone: false,
            counters: PortCounters::default(),
        };
        port.state();
        Ok(port)
    }

    pub(crate) fn receive(&mut self, pool: &mut Pool, burst: &mut Burst) -> usize {
        let mut came = 0;
        for _ in 0..burst.room() {
            let Some(mut frame) = pool.take() else {
                // left in the kernel it would make the device readable for ever; reading a byte of
                // it drops the rest
                if process::read(self.device.as_fd(), &mut [0; 1]).is_err() {
                    break;
                }
                self.counters.no_buffer += 1;
                continue;
            };
            let room = frame.len();
            match process::read(self.device.as_fd(), pool.bytes_mut(&frame)) {
                // the kernel cuts without a word, so one that fills the buffer may have been cut
                Ok(len) if len == room => self.counters.too_long += 1,
                Ok(len) if len > 0 => {
                    pool.resize(&mut frame, 0, len);
                    self.counters.came(len);
                    match burst.push(frame) {
                        Ok(()) => came += 1,
                        Err(frame) => pool.give(frame),
                    }
                    continue;
                }
                Ok(_) => {
                    pool.give(frame);
                    break;
                }
                Err(error) => {
                    self.gone |= error.raw_os_error() == Some(libc::EBADFD);
                    pool.give(frame);
                    break;
                }
            }
            pool.give(frame);
        }
        came
    }

    pub(crate) fn transmit(&mut self, pool: &mut Pool, burst: &mut Burst) {
        let mut asked = false;
        while let Some(frame) = burst.frames().first() {
            let bytes = pool.bytes(frame);
            if is_too_long(bytes, self.mtu) {
                // the MTU may have become larger; once a burst, because asking has its price
                if !std::mem::replace(&mut asked, true) {
                    self.state();
                    continue;
                }
                self.counters.too_long += 1;
            } else {
                match process::write(self.device.as_fd(), bytes).map_err(|e| e.raw_os_error()) {
                    Ok(_) => self.counters.went(bytes.len()),
                    Err(Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM)) => return,
                    Err(Some(libc::EINTR)) => continue,
                    Err(code) => {
                        self.gone |= code == Some(libc::EBADFD);
                        self.counters.not_sent += 1;
                    }
                }
            }
            if let Some(frame) = burst.pop() {
                pool.give(frame);
            }
        }
    }

    pub(crate) fn fd(&self) -> Option<BorrowedFd<'_>> {
        // a device that is gone is readable for ever
        (!self.gone).then(|| self.device.as_fd())
    }

    pub(crate) fn counters(&self) -> PortCounters {
        self.counters
    }

    pub(crate) fn state(&mut self) -> PortState {
        let Ok(status) = ioctl::status(self.questions.as_fd(), self.index) else {
            self.gone = true;
            return PortState::Gone;
        };
        self.mtu = status.mtu;
        self.name = status.name;
        if status.up { PortState::Up } else { PortState::NoLink }
    }

    /// The name of its interface.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
