//! An outcome as a person reads it: the figures of each profile side by side, then the claims.

use weir_lab::{Figure, Holds, Outcome};

use crate::out::Out;
use crate::table::Table;

pub(super) fn outcome(out: &mut Out, outcome: &Outcome) {
    let seeds = outcome.seeds;
    out.line(&format!("{}: means over {seeds} seeds in virtual time", outcome.experiment));
    let profiles: Vec<(&str, &weir_lab::Figures)> = outcome.each_profile().collect();
    let mut head = vec!["metric"];
    head.extend(profiles.iter().map(|(name, _)| *name));
    let mut table = Table::new(&head);
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in profiles.iter().flat_map(|(_, figures)| figures.iter()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        let mut row = vec![key.to_owned()];
        row.extend(profiles.iter().map(|(_, figures)| figures.get(key).map_or_else(dash, short)));
        table.row(row);
    }
    table.lines().iter().for_each(|line| out.line(line));
    claims(out, outcome);
    out.line("");
}

fn claims(out: &mut Out, outcome: &Outcome) {
    if outcome.claims.is_empty() {
        return;
    }
    out.line("");
    let mut table = Table::new(&["claim", "measured", "", "what", "the paper"]);
    for judged in &outcome.claims {
        let measured = judged.measured.as_ref().map_or_else(dash, ToString::to_string);
        let paper = judged.paper.as_ref().map_or_else(String::new, ToString::to_string);
        let what = match &judged.note {
            Some(note) => format!("{} ({note})", judged.text),
            None => judged.text.clone(),
        };
        let holds = judged.holds.word().to_owned();
        table.row(vec![judged.id.clone(), measured, holds, what, paper]);
    }
    table.lines().iter().for_each(|line| out.line(line));
    let count = |holds| outcome.claims.iter().filter(|c| c.holds == holds).count();
    let (yes, no, pending) = (count(Holds::Yes), count(Holds::No), count(Holds::Pending));
    out.line(&format!("{yes} claims hold, {no} do not, {pending} wait for what is not there yet"));
}

fn dash() -> String {
    "-".to_owned()
}

/// Four digits, and the deviation where there is any.
fn short(figure: Figure) -> String {
    let size = figure.mean.abs();
    let places = match size {
        0.0 => 0,
        s if s >= 1_000.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 => 2,
        _ => 4,
    };
    match figure.sd.filter(|sd| *sd > 0.0) {
        Some(sd) => format!("{:.places$} \u{b1}{:.places$}", figure.mean, sd),
        None => format!("{:.places$}", figure.mean),
    }
}
