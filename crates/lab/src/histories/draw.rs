//! What a history is, drawn from the seed.

use weir_sim::Random;
use weir_units::{Rate, Span};

/// A line, and who is there.
#[derive(Clone, Debug)]
pub(super) struct History {
    /// What the line carries, a stage after the other.
    pub(super) lines: Vec<Rate>,
    /// Of the provider's queue.
    pub(super) queue_bytes: usize,
    pub(super) servers: Vec<Server>,
    pub(super) flows: Vec<Transfer>,
}

/// A host of the WAN side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    /// There and back, without queues.
    pub(super) away: Span,
    /// What a bottleneck of its own lets through.
    pub(super) behind: Option<Rate>,
    /// Every other second it echoes clocks that are so much older.
    pub(super) lies: Span,
    /// It answers up to so much later now and then.
    pub(super) pauses: Span,
}

/// A download without end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) server: usize,
    /// Which of the hosts of the LAN side.
    pub(super) host: u8,
    pub(super) start: Span,
}

/// How long a stage is.
pub(super) const STAGE: Span = Span::from_secs(20);
/// Stages of a history.
pub(super) const STAGES: usize = 3;
/// What a line changes to, in parts of a thousand of what it was.
const STEPS: [u64; 6] = [800, 500, 100, 1_250, 2_000, 10_000];

impl History {
    pub(super) fn draw(told: Rate, seed: u64, number: u32) -> History {
        let mut random = Random::new(seed, 0xed6e_0000 + u64::from(number));
        let lines = lines(told, &mut random);
        let queue_bytes = usize::try_from(500_000 + random.below(1_500_000)).unwrap_or(500_000);
        let honest =
            Server { away: Span::ZERO, behind: None, lies: Span::ZERO, pauses: Span::ZERO };
        let mut servers = Vec::new();
        for _ in 0..=random.below(4) {
            servers.push(Server { away: Span::from_ms(10 + random.below(91)), ..honest });
        }
        let hosts = 1 + random.below(4);
        let mut flows = Vec::new();
        let mut add = |server: usize, random: &mut Random| {
            let host = u8::try_from(random.below(hosts)).unwrap_or(0);
            let start = Span::from_ms(random.below(500));
            flows.push(Transfer { server, host, start });
        };
        for n in 0..=random.below(8) {
            add(usize::try_from(n).unwrap_or(0) % servers.len(), &mut random);
        }
        // one in three has hosts behind a bottleneck of their own, one in three one that lies
        if number.is_multiple_of(3) {
            let part = 200_000 + u32::try_from(random.below(400_000)).unwrap_or(0);
            let away = Span::from_ms(10 + random.below(91));
            servers.push(Server { away, behind: Some(told.part(part)), ..honest });
            for _ in 0..3 {
                add(servers.len() - 1, &mut random);
            }
        }
        if number % 3 == 1 {
            let away = Span::from_ms(10 + random.below(91));
            let long = Span::from_ms(20 + random.below(81));
            let server = Server { away, ..honest };
            servers.push(if random.below(2) == 0 {
                Server { lies: long, ..server }
            } else {
                Server { pauses: long, ..server }
            });
            add(servers.len() - 1, &mut random);
        }
        History { lines, queue_bytes, servers, flows }
    }
}

/// From a tenth of what was told up to that; each change as large as a step, where that fits.
fn lines(told: Rate, random: &mut Random) -> Vec<Rate> {
    let tenth = told.bps() / 10;
    let mut line = [10, 5, 2, 1][usize::try_from(random.below(4)).unwrap_or(0)] * tenth;
    let mut lines = vec![Rate::from_bps(line)];
    while lines.len() < STAGES {
        let step = STEPS[usize::try_from(random.below(6)).unwrap_or(0)];
        let next = line * step / 1_000;
        if (tenth..=told.bps()).contains(&next) {
            line = next;
            lines.push(Rate::from_bps(line));
        }
    }
    lines
}
