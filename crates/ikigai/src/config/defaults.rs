//! The lowest layer: what is built in.

use super::error::{ConfigError, all_or_faults};
use super::folders::Folders;
use super::layers::Entry;
use super::place::Place;
use super::providers;
use super::settings::{self, Preset, Setting};
use super::tools::KnownTools;

pub(super) fn entries(folders: &Folders, tools: &KnownTools) -> Result<Vec<Entry>, ConfigError> {
    let database = folders.database_url().map(|url| ("database_url".to_owned(), url));
    let values = settings::all().filter_map(value).chain(providers::defaults()).chain(database);
    all_or_faults(values.map(|(key, text)| Entry::parse(&key, &text, Place::Default, tools)))
}

/// A setting of each provider has its default once the provider is known.
fn value(setting: &Setting) -> Option<(String, String)> {
    match setting.default {
        Preset::Is(text) if !setting.is_per_provider() => {
            Some((setting.key.to_owned(), text.to_owned()))
        }
        Preset::Is(_) | Preset::Absent(_) => None,
    }
}
