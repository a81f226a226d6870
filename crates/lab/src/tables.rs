//! The tables of docs/lab.md that list words of scenarios, made of the tables by which these are
//! read.

use crate::figures::{self, Of, Row};
use crate::scenario::SOURCES;
use crate::sharing;

/// Every such table by its name in the document, in Markdown.
#[must_use]
pub fn all() -> Vec<(&'static str, String)> {
    vec![
        ("asks", plain("`ask`", &sharing::ASKS)),
        ("laws", plain("`law`", &sharing::LAWS)),
        ("engines", plain("`engine`", &sharing::ENGINES)),
        ("sources", sources()),
        ("metrics", metrics()),
    ]
}

fn plain<T>(kind: &str, rows: &[sharing::Row<T>]) -> String {
    let rows = rows.iter().map(|row| [code(row.word), row.about.to_owned()]);
    table([kind, "what it is"], rows)
}

fn sources() -> String {
    let rows = SOURCES.iter().map(|row| {
        let words: Vec<String> = row.words.iter().map(|w| (*w).to_owned()).collect();
        [code(row.word), listed(&words), row.about.to_owned()]
    });
    table(["`source`", "words", "what it sends"], rows)
}

fn metrics() -> String {
    let cells = |row: &Row| {
        let mut words: Vec<String> = row.of.words().iter().map(|w| (*w).to_owned()).collect();
        if let Of::Percentile(usual, _) | Of::PartByPercent(usual, _) = row.of {
            let percent = words.iter_mut().filter(|word| *word == "percent");
            percent.for_each(|word| *word = format!("percent = {usual}"));
        }
        [code(row.word), listed(&words), row.unit.to_owned(), row.about.to_owned()]
    };
    table(["`kind`", "words", "unit", "what it is"], figures::rows().map(cells))
}

fn code(word: &str) -> String {
    format!("`{word}`")
}

fn listed(words: &[String]) -> String {
    words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", ")
}

fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        // a cell without words has one blank
        format!("| {} |\n", cells.join(" | ")).replace("|  |", "| |")
    };
    let rule = format!("|{}\n", "---|".repeat(N));
    rows.fold(line(&head.map(str::to_owned)) + &rule, |table, row| table + &line(&row))
}
