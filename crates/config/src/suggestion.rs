//! Suggestions for misspelled names.

use crate::table::{self, NAME};

/// Longer names are not compared: they are not typos.
const COMPARED_CHARS: usize = 80;

/// The key that `key` is probably a typo of.
pub(crate) fn for_key(key: &str) -> Option<String> {
    let segments: Vec<&str> = key.split('.').collect();
    let provider = match segments[..] {
        [_, provider, _] => provider,
        _ => NAME,
    };
    best(key, table::all().map(|setting| setting.key.replace(NAME, provider)))
}

/// The name among `names` that `name` is probably a typo of.
pub(crate) fn for_name<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    best(name, names.map(str::to_owned))
}

fn best(given: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let given: String = given.to_lowercase().chars().take(COMPARED_CHARS).collect();
    candidates
        .filter_map(|candidate| Some((distance(&given, &candidate)?, candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, suggestion)| suggestion)
}

/// The distance between two keys, or `None` if they have nothing in common. The last segment is
/// also compared alone: `max_wakes` probably means `mail.max_wakes`, although `max_agents` is
/// closer. So are parts of a segment: `url` probably means `base_url`.
fn distance(given: &str, candidate: &str) -> Option<usize> {
    let (last, candidate_last) = (last_segment(given), last_segment(candidate));
    let is_piece = without_joints(candidate_last).contains(&without_joints(last));
    let by_piece = (is_piece && last.len() > 2).then_some(2);
    let by_last = few_changes(last, candidate_last).map(|changes| changes + 1);
    let by_whole = few_changes(given, candidate);
    [by_piece, by_last, by_whole].into_iter().flatten().min()
}

/// A key without separators between its words.
fn without_joints(name: &str) -> String {
    name.replace(['_', '-'], "")
}

/// The number of letters to change, unless it is too large for a typo.
fn few_changes(given: &str, candidate: &str) -> Option<usize> {
    let changes = strsim::damerau_levenshtein(given, candidate);
    (changes <= (given.chars().count() / 3).max(1)).then_some(changes)
}

fn last_segment(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    #[track_caller]
    fn check(given: &str, expected: Option<&str>) {
        assert_eq!(super::for_key(given).as_deref(), expected);
    }

    #[test]
    fn the_closest_key_is_suggested() {
        check("max_output_sise", Some("max_output_size"));
        check("Mode", Some("mode"));
        check("modle", Some("model"));
        check("max_wakes", Some("mail.max_wakes"));
        check("sandbx.network", Some("sandbox.network"));
        check("network", Some("sandbox.network"));
        check("mail.max_agents", Some("max_agents"));
        check("tools.enable", Some("tools.enabled"));
        check("rule", Some("rules"));
        check("api_key", Some("providers.NAME.api_key_env"));
        check("providers.local.api_key", Some("providers.local.api_key_env"));
        check("providers.local.url", Some("providers.local.base_url"));
        check("provider.local.base_url", Some("providers.local.base_url"));
        check("zebra", None);
        check("", None);
    }
}
