//! The members of a JSON object, each with its value as it was written.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Numbers keep their digits here: read as a float, `1.10` becomes `1.1`.
pub(super) struct Members(BTreeMap<String, Box<RawValue>>);

impl Members {
    /// `None` if it is no object, or a name has two different values.
    pub(super) fn parse(json: &str) -> Option<Members> {
        serde_json::from_str(json).ok()
    }

    /// The JSON text of a value.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.get())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) {
        if let Some(value) = self.0.remove(from) {
            self.0.insert(to.to_owned(), value);
        }
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members, D::Error> {
        deserializer.deserialize_map(Object)
    }
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = BTreeMap::<String, Box<RawValue>>::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            match members.get(&name) {
                Some(other) if other.get() != value.get() => {
                    return Err(A::Error::custom("a name has two values"));
                }
                Some(_) => {}
                None => drop(members.insert(name, value)),
            }
        }
        Ok(Members(members))
    }
}
