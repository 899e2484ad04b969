//! The input history: stepping through it and searching it.

use std::collections::HashSet;

/// How many entries are kept until the setting is known.
const SIZE: usize = 10_000;
/// Longer entries are not kept: they are not worth recalling.
const TEXT_LIMIT: usize = 64 * 1024;

/// Entries without duplicates, the latest last.
#[derive(Debug)]
pub(crate) struct History {
    texts: Vec<String>,
    /// How many are kept.
    size: usize,
    /// The index of the entry that is shown, and the draft that it replaced.
    at: Option<(usize, String)>,
}

impl Default for History {
    fn default() -> History {
        History { texts: Vec::new(), size: SIZE, at: None }
    }
}

impl History {
    /// Adds the entries of earlier sessions, and sets how many are kept.
    pub(crate) fn load(&mut self, texts: Vec<String>, size: usize) {
        let newer = std::mem::take(&mut self.texts);
        let mut seen = HashSet::new();
        let all = texts.into_iter().chain(newer).rev();
        let kept = all.filter(|text| is_worth_keeping(text) && seen.insert(text.clone()));
        self.texts = kept.take(size).collect();
        self.texts.reverse();
        self.size = size;
        self.at = None;
    }

    /// Adds an entry; a duplicate moves to the end.
    pub(crate) fn add(&mut self, text: &str) {
        self.at = None;
        if !is_worth_keeping(text) || self.texts.last().is_some_and(|last| last == text) {
            return;
        }
        self.texts.retain(|known| known != text);
        self.texts.push(text.to_owned());
        let surplus = self.texts.len().saturating_sub(self.size);
        self.texts.drain(..surplus);
    }

    /// The entry before the one that is shown. `draft` is the current input.
    pub(crate) fn earlier(&mut self, draft: &str) -> Option<String> {
        let (at, typed) = self.at.take().unwrap_or_else(|| (self.texts.len(), draft.to_owned()));
        let at = at.min(self.texts.len());
        let earlier = at.checked_sub(1);
        self.at =
            (at < self.texts.len() || earlier.is_some()).then_some((earlier.unwrap_or(0), typed));
        earlier.map(|at| self.texts[at].clone())
    }

    /// The entry after the one that is shown. After the latest comes the draft.
    pub(crate) fn later(&mut self) -> Option<String> {
        let (at, typed) = self.at.take()?;
        match self.texts.get(at + 1) {
            Some(text) => {
                self.at = Some((at + 1, typed));
                Some(text.clone())
            }
            None => Some(typed),
        }
    }

    /// Stops stepping through the history: the user has edited the draft.
    pub(crate) fn reset(&mut self) {
        self.at = None;
    }

    /// The `nth` latest entry that contains `part`.
    pub(crate) fn find(&self, part: &str, nth: usize) -> Option<&str> {
        let lower = part.to_lowercase();
        let has = |text: &&String| text.to_lowercase().contains(&lower);
        self.texts.iter().rev().filter(has).nth(nth).map(String::as_str)
    }
}

fn is_worth_keeping(text: &str) -> bool {
    !text.trim().is_empty() && text.len() <= TEXT_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(texts: &[&str]) -> History {
        let mut history = History::default();
        history.load(texts.iter().map(|text| (*text).to_owned()).collect(), 10);
        history
    }

    #[test]
    fn a_duplicate_is_kept_once_as_the_latest() {
        assert_eq!(history(&["a", "b", "a", " ", "a"]).texts, ["b", "a"]);
    }

    /// Regression: at most 10,000 were kept, and loading compared each entry with all others.
    #[test]
    fn the_setting_limits_the_entries() {
        let mut history = History::default();
        history.load((0..50_000).map(|number| number.to_string()).collect(), 30_000);
        assert_eq!((history.texts.len(), &*history.texts[0]), (30_000, "20000"));
        history.add("new");
        assert_eq!((history.texts.len(), &*history.texts[0]), (30_000, "20001"));
        history.load(Vec::new(), 2);
        assert_eq!(history.texts, ["49999", "new"]);
    }

    #[test]
    fn stepping_back_and_forth_ends_at_the_draft() {
        let mut history = history(&["a", "b"]);
        assert_eq!(history.earlier("draft").as_deref(), Some("b"));
        assert_eq!(history.earlier("b").as_deref(), Some("a"));
        assert_eq!(history.earlier("a"), None);
        assert_eq!(history.later().as_deref(), Some("b"));
        assert_eq!(history.later().as_deref(), Some("draft"));
        assert_eq!(history.later(), None);
        assert_eq!(history.earlier("x").as_deref(), Some("b"));
    }

    #[test]
    fn searching_ignores_case_and_finds_the_latest_first() {
        let history = history(&["Fix the test", "other", "fix it"]);
        assert_eq!(history.find("FIX", 0), Some("fix it"));
        assert_eq!(history.find("FIX", 1), Some("Fix the test"));
        assert_eq!(history.find("FIX", 2), None);
    }
}
