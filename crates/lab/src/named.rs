//! Values by name, in the order in which they came: a file lists them as the experiment does.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, Serializer};

/// Values by name, in the order of their first mention.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T>(Vec<(String, T)>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

impl<T> Named<T> {
    /// Sets the value of a name; one that was there before keeps its place.
    pub fn set(&mut self, name: impl Into<String>, value: T) {
        let name = name.into();
        match self.get_mut(&name) {
            Some(old) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut T> {
        self.0.iter_mut().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// The value of a name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value)
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> + Clone {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T, N: Into<String>> FromIterator<(N, T)> for Named<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(items: I) -> Named<T> {
        let mut named = Named::default();
        items.into_iter().for_each(|(name, value)| named.set(name, value));
        named
    }
}

impl<T: Serialize> Serialize for Named<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Named<T>, D::Error> {
        struct Reads<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Reads<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("values by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named<T>, A::Error> {
                let mut named = Named::default();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    named.set(name, value);
                }
                Ok(named)
            }
        }
        from.deserialize_map(Reads(PhantomData))
    }
}
