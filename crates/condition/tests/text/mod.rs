//! Segments as packetdrill writes them.

use std::fmt::Write;

use weir_packet::tcp::{self, Tcp};
use weir_packet::{Build, Headers};

const FLAGS: [(char, u8); 8] = [
    ('S', tcp::SYN),
    ('F', tcp::FIN),
    ('R', tcp::RST),
    ('P', tcp::PSH),
    ('.', tcp::ACK),
    ('U', tcp::URG),
    ('E', tcp::ECE),
    ('W', tcp::CWR),
];

/// The first sequence numbers of both sides, which a script does not see.
pub(crate) type Bases = [u32; 2];

/// Makes of `build` what `words` say; `side` is where it comes from.
pub(crate) fn read(build: Build, words: &str, side: usize, bases: Bases) -> Result<Build, String> {
    let (words, options) = match words.split_once('<') {
        Some((words, rest)) => {
            let (options, behind) = rest.split_once('>').ok_or("the options have no end")?;
            (format!("{words} {behind}"), Some(options))
        }
        None => (words.to_owned(), None),
    };
    let mut words = words.split_whitespace();
    let mut flags = 0;
    for c in words.next().ok_or("no flags")?.chars().filter(|c| *c != '-') {
        let flag = FLAGS.iter().find(|flag| flag.0 == c);
        flags |= flag.ok_or_else(|| format!("\"{c}\" is no flag"))?.1;
    }
    let (from, rest) =
        words.next().and_then(|w| w.split_once(':')).ok_or("expected SEQ:END(LENGTH)")?;
    let (to, length) = rest.split_once('(').ok_or("expected SEQ:END(LENGTH)")?;
    let (from, to, length) = (number(from)?, number(to)?, number(length.trim_end_matches(')'))?);
    if from.wrapping_add(length) != to {
        return Err(format!("{from} and {length} bytes do not end at {to}"));
    }
    let length = usize::try_from(length).map_err(|why| why.to_string())?;
    let mut build = build.tcp_flags(flags).tcp_seq(from.wrapping_add(bases[side]));
    build = build.payload_len(length).tcp_window(0);
    while let Some(word) = words.next() {
        build = match word {
            "ack" => {
                let ack = number(words.next().unwrap_or_default())?;
                build.tcp_ack(ack.wrapping_add(bases[side ^ 1]))
            }
            "win" => {
                let window = number(words.next().unwrap_or_default())?;
                build.tcp_window(u16::try_from(window).map_err(|why| why.to_string())?)
            }
            "fragment" => build.fragment(0, true, 77),
            other => return Err(format!("\"{other}\" says nothing")),
        };
    }
    Ok(match options {
        Some(options) => build.tcp_options(&bytes_of(options, bases[side ^ 1])?),
        None => build,
    })
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("\"{word}\" is no number"))
}

fn bytes_of(options: &str, base: u32) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    for option in options.split(',') {
        let words: Vec<&str> = option.split_whitespace().collect();
        match words[..] {
            ["mss", mss] => {
                let mss = u16::try_from(number(mss)?).map_err(|why| why.to_string())?;
                bytes.extend([2, 4]);
                bytes.extend(mss.to_be_bytes());
            }
            ["wscale", shift] => {
                bytes.extend([3, 3, u8::try_from(number(shift)?).map_err(|why| why.to_string())?]);
            }
            ["sackOK"] => bytes.extend([4, 2]),
            ["nop"] => bytes.push(1),
            ["eol"] => bytes.push(0),
            ["TS", "val", value, "ecr", echo] => {
                bytes.extend([8, 10]);
                bytes.extend(number(value)?.to_be_bytes());
                bytes.extend(number(echo)?.to_be_bytes());
            }
            ["sack", ref blocks @ ..] => {
                bytes.extend([5, u8::try_from(2 + 8 * blocks.len()).unwrap_or(0)]);
                for block in blocks {
                    let (from, to) = block.split_once(':').ok_or("expected FROM:TO")?;
                    for edge in [number(from)?, number(to)?] {
                        bytes.extend(edge.wrapping_add(base).to_be_bytes());
                    }
                }
            }
            ["hex", ref digits @ ..] => {
                for digit in digits {
                    bytes.push(u8::from_str_radix(digit, 16).map_err(|why| why.to_string())?);
                }
            }
            _ => return Err(format!("\"{option}\" is no option")),
        }
    }
    Ok(bytes)
}

/// A segment as `read` takes it; padding of its options is left out.
pub(crate) fn show(bytes: &[u8], side: usize, bases: Bases) -> String {
    let headers = Headers::parse(bytes);
    let Some(tcp) = Tcp::of(bytes, &headers) else { return "not TCP".to_owned() };
    let mut text: String = FLAGS.iter().filter(|f| tcp.has(f.1)).map(|f| f.0).collect();
    if text.is_empty() {
        text.push('-');
    }
    let from = tcp.seq().wrapping_sub(bases[side]);
    let length = u32::from(headers.end - headers.payload_at);
    let _ = write!(text, " {from}:{}({length})", from.wrapping_add(length));
    if tcp.has(tcp::ACK) {
        let _ = write!(text, " ack {}", tcp.ack().wrapping_sub(bases[side ^ 1]));
    }
    let _ = write!(text, " win {}", tcp.window());
    let at = usize::from(headers.transport_at);
    let options = show_options(&bytes[at + 20..usize::from(headers.payload_at)], bases[side ^ 1]);
    if !options.is_empty() {
        let _ = write!(text, " <{options}>");
    }
    text
}

fn show_options(mut bytes: &[u8], base: u32) -> String {
    let mut options: Vec<String> = Vec::new();
    let word = |b: &[u8]| u32::from_be_bytes([b[0], b[1], b[2], b[3]]);
    while let [kind, rest @ ..] = bytes {
        let length = rest.first().map_or(0, |&length| usize::from(length));
        let (option, length) = match (kind, length) {
            (0, _) => ("eol".to_owned(), 1),
            (1, _) => ("nop".to_owned(), 1),
            (2, 4) if bytes.len() >= 4 => {
                (format!("mss {}", u16::from_be_bytes([bytes[2], bytes[3]])), 4)
            }
            (3, 3) if bytes.len() >= 3 => (format!("wscale {}", bytes[2]), 3),
            (4, 2) => ("sackOK".to_owned(), 2),
            (8, 10) if bytes.len() >= 10 => {
                (format!("TS val {} ecr {}", word(&bytes[2..]), word(&bytes[6..])), 10)
            }
            (5, 10..) if bytes.len() >= length && length % 8 == 2 => {
                let mut text = "sack".to_owned();
                for block in bytes[2..length].chunks(8) {
                    let edge = |at: usize| word(&block[at..]).wrapping_sub(base);
                    let _ = write!(text, " {}:{}", edge(0), edge(4));
                }
                (text, length)
            }
            _ => {
                let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                (format!("hex {}", hex.join(" ")), bytes.len())
            }
        };
        options.push(option);
        bytes = &bytes[length..];
    }
    while options.last().is_some_and(|option| option == "eol") {
        options.pop();
    }
    options.join(",")
}
