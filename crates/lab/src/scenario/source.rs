//! What a flow says, one row for each word of `source`: what else it takes, what it means, and how
//! the sender is made of that. docs/lab.md has its table from these rows.

use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};
use weir_sim::{Files, Source};
use weir_units::{Bytes, Rate, Span};

use super::SPAN;

/// A kind of source.
pub(crate) struct Row {
    /// Its word.
    pub(crate) word: &'static str,
    /// The further words that make a difference.
    pub(crate) words: &'static [&'static str],
    /// What it sends, as docs/lab.md says it.
    pub(crate) about: &'static str,
    of: Of,
}

/// How a source is made.
#[derive(Clone, Copy)]
enum Of {
    /// Without a rate.
    Said(fn(&Said) -> Source),
    /// At a rate, which must be said, with frames of so many bytes.
    Rate(fn(&Said, Rate, usize) -> Source),
}

/// What a flow says of its source, or the usual.
struct Said {
    bytes: Option<u64>,
    request: u32,
    think: Span,
    every: Span,
    on: Span,
    off: Span,
    rings: Span,
    keeps: bool,
}

/// All sources, in the order of docs/lab.md.
pub(crate) const ROWS: [Row; 11] = [
    Row {
        word: "bulk",
        words: &["bytes"],
        about: "TCP data as fast as TCP allows: so many `bytes`, or without end",
        of: Of::Said(|said| Source::Bulk { bytes: said.bytes }),
    },
    Row {
        word: "web",
        words: &["request", "think", "keeps"],
        about: "files from `to` to `from` over TCP, one after the other, of up to 0.9, 9, 90 and \
                900 KB (35, 50, 14 and 1 of 100)",
        of: Of::Said(|said| said.web(Files::Classes)),
    },
    Row {
        word: "echo",
        words: &["every"],
        about: "single letters over TCP that come back: somebody who types",
        of: Of::Said(|said| Source::Echo { every: said.every }),
    },
    Row {
        word: "dns",
        words: &["every"],
        about: "DNS queries, one after the other",
        of: Of::Said(|said| Source::Dns { every: said.every }),
    },
    Row {
        word: "call",
        words: &["rings"],
        about: "setting up one call, which is answered after `rings`",
        of: Of::Said(|said| Source::Call { rings: said.rings }),
    },
    Row {
        word: "game",
        words: &[],
        about: "one direction of a game: 25 frames of 82 bytes per second",
        of: Of::Said(|_| Source::Game),
    },
    Row {
        word: "cbr",
        words: &["rate", "bytes"],
        about: "datagrams at a constant rate",
        of: Of::Rate(|_, rate, bytes| Source::Cbr { rate, bytes }),
    },
    Row {
        word: "poisson",
        words: &["rate", "bytes"],
        about: "datagrams with exponential gaps",
        of: Of::Rate(|_, rate, bytes| Source::Poisson { rate, bytes }),
    },
    Row {
        word: "on-off",
        words: &["rate", "bytes", "on", "off"],
        about: "datagrams at a constant rate with pauses; talk and pause are exponential, with \
                the means `on` and `off`",
        of: Of::Rate(|said, rate, bytes| {
            let Said { on, off, .. } = *said;
            Source::OnOff { rate, bytes, on, off }
        }),
    },
    Row {
        word: "voice",
        words: &[],
        about: "one direction of a G.729 call: 50 frames of 74 bytes per second, with RTP",
        of: Of::Said(|_| Source::Voice),
    },
    Row {
        word: "pages",
        words: &["bytes", "request", "think", "keeps"],
        about: "files as with `web`, but all of so many `bytes` (100 KB)",
        of: Of::Said(|said| said.web(Files::Fixed(said.bytes.unwrap_or(100_000)))),
    },
];

impl Said {
    fn web(&self, files: Files) -> Source {
        let Said { request, think, keeps, .. } = *self;
        Source::Web { files, request, think, keeps }
    }
}

/// Bytes of a frame where nobody says them.
const FRAME: usize = 1_514;

/// Reads `source` and the words that go with it.
pub(super) fn read(
    table: &mut Table<'_>,
    flow: Entry<'_>,
    problems: &mut Problems,
) -> Option<Source> {
    let Some(entry) = table.take("source") else {
        let names: Vec<&str> = ROWS.iter().map(|row| row.word).collect();
        let help = format!("write source = one of {}", names.join(", "));
        problems.error(flow.key, "the flow does not say what is said", help);
        return None;
    };
    let kinds = ROWS.map(|Row { word, of, .. }| (word, of));
    let of = entry.word("source", &kinds, problems)?;
    let rate = table.take("rate").and_then(|e| e.read::<Rate>("rate", "a rate", problems));
    let said = said(table, problems);
    match of {
        Of::Said(source) => Some(source(&said)),
        Of::Rate(source) => {
            if rate.is_none() {
                let what = "the flow does not say its rate";
                problems.error(flow.key, what, "write rate = \"1mbit\": of Ethernet frames");
            }
            let frame = said.bytes.and_then(|b| usize::try_from(b).ok()).unwrap_or(FRAME);
            Some(source(&said, rate?, frame))
        }
    }
}

fn said(table: &mut Table<'_>, problems: &mut Problems) -> Said {
    let size = |word: &str, table: &mut Table<'_>, problems: &mut Problems| {
        let size = table.take(word)?.read::<Bytes>(word, "a size as in \"1500b\"", problems)?;
        Some(size.get())
    };
    let bytes = size("bytes", table, problems);
    let request = size("request", table, problems).and_then(|b| u32::try_from(b).ok());
    let keeps = table.take("keeps").and_then(|e| e.yes_no("keeps", problems)).unwrap_or(true);
    let mut span = |word: &str, usual: Span| {
        let said = table.take(word).and_then(|e| e.read(word, SPAN, problems));
        said.unwrap_or(usual)
    };
    Said {
        bytes,
        request: request.unwrap_or(300),
        think: span("think", Span::from_secs(1)),
        every: span("every", Span::from_ms(200)),
        on: span("on", Span::from_secs(1)),
        off: span("off", Span::from_secs(1)),
        rings: span("rings", Span::ZERO),
        keeps,
    }
}
