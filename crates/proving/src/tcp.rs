//! Rate control of the kernel's TCP with each option that changes what its headers say: does all
//! arrive, and is the window what it should be? A narrow class, one connection after the other,
//! data up and then down. Nothing is judged by time but that it was not faster than the class.

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpStream};

use weir_io::netns::{TcpInfo, TcpSocket, tcp_info};
use weir_units::{Bytes, Rate, Span};

use super::clock;
use super::middle::{Joined, Middle, Start};
use super::traffic::End;
use super::verdict::{Table, Verdict};
use super::world::{Place, Sketch, World};
use super::{Run, policy};

/// What the class may have.
const CEIL: (u64, &str) = (1_000_000, "1mbit");
/// Bytes each way.
const DATA: u32 = 40_000;
/// What may be faster than the ceiling: a queue's first frames.
const AT_ONCE: u32 = 5_000;
/// A window below is one that was sized, one above is the kernel's own, which begins at 64 KB.
const SIZED: u32 = 32_000;
/// How long a host waits for the next byte.
const PATIENCE: Span = Span::from_secs(15);

/// What is special of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Plain,
    Signed,
    SeveralPaths,
    DataInSyn,
}

struct Case {
    name: &'static str,
    kind: Kind,
    /// Settings of both hosts beside the usual ones.
    set: &'static [&'static str],
    /// Bits of [`TcpInfo::options`] that must be set, and those that must not.
    options: (u8, u8),
    /// A counter of the LAN's host that must have moved.
    moves: Option<&'static str>,
    /// Where this kernel has it not.
    cure: &'static str,
}

/// What hosts have unless a case says otherwise.
const USUAL: [&str; 4] = [
    "net.ipv4.tcp_sack=1",
    "net.ipv4.tcp_ecn=2",
    "net.ipv4.tcp_fastopen=3",
    // a SYN that nobody takes is given up after 15 s
    "net.ipv4.tcp_syn_retries=3",
];

const PLAIN: Case =
    Case { name: "", kind: Kind::Plain, set: &[], options: (0, 0), moves: None, cure: "" };

const SACK: u8 = 2;
const ECN: u8 = 8;
const SYN_DATA: u8 = 32;

const CASES: [Case; 7] = [
    Case { name: "SACK", options: (SACK, ECN), ..PLAIN },
    Case { name: "no SACK", set: &["net.ipv4.tcp_sack=0"], options: (0, SACK), ..PLAIN },
    Case { name: "ECN", set: &["net.ipv4.tcp_ecn=1"], options: (ECN, 0), ..PLAIN },
    Case {
        name: "AccECN",
        set: &["net.ipv4.tcp_ecn=3", "net.ipv4.tcp_ecn_option=2"],
        options: (ECN, 0),
        cure: "needs a kernel that takes net.ipv4.tcp_ecn = 3; see accecn.txt",
        ..PLAIN
    },
    Case {
        name: "Fast Open",
        kind: Kind::DataInSyn,
        options: (SYN_DATA, 0),
        moves: Some("TCPFastOpenActive"),
        ..PLAIN
    },
    Case {
        name: "MPTCP",
        kind: Kind::SeveralPaths,
        set: &["net.mptcp.enabled=1"],
        moves: Some("MPCapableSYNACKRX"),
        cure: "needs a kernel with CONFIG_MPTCP",
        ..PLAIN
    },
    Case {
        name: "TCP MD5",
        kind: Kind::Signed,
        cure: "needs a kernel with CONFIG_TCP_MD5SIG",
        ..PLAIN
    },
];

/// Counters of segments that were rejected for their signature.
const REJECTED: [&str; 3] = ["TCPMD5NotFound", "TCPMD5Unexpected", "TCPMD5Failure"];

/// One direction of a connection, as its sender saw it.
struct Sent {
    info: TcpInfo,
    /// The largest window that it was shown.
    window: u32,
}

