//! A scenario that is run with several values: `[sweep]` gives them names, and each `{name}` in the
//! file is filled with each value in turn. Several names make all combinations.
//!
//! The file is filled before it is read, so that a value may stand in any text, that of a policy
//! included; places are led back to the file as it was written.

use toml::de::{DeTable, DeValue};
use weir_policy::reader::{Entry, Table};
use weir_policy::{Position, Problems};

use super::size;

/// How many cases a scenario may have.
const CASES: usize = 64;

/// The file as one case has it.
#[derive(Debug, Default)]
pub(super) struct Filled {
    pub(super) text: String,
    /// What the sweep has here, as keys have it; empty without a sweep.
    pub(super) case: String,
    /// Where values were filled in: from and up to where, here and in the file.
    values: Vec<[usize; 4]>,
    /// Where nothing was, since the value is at fault.
    faults: Vec<usize>,
}

/// What stands for a name; nothing where that is at fault, which is said where it is written.
type Value = (String, Option<String>);

/// One text for each case; the file itself without a sweep. `sizes` stand everywhere, in what the
/// sweep says too.
pub(super) fn cases(
    text: &str,
    document: &DeTable<'_>,
    sizes: &[size::Value],
    problems: &mut Problems,
) -> Vec<Filled> {
    let mut top = Table::new("the scenario", document, text);
    let sized = sizes.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
    let mut cases: Vec<Vec<Value>> = vec![sized];
    let mut names: Vec<String> = sizes.iter().map(|(name, _)| name.clone()).collect();
    let mut more = Vec::new();
    if let Some(entry) = top.take("sweep")
        && let Some(table) = entry.table("[sweep]", problems)
    {
        for (name, entry) in table.all() {
            names.push(name.to_owned());
            let says = |word: &str| text.contains(&format!("{{{word}}}"));
            if !says(name) {
                let what = format!("nothing in the scenario says {{{name}}}");
                problems.error(entry.key, what, "write it where the values belong");
            }
            let mut values = values(name, entry, problems);
            for (_, value) in values.iter_mut().flatten() {
                *value = value.take().map(|value| size::filled(&value, sizes));
            }
            for (word, _) in values.iter().flatten().filter(|(word, _)| !names.contains(word)) {
                more.push(word.clone());
            }
            let with = |case: &Vec<Value>| {
                let case = case.clone();
                let next = move |value: &Vec<Value>| [&case[..], &value[..]].concat();
                values.iter().map(next).collect::<Vec<Vec<Value>>>()
            };
            cases = cases.iter().flat_map(with).take(CASES + 1).collect();
            if cases.len() > CASES {
                let help = "leave out some values, or make another experiment of them";
                let what = format!("the sweep has more than {CASES} cases");
                problems.error(entry.place, what, help);
                cases.truncate(1);
            }
        }
    }
    let case = |values: &[Value]| {
        let swept = values.iter().skip(sizes.len()).filter(|(word, _)| !more.contains(word));
        swept.filter_map(|(_, value)| value.clone()).collect::<Vec<_>>().join(".")
    };
    names.extend(more.iter().cloned());
    unknown(text, &names, problems);
    let filled = |values: &Vec<Value>| Filled { case: case(values), ..Filled::new(text, values) };
    cases.iter().map(filled).collect()
}

