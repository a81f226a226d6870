//! A text that the policy consists of, and where in it a byte lies.

use crate::problem::Position;

/// One file: the policy itself or its subscriber table.
#[derive(Clone, Debug)]
pub struct Source {
    name: String,
    bytes: Vec<u8>,
}

impl Source {
    /// `bytes` under the `name` that messages use.
    #[must_use]
    pub fn new(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Source { name: name.into(), bytes: bytes.into() }
    }

    /// The name that messages use.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes as they are.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text, if it is text.
    ///
    /// # Errors
    /// The offset of the first byte that is not UTF-8.
    pub fn text(&self) -> Result<&str, usize> {
        std::str::from_utf8(&self.bytes).map_err(|e| e.valid_up_to())
    }

    /// Line and column of a byte, both from 1; columns count characters.
    #[must_use]
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.bytes[..offset.min(self.bytes.len())];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let start = before.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
        (line, String::from_utf8_lossy(&before[start..]).chars().count() + 1)
    }

    /// `name:line:column` of a place in this file.
    #[must_use]
    pub fn position(&self, place: Position) -> String {
        let (line, column) = self.line_column(place.start as usize);
        format!("{}:{line}:{column}", self.name)
    }
}

/// Where the lines of a text start: made once where many places are asked for.
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(bytes: &[u8]) -> Lines {
        let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
        Lines(ends.map(|(at, _)| at).collect())
    }

    /// The line of a byte, from 1.
    pub(crate) fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|&end| end < offset) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_start_at_one_and_count_characters() {
        let source = Source::new("p", "a\näöx\n");
        assert_eq!(source.line_column(0), (1, 1));
        assert_eq!(source.line_column(2), (2, 1));
        assert_eq!(source.line_column(6), (2, 3));
        assert_eq!(source.line_column(999), (3, 1));
        let lines = Lines::of(source.bytes());
        for offset in 0..7 {
            assert_eq!(lines.line(offset), source.line_column(offset).0, "{offset}");
        }
    }
}
