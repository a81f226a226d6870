//! Rows of comma-separated values (RFC 4180), from bytes: a row that is not text is a bad row, not
//! a bad file.

use std::borrow::Cow;
use std::ops::Range;

/// The fields of a row with their places; why not, when the row cannot be read.
pub(crate) type Fields<'t> = Result<Vec<(Cow<'t, str>, Range<usize>)>, &'static str>;

/// One row: its bytes' place in the file and its fields.
pub(crate) struct Row<'t> {
    pub(crate) place: Range<usize>,
    pub(crate) fields: Fields<'t>,
}

/// Splits `bytes` into rows; empty lines and lines starting with `#` are passed over.
pub(crate) fn rows(bytes: &[u8]) -> impl Iterator<Item = Row<'_>> {
    // spreadsheets like to put a byte order mark in front
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            let end = row_end(bytes, start);
            at = end + 1;
            let line = bytes[start..end].trim_ascii();
            if !line.is_empty() && line[0] != b'#' {
                let trimmed = start..end - usize::from(bytes[..end].ends_with(b"\r"));
                return Some(Row { fields: fields(bytes, trimmed.clone()), place: trimmed });
            }
        }
        None
    })
}

/// The end of the row that starts at `start`: the next line feed outside quotes. Quotes that never
/// close end with their line, so that one stray quote costs one row.
fn row_end(bytes: &[u8], start: usize) -> usize {
    let line_end = |from: usize| {
        bytes[from..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| from + n)
    };
    let first = line_end(start);
    let mut end = first;
    while bytes[start..end].iter().filter(|&&b| b == b'"').count() % 2 == 1 {
        if end >= bytes.len() || end - start > 4_096 {
            return first;
        }
        end = line_end(end + 1);
    }
    end
}

fn fields(bytes: &[u8], row: Range<usize>) -> Fields<'_> {
    let text = std::str::from_utf8(&bytes[row.clone()]).map_err(|_| "it is not text (UTF-8)")?;
    let mut fields = Vec::with_capacity(8);
    let mut rest = text;
    loop {
        let at = row.start + (text.len() - rest.len());
        let (field, length, more) = field(rest)?;
        fields.push((field, at..at + length));
        if !more {
            return Ok(fields);
        }
        rest = &rest[length + 1..];
    }
}

/// The first field of `text`, its length as written, and whether a comma follows.
fn field(text: &str) -> Result<(Cow<'_, str>, usize, bool), &'static str> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(',').unwrap_or(text.len());
        return Ok((Cow::Borrowed(text[..end].trim()), end, end < text.len()));
    };
    let mut from = 0;
    loop {
        let quote = from + inner[from..].find('"').ok_or("a quote is opened and never closed")?;
        let behind = &inner[quote + 1..];
        if behind.starts_with('"') {
            from = quote + 2;
        } else if behind.is_empty() || behind.starts_with(',') {
            let value = &inner[..quote];
            let value = if value.contains('"') {
                Cow::Owned(value.replace("\"\"", "\""))
            } else {
                Cow::Borrowed(value)
            };
            return Ok((value, quote + 2, !behind.is_empty()));
        } else {
            return Err("something stands between a closing quote and the comma");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Result<Vec<String>, &'static str>> {
        rows(text)
            .map(|r| r.fields.map(|f| f.into_iter().map(|(v, _)| v.into_owned()).collect()))
            .collect()
    }

    #[test]
    fn quotes_hold_commas_quotes_and_line_ends() {
        let rows = read(b"a,\"b,\"\"c\"\"\",d\r\n# no row\n\n\"x\ny\",\n");
        assert_eq!(rows[0].as_ref().unwrap(), &["a", "b,\"c\"", "d"]);
        assert_eq!(rows[1].as_ref().unwrap(), &["x\ny", ""]);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn one_bad_row_costs_one_row() {
        let rows = read(b"a,b\n\xff,c\n\"open,d\ne,f\n");
        assert!(rows[0].is_ok() && rows[3].is_ok());
        assert!(rows[1].is_err() && rows[2].is_err());
    }
}
