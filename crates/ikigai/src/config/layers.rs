//! The layers laid over each other.

use std::collections::BTreeMap;

use super::error::Fault;
use super::escape::excerpt;
use super::nearest;
use super::place::Place;
use super::providers;
use super::settings::{self, Setting};
use super::tools::KnownTools;
use super::value::Value;

/// A checked value of one layer.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) setting: &'static Setting,
    pub(super) value: Value,
    pub(super) place: Place,
}

impl Entry {
    /// Makes an entry of text, as variables, flags and defaults have it.
    pub(super) fn parse(
        key: &str,
        text: &str,
        place: Place,
        tools: &KnownTools,
    ) -> Result<Entry, Fault> {
        let Some(setting) = settings::find(key) else {
            return Err(Fault::UnknownSetting {
                place,
                key: excerpt(key),
                nearest: nearest::key(key),
            });
        };
        match providers::check_key(key).and_then(|()| setting.kind.parse(text, tools)) {
            Ok(value) => Ok(Entry { key: key.to_owned(), setting, value, place }),
            Err(wrong) => Err(Fault::value(place, key, wrong)),
        }
    }
}

/// What every layer said about every key, the lowest layer first: the last entry holds.
#[derive(Debug, Default)]
pub(super) struct Layers {
    entries: BTreeMap<String, Vec<Entry>>,
}

impl Layers {
    /// Lays `entries` over what is there.
    pub(super) fn add(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            self.entries.entry(entry.key.clone()).or_default().push(entry);
        }
    }

    /// The entry that holds.
    pub(super) fn holding(&self, key: &str) -> Option<&Entry> {
        self.entries.get(key)?.last()
    }

    /// The value that holds.
    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.holding(key).map(|entry| &entry.value)
    }

    /// The entries of all layers, by key and from the lowest to the highest.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().flatten()
    }

    /// What all layers said about one key, the lowest first.
    pub(super) fn entries_mut(&mut self, key: &str) -> &mut [Entry] {
        self.entries.get_mut(key).map_or(&mut [], Vec::as_mut_slice)
    }
}
