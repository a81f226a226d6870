//! An argument that is one of a few words, which another crate knows.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// Reads the word of one of `all`; the help lists them with what is said `about` each.
pub(crate) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let values = all.iter().map(|&one| PossibleValue::new(word(one)).help(about(one)));
    // only these words come so far
    let find = move |said: String| all.iter().copied().find(|&one| word(one) == said);
    PossibleValuesParser::new(values).try_map(move |said| find(said).ok_or("not one of these"))
}
