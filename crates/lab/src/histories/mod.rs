//! Lines that change while they are full, with `margin = "auto"` before them: random histories,
//! drawn from the seed, and three bars that each is held to. The world is a scenario's, but what
//! the line carries, who is there and who lies is drawn.

mod draw;
mod watch;

use weir_packet::Side;
use weir_policy::Plan;
use weir_policy::Problems;
use weir_policy::reader::Entry;
use weir_units::Rate;

use crate::sharing::Numbers;
use draw::History;

/// How many histories.
#[derive(Clone, Copy, Debug)]
pub struct Histories {
    count: u32,
}

const WORDS: [&str; 1] = ["count"];

pub(crate) fn read(entry: Entry<'_>, problems: &mut Problems) -> Option<Histories> {
    let mut table = entry.table("[histories]", problems)?;
    let count = table.take("count").and_then(|e| e.number("count", 1..=99, problems));
    table.finish(&WORDS, problems);
    Some(Histories { count: u32::try_from(count.unwrap_or(20)).unwrap_or(20) })
}

/// Runs all histories under one policy.
///
/// # Errors
/// The policy is more than an engine takes; in words.
pub(crate) fn run(histories: Histories, plan: &Plan, seed: u64) -> Result<Numbers, String> {
    let mut shown = Numbers::new();
    for (towards, finds, prefix) in
        [(Side::Lan, plan.finds.down, ""), (Side::Wan, plan.finds.up, "up_")]
    {
        if finds {
            let figures = way(histories, plan, towards, seed)?.into_iter();
            shown.extend(figures.map(|(name, figure)| (format!("{prefix}{name}"), figure)));
        }
    }
    Ok(shown)
}

/// All of them towards one side.
fn way(histories: Histories, plan: &Plan, towards: Side, seed: u64) -> Result<Numbers, String> {
    let told = told(plan, towards);
    let mut shown = Numbers::new();
    let mut held = [0_u32; 5];
    for number in 1..=histories.count {
        let seen = watch::run(&History::draw(told, seed, number), plan, towards, seed)?;
        let figures = [
            ("over", seen.over, OVER),
            ("off", seen.off, OFF),
            ("off_full", seen.off_full, OFF),
            ("queue_ms", seen.queue_ms, QUEUE_MS),
        ];
        for (at, (name, figure, most)) in figures.into_iter().enumerate() {
            held[at] += u32::from(figure <= most);
            shown.push((format!("{name}.{number:02}"), figure));
        }
        let holds = |(_, figure, most): (&str, f64, f64)| figure <= most;
        held[4] += u32::from(figures.into_iter().all(holds));
        shown.push((format!("used.{number:02}"), seen.used));
    }
    for (name, held) in ["over", "off", "off_full", "queue_ms", "all"].into_iter().zip(held) {
        shown.push((format!("held.{name}"), f64::from(held)));
    }
    Ok(shown)
}

/// The bars: time above the line, by what is allowed.
const OVER: f64 = 1.0;
/// How far from the line, as a part of it.
const OFF: f64 = 0.05;
/// The 99th percentile of how long frames wait at the provider.
const QUEUE_MS: f64 = 30.0;

fn told(plan: &Plan, towards: Side) -> Rate {
    plan.nodes.first().map_or(Rate::ZERO, |link| match towards {
        Side::Lan => link.shares.down.rate,
        Side::Wan => link.shares.up.rate,
    })
}
