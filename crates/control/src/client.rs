//! A connection to a running link, for who asks.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use weir_units::limits;

use crate::{Refused, Request, answer};

/// Where the sockets of all links are, unless the operator says otherwise.
pub const FOLDER: &str = "/run/weir";

/// The socket of a link.
#[must_use]
pub fn path_of(folder: &Path, link: &str) -> PathBuf {
    folder.join(format!("{link}.sock"))
}

/// A connection to a link.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    path: PathBuf,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The request has more than [`limits::CONTROL_LINE_BYTES`].
    TooLong,
    /// The link took longer than it ever should.
    Silent,
    /// The connection broke.
    Broken(std::io::Error),
    /// What came is no answer.
    Unreadable,
    /// The link did not do it.
    Refused(Box<Refused>),
}

/// How long a link may take to answer what takes it no time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it may take to read a policy: as long as a silent packet thread may take, several
/// times over.
const LONG_PATIENCE: Duration = Duration::from_secs(limits::CONTROL_SILENCE_SECS);

impl Client {
    /// Connects to the link that is asked at this socket.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn open(path: &Path) -> std::io::Result<Client> {
        let stream = UnixStream::connect(path)?;
        stream.set_write_timeout(Some(LONG_PATIENCE))?;
        Ok(Client { stream: BufReader::new(stream), path: path.to_owned() })
    }

    /// Where the link is asked.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks, and reads the answer.
    ///
    /// # Errors
    ///
    /// Why there is none; what was asked is not done if it was refused.
    pub fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, Failure> {
        let line = self.ask_line(request)?;
        match answer::read(&line) {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(refused)) => Err(Failure::Refused(Box::new(refused))),
            None => Err(Failure::Unreadable),
        }
    }

    /// Asks, and gives the line that came, whatever it says.
    fn ask_line(&mut self, request: &Request) -> Result<Vec<u8>, Failure> {
        let line = request.line();
        if line.len() > limits::CONTROL_LINE_BYTES {
            return Err(Failure::TooLong);
        }
        let is_long = matches!(request, Request::Apply(_) | Request::Rollback { .. });
        let patience = if is_long { LONG_PATIENCE } else { PATIENCE };
        // one that cannot be set is waited for
        let _ = self.stream.get_ref().set_read_timeout(Some(patience));
        self.exchange(&line).map_err(|why| match why.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::Silent,
            _ => Failure::Broken(why),
        })
    }

    fn exchange(&mut self, line: &str) -> std::io::Result<Vec<u8>> {
        let written = self.stream.get_mut().write_all(line.as_bytes());
        let mut came = Vec::new();
        let most = limits::CONTROL_ANSWER_BYTES as u64;
        let read = (&mut self.stream).take(most).read_until(b'\n', &mut came);
        match (written, read) {
            // one that is refused has its answer before it has asked
            (_, Ok(len)) if len > 0 => Ok(came),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(()), Ok(_)) => Err(std::io::Error::other("it ended without an answer")),
        }
    }
}
