//! `weir fmt`: one way to write a policy. Comments and the order of classes stay (the order
//! decides); words get their canonical order, values their shortest form, and tables one empty line
//! between them.

use toml_edit::{DocumentMut, Item, KeyMut, Table, Value};
use weir_units::{Bytes, Rate, Span};

use crate::{class, link, tariff};

/// The policy `text` in canonical form.
///
/// # Errors
/// What is no TOML, in the parser's words.
pub fn format(text: &str) -> Result<String, String> {
    let mut document: DocumentMut =
        text.parse().map_err(|e: toml_edit::TomlError| e.to_string())?;
    for (name, item) in document.as_table_mut().iter_mut() {
        let order: Vec<&str> = match name.get() {
            "link" => link::words(),
            "class" => class::words(),
            "plan" => tariff::words(),
            "subscribers" => vec!["file", "under"],
            _ => Vec::new(),
        };
        if let Item::Table(table) = item {
            let nested = matches!(name.get(), "link" | "class" | "plan");
            table_form(table, &order, nested);
        }
    }
    let text = document.to_string();
    Ok(lines(&text))
}

fn table_form(table: &mut Table, order: &[&str], nested: bool) {
    for (key, item) in table.iter_mut() {
        match item {
            Item::Table(inner) if nested => table_form(inner, order, false),
            // dotted words and words with a table of their own
            Item::Table(inner) => table_form(inner, &[], false),
            Item::ArrayOfTables(tables) => {
                tables.iter_mut().for_each(|inner| table_form(inner, &[], false));
            }
            Item::Value(value) => entry(key, value),
            Item::None => {}
        }
    }
    if !nested && !order.is_empty() {
        let rank = |key: &str| order.iter().position(|w| *w == key).unwrap_or(order.len());
        table.sort_values_by(|a, _, b, _| rank(a.get()).cmp(&rank(b.get())));
    }
}

fn entry(mut key: KeyMut<'_>, value: &mut Value) {
    let name = key.get().to_owned();
    key.leaf_decor_mut().set_suffix(" ");
    let comment = value.decor().suffix().and_then(|s| s.as_str()).unwrap_or("").trim().to_owned();
    plain(&name, value);
    let suffix = if comment.is_empty() { String::new() } else { format!("  {comment}") };
    value.decor_mut().set_prefix(" ");
    value.decor_mut().set_suffix(suffix);
}

/// One value in its shortest form.
fn plain(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => {
            let written = text.value().clone();
            let short = shortest(name, &written);
            let decor = value.decor().clone();
            *value = Value::from(short);
            *value.decor_mut() = decor;
        }
        Value::InlineTable(table) => {
            for (key, inner) in table.iter_mut() {
                let name = key.get().to_owned();
                plain(&name, inner);
            }
            let has_comments = table.to_string().contains('#');
            if !has_comments {
                table.fmt();
                table.set_trailing_comma(false);
                table.set_trailing("");
            }
        }
        Value::Array(array) => {
            for inner in array.iter_mut() {
                plain(name, inner);
            }
            let has_comments = array.to_string().contains('#');
            if !has_comments {
                list(array);
            }
        }
        _ => {}
    }
}

/// A list on one line if it is short, else one entry a line.
fn list(array: &mut toml_edit::Array) {
    array.fmt();
    array.set_trailing_comma(false);
    array.set_trailing("");
    if array.to_string().len() > 88 {
        for value in array.iter_mut() {
            value.decor_mut().set_prefix("\n    ");
            value.decor_mut().set_suffix("");
        }
        array.set_trailing_comma(true);
        array.set_trailing("\n");
    }
}

