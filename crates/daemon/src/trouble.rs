//! What is wrong with a running link, and what to do about it. `weir status` lists it until it is
//! cured.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Trouble {
    pub(crate) what: String,
    /// May be empty.
    pub(crate) cure: String,
}

impl Trouble {
    pub(crate) fn new(what: impl Into<String>, cure: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), cure: cure.into() }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.cure.is_empty() { Ok(()) } else { write!(f, ": {}", self.cure) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trouble_is_said_with_its_cure() {
        assert_eq!(Trouble::new("it is full", "make room").to_string(), "it is full: make room");
        assert_eq!(Trouble::new("it is full", "").to_string(), "it is full");
    }
}
