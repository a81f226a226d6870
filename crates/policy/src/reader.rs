//! Walks a parsed TOML table, word by word: every value is asked for by name, what nobody asked for
//! is reported with the nearest known word, and a value of the wrong kind says what was expected.

use std::ops::RangeInclusive;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};
use weir_units::{Rate, Unreadable};

use crate::nearest::{instead, nearest, nearest_part};
use crate::problem::{At, Position, Problems};

/// A value in the file and where it stands.
#[derive(Clone, Copy)]
pub struct Entry<'t> {
    /// What is written.
    pub value: &'t DeValue<'t>,
    /// Where the value stands.
    pub place: Position,
    /// Where its name stands.
    pub key: Position,
    /// The whole file, so that a place inside a string can be found.
    pub text: &'t str,
}

/// A table of the file; `what` names it in messages, as in `class "/voice"`.
pub struct Table<'t> {
    what: String,
    entries: Vec<(&'t str, Entry<'t>, bool)>,
}

impl<'t> Table<'t> {
    /// The entries of a table, none of them asked for yet.
    pub fn new(what: impl Into<String>, table: &'t DeTable<'t>, text: &'t str) -> Self {
        let mut entries: Vec<_> = table
            .iter()
            .map(|(key, value)| {
                let place = Position::of(&value.span());
                let key_place = Position::of(&key.span());
                let entry = Entry { value: value.get_ref(), place, key: key_place, text };
                (key.get_ref().as_ref(), entry, false)
            })
            .collect();
        // the order of the file, not of the alphabet
        entries.sort_by_key(|(_, entry, _)| entry.key.start);
        Table { what: what.into(), entries }
    }

    /// The value of `key`, which is thereby known.
    pub fn take(&mut self, key: &str) -> Option<Entry<'t>> {
        let (_, entry, asked) = self.entries.iter_mut().find(|(k, ..)| *k == key)?;
        *asked = true;
        Some(*entry)
    }

    /// The value of `key`; whether it is known is left open.
    pub(crate) fn peek(&self, key: &str) -> Option<Entry<'t>> {
        self.entries.iter().find(|(k, ..)| *k == key).map(|(_, entry, _)| *entry)
    }

    /// Whether a word that is none of `known` was probably meant to be `key`: that it is missing
    /// need not be said besides.
    pub(crate) fn misspells(&self, key: &str, known: &[&str]) -> bool {
        let mut others = self.entries.iter().map(|(k, ..)| *k).filter(|k| !known.contains(k));
        others.any(|other| nearest(other, known.iter().copied()) == Some(key))
    }

    /// All names and values, for tables whose names are the operator's own.
    pub fn all(self) -> impl Iterator<Item = (&'t str, Entry<'t>)> {
        self.entries.into_iter().map(|(key, entry, _)| (key, entry))
    }

    /// Reports the words that nobody asked for.
    pub fn finish(self, known: &[&str], problems: &mut Problems) {
        for (key, entry, asked) in self.entries {
            if problems.is_full() {
                return;
            }
            // what cannot be read may have been the head of the table that it stands in
            let is_lost = || problems.is_torn && nearest(key, known.iter().copied()).is_none();
            if !asked && !is_lost() {
                let what = format!("{} has no word \"{key}\"", self.what);
                problems.error(entry.key, what, instead(key, known.iter().copied()));
            }
        }
    }
}

/// A whole number without a sign.
pub fn whole<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

/// A hexadecimal number without a sign.
pub fn hex<T: TryFrom<u64>>(text: &str) -> Option<T> {
    let digits = text.bytes().all(|b| b.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(text, 16).ok())?.and_then(|n| T::try_from(n).ok())
}

