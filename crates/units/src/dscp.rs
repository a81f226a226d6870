//! Names of differentiated services code points (RFC 2474, 2597, 3246, 5865, 8622).

use crate::names::Names;

const NAMES: Names = Names(&[
    ("be", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
    ("cs0", 0),
]);

/// The code point that `name` stands for.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    NAMES.number(name)
}

/// The name of a code point that has one.
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.name(number)
}

/// All names, for messages.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.all()
}
