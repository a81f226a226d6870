//! A JSON object whose words are not known beforehand, in the order in which they were written.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Values by name. Names that this version does not know are kept, so that a reader may be older
/// than who wrote them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<T>(pub Vec<(Cow<'static, str>, T)>);

impl<T> Named<T> {
    /// The value of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

impl<T> FromIterator<(&'static str, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (&'static str, T)>>(all: I) -> Named<T> {
        Named(all.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Named<T>, D::Error> {
        deserializer.deserialize_map(Reader(PhantomData))
    }
}

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = Named<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Named<T>, M::Error> {
        let mut all = Vec::new();
        while let Some((name, value)) = map.next_entry::<String, T>()? {
            all.push((Cow::Owned(name), value));
        }
        Ok(Named(all))
    }
}
