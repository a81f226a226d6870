//! As much of HTTP as a reader of metrics needs: one request, one answer, then the connection is
//! closed. Whoever comes may take so many bytes and so long, and no more.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use weir_io::wait::now;
use weir_units::{Instant, Span, limits};

use crate::socket::left;

/// Where metrics are told if the operator only says that they are: to this machine alone.
pub const METRICS: &str = "127.0.0.1:9477";

/// A port at which metrics are asked for.
pub(crate) fn open(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).map_err(|error| {
        format!(
            "metrics cannot be served at {address}: {error}; use another address, such as \
            {METRICS}"
        )
    })
}

/// Answers one request; `metrics` is asked only if that is what it wants.
pub(crate) fn answer(mut stream: TcpStream, metrics: impl FnOnce() -> String) {
    let until = now() + Span::from_secs(limits::METRICS_SECS);
    if stream.set_nonblocking(false).is_err() {
        return;
    }
    let asked = now() + Span::from_secs(limits::METRICS_REQUEST_SECS);
    let Some(request) = read(&mut stream, asked) else { return };
    write(&mut stream, &said(&request, metrics), until);
}

/// The answer to the head of a request.
fn said(request: &[u8], metrics: impl FnOnce() -> String) -> String {
    let line = request.split(|&byte| byte == b'\r' || byte == b'\n').next().unwrap_or_default();
    let mut words = line.split(|&byte| byte == b' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = path.split(|&byte| byte == b'?').next().unwrap_or_default();
    let plain = "text/plain; charset=utf-8";
    let (status, kind, body) = match (method, path) {
        (b"GET" | b"HEAD", b"/metrics") => {
            ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics())
        }
        (b"GET" | b"HEAD", _) => ("404 Not Found", plain, "there is /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", plain, "GET is answered here\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    if method == b"HEAD" { head } else { head + &body }
}

/// The head of a request, up to the empty line.
fn read(stream: &mut TcpStream, until: Instant) -> Option<Vec<u8>> {
    let mut came = Vec::new();
    let mut piece = [0; 512];
    loop {
        if came.windows(4).any(|w| w == b"\r\n\r\n") || came.windows(2).any(|w| w == b"\n\n") {
            return Some(came);
        }
        if came.len() > limits::METRICS_REQUEST_BYTES {
            return None;
        }
        stream.set_read_timeout(Some(left(until)?)).ok()?;
        match stream.read(&mut piece) {
            Ok(0) => return None,
            Ok(len) => came.extend_from_slice(&piece[..len]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn write(stream: &mut TcpStream, text: &str, until: Instant) {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        let Some(left) = left(until) else { return };
        if stream.set_write_timeout(Some(left)).is_err() {
            return;
        }
        match stream.write(rest) {
            Ok(len) if len > 0 => rest = &rest[len..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn metrics_are_told_and_nothing_else_is() {
        let said = |request: &str| said(request.as_bytes(), || "m 1\n".to_owned());
        assert_eq!(
            said("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
             Content-Length: 4\r\nConnection: close\r\n\r\nm 1\n"
        );
        assert!(said("GET /metrics?a=b HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 200"));
        assert!(said("HEAD /metrics HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n"));
        assert!(said("GET / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404"));
        assert!(said("POST /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405"));
    }

    #[test]
    fn a_request_without_end_is_cut_off() {
        let listener = open(([127, 0, 0, 1], 0).into()).unwrap();
        let here = listener.local_addr().unwrap();
        assert!(open(here).unwrap_err().contains("metrics cannot be served at 127.0.0.1:"));
        let mut client = TcpStream::connect(here).unwrap();
        let (stream, _) = listener.accept().unwrap();
        let asked = std::thread::spawn(move || answer(stream, || unreachable!()));
        let _ = client.write_all(&vec![b'x'; 2 * limits::METRICS_REQUEST_BYTES]);
        asked.join().unwrap();
        let mut told = Vec::new();
        let _ = client.read_to_end(&mut told);
        assert_eq!(told, b"");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(request in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(said(&request, String::new).starts_with("HTTP/1.0 "));
        }
    }
}
