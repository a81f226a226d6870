//! docs/lab.md says of every word that a table of the code lists what the code says: such a table
//! stands between two comments, and `cargo x tidy --fix-lab` writes it anew.

use std::path::Path;

use weir_lab::tables;

/// Set by `cargo x tidy --fix-lab`.
const WRITE: &str = "WEIR_WRITE_LAB_TABLES";

#[test]
fn the_tables_of_the_document_are_those_of_the_code() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab.md");
    let text = std::fs::read_to_string(&file).expect("docs/lab.md");
    let right = with_tables(&text).unwrap_or_else(|why| panic!("docs/lab.md: {why}"));
    #[expect(clippy::disallowed_methods, reason = "a test has no arguments of its own")]
    if std::env::var(WRITE).is_ok() {
        std::fs::write(&file, right).expect("docs/lab.md can be written");
        return;
    }
    let differs = text.lines().zip(right.lines()).find(|(is, should)| is != should);
    assert!(text == right, "docs/lab.md: run `cargo x tidy --fix-lab`: {differs:?}");
}

#[test]
fn a_document_gets_every_table_at_its_place() {
    let empty: String = tables::all().iter().map(|(name, _)| marks(name).concat()).collect();
    let full = with_tables(&empty).expect("has all marks");
    assert_eq!(with_tables(&full).as_ref(), Ok(&full));
    assert!(tables::all().iter().all(|(_, table)| full.contains(table.as_str())));
    for (name, _) in tables::all() {
        let [begin, end] = marks(name);
        for without in [full.replace(&begin, ""), full.replace(&end, "")] {
            assert!(with_tables(&without).is_err_and(|why| why.contains(name)), "{without}");
        }
    }
}

/// The document with each table between its marks.
fn with_tables(text: &str) -> Result<String, String> {
    tables::all().into_iter().try_fold(text.to_owned(), |text, (name, table)| {
        let [begin, end] = marks(name);
        let missing = || format!("put the table \"{name}\" between these:\n{begin}{end}");
        let (before, rest) = text.split_once(&begin).ok_or_else(missing)?;
        let (_, after) = rest.split_once(&end).ok_or_else(missing)?;
        Ok(format!("{before}{begin}{table}{end}{after}"))
    })
}

fn marks(name: &str) -> [String; 2] {
    [
        format!("<!-- {name}: written by `cargo x tidy --fix-lab`, do not edit -->\n"),
        format!("<!-- end of {name} -->\n"),
    ]
}
