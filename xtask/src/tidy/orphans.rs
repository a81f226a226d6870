//! Every source file is a module of another one: a file that nobody declares is not compiled, and
//! its tests do not run.

use super::{Files, Problem};

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let orphan = |(path, _): &(&str, &str)| !is_root(path) && !is_declared(files, path);
    let problem = |(path, _)| {
        let what = "no module declares this file, so it is not compiled: add `mod` where it \
                    belongs, or remove it";
        Problem::of(path, what)
    };
    files.ending(&[".rs"]).filter(orphan).map(problem).collect()
}

/// Whether a crate, a test, an example or a fuzz target begins with it.
fn is_root(path: &str) -> bool {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    let of_folder = folder.rsplit('/').next().unwrap_or("");
    let is_target = ["tests", "benches", "examples", "fuzz_targets", "bin"].contains(&of_folder);
    matches!(name, "lib.rs" | "main.rs" | "build.rs")
        || (is_target && name != "mod.rs" && !in_src(path))
}

/// Whether it lies in the sources of a crate, where `tests` is a folder like any other.
fn in_src(path: &str) -> bool {
    path.split('/').any(|part| part == "src")
}

fn is_declared(files: &Files, path: &str) -> bool {
    let stem = path.strip_suffix(".rs").unwrap_or(path);
    let module = stem.strip_suffix("/mod").unwrap_or(stem);
    let Some((folder, name)) = module.rsplit_once('/') else { return true };
    let declared = format!("mod {name};");
    let declares = |text: &str| {
        let mut lines = text.lines().map(str::trim_start);
        lines.any(|line| line.ends_with(&declared) && !line.starts_with("//"))
    };
    let above = ["mod.rs", "lib.rs", "main.rs"].map(|file| format!("{folder}/{file}"));
    let mut above = above.into_iter().chain([format!("{folder}.rs")]);
    let by_module = above.any(|file| files.text(&file).is_some_and(declares));
    // the modules that integration tests share
    let beside = |(other, text): (&str, &str)| {
        other.rsplit_once('/').is_some_and(|(of, _)| of == folder)
            && is_root(other)
            && declares(text)
    };
    let by_path = format!("#[path = \"{name}.rs\"]");
    let names = |(other, text): (&str, &str)| {
        other.rsplit_once('/').is_some_and(|(of, _)| of == folder) && text.contains(&by_path)
    };
    by_module || files.ending(&[".rs"]).any(|file| beside(file) || names(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orphans(texts: &[(&str, &str)]) -> Vec<String> {
        check(&Files::of(texts)).into_iter().map(|problem| problem.path).collect()
    }

    #[test]
    fn files_that_nobody_declares_are_found() {
        let found = orphans(&[
            ("crates/a/src/lib.rs", "pub mod one;\nmod two;\nmod named;\n// mod lost;\n"),
            ("crates/a/src/one.rs", "#[cfg(test)]\n    mod tests;\n"),
            ("crates/a/src/one/tests.rs", ""),
            ("crates/a/src/two/mod.rs", "mod deep;"),
            ("crates/a/src/two/deep.rs", ""),
            ("crates/a/src/two/other.rs", ""),
            ("crates/a/src/lost.rs", ""),
            ("crates/a/src/named.rs", "#[path = \"named_tests.rs\"]\nmod tests;"),
            ("crates/a/src/named_tests.rs", ""),
            ("crates/a/tests/it/main.rs", "mod part;"),
            ("crates/a/tests/it/part.rs", ""),
            ("crates/a/tests/alone.rs", "mod world;"),
            ("crates/a/tests/world/mod.rs", ""),
            ("crates/a/tests/gone/mod.rs", ""),
            ("fuzz/fuzz_targets/x.rs", ""),
        ]);
        let lost =
            ["crates/a/src/lost.rs", "crates/a/src/two/other.rs", "crates/a/tests/gone/mod.rs"];
        assert_eq!(found, lost);
    }
}
