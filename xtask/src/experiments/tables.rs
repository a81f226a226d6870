//! Tables of figures in the README of an experiment, held to what the experiment prints.

use std::collections::BTreeMap;

/// The README with the figures that are printed now. A row is one of a table that begins with
/// `figure`, its first cell a key; columns that are no profile stay as they are.
pub(super) fn renewed(readme: &str, printed: &str) -> String {
    let figures = figures(printed);
    let mut head: Vec<String> = Vec::new();
    let mut text = String::new();
    for line in readme.split_inclusive('\n') {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let key = cells[0].strip_prefix('`').and_then(|cell| cell.strip_suffix('`'));
        match key {
            _ if !line.starts_with('|') => head.clear(),
            Some(key) if !head.is_empty() => {
                let cell = |(at, old): (usize, &&str)| {
                    let profile = head.get(at).map_or("", String::as_str);
                    figures.get(&(profile, key)).map_or_else(|| (*old).to_owned(), Clone::clone)
                };
                let cells: Vec<String> = cells.iter().enumerate().map(cell).collect();
                text += &format!("| {} |\n", cells.join(" | "));
                continue;
            }
            _ if cells[0] == "figure" => head = cells.iter().map(|&c| c.to_owned()).collect(),
            _ => {}
        }
        text += line;
    }
    text
}

/// What stands in the tables of figures that a run printed, by profile and key.
fn figures(printed: &str) -> BTreeMap<(&str, &str), String> {
    let mut figures = BTreeMap::new();
    // profiles, and where their columns end: numbers stand to the right
    let mut columns: Vec<(&str, usize)> = Vec::new();
    for line in printed.lines() {
        let Some(key) = line.split_whitespace().next() else {
            columns.clear();
            continue;
        };
        if key == "figure" {
            columns = ends(line);
            continue;
        }
        let chars: Vec<char> = line.chars().collect();
        for two in columns.windows(2) {
            // what the paper printed may be of any profile
            if two[1].0 == "paper" {
                continue;
            }
            let (from, to) = (two[0].1.max(key.chars().count()), two[1].1.min(chars.len()));
            let cell: String = chars.get(from..to).unwrap_or_default().iter().collect();
            figures.insert((two[1].0, key), cell.trim().to_owned());
        }
    }
    figures
}

/// The words of a line, and where each ends.
fn ends(line: &str) -> Vec<(&str, usize)> {
    let start = |word: &str| word.as_ptr() as usize - line.as_ptr() as usize;
    line.split_whitespace().map(|word| (word, start(word) + word.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
x: one seed

figure        weir    none  paper
rate       1 ± 0.1  10 000   0.08
loss.long        0            few

verdict  claim
rate     is a word here
";

    #[test]
    fn rows_get_the_figures_of_today() {
        let readme = "text\n\n| figure | paper | none | weir |\n|---|---|---|---|\n\
            | `rate` | 7 | 2 | 3 |\n| `loss.long` | 8 | | 1 |\n| `gone` | 1 | 2 | 3 |\n\n\
            | profile | it |\n|---|---|\n| `rate` | stays |\n";
        let want = readme
            .replace("| 7 | 2 | 3 |", "| 7 | 10 000 | 1 ± 0.1 |")
            .replace("| 8 | | 1 |", "| 8 |  | 0 |");
        assert_eq!(renewed(readme, PRINTED), want);
    }
}
