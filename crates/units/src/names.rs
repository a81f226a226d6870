//! Numbers that operators know by name.

/// Names with their numbers; of several names for one number, the first is the one that is shown.
pub(crate) struct Names(pub(crate) &'static [(&'static str, u8)]);

impl Names {
    pub(crate) fn number(&self, name: &str) -> Option<u8> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    }

    pub(crate) fn name(&self, number: u8) -> Option<&'static str> {
        self.0.iter().find(|(_, known)| *known == number).map(|(name, _)| *name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &'static str> + Clone + use<> {
        self.0.iter().map(|(name, _)| *name)
    }
}
