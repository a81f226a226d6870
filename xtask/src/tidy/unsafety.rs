//! Where the compiler is asked to trust us: at the kernel's edge only. Everywhere else the crate
//! forbids it, and a test that counts allocations is the one exception, since an allocator is.

use super::rust;
use super::{Files, Problem};

const KEYWORD: &str = "unsafe";
const AT_THE_EDGE: [&str; 2] = ["io", "xdp"];
const COUNTING_ALLOCATOR: &str = "/tests/no_alloc.rs";
const FORBID: &str = "#![forbid(unsafe_code)]";

pub(crate) fn check(files: &Files) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (path, text) in files.ending(&[".rs"]) {
        let edge = AT_THE_EDGE.iter().any(|name| path.starts_with(&format!("crates/{name}/")));
        if edge || path.ends_with(COUNTING_ALLOCATOR) {
            continue;
        }
        let code = rust::code_only(text);
        problems.extend(rust::words(&code, KEYWORD).map(|at| {
            let what = format!("{KEYWORD} belongs in crates/io and crates/xdp only");
            Problem::at(path, rust::line_of(&code, at), what)
        }));
    }
    for name in files.crates().into_iter().filter(|name| !AT_THE_EDGE.contains(name)) {
        let Some((root, text)) = files.crate_root(name) else { continue };
        if !text.lines().any(|line| line.trim() == FORBID) {
            problems.push(Problem::of(&root, format!("does not say {FORBID}")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edge_and_the_counting_allocator_may() {
        let block = "fn f() { unsafe { g() } }";
        let files = [
            ("crates/io/src/lib.rs", block),
            ("crates/engine/tests/no_alloc.rs", block),
            ("crates/engine/src/lib.rs", "#![forbid(unsafe_code)] // unsafe\n\"unsafe\""),
        ];
        let found = check(&Files::of(&files));
        assert_eq!(found.len(), 1, "the attribute must stand on its own line: {found:?}");
    }

    #[test]
    fn elsewhere_it_is_named_with_its_line() {
        let files = [("crates/shape/src/lib.rs", "#![forbid(unsafe_code)]\n\nunsafe fn f() {}\n")];
        let found = check(&Files::of(&files));
        assert_eq!((found.len(), found[0].line), (1, 3), "{found:?}");
    }
}