fn shortest(name: &str, text: &str) -> String {
    let rates =
        ["rate", "ceil", "rest", "down", "up", "min", "max", "peak", "weight", "burst", "limit"];
    let times = ["age", "target", "interval", "burst", "limit"];
    if rates.contains(&name)
        && let Ok(rate) = text.parse::<Rate>()
    {
        return rate.to_string();
    }
    if ["burst", "peak-burst", "limit", "min", "max"].contains(&name)
        && let Ok(bytes) = text.parse::<Bytes>()
    {
        return bytes.to_string();
    }
    if times.contains(&name)
        && let Ok(time) = text.parse::<Span>()
    {
        return time.to_string();
    }
    if matches!(name, "match" | "when") {
        let terms = text.split(',').map(|t| t.split_whitespace().collect::<Vec<_>>().join(" "));
        return terms.collect::<Vec<_>>().join(", ");
    }
    text.to_owned()
}

/// No blanks at line ends, one empty line before a table, none at the start, one line end at the
/// end.
fn lines(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        let empty_before = out.last().is_none_or(|l| l.is_empty());
        if line.is_empty() && empty_before {
            continue;
        }
        // a table's own comment lines belong to it
        if line.starts_with('[') && !empty_before {
            let comments = out.iter().rev().take_while(|l| l.starts_with('#')).count();
            let at = out.len() - comments;
            if at > 0 && !out[at - 1].is_empty() {
                out.insert(at, "");
            }
        }
        out.push(line);
    }
    while out.last().is_some_and(|l| l.is_empty()) {
        out.pop();
    }
    let mut text = out.join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const UGLY: &str = r#"
# the office
[link.office]
up="20000kbit"   # the line
down = '100mbit'
lan="eth1"
wan ="eth2"
[class."/b"]
ceil = {up="1000kbit",down="2mbit"}


# why
match=[ "lan  10.0.0.0/8,tcp   port 80" ]
[class."/a"]
match = "any"
"#;

    const NEAT: &str = r#"# the office
[link.office]
lan = "eth1"
wan = "eth2"
down = "100mbit"
up = "20mbit"  # the line

[class."/b"]

# why
match = ["lan 10.0.0.0/8, tcp port 80"]
ceil = { up = "1mbit", down = "2mbit" }

[class."/a"]
match = "any"
"#;

    #[test]
    fn words_get_their_order_and_comments_stay() {
        assert_eq!(format(UGLY).unwrap(), NEAT);
    }

    #[test]
    fn comments_in_braces_stay() {
        let text = "[class.\"/a\"]\n\
                    each = { by = \"lan-host\", # why\n  count = 5,\n  # how long\n}\n\
                    match = [{ when = \"udp\", # dns\n  bytes = { at = 0, value = 1 } }]\n";
        let neat = format(text).unwrap();
        for comment in ["# why\n", "# how long\n", "# dns\n"] {
            assert!(neat.contains(comment), "{neat}");
        }
        assert_eq!(format(&neat).unwrap(), neat);
        let several = "[class.\"/a\"]\neach = {\n  by = \"vlan\",\n  count = 5,\n}\n";
        let one = "[class.\"/a\"]\neach = { by = \"vlan\", count = 5 }\n";
        assert_eq!(format(several).unwrap(), one);
    }

    #[test]
    fn words_with_points_and_tables_of_their_own_get_their_short_form() {
        let text = "[class.\"/w\"]\nceil.down=\"2000kbit\"\nmatch = \"lan  10.0.0.0/8\"\n\
                    [class.\"/w\".rate]\nup =   \"1000kbit\"  # half\n\
                    [[class.\"/x\".match]]\nwhen = \"udp   port 53\"\n";
        let neat = "[class.\"/w\"]\nmatch = \"lan 10.0.0.0/8\"\nceil.down = \"2mbit\"\n\n\
                    [class.\"/w\".rate]\nup = \"1mbit\"  # half\n\n\
                    [[class.\"/x\".match]]\nwhen = \"udp port 53\"\n";
        assert_eq!(format(text).unwrap(), neat);
        assert_eq!(format(neat).unwrap(), neat);
    }

    #[test]
    fn neat_stays_neat() {
        let neat = format(UGLY).unwrap();
        assert_eq!(format(&neat).unwrap(), neat);
    }
}
