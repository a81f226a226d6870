//! A source in which each mutant stands behind a switch, so that one build serves them all: the
//! smallest expression or statement around a change is written once as it is and once as changed,
//! and `weir_units::mutant::is_on(number)` chooses.
//!
//! What a compiler must know before anything runs (constants, patterns, types, macros) cannot be
//! chosen so; those mutants are built alone.

use std::collections::BTreeSet;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::draw::Mutant;

/// What the copy's crate `units` is given: which mutant is on, or, told so, who asks.
pub(crate) const SWITCH: &str = r#"
pub mod mutant {
    use std::fs::File;
    use std::io::{Read, Write};
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    static WHICH: OnceLock<u32> = OnceLock::new();
    static ASKED: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];
    static LIST: OnceLock<Option<File>> = OnceLock::new();

    pub fn is_on(number: u32) -> bool {
        let which = *WHICH.get_or_init(|| {
            told("WEIR_MUTANT=", |number| number.parse().ok()).unwrap_or(u32::MAX)
        });
        if which == 0 && !ASKED[number as usize].swap(true, Relaxed) {
            note(number);
        }
        which == number
    }

    // a variable of the environment, read without memory: some tests count what is allocated
    #[cold]
    fn told<T>(name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let mut all = [0; 1 << 16];
        let mut len = 0;
        let mut file = File::open("/proc/self/environ").ok()?;
        while let Ok(more @ 1..) = file.read(&mut all[len..]) {
            len += more;
        }
        let mut words = all[..len].split(|byte| *byte == 0);
        words.find_map(|word| read(std::str::from_utf8(word).ok()?.strip_prefix(name)?))
    }

    #[cold]
    fn note(number: u32) {
        let list = LIST.get_or_init(|| {
            let open = |path: &str| File::options().append(true).create(true).open(path).ok();
            told("WEIR_MUTANTS_ASKED=", open)
        });
        let mut line = *b"0000\n";
        let mut rest = number;
        for digit in line[..4].iter_mut().rev() {
            *digit += (rest % 10) as u8;
            rest /= 10;
        }
        if let Some(mut list) = list.as_ref() {
            let _ = list.write_all(&line);
        }
    }
}
"#;

/// A source with switches, and which lines belong to which mutants.
pub(crate) struct Switched {
    pub(crate) text: String,
    /// By mutant, as its number says.
    lines: Vec<(u32, Range<usize>)>,
}

impl Switched {
    /// Those that have a switch.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.lines.iter().map(|(number, _)| *number)
    }

    /// Whose switch lies around this line, counted from 1: those of the smallest piece.
    pub(crate) fn at(&self, line: usize) -> Vec<u32> {
        let around = self.lines.iter().filter(|(_, lines)| lines.contains(&line));
        let least = around.clone().map(|(_, lines)| lines.len()).min();
        around.filter(|(_, lines)| Some(lines.len()) == least).map(|(number, _)| *number).collect()
    }
}

/// What is written twice: its place in the source and the numbers of its mutants.
struct Piece {
    place: Range<usize>,
    is_statement: bool,
    mutants: Vec<(u32, Mutant)>,
    inside: Vec<Piece>,
}

/// The source of a file with a switch for each of its mutants that can have one.
pub(crate) fn of_source(source: &str, mutants: &[(u32, Mutant)]) -> Result<Switched, String> {
    let file = syn::parse_file(source).map_err(|e| e.to_string())?;
    let mut places = Places::default();
    places.visit_file(&file);
    let mut pieces: Vec<Piece> = Vec::new();
    for (number, mutant) in mutants {
        let Some((place, is_statement)) = places.around(mutant) else { continue };
        match pieces.iter_mut().find(|p| p.place == place && p.is_statement == is_statement) {
            Some(piece) => piece.mutants.push((*number, mutant.clone())),
            None => pieces.push(Piece {
                place,
                is_statement,
                mutants: vec![(*number, mutant.clone())],
                inside: vec![],
            }),
        }
    }
    let order = |p: &Piece| (p.place.start, usize::MAX - p.place.end, !p.is_statement);
    pieces.sort_by_key(order);
    let top = Piece {
        place: 0..source.len(),
        is_statement: false,
        mutants: vec![],
        inside: nested(pieces),
    };
    let mut switched = Switched { text: String::new(), lines: vec![] };
    write(source, &top, &mut switched);
    Ok(switched)
}