pub(crate) fn run(run: &mut Run<'_>, middle: Middle) -> Result<bool, String> {
    let world = World::make(Sketch { hosts: 1, line: None }, run.shell.clone())?;
    let plain = Start::plain()?;
    let how = Start { weir: run.weir.clone().unwrap_or(plain.weir.clone()), ..plain };
    let mut joined = Joined::prepare(&world, middle, &policy::steadied(CEIL.1), how)?;
    joined.run()?;
    run.out.line(&format!(
        "tcp through {}: {DATA} bytes up, then down, in a class of {} with rate control",
        middle.name(),
        Rate::from_bps(CEIL.0),
    ));
    let head = ["connection", "arrived", "window up", "window down", "sent again", "wrong"];
    let mut table = Table::new(2, &head);
    for (case, port) in CASES.iter().zip(7_300..) {
        if case.is_missing(&world) {
            run.out.line(&format!("{}: skipped, {}", case.name, case.cure));
            continue;
        }
        case.play(&world, port, middle != Middle::Bridge, &mut table);
    }
    // the standard key calls of TCP MD5 do not do for it; what weir does is in the script
    run.out.line("TCP-AO: skipped, needs a kernel with CONFIG_TCP_AO; see signed-ao.txt");
    drop(joined);
    Ok(run.conclude(&table))
}

impl Case {
    /// Whether this kernel lacks it.
    fn is_missing(&self, world: &World) -> bool {
        let set = |at: &Place, what: &str| at.run(&format!("sysctl -qw {what}")).is_ok();
        let hosts = [&world.lan, &world.wan];
        // those that a kernel lacks change nothing
        hosts.iter().for_each(|at| USUAL.iter().for_each(|what| _ = set(at, what)));
        let all = || hosts.iter().all(|at| self.set.iter().all(|what| set(at, what)));
        let has = || match self.kind {
            Kind::SeveralPaths => TcpSocket::new(true).is_ok(),
            Kind::Signed => TcpSocket::new(false)
                .is_ok_and(|socket| socket.sign([127, 0, 0, 1].into(), b"key").is_ok()),
            Kind::Plain | Kind::DataInSyn => true,
        };
        !all() || !has()
    }

    fn play(&self, world: &World, port: u16, by_weir: bool, table: &mut Table) {
        let (lan, wan) = world.ends(0, port);
        // the first connection fetches the cookie, so that the second can send data in its SYN
        if self.kind == Kind::DataInSyn {
            let (_, further) = world.ends(0, port + 100);
            if let Err(why) = self.transfer(&lan, &further) {
                return table.row(failed(self.name, &why), Verdict::Failed);
            }
        }
        let before = [&world.lan, &world.wan].map(counters);
        let from = clock::now();
        let done = self.transfer(&lan, &wan);
        let took = clock::now().since(from);
        let after = [&world.lan, &world.wan].map(counters);
        let (up, down) = match done {
            Ok(done) => done,
            Err(why) => return table.row(failed(self.name, &why), Verdict::Failed),
        };
        let moved =
            |at: usize, name: &str| of(&after[at], name).saturating_sub(of(&before[at], name));
        let mut wrong = Vec::new();
        let bytes = Bytes::new(u64::from(2 * (DATA - AT_ONCE)));
        if by_weir && took < Rate::from_bps(CEIL.0).time_for(bytes) {
            wrong.push("faster than the class".to_owned());
        }
        let is_sized = self.kind != Kind::Signed && by_weir;
        for (way, sent) in [("up", &up), ("down", &down)] {
            if (sent.window < SIZED) != is_sized {
                let what = if is_sized { "not sized" } else { "sized" };
                wrong.push(format!("window {way} {what}"));
            }
        }
        let (must, must_not) = self.options;
        if up.info.options & must != must || up.info.options & must_not != 0 {
            wrong.push(format!("options {:#04x}", up.info.options));
        }
        if let Some(name) = self.moves.filter(|name| moved(0, name) == 0) {
            wrong.push(format!("no {name}"));
        }
        for name in REJECTED {
            let count = moved(0, name) + moved(1, name);
            if count > 0 {
                wrong.push(format!("{name} {count}"));
            }
        }
        let cells = vec![
            self.name.to_owned(),
            if wrong.is_empty() { "all".to_owned() } else { wrong.join(", ") },
            up.window.to_string(),
            down.window.to_string(),
            (up.info.retransmitted + down.info.retransmitted).to_string(),
            wrong.len().to_string(),
        ];
        table.row(cells, Verdict::of(wrong.is_empty()));
    }