impl<'t> Entry<'t> {
    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "a number",
            DeValue::Float(_) => "a number with a decimal point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        }
    }

    /// Reports that the value is no text.
    pub(crate) fn wrong_kind(&self, name: &str, expected: &str, problems: &mut Problems) {
        let mut help = format!("write {expected}");
        if let DeValue::Integer(number) = self.value
            && expected.contains("bit\"")
        {
            let meant = number.as_str().parse::<Rate>().err();
            let meant = meant.and_then(|error| error.meant().map(str::to_owned));
            help = match meant {
                Some(meant) => {
                    let key = self.key.start as usize..self.key.end as usize;
                    let key = self.text.get(key).unwrap_or(name);
                    format!("write {key} = \"{meant}\", if that is the unit that you mean")
                }
                None => help,
            };
        }
        problems.error(self.place, format!("\"{name}\" is {}, not a string", self.kind()), help);
    }

    /// The text that this value is.
    pub fn text(&self, name: &str, expected: &str, problems: &mut Problems) -> Option<&'t str> {
        let text = self.value.as_str();
        if text.is_none() {
            self.wrong_kind(name, expected, problems);
        }
        text
    }

    /// Reads a text that knows how to read itself.
    pub fn read<T: FromStr<Err = Unreadable>>(
        &self,
        name: &str,
        expected: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        let text = self.text(name, expected, problems)?;
        match text.parse() {
            Ok(value) => Some(value),
            Err(error) => {
                let what = format!("\"{name}\" cannot be \"{text}\": {}", error.why());
                problems.error(self.place, what, error.help());
                None
            }
        }
    }

    /// One of a few words.
    pub fn word<T: Copy>(
        &self,
        name: &str,
        words: &[(&'static str, T)],
        problems: &mut Problems,
    ) -> Option<T> {
        let known = || words.iter().map(|(w, _)| *w);
        let list = known().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ");
        let text = self.text(name, &format!("one of {list}"), problems)?;
        let found = words.iter().find(|(w, _)| *w == text).map(|(_, value)| *value);
        if found.is_none() {
            let what = format!("\"{name}\" cannot be \"{text}\"");
            let near = nearest(text, known()).or_else(|| nearest_part(text, known()));
            let help = match near {
                Some(near) => format!("did you mean \"{near}\"? ({list})"),
                None => format!("write one of {list}"),
            };
            problems.error(self.place, what, help);
        }
        found
    }

    /// True or false.
    pub fn yes_no(&self, name: &str, problems: &mut Problems) -> Option<bool> {
        let value = self.value.as_bool();
        if value.is_none() {
            let what = format!("\"{name}\" is {}, not true or false", self.kind());
            problems.error(self.place, what, format!("write {name} = true or {name} = false"));
        }
        value
    }

    /// A whole number from `range`.
    pub fn number(
        &self,
        name: &str,
        range: RangeInclusive<u64>,
        problems: &mut Problems,
    ) -> Option<u64> {
        let integer = self.value.as_integer();
        let number = integer.and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
        match number.filter(|n| range.contains(n)) {
            Some(number) => Some(number),
            None => {
                let what = match integer {
                    Some(i) => format!("\"{name}\" cannot be {}", i.as_str()),
                    None => format!("\"{name}\" is {}, not a number", self.kind()),
                };
                let help =
                    format!("write a whole number from {} to {}", range.start(), range.end());
                problems.error(self.place, what, help);
                None
            }
        }
    }

    /// The table that this value is.
    pub fn table(&self, what: &str, problems: &mut Problems) -> Option<Table<'t>> {
        match self.value.as_table() {
            Some(table) => Some(Table::new(what, table, self.text)),
            None => {
                let help = format!("{what} is a table, as the examples show");
                problems.error(self.place, format!("{what} is {}, not a table", self.kind()), help);
                None
            }
        }
    }

    /// The entries of the list that this value is; a single value counts as a list of one.
    pub fn list(&self) -> Vec<Entry<'t>> {
        match self.value.as_array() {
            Some(array) => array
                .iter()
                .map(|v| Entry {
                    value: v.get_ref(),
                    place: Position::of(&v.span()),
                    key: self.key,
                    text: self.text,
                })
                .collect(),
            None => vec![*self],
        }
    }

    /// The place of `part`, a slice of this entry's text; the whole text when it was escaped.
    pub fn place_of(&self, whole: &str, part: &str) -> Position {
        let offset = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
        if offset > whole.len() {
            // a word of ours, not of the operator's
            return self.place;
        }
        let start = self.place.start as usize + 1;
        let raw = self.text.get(start..start + whole.len());
        if raw == Some(whole) {
            Position::of(&(start + offset..start + offset + part.len().max(1)))
        } else {
            self.place
        }
    }

    /// Something that stands for its name, with the place of that.
    pub(crate) fn named<T>(&self, value: T) -> At<T> {
        At { value, place: self.key }
    }

    /// Something read from this value, with its place.
    pub fn at<T>(&self, value: T) -> At<T> {
        At { value, place: self.place }
    }
}
