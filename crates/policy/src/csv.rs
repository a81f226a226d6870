//! Rows of comma-separated values (RFC 4180), from bytes: a row that is not text is a bad row, not
//! a bad file.

use std::borrow::Cow;
use std::ops::Range;

use weir_units::limits;

/// The fields of a row with their places; why not, when the row cannot be read.
pub(crate) type Fields<'t> = Result<Vec<(Cow<'t, str>, Range<usize>)>, &'static str>;

/// One row: its bytes' place in the file, the line it starts at, and its fields.
pub(crate) struct Row<'t> {
    pub(crate) place: Range<usize>,
    /// From 1.
    pub(crate) line: u32,
    pub(crate) fields: Fields<'t>,
    /// What divides its fields.
    mark: u8,
}

/// What divides the fields: what the first row, which names them, has most of. Spreadsheets write
/// semicolons where the comma divides decimals.
fn separator(bytes: &[u8], from: usize) -> u8 {
    let mut lines = bytes[from..].split(|&byte| byte == b'\n');
    let is_row = |line: &&[u8]| !line.trim_ascii().is_empty() && !line.starts_with(b"#");
    let first = lines.find(is_row).unwrap_or_default();
    let first = &first[..first.len().min(LONGEST)];
    let count = |mark: u8| first.iter().filter(|&&byte| byte == mark).count();
    // of equal counts the last
    [b'\t', b';', b','].into_iter().max_by_key(|&mark| count(mark)).unwrap_or(b',')
}

/// Splits `bytes` into rows; empty lines and lines starting with `#` are passed over. The first row
/// says how many fields a row has.
pub(crate) fn rows(bytes: &[u8]) -> impl Iterator<Item = Row<'_>> {
    // spreadsheets like to put a byte order mark in front
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mark = separator(bytes, at);
    let mut width = None;
    let mut number: u32 = 1;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            let first = line_end(bytes, start);
            let line = bytes[start..first].trim_ascii();
            if line.is_empty() || line[0] == b'#' {
                at = first + 1;
                number = number.saturating_add(1);
                continue;
            }
            let (mut row, end) = row(bytes, start, first, width, mark);
            at = end + 1;
            row.line = number;
            let lines = match end {
                // most rows are one line, and need no count
                _ if end == first => 1,
                _ => bytes[start..end].iter().filter(|&&b| b == b'\n').count() + 1,
            };
            number = number.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
            let count = row.fields.as_ref().map_or(0, Vec::len);
            width.get_or_insert(count);
            return Some(row);
        }
        None
    })
}

/// The row that starts at `start`, and its end. A row of several lines is one only if it can be
/// read and has as many fields as it should: a stray quote costs its own row and no other.
fn row(
    bytes: &[u8],
    start: usize,
    first: usize,
    width: Option<usize>,
    mark: u8,
) -> (Row<'_>, usize) {
    let read = |end: usize| {
        let place = start..end - usize::from(bytes[..end].ends_with(b"\r"));
        Row { fields: fields(bytes, place.clone(), mark), place, line: 0, mark }
    };
    let fits = |row: &Row<'_>| {
        row.fields.as_ref().is_ok_and(|f| width.is_none_or(|width| width == f.len()))
    };
    if let Some(end) = row_end(bytes, start, mark).filter(|&end| end != first) {
        let several = read(end);
        // a line in there that has all the fields of a row is one that a stray quote would swallow
        let mut behind = bytes[first + 1..end].split(|&byte| byte == b'\n');
        let swallows =
            behind.any(|line| width.is_some_and(|width| divided(line, mark).count() >= width));
        if fits(&several) && !swallows {
            return (several, end);
        }
    }
    (read(first), first)
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |n| from + n)
}

/// Bytes within which quotes that hold line ends must close.
const LONGEST: usize = 4_096;

/// Line ends that quotes may hold. Where each line opens a quote, each looks this far.
const HELD: usize = 16;

/// The first line feed outside quotes; a quote opens only at the start of a field. None when quotes
/// do not close.
fn row_end(bytes: &[u8], start: usize, mark: u8) -> Option<usize> {
    let (mut quoted, mut opens, mut held) = (false, true, 0);
    for (at, &byte) in bytes.iter().enumerate().skip(start) {
        match byte {
            b'\n' if !quoted => return Some(at),
            _ if quoted && at - start > LONGEST => return None,
            b'\n' if held == HELD => return None,
            b'\n' => held += 1,
            b'"' if quoted => {
                // a doubled quote closes and opens again
                (quoted, opens) = (false, true);
                continue;
            }
            b'"' => quoted = opens,
            _ => {}
        }
        opens = byte == mark && !quoted;
    }
    (!quoted).then_some(bytes.len())
}

