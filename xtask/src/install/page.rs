//! A page as something to run: the blocks ```` ```console ````, of which a line with a prompt is a
//! command and the others what it prints, and the blocks ```` ```toml ```` that begin with the
//! path of the file that they are.

/// Where a command is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The machine that builds the package.
    Build,
    Box,
    /// A host on the LAN.
    Host,
    /// A machine on the WAN side.
    Server,
}

impl Place {
    const ALL: [Place; 4] = [Place::Build, Place::Box, Place::Host, Place::Server];

    pub(super) fn word(self) -> &'static str {
        match self {
            Place::Build => "build",
            Place::Box => "box",
            Place::Host => "host",
            Place::Server => "server",
        }
    }

    fn prompt(self) -> String {
        let user = if self == Place::Box { '#' } else { '$' };
        format!("{}{user} ", self.word())
    }
}

/// Something that the reader does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item {
    File {
        path: String,
        text: String,
    },
    Command {
        /// The heading that it stands under.
        section: String,
        place: Place,
        line: String,
        /// What the page shows of its output.
        shown: Vec<String>,
    },
}

/// A line of the page that stands for any number of others.
const LEFT_OUT: &str = "...";

/// What there is to do, in the page's order.
pub(super) fn read(page: &str) -> Result<Vec<Item>, String> {
    let mut items = Vec::new();
    let mut section = "";
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        section = line.strip_prefix("## ").unwrap_or(section);
        let Some(kind) = line.trim_start().strip_prefix("```") else { continue };
        // within an entry of a list
        let indent = line.len() - line.trim_start().len();
        let block = lines.by_ref().take_while(|line| line.trim() != "```");
        let block: Vec<&str> = block.map(|line| line.get(indent..).unwrap_or_default()).collect();
        match kind {
            "console" => console(section, &block, &mut items)?,
            "toml" => items.extend(file(&block)),
            _ => {}
        }
    }
    if items.is_empty() { Err("the page has no command to run".to_owned()) } else { Ok(items) }
}

fn console(section: &str, block: &[&str], items: &mut Vec<Item>) -> Result<(), String> {
    let mut is_first = true;
    for text in block {
        let prompted = Place::ALL
            .iter()
            .find_map(|place| Some((*place, text.strip_prefix(&place.prompt())?.to_owned())));
        match (prompted, items.last_mut()) {
            (Some((place, line)), _) => {
                let section = section.to_owned();
                items.push(Item::Command { section, place, line, shown: Vec::new() });
            }
            (None, Some(Item::Command { shown, .. })) if !is_first => {
                shown.push((*text).to_owned());
            }
            _ => return Err(format!("\"{text}\" begins a block and has no prompt")),
        }
        is_first = false;
    }
    Ok(())
}

fn file(block: &[&str]) -> Option<Item> {
    let path = block.first()?.strip_prefix("# ").filter(|path| path.starts_with('/'))?;
    Some(Item::File { path: path.to_owned(), text: block.join("\n") + "\n" })
}

/// What the page shows and was not printed, in that order; numbers may be others.
pub(super) fn missing(shown: &[String], printed: &str) -> Option<String> {
    let mut lines = printed.lines().map(without_numbers);
    let mut wanted = shown.iter().filter(|line| *line != LEFT_OUT);
    let first = wanted.find(|line| {
        let line = without_numbers(line);
        !lines.any(|printed| printed == line)
    })?;
    Some(format!("the page shows \"{first}\""))
}

/// The line with one sign for each number, also one in groups of three, and one blank between
/// words.
fn without_numbers(line: &str) -> String {
    let mut text = String::new();
    for word in line.split_whitespace() {
        let mut was_digit = false;
        for letter in word.chars() {
            let is_digit = letter.is_ascii_digit() || (was_digit && letter == '.');
            if !is_digit {
                text.push(letter);
            } else if !was_digit {
                text.push('0');
            }
            was_digit = is_digit;
        }
        text.push(' ');
    }
    while text.contains("0 0 ") {
        text = text.replace("0 0 ", "0 ");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_commands_with_their_output_and_files() {
        let page = "## One\ntext\n```toml\n[not.a.file]\n```\n```toml\n# /etc/x\na = 1\n```\n\
                    - entry\n\n  ```console\n  box# weir status\n  fine\n\n  host$ ping\n  ```\n\
                    ```sh\nbox# not this\n```\n";
        let command = |place, line: &str, shown: &[&str]| Item::Command {
            section: "One".to_owned(),
            place,
            line: line.to_owned(),
            shown: shown.iter().map(|line| (*line).to_owned()).collect(),
        };
        let file = Item::File { path: "/etc/x".to_owned(), text: "# /etc/x\na = 1\n".to_owned() };
        let status = command(Place::Box, "weir status", &["fine", ""]);
        assert_eq!(read(page).unwrap(), [file, status, command(Place::Host, "ping", &[])]);
        assert!(read("```console\nno prompt\n```\n").unwrap_err().contains("no prompt"));
        assert!(read("nothing").is_err());
    }

    #[test]
    fn what_is_shown_must_be_printed_in_its_order_with_any_numbers() {
        let shown = |lines: &[&str]| lines.iter().map(|l| (*l).to_owned()).collect::<Vec<_>>();
        let printed = "a 1 234 567 b\nsome\n  7.25 ms   of 10\nlast";
        assert_eq!(missing(&shown(&["a 22 b", "...", "0.3 ms of 9", "last"]), printed), None);
        assert!(missing(&shown(&["last", "a 1 b"]), printed).unwrap().contains("a 1 b"));
        assert!(missing(&shown(&["a 1 c"]), printed).is_some());
    }
}
