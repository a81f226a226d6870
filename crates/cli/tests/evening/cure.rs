//! What weir proposes, done by the letter: the word that was meant is put in the place of the one
//! that was written, a line is added or removed. What is not an edit ("lower the rate") is left.

use std::path::Path;

/// One problem as it is printed.
pub(crate) struct Block {
    pub(crate) title: String,
    help: String,
    file: String,
    line: usize,
    column: usize,
    length: usize,
}

/// The problems in what was printed.
pub(crate) fn blocks(said: &str) -> Vec<Block> {
    let blocks = said.split("\n\n").filter_map(|text| {
        let mut lines = text.trim_matches('\n').lines();
        let title = lines.next()?.to_owned();
        let mut block = Block {
            title,
            help: String::new(),
            file: String::new(),
            line: 0,
            column: 0,
            length: 0,
        };
        for line in lines {
            let bare = line.trim_start();
            if let Some(place) = bare.strip_prefix("--> ") {
                let mut parts = place.rsplitn(3, ':');
                block.column = parts.next()?.parse().ok()?;
                block.line = parts.next()?.parse().ok()?;
                block.file = parts.next()?.to_owned();
            } else if let Some(help) = bare.strip_prefix("= help: ") {
                block.help = help.to_owned();
            } else if !block.help.is_empty() {
                block.help += &format!(" {}", bare.trim_start_matches('|').trim());
            } else if bare.starts_with('|') && bare.contains('^') && block.length == 0 {
                block.length = bare.matches('^').count();
            }
        }
        (block.line > 0).then_some(block)
    });
    blocks.collect()
}

/// Applies every cure that is an edit; returns the titles of the problems that it is for.
pub(crate) fn apply(blocks: &[Block], folder: &Path) -> Result<Vec<String>, String> {
    let mut blocks: Vec<&Block> = blocks.iter().collect();
    // from the end of a file to its start, so that places stay what they are
    blocks.sort_by_key(|block| std::cmp::Reverse((block.line, block.column)));
    let mut titles = Vec::new();
    for block in blocks {
        let path = folder.join(&block.file);
        let text = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if block.edit(&mut lines) {
            let text = lines.join("\n") + "\n";
            std::fs::write(&path, text).map_err(|error| error.to_string())?;
            titles.push(block.title.clone());
        }
    }
    Ok(titles)
}

impl Block {
    /// Does what the help says, if that is an edit.
    fn edit(&self, lines: &mut Vec<String>) -> bool {
        let at = self.line - 1;
        let Some(line) = lines.get(at).cloned() else { return false };
        if let Some(meant) = quoted_behind(&self.help, "did you mean ") {
            lines[at] = self.replaced(&line, &meant);
            return true;
        }
        if let Some(rest) = self.help.strip_prefix("write ") {
            if let Some((word, said)) = assignment(rest) {
                return self.assign(&mut lines[at], word, &said);
            }
            if let Some(meant) = quoted_behind(&self.help, "write ") {
                lines[at] = self.replaced(&line, &meant);
                return true;
            }
            return false;
        }
        if let Some(rest) = self.help.strip_prefix("add ") {
            if let Some((_, said)) = assignment(rest) {
                lines.insert(at + 1, said);
                return true;
            }
            if rest.starts_with("[class.") {
                let end = rest.find(']').map_or(rest.len(), |end| end + 1);
                lines.push(rest[..end].to_owned());
                return true;
            }
            return false;
        }
        if self.help == "remove it" || self.help.starts_with("remove the line") {
            lines[at] = String::new();
            return true;
        }
        false
    }

    /// The line with `meant` in the place of what is underlined.
    fn replaced(&self, line: &str, meant: &str) -> String {
        let chars: Vec<char> = line.chars().collect();
        let from = (self.column - 1).min(chars.len());
        let to = (from + self.length).min(chars.len());
        let text = |part: &[char]| part.iter().collect::<String>();
        let (before, span, behind) =
            (text(&chars[..from]), text(&chars[from..to]), text(&chars[to..]));
        // what is wrong is named in the title; it may be a part of what is underlined
        let wrong = quoted(&self.title).into_iter().find(|word| span.contains(word.as_str()));
        let quotes = span.starts_with('"') && span.ends_with('"') && !meant.starts_with('"');
        let first = meant.split(' ').next().unwrap_or(meant);
        if meant.contains(' ') && first == span && !quotes {
            // a whole term of a rule
            let end = behind.find([',', '"']).unwrap_or(behind.len());
            return format!("{before}{meant}{}", &behind[end..]);
        }
        let new = match wrong {
            Some(wrong) if wrong.len() + 2 < span.len() => span.replacen(&wrong, meant, 1),
            _ if quotes => format!("\"{meant}\""),
            _ => meant.to_owned(),
        };
        format!("{before}{new}{behind}")
    }

    /// Puts `word = value` in the place of what the line says about the word.
    fn assign(&self, line: &mut String, word: &str, said: &str) -> bool {
        let indent = line.len() - line.trim_start().len();
        if line.trim_start().starts_with(word) {
            *line = format!("{}{said}", &line[..indent]);
            return true;
        }
        // in a table in braces
        let Some(start) = line.find(&format!("{word} = ")) else { return false };
        let Some((_, old)) = assignment(&line[start..]) else { return false };
        *line = line.replacen(&old, said, 1);
        true
    }
}

/// `word = value` at the start of `text`: the word, and all of it.
fn assignment(text: &str) -> Option<(&str, String)> {
    let (word, rest) = text.split_once(" = ")?;
    if !word.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_') {
        return None;
    }
    let (mut depth, mut is_quoted, mut end) = (0_i32, false, rest.len());
    for (at, c) in rest.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted && depth > 0 => depth -= 1,
            ',' | ' ' | ';' | ':' | '}' | '?' if !is_quoted && depth == 0 => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let value = &rest[..end];
    (!value.is_empty() && value != "...").then(|| (word, format!("{word} = {value}")))
}

/// What stands in double quotes behind `words`.
fn quoted_behind(text: &str, words: &str) -> Option<String> {
    let behind = &text[text.find(words)? + words.len()..];
    behind.starts_with('"').then(|| quoted(behind).into_iter().next())?
}

/// All that stands in double quotes.
fn quoted(text: &str) -> Vec<String> {
    text.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}
