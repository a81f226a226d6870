//! The nearest known word to one that was mistyped.

/// The nearest of `known`, if any is near enough that the operator may have meant it.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (distance, name) = known.into_iter().map(|k| (distance(word, k), k)).min()?;
    (distance <= 1 + word.chars().count() / 3).then_some(name)
}

/// Letters to change, add, remove or swap with their neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_is_one_mistake() {
        assert_eq!(distance("tets", "test"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn a_word_like_none_has_no_nearest() {
        assert_eq!(nearest("bnch", ["bench", "fuzz"]), Some("bench"));
        assert_eq!(nearest("coffee", ["bench", "fuzz"]), None);
    }
}
