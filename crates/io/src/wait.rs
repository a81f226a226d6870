//! Time and waiting for who turns the engine: the clock, a wait for frames with a deadline in
//! nanoseconds, a way to end it from another thread, and what makes the thread punctual.

use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};
use rustix::mm::{MlockAllFlags, mlockall};
use rustix::thread::CpuSet;
use weir_units::limits::WAIT_FDS;
use weir_units::{Instant, Span};

use crate::kernel::process;

/// Now, by the clock that never jumps; zero is when the machine started.
#[must_use]
pub fn now() -> Instant {
    Instant::from_ns(process::monotonic_ns())
}

/// Waits for descriptors, for a moment, or for a [`Waker`].
#[derive(Debug)]
pub struct Wait {
    waker: Waker,
}

/// Ends a wait from another thread; the next one if none is going on.
#[derive(Clone, Debug)]
pub struct Waker(Arc<OwnedFd>);

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// A descriptor has something to say; which ones, as bits in the order they were given.
    Ready(u64),
    /// By a [`Waker`] (descriptors may be ready as well).
    Called,
    /// The time is over, or a signal came.
    Time,
}

impl Wait {
    /// A wait with its waker.
    pub fn new() -> io::Result<Self> {
        event().map(|event| Wait { waker: Waker(Arc::new(event)) })
    }

    /// Waits until one of `fds` is readable or broken, `span` is over (never, if `None`), or the
    /// waker calls. Of more than [`WAIT_FDS`] less one, only the first are looked at.
    pub fn wait<'f>(
        &self,
        fds: impl IntoIterator<Item = BorrowedFd<'f>>,
        span: Option<Span>,
    ) -> io::Result<Woken> {
        let entry = |fd: BorrowedFd<'_>| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let mut polled = [entry(self.waker.0.as_fd()); WAIT_FDS];
        let mut count = 1;
        for (place, fd) in polled[1..].iter_mut().zip(fds) {
            *place = entry(fd);
            count += 1;
        }
        let polled = &mut polled[..count];
        match process::poll(polled, span.map(Span::ns)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Woken::Time),
            Ok(0) => return Ok(Woken::Time),
            done => done?,
        };
        if polled[0].revents != 0 {
            self.waker.clear();
            return Ok(Woken::Called);
        }
        let ready = polled[1..].iter().map(|fd| fd.revents != 0);
        Ok(Woken::Ready(ready.rev().fold(0, |bits, ready| bits << 1 | u64::from(ready))))
    }

    /// What ends this wait.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }
}

/// A counter that can be waited on.
fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

impl Waker {
    /// Ends the wait.
    pub fn call(&self) {
        // it fails only where 2^64 calls were not heard, and then one is pending anyway
        let _ = process::write(self.0.as_fd(), &1_u64.to_ne_bytes());
    }

    fn clear(&self) {
        let _ = process::read(self.0.as_fd(), &mut [0; 8]);
    }
}

/// Makes the kernel end this thread's waits when they are over, not up to 50 us later.
pub fn be_punctual() -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

/// Ties this thread to one CPU.
pub fn pin_to(cpu: usize) -> io::Result<()> {
    // more have no place in the set
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut one = CpuSet::new();
    one.set(cpu);
    Ok(rustix::thread::sched_setaffinity(None, &one)?)
}

/// Schedules this thread before all ordinary ones (`SCHED_FIFO`). It bounds the worst lateness, and
/// starves who shares the CPU.
pub fn be_first() -> io::Result<()> {
    // the lowest: before all that is ordinary, behind what the kernel needs itself
    process::real_time(1)
}

/// Keeps memory level: what a large request took goes back to the system, and what usual ones take
/// is there from the start. To be called before threads are made.
pub fn level_memory() {
    process::level_memory();
}

/// Keeps the process's memory in RAM, what it takes later too.
pub fn keep_memory() -> io::Result<()> {
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_does_not_go_back() {
        let (a, b) = (now(), now());
        assert!(Instant::ZERO < a && a <= b);
    }

    #[test]
    fn a_call_before_the_wait_ends_it_and_is_used_up() {
        let wait = Wait::new().unwrap();
        let waker = wait.waker();
        waker.call();
        waker.call();
        assert_eq!(wait.wait([], None).unwrap(), Woken::Called);
        assert_eq!(wait.wait([], Some(Span::ZERO)).unwrap(), Woken::Time);
    }

    #[test]
    fn a_call_from_another_thread_ends_a_wait_without_end() {
        let wait = Wait::new().unwrap();
        let waker = wait.waker();
        let caller = std::thread::spawn(move || waker.call());
        assert_eq!(wait.wait([], None).unwrap(), Woken::Called);
        caller.join().unwrap();
    }

    #[test]
    fn those_that_are_ready_are_told_in_their_order() {
        let events: Vec<_> = (0..4).map(|_| event().unwrap()).collect();
        for n in [1, 3] {
            process::write(events[n].as_fd(), &1_u64.to_ne_bytes()).unwrap();
        }
        let wait = Wait::new().unwrap();
        let woken = wait.wait(events.iter().map(AsFd::as_fd), None).unwrap();
        assert_eq!(woken, Woken::Ready(0b1010));
        let many = events.iter().cycle().take(2 * WAIT_FDS).map(AsFd::as_fd);
        assert!(matches!(wait.wait(many, None).unwrap(), Woken::Ready(_)));
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        assert!(pin_to(1 << 20).is_err());
        be_punctual().unwrap();
    }
}
