//! How much there is to read in a policy: counted before anything is built of it, so that no text,
//! however odd, costs more memory than a policy may.

use toml_parser::Source;
use toml_parser::lexer::TokenKind;
use weir_units::limits;

use crate::problem::{Position, Problems};

/// Whether `text` is not more than can be read; says so where it is.
pub(crate) fn are_few(text: &str, problems: &mut Problems) -> bool {
    let mut dots = 0;
    for (token, count) in Source::new(text).lex().zip(1..) {
        dots = match token.kind() {
            TokenKind::Dot => dots + 1,
            // what stands between the parts of a name
            TokenKind::Atom
            | TokenKind::Whitespace
            | TokenKind::LiteralString
            | TokenKind::BasicString => dots,
            _ => 0,
        };
        let place = || Position::of(&(token.span().start()..token.span().end()));
        if count > limits::POLICY_TOKENS {
            let most = limits::POLICY_TOKENS;
            let what = format!("the policy has more than {most} names, values, signs and lines");
            let help = "give customers a row in the table of [subscribers], or join address blocks";
            problems.error(place(), what, help);
            return false;
        }
        if dots >= limits::POLICY_NAME_PARTS {
            let most = limits::POLICY_NAME_PARTS;
            let what = format!("a name has more than {most} parts separated by dots");
            problems.error(place(), what, "put names with dots in double quotes");
            return false;
        }
    }
    true
}