    /// Data from one end to the other and back, each byte compared.
    fn transfer(&self, lan: &End, wan: &End) -> Result<(Sent, Sent), String> {
        let (kind, at, client) = (self.kind, wan.at, lan.at);
        let failed = |what: &'static str| move |e: io::Error| format!("{what}: {e}");
        let listener = wan.place.within(move || {
            let socket = TcpSocket::new(kind == Kind::SeveralPaths).map_err(failed("socket"))?;
            if kind == Kind::Signed {
                socket.sign(*client.ip(), KEY).map_err(failed("key"))?;
            }
            if kind == Kind::DataInSyn {
                socket.take_with_syn().map_err(failed("fast open"))?;
            }
            socket.listen(at).map_err(failed("listen"))
        })?;
        let answering = wan.place.spawn(move || {
            let (mut stream, _) = listener.accept().map_err(failed("accept"))?;
            patient(&stream).map_err(failed("accept"))?;
            take(&mut stream).map_err(failed("what goes up"))?;
            let mut sent = give(&mut stream).map_err(failed("what goes down"))?;
            // the end says that all has arrived
            let _ = stream.read(&mut [0]).map_err(failed("the end"))?;
            sent.look(&stream).map_err(failed("the end"))?;
            Ok(sent)
        });
        let up = lan.place.within(move || {
            let mut stream = connect(kind, at).map_err(failed("connect"))?;
            patient(&stream).map_err(failed("connect"))?;
            let mut sent = give(&mut stream).map_err(failed("what goes up"))?;
            take(&mut stream).map_err(failed("what goes down"))?;
            sent.look(&stream).map_err(failed("the end"))?;
            Ok(sent)
        })?;
        let down = answering.join().map_err(|_| "a thread panicked".to_owned())??;
        Ok((up, down))
    }
}

const KEY: &[u8] = b"a key of both hosts";

fn connect(kind: Kind, to: SocketAddrV4) -> io::Result<TcpStream> {
    let socket = TcpSocket::new(kind == Kind::SeveralPaths)?;
    match kind {
        Kind::Signed => socket.sign(*to.ip(), KEY)?,
        Kind::DataInSyn => socket.send_with_syn()?,
        Kind::Plain | Kind::SeveralPaths => {}
    }
    socket.connect(to)
}

fn patient(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(clock::duration(PATIENCE)))?;
    stream.set_write_timeout(Some(clock::duration(PATIENCE)))
}

/// The byte at a place.
fn byte(at: u32) -> u8 {
    u8::try_from(at.wrapping_mul(31) % 251).unwrap_or(0)
}

fn give(stream: &mut TcpStream) -> io::Result<Sent> {
    let data: Vec<u8> = (0..DATA).map(byte).collect();
    let (first, rest) = data.split_at(1_000);
    // the first data make the connection where they go with its SYN
    stream.write_all(first)?;
    let info = tcp_info(&*stream)?;
    let mut sent = Sent { info, window: info.window };
    for chunk in rest.chunks(4_000) {
        stream.write_all(chunk)?;
        sent.look(stream)?;
    }
    Ok(sent)
}

fn take(stream: &mut TcpStream) -> io::Result<()> {
    let mut data = vec![0; DATA as usize];
    stream.read_exact(&mut data)?;
    match (0..DATA).zip(&data).find(|(at, came)| byte(*at) != **came) {
        Some((at, _)) => Err(io::Error::other(format!("byte {at} is another one"))),
        None => Ok(()),
    }
}

impl Sent {
    fn look(&mut self, stream: &TcpStream) -> io::Result<()> {
        self.info = tcp_info(stream)?;
        self.window = self.window.max(self.info.window);
        Ok(())
    }
}

fn failed(name: &str, why: &str) -> Vec<String> {
    let mut cells = vec![String::new(); 6];
    (cells[0], cells[1]) = (name.to_owned(), why.to_owned());
    cells
}

/// The extended counters of a host, as the kernel prints them.
fn counters(at: &Place) -> String {
    let read =
        || std::fs::read_to_string("/proc/thread-self/net/netstat").map_err(|e| e.to_string());
    at.within(read).unwrap_or_default()
}

/// One of them: names and numbers stand in two lines each.
fn of(text: &str, name: &str) -> u64 {
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines
        .chunks_exact(2)
        .flat_map(|pair| pair[0].split_whitespace().zip(pair[1].split_whitespace()));
    let mut named = pairs.filter(|(known, _)| *known == name);
    named.next().and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_found_by_name() {
        let text = "TcpExt: A TCPMD5Failure\nTcpExt: 1 2\nMPTcpExt: A B\nMPTcpExt: 7 8\n";
        assert_eq!([of(text, "TCPMD5Failure"), of(text, "B"), of(text, "C")], [2, 8, 0]);
    }
}