/// Pieces in the order of their starts, each in the one around it.
fn nested(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut outer: Vec<Piece> = Vec::new();
    for piece in pieces {
        let mut list = &mut outer;
        while list.last().is_some_and(|last| last.place.end >= piece.place.end) {
            list = &mut list.last_mut().expect("there is one").inside;
        }
        list.push(piece);
    }
    outer
}

fn write(source: &str, piece: &Piece, to: &mut Switched) {
    let first = line_of(&to.text);
    let mut own = Vec::new();
    let (open, close) = if piece.mutants.is_empty() { ("", "") } else { ("(", ")") };
    let (open, close) = if piece.is_statement { ("", "") } else { (open, close) };
    to.text += open;
    for (number, mutant) in &piece.mutants {
        let whole = &source[piece.place.clone()];
        let Range { start: at, end } = words(mutant);
        let (at, end) = (at - piece.place.start, end - piece.place.start);
        let changed = format!("{}{}{}", &whole[..at], mutant.to.trim(), &whole[end..]);
        let start = line_of(&to.text);
        to.text += &format!("if weir_units::mutant::is_on({number}) {{\n{changed}\n}} else ");
        own.push((*number, start..line_of(&to.text) + 1));
    }
    to.text += if piece.mutants.is_empty() { "" } else { "{\n" };
    let mut at = piece.place.start;
    for inner in &piece.inside {
        to.text += &source[at..inner.place.start];
        write(source, inner, to);
        at = inner.place.end;
    }
    to.text += &source[at..piece.place.end];
    to.text += if piece.mutants.is_empty() { "" } else { "\n}" };
    to.text += close;
    let whole = first..line_of(&to.text) + 1;
    to.lines.extend(own.iter().map(|(number, _)| (*number, whole.clone())));
    to.lines.extend(own);
}

fn line_of(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count() + 1
}

/// Where the words lie that a mutant changes, without the spaces around them.
fn words(mutant: &Mutant) -> Range<usize> {
    let start = mutant.at + mutant.from.len() - mutant.from.trim_start().len();
    start..start + mutant.from.trim().len()
}

/// Where an expression or a statement lies that may be written twice.
#[derive(Default)]
struct Places {
    expressions: BTreeSet<(usize, usize)>,
    statements: BTreeSet<(usize, usize)>,
    /// What lies in one of these is known only to the compiler.
    fixed: Vec<Range<usize>>,
}

impl Places {
    /// The smallest around a mutant, and whether that is a whole statement.
    fn around(&self, mutant: &Mutant) -> Option<(Range<usize>, bool)> {
        let Range { start, end } = words(mutant);
        if self.fixed.iter().any(|place| place.start <= start && end <= place.end) {
            return None;
        }
        if mutant.to.is_empty() {
            return self.statements.contains(&(start, end)).then_some((start..end, true));
        }
        let around = self.expressions.iter().filter(|(s, e)| *s <= start && end <= *e);
        let (start, end) = around.min_by_key(|(s, e)| e - s)?;
        Some((*start..*end, false))
    }
}

impl<'f> Visit<'f> for Places {
    fn visit_expr(&mut self, expression: &'f syn::Expr) {
        let place = expression.span().byte_range();
        match expression {
            // a name that is bound in a chain of conditions holds for what follows
            syn::Expr::Let(_) => {}
            syn::Expr::Binary(binary) if binds(expression) => {
                self.fixed.push(binary.op.span().byte_range());
            }
            syn::Expr::Macro(_) | syn::Expr::Const(_) => self.fixed.push(place),
            _ => _ = self.expressions.insert((place.start, place.end)),
        }
        visit::visit_expr(self, expression);
    }

