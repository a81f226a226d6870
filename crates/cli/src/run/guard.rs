//! Where the kernel cannot run a program of ours, a tiny process of the same binary does its work:
//! it looks at the daemon's pulse, and when that stops it lets the kernel's bridge carry the
//! frames that the daemon does not. The two ports are members of that bridge all the time; what
//! keeps it from carrying frames between them while weir does is that they are isolated.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use std::os::fd::{AsFd as _, AsRawFd as _};

use weir_io::page::Page;
use weir_io::wait::now;
use weir_units::{Instant, Span, limits};

use crate::out::{problem, say};

use super::pulse::{BEAT, BYPASSED};

/// A pulse older than this has stopped; the program at the ports of AF_XDP says so too.
const STOPPED: Span = Span::from_ms(limits::STALE_MS);

/// How often the guard looks.
const LOOK: Duration = Duration::from_millis(5);

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Descriptor of the page with the pulse
    #[arg(long)]
    page: i32,
    /// The two ports
    #[arg(long, num_args = 2)]
    ports: Vec<String>,
}

/// The daemon's end: the guard ends when this is dropped, or when the daemon dies.
pub(crate) struct Guard {
    child: Child,
    /// Nothing is ever written; its end is the message.
    _life: Option<ChildStdin>,
}

impl Guard {
    /// Starts the guard, which keeps the bridge from carrying frames as long as the pulse beats.
    pub(crate) fn start(page: &Page, ports: [&str; 2]) -> Result<Guard, String> {
        let myself = std::env::current_exe().map_err(|e| format!("where is weir? {e}"))?;
        let mut child = Command::new(myself)
            .args(["guard", "--page", &page.as_fd().as_raw_fd().to_string(), "--ports"])
            .args(ports)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|e| format!("the guard cannot be started: {e}"))?;
        let life = child.stdin.take();
        Ok(Guard { child, _life: life })
    }

    /// Whether it still watches.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self._life = None;
        let _ = self.child.wait();
    }
}

/// The guard itself.
pub(crate) fn run(args: &Args) -> ExitCode {
    let path = format!("/proc/self/fd/{}", args.page);
    let page = OpenOptions::new().read(true).write(true).open(path).map(File::into);
    let page = match page.and_then(Page::of) {
        Ok(page) => Arc::new(page),
        Err(error) => return problem(&format!("weir starts its guard itself ({error})")),
    };
    let hand = Arc::new(Mutex::new(()));
    let (watched, ports, other) = (page.clone(), args.ports.clone(), hand.clone());
    std::thread::spawn(move || watch(&watched, &ports, &other));
    // nobody writes: the end comes when the daemon has died, and the kernel wakes us at once
    let _ = std::io::stdin().read(&mut [0]);
    // held until the process ends: a pulse that is still young must not close the way again
    let _hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
    page.set(BYPASSED, 1);
    isolate(&args.ports, false);
    ExitCode::SUCCESS
}

fn watch(page: &Page, ports: &[String], hand: &Mutex<()>) {
    let mut bypassed = true;
    page.set(BYPASSED, 1);
    loop {
        let hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
        let stopped = now().since(Instant::from_ns(page.get(BEAT))) > STOPPED;
        if stopped && !bypassed {
            // first the word, so that a daemon that wakes now sends nothing twice
            page.set(BYPASSED, 1);
            isolate(ports, false);
            bypassed = true;
        } else if !stopped && bypassed && isolate(ports, true) {
            page.set(BYPASSED, 0);
            bypassed = false;
        }
        drop(hand);
        #[expect(clippy::disallowed_methods, reason = "the guard lives in real time")]
        std::thread::sleep(LOOK);
    }
}

/// Keeps the bridge from carrying frames between the ports, or lets it. Whether that is so now.
fn isolate(ports: &[String], isolated: bool) -> bool {
    let mut done = true;
    for port in ports {
        if let Err(error) = weir_io::netdev::set_isolated(port, isolated) {
            // an interface that is gone carries nothing
            done &= weir_io::netdev::index_of(port).is_err();
            if done {
                continue;
            }
            say(&format!("weir guard: {port}: {error}"));
        }
    }
    done
}
