//! Every crate has its place on the map in ARCHITECTURE.md.

use super::markdown;
use super::{Files, Problem};

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Code map";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let text = files.text(ARCHITECTURE).unwrap_or_default();
    let Some((_, lines)) = markdown::section(text, HEADING) else {
        return vec![Problem::of(ARCHITECTURE, format!("has no section \"{HEADING}\""))];
    };
    let on_the_map = |name: &str| {
        let word = format!("`crates/{name}`");
        lines.iter().any(|line| line.contains(&word))
    };
    let missing = files.crates().into_iter().filter(|name| !on_the_map(name));
    missing
        .map(|name| Problem::of(ARCHITECTURE, format!("\"{HEADING}\" has no `crates/{name}`")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_is_not_on_the_map_is_named() {
        let map = "## Code map\n\n`crates/a` and `crates/later`\n\n## More\n\n`crates/b`\n";
        let files = [(ARCHITECTURE, map), ("crates/a/Cargo.toml", ""), ("crates/b/Cargo.toml", "")];
        let found = check(&Files::of(&files));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("crates/b"));
    }
}
