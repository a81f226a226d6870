//! The known word that a mistyped one is nearest to.

/// The nearest of `known`, when it is near enough to be what was meant. One that begins with the
/// word is nearer than what is two letters off: who writes "pace" does not mean "rate".
pub(crate) fn nearest<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    if let Some(same) = same(word)
        && let Some(known) = known.clone().into_iter().find(|known| *known == same)
    {
        return Some(known);
    }
    let far = word.chars().count().clamp(3, 9) / 3 + 1;
    let begun = word.to_lowercase();
    let goes_on = |k: &str| {
        // a class is not meant by one that lies within it
        let rest = k.strip_prefix(&begun).filter(|_| begun.len() >= BEGUN);
        rest.is_some_and(|rest| !rest.contains('/'))
    };
    known
        .into_iter()
        .filter(|k| goes_on(k) || k.len().abs_diff(word.len()) < 2 * far)
        .map(|k| (distance(word, k), goes_on(k), k))
        .filter(|&(d, goes_on, _)| goes_on || d <= far)
        .min_by_key(|&(d, goes_on, _)| (d > 1 && !goes_on, d))
        .map(|(.., k)| k)
}

/// What people mean by a word that is too far from a known one to be a slip.
fn same(word: &str) -> Option<&'static str> {
    Some(match word {
        "automatic" => "auto",
        "download" | "downstream" => "down",
        "upload" | "upstream" => "up",
        "min" | "minimum" | "guarantee" => "rate",
        "max" | "maximum" => "ceil",
        _ => return None,
    })
}

/// The known word that has a part near to `word`: "hst" is in "lan-host".
pub(crate) fn nearest_part<'k>(
    word: &str,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Option<&'k str> {
    let parts: Vec<&str> =
        known.clone().into_iter().flat_map(|known| known.split('-').skip(1)).collect();
    let part = nearest(word, parts)?;
    known.into_iter().find(|known| known.split('-').any(|p| p == part))
}

/// Letters of the beginning of a word by which it can be known.
const BEGUN: usize = 3;

/// The cure for a wrong word: the nearest known one, or all of them; nothing when none is known.
#[must_use]
pub fn instead<'k>(word: &str, known: impl IntoIterator<Item = &'k str> + Clone) -> String {
    match nearest(word, known.clone()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => {
            let mut words: Vec<&str> = known.into_iter().collect();
            if words.is_empty() {
                return String::new();
            }
            let more = words.len().saturating_sub(24);
            words.truncate(24);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("known here: {}{rest}", words.join(", "))
        }
    }
}

/// How many letters must be changed, added, removed or swapped to make `a` of `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().take(64).collect(), b.chars().take(64).collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (last[j - 1] + change).min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_far_off() {
        let known = ["rate", "ceil", "weight", "priority"];
        assert_eq!(nearest("rtae", known), Some("rate"));
        assert_eq!(nearest("wieght", known), Some("weight"));
        assert_eq!(nearest("ceiling", known), Some("ceil"));
        assert_eq!(nearest("bandwidth", known), None);
        assert!(instead("bandwidth", known).contains("priority"));
        assert_eq!(nearest("download", ["down", "up"]), Some("down"));
        assert_eq!(nearest("download", ["rate"]), None);
        assert_eq!(nearest_part("hst", ["lan-host", "wan-host", "vlan"]), Some("lan-host"));
        assert_eq!(nearest_part("lan", ["lan-host"]), None);
    }

    #[test]
    fn a_word_that_goes_on_is_nearer_than_one_that_looks_alike() {
        let known = ["window", "pace-acks", "mss", "rate"];
        assert_eq!(nearest("pace", known), Some("pace-acks"));
        assert_eq!(nearest("Pace", known), Some("pace-acks"));
        // but a slip of one letter is nearer, and what lies within a class is not the class
        assert_eq!(nearest("pace", ["pacer-x", "face"]), Some("face"));
        assert_eq!(nearest("/offices", ["/office", "/offices/a"]), Some("/office"));
        assert_eq!(nearest("/offices", ["/offices/backup"]), None);
        // of several the shortest, and two letters are too few to know a word by
        assert_eq!(nearest("gua", ["guaranteed", "guard"]), Some("guard"));
        assert_eq!(nearest("ma", ["margin-down", "mss"]), Some("mss"));
        assert_eq!(nearest("raet", known), Some("rate"));
    }
}
