//! The lists of models that servers have. A list is kept in a file for a day, so that the facts
//! about a model are known without asking.

use std::fs;
use std::io::Read;
use std::path::PathBuf;

use ikigai_config::{ConfiguredFacts, ModelError, ModelSettings, Settings};
use ikigai_protocol::did_you_mean;
use ikigai_providers::{Client, Fault, ListedModel};
use serde::{Deserialize, Serialize};

use crate::clock::now;

/// How long a list is used.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The longest lists have a few hundred kilobytes.
const FILE_LIMIT: u64 = 4 << 20;

/// Where the list of a server is kept.
#[derive(Debug, Clone)]
pub(crate) struct ListFile {
    /// `None` if there is no folder for it.
    path: Option<PathBuf>,
    /// The server's address, without secrets.
    address: String,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Kept {
    address: String,
    asked_at: i64,
    models: Vec<ListedModel>,
}

impl ListFile {
    /// The file for the server of a model.
    pub(crate) fn of(settings: &Settings, model: &ModelSettings) -> ListFile {
        // A provider's name has only letters, digits and hyphens.
        let path = settings.folders().model_list(&model.provider);
        ListFile { path, address: model.base_url.to_string() }
    }

    /// The list, unless it is older than a day. Empty if the server has none.
    pub(crate) fn fresh(&self) -> Option<Vec<ListedModel>> {
        let mut text = Vec::new();
        fs::File::open(self.path.as_ref()?).ok()?.take(FILE_LIMIT).read_to_end(&mut text).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        let age = now().as_millis() - kept.asked_at;
        (kept.address == self.address && (0..DAY_MS).contains(&age)).then_some(kept.models)
    }

    /// Asks the server, and keeps the answer.
    ///
    /// # Errors
    /// When the server cannot be reached, refuses, or has no list.
    pub(crate) async fn ask(&self, client: &Client) -> Result<Vec<ListedModel>, Fault> {
        let models = client.models().await?;
        self.keep(&models);
        Ok(models)
    }

    /// Without the file, the server is asked again.
    fn keep(&self, models: &[ListedModel]) {
        let Some((path, folder)) = self.path.as_ref().and_then(|path| Some((path, path.parent()?)))
        else {
            return;
        };
        let (address, models) = (self.address.clone(), models.to_vec());
        let kept = Kept { address, asked_at: now().as_millis(), models };
        let Ok(text) = serde_json::to_vec(&kept) else { return };
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(&temporary, text))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
    }
}

/// `20250929` or `2025-09-29`
fn is_date(text: &str) -> bool {
    let digits = text.replace('-', "");
    let is_eight = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_eight && matches!(text.len(), 8 | 10)
}

/// The entry for a model, by its name or by an alias that its server accepts.
pub(crate) fn find<'a>(models: &'a [ListedModel], name: &str) -> Option<&'a ListedModel> {
    let exact = models.iter().find(|model| model.name == name);
    exact.or_else(|| models.iter().find(|model| is_alias(name, &model.name)))
}

/// Whether `name` is an alias of the model that a server lists as `listed`.
fn is_alias(name: &str, listed: &str) -> bool {
    let base = name.strip_suffix("-latest").or_else(|| name.strip_suffix("-0")).unwrap_or(name);
    let rest = listed.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'));
    let is_dated = rest.is_some_and(is_date);
    // Ollama's default tag, and the variants of OpenRouter.
    let is_tagged = listed.strip_suffix(":latest") == Some(name)
        || name.split_once(':').is_some_and(|(model, _)| model == listed);
    is_dated || is_tagged
}

/// Whether the user has configured something about a model, who then knows that it exists.
pub(crate) fn is_configured(settings: &Settings, model: &ModelSettings) -> bool {
    settings.model_facts(&model.label()) != ConfiguredFacts::default()
}

/// Refuses a name that a server's list does not have. Without a list, any name is accepted.
///
/// # Errors
/// When the list has other models, but not this one.
pub(crate) fn check_name(
    provider: &str,
    name: &str,
    models: &[ListedModel],
) -> Result<(), ModelError> {
    if models.is_empty() || find(models, name).is_some() {
        return Ok(());
    }
    let (provider, hint) = (provider.to_owned(), did_you_mean(&similar(models, name)));
    Err(ModelError::UnknownName { provider, name: name.to_owned(), hint })
}

/// The names in a list that are most similar to a name that it does not have.
pub(crate) fn similar(models: &[ListedModel], name: &str) -> Vec<String> {
    /// More would not be read.
    const SHOWN: usize = 3;
    const SIMILAR: f64 = 0.5;
    let name = name.to_lowercase();
    let similarity = |listed: &str| {
        let listed = listed.to_lowercase();
        let whole = strsim::normalized_damerau_levenshtein(&name, &listed);
        let is_part = name.len() > 2 && (listed.contains(&name) || name.contains(&*listed));
        if is_part { whole + 1.0 } else { whole }
    };
    let mut scored: Vec<(f64, &str)> =
        models.iter().map(|model| (similarity(&model.name), model.name.as_str())).collect();
    scored.retain(|(score, _)| *score >= SIMILAR);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(SHOWN).map(|(_, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use ikigai_providers::ModelFacts;

    use super::*;

    fn list(names: &[&str]) -> Vec<ListedModel> {
        let model =
            |name: &&str| ListedModel { name: (*name).to_owned(), facts: ModelFacts::default() };
        names.iter().map(model).collect()
    }

    #[track_caller]
    fn check(listed: &str, name: &str, expected: bool) {
        assert_eq!(find(&list(&[listed]), name).is_some(), expected, "{name} for {listed}");
    }

    #[test]
    fn servers_take_more_names_than_they_list() {
        check("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", true);
        check("claude-sonnet-4-20250514", "claude-sonnet-4-0", true);
        check("claude-3-7-sonnet-20250219", "claude-3-7-sonnet-latest", true);
        check("gpt-4o-2024-08-06", "gpt-4o", true);
        check("llama3.2:latest", "llama3.2", true);
        check("meta/llama-3", "meta/llama-3:free", true);
        check("claude-sonnet-4-5-20250929", "claude-sonnet-4", false);
        check("gpt-5-mini", "gpt-5", false);
        check("gpt-5", "gpt-nonsense", false);
        check("llama3.2:1b", "llama3.2", false);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let models = list(&["gpt-4o", "gpt-5-mini", "gpt-5", "whisper-1", "o3"]);
        assert_eq!(similar(&models, "gpt5"), ["gpt-5", "gpt-4o"]);
        assert_eq!(similar(&models, "GPT-5-m"), ["gpt-5", "gpt-5-mini", "gpt-4o"]);
        assert_eq!(similar(&models, "xyzzy-plugh"), Vec::<String>::new());
    }
}
