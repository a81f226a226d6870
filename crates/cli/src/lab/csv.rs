//! Figures of experiments as comma-separated values (RFC 4180), for spreadsheets.

use std::fmt::Write as _;

use weir_lab::Outcome;

/// A row for each figure of each profile.
pub(super) fn text(outcomes: &[Outcome]) -> String {
    let mut text = "experiment,profile,metric,mean,deviation,seeds\n".to_owned();
    for outcome in outcomes {
        for (profile, figures) in outcome.each_profile() {
            for (metric, figure) in figures.iter() {
                let deviation = figure.sd.map_or_else(String::new, |sd| sd.to_string());
                let names = [outcome.experiment.as_str(), profile, metric].map(field).join(",");
                let _ = writeln!(text, "{names},{},{deviation},{}", figure.mean, outcome.seeds);
            }
        }
    }
    text
}

/// A field, in quotes where it needs them.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
