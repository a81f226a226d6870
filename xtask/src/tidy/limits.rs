//! `docs/limits.md` lists every bound of `units::limits` with its value, and says what happens
//! there. The first three columns come from the source (`--fix-limits` writes them); the last one
//! is ours.

use std::collections::BTreeMap;

use super::markdown;
use super::{Files, Problem};

const SOURCE: &str = "crates/units/src/limits.rs";
pub(crate) const TABLE: &str = "docs/limits.md";
const HEAD: &str = "| limit | value | what it counts | at the bound |\n|---|---:|---|---|\n";

/// A constant, or a row of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Limit {
    name: String,
    value: String,
    counts: String,
    at_the_bound: String,
}

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let source = constants(files.text(SOURCE).unwrap_or_default());
    let table = rows(files.text(TABLE).unwrap_or_default());
    let cure = "run `cargo x tidy --fix-limits`";
    let mut problems = Vec::new();
    for limit in &source {
        let name = &limit.name;
        let what = match table.get(name) {
            None => format!("does not list {name}: {cure}"),
            Some(row) if row.value != limit.value => {
                format!("{name} is {}, not {}: {cure}", limit.value, row.value)
            }
            Some(row) if row.counts != limit.counts => {
                format!("what {name} counts reads otherwise in {SOURCE}: {cure}")
            }
            Some(row) if row.at_the_bound.is_empty() => {
                format!("does not say what happens at {name}")
            }
            Some(_) => continue,
        };
        problems.push(Problem::of(TABLE, what));
    }
    let gone = table.keys().filter(|name| !source.iter().any(|limit| limit.name == **name));
    problems.extend(gone.map(|name| Problem::of(TABLE, format!("{name} is no limit: {cure}"))));
    problems
}

/// The file with its table written anew; what stands before and after stays.
pub(crate) fn fixed(files: &Files) -> String {
    let old = files.text(TABLE).unwrap_or("# Limits\n\n");
    let known = rows(old);
    let mut table = String::from(HEAD);
    for limit in constants(files.text(SOURCE).unwrap_or_default()) {
        let row = known.get(&limit.name).cloned().unwrap_or_default();
        let Limit { name, value, counts, .. } = limit;
        table += &format!("| `{name}` | {value} | {counts} | {} |\n", row.at_the_bound);
    }
    let is_row = |line: &&str| line.starts_with('|');
    let before: String = old.split_inclusive('\n').take_while(|line| !is_row(line)).collect();
    let rest = old.split_inclusive('\n').skip_while(|line| !is_row(line));
    let after: String = rest.skip_while(is_row).collect();
    before + &table + &after
}

fn rows(text: &str) -> BTreeMap<String, Limit> {
    let rows = text.lines().filter_map(markdown::cells).skip(1);
    rows.filter_map(|cells| match cells[..] {
        [name, value, counts, at_the_bound] => {
            let name = name.trim_matches('`').to_owned();
            let [value, counts, at_the_bound] = [value, counts, at_the_bound].map(str::to_owned);
            Some((name.clone(), Limit { name, value, counts, at_the_bound }))
        }
        _ => None,
    })
    .collect()
}

/// Every `pub const` with its documentation, in the order of the source.
fn constants(source: &str) -> Vec<Limit> {
    let mut found: Vec<Limit> = Vec::new();
    let mut values = BTreeMap::new();
    let mut counts: Vec<&str> = Vec::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            counts.push(text.trim());
            continue;
        }
        if let Some(rest) = line.strip_prefix("pub const ") {
            let mut rest = rest.to_owned();
            while !rest.ends_with(';') {
                let Some(next) = lines.next() else { break };
                rest = format!("{rest} {next}");
            }
            if let Some((name, expression)) = constant(&rest) {
                let value = evaluate(expression, &values);
                if let Some(value) = value {
                    values.insert(name.to_owned(), value);
                }
                let value = value.map_or_else(|| expression.to_owned(), grouped);
                let counts = counts.join(" ").replace('|', "/");
                let counts = counts.trim_end_matches('.').to_owned();
                found.push(Limit { name: name.to_owned(), value, counts, ..Limit::default() });
            }
        }
        counts.clear();
    }
    found
}

/// `NAME: usize = 1 << 4;` as its name and its expression.
fn constant(rest: &str) -> Option<(&str, &str)> {
    let (name, rest) = rest.split_once(':')?;
    let (_, expression) = rest.split_once('=')?;
    Some((name.trim(), expression.trim().trim_end_matches(';').trim()))
}

/// A number, another limit, a product or a shift of such; `None` for anything else.
fn evaluate(expression: &str, known: &BTreeMap<String, u128>) -> Option<u128> {
    if let Some((left, right)) = expression.split_once("<<") {
        let by = u32::try_from(evaluate(right, known)?).ok()?;
        return evaluate(left, known)?.checked_shl(by);
    }
    if let Some((left, right)) = expression.split_once('*') {
        return evaluate(left, known)?.checked_mul(evaluate(right, known)?);
    }
    let word = expression.trim();
    word.replace('_', "").parse().ok().or_else(|| known.get(word).copied())
}

/// 1048576 as `1 048 576`.
fn grouped(value: u128) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: &str = "//! x\n\n/// Frames in\n/// one burst.\npub const BURST: usize = 64;\n\
        /// Classes.\npub const CLASSES: usize =\n    1 << 20;\n\
        /// Both.\npub const BOTH: u64 = BURST * 2;\n";
    const GOOD: &str = "# Limits\n\n\
        | limit | value | what it counts | at the bound |\n|---|---:|---|---|\n\
        | `BURST` | 64 | Frames in one burst | the rest waits |\n\
        | `CLASSES` | 1 048 576 | Classes | an error |\n\
        | `BOTH` | 128 | Both | nothing |\n\nafter\n";

    fn found(table: &str) -> Vec<Problem> {
        check(&Files::of(&[(SOURCE, LIMITS), (TABLE, table)]))
    }

    #[test]
    fn a_table_that_agrees_is_fine_and_stays() {
        assert_eq!(found(GOOD), []);
        assert_eq!(fixed(&Files::of(&[(SOURCE, LIMITS), (TABLE, GOOD)])), GOOD);
    }

    #[test]
    fn what_disagrees_is_named() {
        assert_eq!(found("").len(), 3);
        for (old, new) in
            [("64", "65"), ("Frames", "Cells"), ("the rest waits", ""), ("BOTH", "NONE")]
        {
            assert!(!found(&GOOD.replace(old, new)).is_empty(), "{old}");
        }
    }

    #[test]
    fn mending_keeps_our_own_words() {
        let wrong = GOOD.replace("64", "65").replace("| `BOTH` | 128 | Both | nothing |\n", "");
        let mended = fixed(&Files::of(&[(SOURCE, LIMITS), (TABLE, &wrong)]));
        assert!(mended.contains("| `BURST` | 64 | Frames in one burst | the rest waits |"));
        assert!(mended.contains("| `BOTH` | 128 | Both |  |") && mended.ends_with("\n\nafter\n"));
    }
}
