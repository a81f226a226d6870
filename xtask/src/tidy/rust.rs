//! Just enough of Rust's grammar to tell code from comments and strings, and where a function ends.

/// The source with comments and the insides of strings and characters blanked; every byte keeps
/// its place, so lines and columns stay true.
pub(crate) fn code_only(source: &str) -> String {
    let bytes = source.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end > at {
            for byte in &mut out[at..end] {
                if *byte != b'\n' {
                    *byte = b' ';
                }
            }
            at = end;
        } else {
            at += 1;
        }
    }
    String::from_utf8(out).expect("only whole comments and strings are blanked")
}

/// Where the comment, string or character that starts at `at` ends; `at` when none does.
fn skipped(bytes: &[u8], at: usize) -> usize {
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.starts_with(b"//") => {
            at + rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
        }
        b'/' if rest.starts_with(b"/*") => at + block_comment(rest),
        b'"' => at + quoted(rest, b'"'),
        b'r' if at == 0 || !is_word(bytes[at - 1]) || is_prefix(bytes, at) => at + raw(rest),
        b'\'' if is_character(rest) => at + quoted(rest, b'\''),
        _ => at,
    }
}

/// Whether the letter before is the `b` or `c` of a raw byte or C string.
fn is_prefix(bytes: &[u8], at: usize) -> bool {
    matches!(bytes[at - 1], b'b' | b'c') && (at < 2 || !is_word(bytes[at - 2]))
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a raw string, 0 when this is none.
fn raw(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|b| **b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut end = vec![b'"'];
    end.resize(1 + hashes, b'#');
    let start = 2 + hashes;
    let found = rest[start..].windows(end.len()).position(|window| window == end);
    found.map_or(rest.len(), |found| start + found + end.len())
}

/// A character, not a lifetime: `'a'`, `'\n'`, but not `'a`.
fn is_character(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(byte) => {
            let width = match byte {
                0xf0.. => 4,
                0xe0.. => 3,
                0xc0.. => 2,
                _ => 1,
            };
            rest.get(1 + width) == Some(&b'\'')
        }
        None => false,
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `word` stands alone in `text`, as byte offsets.
pub(crate) fn words<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = usize> + 't {
    let bytes = text.as_bytes();
    text.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let before = *at == 0 || !is_word(bytes[at - 1]);
        before && bytes.get(at + word.len()).is_none_or(|b| !is_word(*b))
    })
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset].iter().filter(|b| **b == b'\n').count()
}

/// A function with its first line and how many it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) lines: usize,
}

/// Every function with a body. `code` is what `code_only` gave.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    words(code, "fn").filter_map(|at| function(code, at)).collect()
}

fn function(code: &str, at: usize) -> Option<Function> {
    let after = code[at + 2..].trim_start();
    let name: String = after.bytes().take_while(|b| is_word(*b)).map(char::from).collect();
    if name.is_empty() {
        return None;
    }
    let (mut round, mut curly) = (0_i32, 0_i32);
    for (offset, byte) in code.bytes().enumerate().skip(at) {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b';' if round == 0 && curly == 0 => return None,
            b'{' if round == 0 || curly > 0 => curly += 1,
            b'}' if curly > 0 => {
                curly -= 1;
                if curly == 0 {
                    let line = line_of(code, at);
                    return Some(Function { name, line, lines: line_of(code, offset) + 1 - line });
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_in_place() {
        let source =
            "a /* x /* y */ { */ b // {\n\"{\\\"{\" c r#\"{\"}\"# '{' 'l d '\\'' br\"{\" é";
        let code = code_only(source);
        assert_eq!(code.len(), source.len());
        assert!(!code.contains('{') && !code.contains('}'), "{code}");
        assert_eq!(code.split_whitespace().collect::<String>(), "abc'ldbé");
    }

    #[test]
    fn a_function_ends_where_its_braces_do() {
        let source = "fn a(x: [u8; 2]) -> fn(u8) {\n if x { '}' }\n}\nfn b();\nfn c() {}\n";
        let found = functions(&code_only(source));
        let found: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.line, f.lines)).collect();
        assert_eq!(found, [("a", 1, 3), ("c", 5, 1)]);
    }

    #[test]
    fn a_word_stands_alone() {
        assert_eq!(words("unsafe_code unsafe {", "unsafe").collect::<Vec<_>>(), [12]);
    }
}
