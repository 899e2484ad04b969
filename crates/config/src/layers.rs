//! The layers, merged.

use std::collections::BTreeMap;

use crate::error::Fault;
use crate::escape::excerpt;
use crate::origin::Origin;
use crate::providers;
use crate::suggestion;
use crate::table::{self, Setting};
use crate::tools::KnownTools;
use crate::value::Value;

/// A checked value of one layer.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) setting: &'static Setting,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

impl Entry {
    /// Creates an entry from text, as in variables, flags and defaults.
    pub(crate) fn parse(
        key: &str,
        text: &str,
        origin: Origin,
        tools: &KnownTools,
    ) -> Result<Entry, Fault> {
        let Some(setting) = table::find(key) else {
            return Err(Fault::UnknownSetting {
                origin,
                key: excerpt(key),
                suggestion: suggestion::for_key(key),
            });
        };
        match providers::check_key(key).and_then(|()| setting.kind.parse(text, tools)) {
            Ok(value) => Ok(Entry { key: key.to_owned(), setting, value, origin }),
            Err(wrong) => Err(Fault::value(origin, key, wrong)),
        }
    }
}

/// What each layer says about each key, the lowest layer first: the last entry wins.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    entries: BTreeMap<String, Vec<Entry>>,
}

impl Layers {
    /// Adds `entries` on top of the existing ones.
    pub(crate) fn add(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.entries.entry(entry.key.clone()).or_default().push(entry);
        }
    }

    /// The entry that wins.
    pub(crate) fn holding(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)?.last()
    }

    /// The value that wins.
    pub(crate) fn value(&self, key: &str) -> Option<&Value> {
        self.holding(key).map(|entry| &entry.value)
    }

    /// The entries of all layers, by key, from the lowest layer to the highest.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().flatten()
    }

    /// The entries of all layers for one key, the lowest first.
    pub(crate) fn entries_mut(&mut self, key: &str) -> &mut [Entry] {
        self.entries.get_mut(key).map_or(&mut [], Vec::as_mut_slice)
    }
}
