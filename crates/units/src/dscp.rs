//! Names of differentiated services code points (RFC 2474, 2597, 3246, 5865, 8622).

const NAMES: [(&str, u8); 24] = [
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
];

/// The code point that `name` stands for.
#[must_use]
pub fn number(name: &str) -> Option<u8> {
    NAMES.iter().find(|(n, _)| *n == name).map(|(_, number)| *number)
}

/// The name of a code point that has one.
#[must_use]
pub fn name(number: u8) -> Option<&'static str> {
    NAMES.iter().find(|(_, n)| *n == number).map(|(name, _)| *name)
}

/// All names, for messages.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    NAMES.iter().map(|(name, _)| *name)
}
