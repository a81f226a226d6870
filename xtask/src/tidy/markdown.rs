//! Just enough of Markdown to find tables, sections and links.

/// The text under a heading, up to the next heading of the same or a higher level, with the line
/// number before its first.
pub(crate) fn section<'t>(text: &'t str, heading: &str) -> Option<(usize, Vec<&'t str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.iter().position(|line| line.trim_end() == heading)? + 1;
    let level = heading.bytes().take_while(|b| *b == b'#').count();
    let ends = |line: &str| {
        let hashes = line.bytes().take_while(|b| *b == b'#').count();
        (1..=level).contains(&hashes) && line[hashes..].starts_with(' ')
    };
    let end = lines[start..].iter().position(|line| ends(line));
    let end = end.map_or(lines.len(), |end| start + end);
    Some((start, lines[start..end].to_vec()))
}

/// The cells of a row of a table; `None` for any other line and for the rule under the head.
pub(crate) fn cells(line: &str) -> Option<Vec<&str>> {
    let inside = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    if inside.bytes().all(|b| matches!(b, b'-' | b'|' | b':' | b' ')) {
        return None;
    }
    Some(inside.split('|').map(str::trim).collect())
}

/// What stands between backticks.
pub(crate) fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The lines that are not in a fenced block, with their numbers from 1.
pub(crate) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((number + 1, line))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_ends_at_the_next_of_its_level() {
        let text = "# a\n## b\nx\n### c\ny\n## d\nz\n";
        assert_eq!(section(text, "## b").unwrap(), (2, vec!["x", "### c", "y"]));
        assert_eq!(section(text, "## e"), None);
    }

    #[test]
    fn a_row_has_cells_and_a_rule_has_none() {
        assert_eq!(cells("| a | b c |"), Some(vec!["a", "b c"]));
        assert_eq!(cells("|---|:--|"), None);
        assert_eq!(cells("a | b"), None);
    }

    #[test]
    fn code_is_what_backticks_hold() {
        assert_eq!(code_spans("a `b c` d `e`").collect::<Vec<_>>(), ["b c", "e"]);
    }
}
