//! An experiment that is smaller than that of its paper, and can be as large: `[size]` says of each
//! word what stands for it, as usual and at the paper's size.

use toml::de::{DeTable, DeValue};
use weir_policy::Problems;
use weir_policy::reader::{Entry, Table};

/// How large an experiment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Size {
    /// What takes minutes, at most.
    #[default]
    Usual,
    /// As the paper has it, whatever that takes.
    Full,
}

/// A word and what stands for it.
pub(super) type Value = (String, String);

/// What stands for the words of `[size]`; none without it, where there is one size.
pub(super) fn values(
    text: &str,
    document: &DeTable<'_>,
    size: Size,
    problems: &mut Problems,
) -> Vec<Value> {
    let mut top = Table::new("the scenario", document, text);
    let Some(table) = top.take("size").and_then(|e| e.table("[size]", problems)) else {
        return Vec::new();
    };
    let mut values = Vec::new();
    for (word, entry) in table.all() {
        if !text.contains(&format!("{{{word}}}")) {
            let what = format!("nothing in the scenario says {{{word}}}");
            problems.error(entry.key, what, "write it where the values belong");
        }
        let both: Vec<String> = entry.list().into_iter().filter_map(plain).collect();
        let [usual, full] = &both[..] else {
            let what = format!("\"{word}\" does not say two values");
            let help = format!("write {word} = [\"11s\", \"110s\"]: as usual, and with --full");
            problems.error(entry.place, what, help);
            continue;
        };
        let value = if size == Size::Full { full } else { usual };
        values.push((word.to_owned(), value.clone()));
    }
    values
}

fn plain(entry: Entry<'_>) -> Option<String> {
    match entry.value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.as_str().to_owned()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// The text with these words filled in.
pub(super) fn filled(text: &str, values: &[Value]) -> String {
    let fill = |text: String, (word, value): &Value| text.replace(&format!("{{{word}}}"), value);
    values.iter().fold(text.to_owned(), fill)
}
