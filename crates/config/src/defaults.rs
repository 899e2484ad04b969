//! The lowest layer: built-in values.

use crate::error::{ConfigError, all_or_faults};
use crate::folders::Folders;
use crate::layers::Entry;
use crate::origin::Origin;
use crate::providers;
use crate::table::{self, Preset, Setting};
use crate::tools::KnownTools;

pub(crate) fn entries(folders: &Folders, tools: &KnownTools) -> Result<Vec<Entry>, ConfigError> {
    let database = folders.database_url().map(|url| ("database_url".to_owned(), url));
    let values = table::all().filter_map(value).chain(providers::defaults()).chain(database);
    all_or_faults(values.map(|(key, text)| Entry::parse(&key, &text, Origin::Default, tools)))
}

/// Settings of a provider get their defaults once the provider is known.
fn value(setting: &Setting) -> Option<(String, String)> {
    match setting.default {
        Preset::Is(text) if !setting.is_per_provider() => {
            Some((setting.key.to_owned(), text.to_owned()))
        }
        Preset::Is(_) | Preset::Absent(_) => None,
    }
}