/// The fields of a row that cannot be read, divided regardless of quotes: enough to find out whose
/// row it was.
pub(crate) fn anyhow<'t>(bytes: &'t [u8], row: &Row<'_>) -> Vec<Cow<'t, str>> {
    let line = bytes.get(row.place.clone()).unwrap_or_default();
    let fields = divided(line, row.mark).take(limits::SUBSCRIBER_FIELDS);
    fields.map(|field| String::from_utf8_lossy(field.trim_ascii())).collect()
}

fn divided(line: &[u8], mark: u8) -> impl Iterator<Item = &[u8]> {
    line.split(move |&byte| byte == mark)
}

fn fields(bytes: &[u8], row: Range<usize>, mark: u8) -> Fields<'_> {
    if row.len() > limits::SUBSCRIBER_ROW_BYTES {
        return Err("it is longer than the limit for a row");
    }
    let text = std::str::from_utf8(&bytes[row.clone()]).map_err(|_| "it is not text (UTF-8)")?;
    let mut fields = Vec::with_capacity(8);
    let mut rest = text;
    loop {
        let at = row.start + (text.len() - rest.len());
        if fields.len() == limits::SUBSCRIBER_FIELDS {
            return Err("it has more fields than the limit for a row");
        }
        let (field, length, more) = field(rest, mark.into())?;
        fields.push((field, at..at + length));
        if !more {
            return Ok(fields);
        }
        rest = &rest[length + 1..];
    }
}

/// The first field of `text`, its length as written, and whether another follows.
fn field(text: &str, mark: char) -> Result<(Cow<'_, str>, usize, bool), &'static str> {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find(mark).unwrap_or(text.len());
        return Ok((Cow::Borrowed(text[..end].trim()), end, end < text.len()));
    };
    let mut from = 0;
    loop {
        let quote = from + inner[from..].find('"').ok_or("a quote is opened and not closed")?;
        let behind = &inner[quote + 1..];
        if behind.starts_with('"') {
            from = quote + 2;
        } else if behind.is_empty() || behind.starts_with(mark) {
            let value = &inner[..quote];
            let value = if value.contains('"') {
                Cow::Owned(value.replace("\"\"", "\""))
            } else {
                Cow::Borrowed(value)
            };
            return Ok((value, quote + 2, !behind.is_empty()));
        } else {
            return Err("there is text between a closing quote and the end of its field");
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
        let rows = read(b"a,\"b,\"\"c\"\"\",d\r\n# no row\n\nw,\"x\ny\",\n");
        assert_eq!(rows[0].as_ref().unwrap(), &["a", "b,\"c\"", "d"]);
        assert_eq!(rows[1].as_ref().unwrap(), &["w", "x\ny", ""]);
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn semicolons_and_tabs_divide_where_the_first_row_has_them() {
        let rows = read(b"# a, b, c, d\nid;name;rate\n1;\"a;b\";1,5\n2;c;\n");
        assert_eq!(rows[0].as_ref().unwrap(), &["id", "name", "rate"]);
        assert_eq!(rows[1].as_ref().unwrap(), &["1", "a;b", "1,5"]);
        assert_eq!(rows[2].as_ref().unwrap(), &["2", "c", ""]);
        let rows = read(b"id\tname\n1\ta, b; c\n");
        assert_eq!(rows[1].as_ref().unwrap(), &["1", "a, b; c"]);
        assert_eq!(read(b"id\n1\n")[1].as_ref().unwrap(), &["1"]);
    }

    #[test]
    fn a_stray_quote_costs_its_row_at_most() {
        let lines = "2,5\" pipe\n3,c\n4,d\n5,7\" pipe\n6,\"f\n7,g\n8,\"h\n9,\"i\nj\"\n";
        let rows = read(format!("a,b\n{lines}").as_bytes());
        let good: Vec<String> =
            rows.iter().filter_map(|r| r.as_ref().ok()).map(|r| r[0].clone()).collect();
        assert_eq!(good, ["a", "2", "3", "4", "5", "7", "9"]);
        assert_eq!(rows.len(), 9);
        // nor does one that is closed by the stray quote of a later row swallow those between
        let rows = read(b"a,b\n1,\"x\n2,y\n3,z\",\n4,w\n");
        let good: Vec<_> = rows.iter().filter_map(|r| r.as_ref().ok()).map(|r| &r[0]).collect();
        assert_eq!(good, ["a", "2", "3", "4"], "{rows:?}");
        // what would be one row by its quotes has not the fields of one
        let rows = read(b"a,b\n1,\"x\n2,y\n3,\",z\n");
        assert_eq!(rows.iter().filter(|r| r.is_ok()).count(), 2, "{rows:?}");
    }

    #[test]
    fn one_bad_row_costs_one_row() {
        let rows = read(b"a,b\n\xff,c\n\"open,d\ne,f\n");
        assert!(rows[0].is_ok() && rows[3].is_ok());
        assert!(rows[1].is_err() && rows[2].is_err());
    }
}
