//! Standard output without surprises: a reader who closes the pipe ends the command quietly, a full
//! disk ends it with a message.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use weir_daemon::files;
pub(crate) use weir_daemon::log::{problem, say};

/// Collects what a command prints and how that went.
pub(crate) struct Out {
    to: std::io::BufWriter<std::io::Stdout>,
    failed: Option<std::io::Error>,
}

impl Out {
    pub(crate) fn new() -> Out {
        Out { to: std::io::BufWriter::new(std::io::stdout()), failed: None }
    }

    pub(crate) fn line(&mut self, text: &str) {
        self.text(text);
        self.text("\n");
    }

    pub(crate) fn text(&mut self, text: &str) {
        if self.failed.is_none() {
            self.failed = self.to.write_all(text.as_bytes()).err();
        }
    }

    /// Shows what has been printed so far.
    pub(crate) fn flush(&mut self) {
        if self.failed.is_none() {
            self.failed = self.to.flush().err();
        }
    }

    /// Whether somebody still reads.
    pub(crate) fn is_read(&self) -> bool {
        self.failed.is_none()
    }

    /// The exit status: fine, unless the output could not be written.
    pub(crate) fn end(mut self) -> ExitCode {
        self.flush();
        match self.failed {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                let why = files::why_not_written(&error);
                problem(&format!("the result cannot be written: {why}"))
            }
            _ => ExitCode::SUCCESS,
        }
    }
}