/// What a name stands for, case by case: itself, and with a table the other words of it behind a
/// hyphen.
fn values(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Vec<Vec<Value>> {
    let mut values = Vec::new();
    for entry in entry.list() {
        values.push(match entry.value {
            DeValue::Table(_) => row(name, entry, problems),
            _ => vec![(name.to_owned(), one(name, entry, problems))],
        });
    }
    if values.is_empty() {
        let what = format!("\"{name}\" has no values");
        problems.error(entry.place, what, format!("write {name} = [95, 96, 97]"));
        values.push(vec![(name.to_owned(), None)]);
    }
    values
}

/// `{ name = "t1", rate = "1544kbit" }` of `line`: `{line}` is t1, and `{line-rate}` the rate.
fn row(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Vec<Value> {
    let mut row = Vec::new();
    let table = entry.table(&format!("a value of \"{name}\""), problems);
    for (word, entry) in table.into_iter().flat_map(Table::all) {
        let word = if word == "name" { name.to_owned() } else { format!("{name}-{word}") };
        row.push((word, one(name, entry, problems)));
    }
    if !row.iter().any(|(word, _)| word == name) {
        let help = format!("write {{ name = \"...\" }}: what stands for {{{name}}}");
        problems.error(entry.place, format!("a value of \"{name}\" has no \"name\""), help);
        row.push((name.to_owned(), None));
    }
    row
}

fn one(name: &str, entry: Entry<'_>, problems: &mut Problems) -> Option<String> {
    match entry.value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => {
            let what = format!("a value of \"{name}\" is {}", entry.kind());
            problems.error(entry.place, what, format!("write {name} = [95, 96, 97]"));
            None
        }
    }
}

/// Says which words in braces no sweep fills.
fn unknown(text: &str, names: &[String], problems: &mut Problems) {
    for (at, _) in text.match_indices('{') {
        let Some((word, _)) = text[at + 1..].split_once('}') else { return };
        let is_word = !word.is_empty()
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if is_word && !names.iter().any(|name| name == word) {
            let place = Position::of(&(at..at + word.len() + 2));
            let what = format!("[sweep] does not know \"{word}\"");
            let help = match names {
                [] => format!("add [sweep] and {word} = [95, 96, 97]"),
                names => format!("it knows {}", names.join(", ")),
            };
            problems.error(place, what, help);
        }
    }
}

impl Filled {
    fn new(text: &str, with: &[Value]) -> Filled {
        let mut filled = Filled::default();
        let mut rest = 0;
        for (at, _) in text.match_indices('{') {
            let Some((word, _)) = text[at + 1..].split_once('}') else { break };
            let Some((_, value)) = with.iter().find(|(name, _)| name == word) else { continue };
            filled.text.push_str(&text[rest..at]);
            let from = filled.text.len();
            match value {
                Some(value) => filled.text.push_str(value),
                None => filled.faults.push(from),
            }
            rest = at + word.len() + 2;
            filled.values.push([from, filled.text.len(), at, rest]);
        }
        filled.text.push_str(&text[rest..]);
        filled
    }

    /// Whether nothing is there but a value that is at fault itself.
    pub(super) fn is_at_fault(&self, place: Position) -> bool {
        let range = place.start as usize..place.end as usize;
        self.faults.iter().any(|at| (range.start..=range.end).contains(at))
            && self.text.get(range).is_some_and(|text| text.trim_matches('"').is_empty())
    }

    /// Where in the file something is that is here in the text.
    pub(super) fn place(&self, place: Position) -> Position {
        let back = |at: u32, is_end: bool| {
            let at = at as usize;
            let before =
                self.values.iter().rev().find(|[from, ..]| *from < at || !is_end && *from == at);
            match before {
                None => at,
                Some([_, until, begin, _]) if at < *until && !is_end => *begin,
                Some([_, until, _, end]) if at <= *until && is_end => *end,
                Some([_, until, _, end]) => at - until + end,
            }
        };
        let range = back(place.start, false)..back(place.end, true);
        Position::in_file(place.file, &range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_lead_back_to_the_file() {
        let text = "a = \"{x}\"\nb = \"{long}{x}\"\nc = { d = 1 }\n";
        let value = |name: &str, value: &str| (name.to_owned(), Some(value.to_owned()));
        let filled = Filled::new(text, &[value("x", "10.0.0.1"), value("long", "1")]);
        assert_eq!(filled.text, "a = \"10.0.0.1\"\nb = \"110.0.0.1\"\nc = { d = 1 }\n");
        let back = |here: &str, there: &str| {
            let at = filled.text.find(here).unwrap();
            let place = filled.place(Position::of(&(at..at + here.len())));
            assert_eq!(&text[place.start as usize..place.end as usize], there, "{here}");
        };
        back("a =", "a =");
        back("10.0.0.1", "{x}");
        back("0.0", "{x}");
        back("\"10.0.0.1\"", "\"{x}\"");
        back("b", "b");
        back("\"110.0.0.1\"", "\"{long}{x}\"");
        back("d = 1", "d = 1");
    }
}