    fn visit_stmt(&mut self, statement: &'f syn::Stmt) {
        let place = statement.span().byte_range();
        if let syn::Stmt::Expr(_, Some(_)) | syn::Stmt::Macro(_) = statement {
            self.statements.insert((place.start, place.end));
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_repeat(&mut self, array: &'f syn::ExprRepeat) {
        self.fixed.push(array.len.span().byte_range());
        self.visit_expr(&array.expr);
    }

    fn visit_pat(&mut self, pattern: &'f syn::Pat) {
        self.fixed.push(pattern.span().byte_range());
    }

    fn visit_type(&mut self, kind: &'f syn::Type) {
        self.fixed.push(kind.span().byte_range());
    }

    fn visit_generic_argument(&mut self, argument: &'f syn::GenericArgument) {
        self.fixed.push(argument.span().byte_range());
    }

    fn visit_attribute(&mut self, attribute: &'f syn::Attribute) {
        self.fixed.push(attribute.span().byte_range());
    }

    fn visit_macro(&mut self, call: &'f syn::Macro) {
        self.fixed.push(call.span().byte_range());
    }

    fn visit_item_const(&mut self, item: &'f syn::ItemConst) {
        self.fixed.push(item.span().byte_range());
    }

    fn visit_item_static(&mut self, item: &'f syn::ItemStatic) {
        self.fixed.push(item.span().byte_range());
    }

    fn visit_impl_item_const(&mut self, item: &'f syn::ImplItemConst) {
        self.fixed.push(item.span().byte_range());
    }

    fn visit_trait_item_const(&mut self, item: &'f syn::TraitItemConst) {
        self.fixed.push(item.span().byte_range());
    }

    fn visit_item_enum(&mut self, item: &'f syn::ItemEnum) {
        self.fixed.push(item.span().byte_range());
    }

    fn visit_item_fn(&mut self, item: &'f syn::ItemFn) {
        if item.sig.constness.is_some() {
            self.fixed.push(item.span().byte_range());
        } else {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'f syn::ImplItemFn) {
        if item.sig.constness.is_some() {
            self.fixed.push(item.span().byte_range());
        } else {
            visit::visit_impl_item_fn(self, item);
        }
    }
}

/// A chain of conditions one of which binds a name.
fn binds(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::draw;

    fn switched(source: &str) -> (String, Vec<u32>) {
        let mutants = draw::of_text("crates/shape/src/f.rs", source);
        let mutants: Vec<_> = (1..).zip(mutants).collect();
        let switched = of_source(source, &mutants).unwrap();
        syn::parse_file(&switched.text).unwrap();
        let has = |n: &u32| switched.text.contains(&format!("is_on({n})"));
        let with = mutants.iter().map(|(n, _)| *n).filter(has).collect();
        (switched.text.replace("weir_units::mutant::", ""), with)
    }

    #[test]
    fn the_smallest_expression_is_written_twice() {
        let (text, _) = switched("fn f(a: u64) -> u64 {\n    a + 1\n}\n");
        let wanted = "fn f(a: u64) -> u64 {
    (if is_on(1) {
a - 1
} else {
a + 1
})
}
";
        assert_eq!(text, wanted);
    }

    #[test]
    fn a_statement_is_left_out_and_what_is_in_it_changes() {
        let (text, with) = switched("fn f(a: &mut u64) {\n    *a += 5;\n}\n");
        assert_eq!(with.len(), 3, "{text}");
        assert!(text.contains("if is_on(3) {\n\n} else {"), "{text}");
    }

    #[test]
    fn what_only_the_compiler_knows_has_no_switch() {
        let source = "const A: u64 = 4;
fn f(a: u64) -> [u64; 4] {
    match a {
        7 => assert_eq!(a, 3),
        _ => {}
    }
    if a < 2 && let Some(b) = g(a < 3) { h(b) }
    [a; 4]
}
";
        let (text, with) = switched(source);
        assert_eq!(text.matches("is_on(").count(), with.len());
        let left = ["= 4;", "7 =>", "assert_eq!(a, 3)", "; 4]\n}", ") && let Some(b)"];
        left.iter().for_each(|words| assert!(text.contains(words), "{words} in {text}"));
        assert!(text.contains("a < 4") || text.contains("is_on"), "{text}");
    }

    #[test]
    fn a_line_of_the_text_tells_whose_it_is() {
        let source = "fn f(a: u64) -> u64 {\n    (a + 1) * 3\n}\n";
        let mutants: Vec<_> = (1..).zip(draw::of_text("f.rs", source)).collect();
        let switched = of_source(source, &mutants).unwrap();
        let line =
            |words: &str| switched.text.lines().position(|line| line.contains(words)).unwrap() + 1;
        let plus = mutants.iter().find(|(_, m)| m.to == " - ").unwrap().0;
        assert_eq!(switched.at(line("a - 1")), [plus]);
        assert!(switched.at(1).is_empty());
    }
}
