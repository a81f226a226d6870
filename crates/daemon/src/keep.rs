//! `--keep`: a process that does nothing but start weir again when it dies.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use weir_io::signals::{Signal, Signals};
use weir_io::wait::now;
use weir_units::Span;

use crate::log::{print_aside, problem, say};

/// A weir that lived this long was fine; one that did not is started after a moment only.
const FINE: Span = Span::from_secs(10);

pub(crate) fn run() -> ExitCode {
    let signals = match Signals::block() {
        Ok(signals) => signals,
        Err(error) => return problem(&format!("no signals: {error}")),
    };
    print_aside();
    let child = std::sync::Arc::new(std::sync::Mutex::new(None::<u32>));
    let told = child.clone();
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    std::thread::spawn(move || {
        loop {
            let signal = signals.wait();
            if signal == Signal::Hangup {
                // weir sees for itself that the terminal is gone
                continue;
            }
            if signal == Signal::Stop {
                asked.store(true, Relaxed);
            }
            if let Ok(pid) = told.lock()
                && let Some(pid) = *pid
            {
                weir_io::signals::send(pid, signal);
            }
        }
    });
    loop {
        let began = now();
        let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--keep");
        let started =
            std::env::current_exe().and_then(|me| Command::new(me).args(arguments).spawn());
        let mut weir = match started {
            Ok(weir) => weir,
            Err(error) => return problem(&format!("weir cannot be started: {error}")),
        };
        if let Ok(mut pid) = child.lock() {
            *pid = Some(weir.id());
        }
        let waited = weir.wait();
        // from now on its number may be another's
        if let Ok(mut pid) = child.lock() {
            *pid = None;
        }
        let status = match waited {
            Ok(status) => status,
            Err(error) => return problem(&format!("weir is lost: {error}")),
        };
        match (status.code(), status.signal()) {
            // it ended because it was told to, or said what it needs
            (Some(0..=2), _) => {
                return ExitCode::from(u8::try_from(status.code().unwrap_or(2)).unwrap_or(2));
            }
            _ if stop.load(Relaxed) => return ExitCode::SUCCESS,
            (_, Some(signal)) => say(&format!("weir: killed by signal {signal}; restarting")),
            (code, _) => say(&format!("weir: ended with {code:?}; restarting")),
        }
        if now().since(began) < FINE {
            #[expect(
                clippy::disallowed_methods,
                reason = "a weir that dies at once needs a pause"
            )]
            std::thread::sleep(Duration::from_secs(1));
        }
        if stop.load(Relaxed) {
            return ExitCode::SUCCESS;
        }
    }
}
