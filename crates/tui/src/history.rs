//! What was typed before: going through it, and searching in it.

/// How many texts are kept at most; the setting may say fewer.
const LIMIT: usize = 10_000;
/// Longer texts are not kept: nobody types them again.
const TEXT_LIMIT: usize = 64 * 1024;

/// Texts without duplicates, the newest last.
#[derive(Debug, Default)]
pub(crate) struct History {
    texts: Vec<String>,
    /// The one that is shown, and what had been typed before it was.
    at: Option<(usize, String)>,
}

impl History {
    /// Takes what is known from earlier sessions.
    pub(crate) fn load(&mut self, texts: Vec<String>) {
        let newer = std::mem::take(&mut self.texts);
        for text in texts.into_iter().chain(newer) {
            self.add(&text);
        }
    }

    /// Adds what was sent; a text that is there already becomes the newest.
    pub(crate) fn add(&mut self, text: &str) {
        self.at = None;
        if text.trim().is_empty()
            || text.len() > TEXT_LIMIT
            || self.texts.last().is_some_and(|last| last == text)
        {
            return;
        }
        self.texts.retain(|known| known != text);
        if self.texts.len() >= LIMIT {
            self.texts.remove(0);
        }
        self.texts.push(text.to_owned());
    }

    /// The text before the one that is shown; `draft` is what stands there now.
    pub(crate) fn earlier(&mut self, draft: &str) -> Option<String> {
        let (at, typed) = self.at.take().unwrap_or_else(|| (self.texts.len(), draft.to_owned()));
        let at = at.min(self.texts.len());
        let earlier = at.checked_sub(1);
        self.at =
            (at < self.texts.len() || earlier.is_some()).then_some((earlier.unwrap_or(0), typed));
        earlier.map(|at| self.texts[at].clone())
    }

    /// The text behind the one that is shown; behind the newest is what had been typed.
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

    /// The draft was changed by hand: it is not the history's any more.
    pub(crate) fn let_go(&mut self) {
        self.at = None;
    }

    /// The `nth` newest text that has `part` in it.
    pub(crate) fn find(&self, part: &str, nth: usize) -> Option<&str> {
        let lower = part.to_lowercase();
        let has = |text: &&String| text.to_lowercase().contains(&lower);
        self.texts.iter().rev().filter(has).nth(nth).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(texts: &[&str]) -> History {
        let mut history = History::default();
        history.load(texts.iter().map(|text| (*text).to_owned()).collect());
        history
    }

    #[test]
    fn a_text_is_there_once_as_the_newest() {
        assert_eq!(history(&["a", "b", "a", " ", "a"]).texts, ["b", "a"]);
    }

    #[test]
    fn going_back_and_forth_ends_at_what_was_typed() {
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
    fn searching_finds_the_newest_first_in_any_case() {
        let history = history(&["Fix the test", "other", "fix it"]);
        assert_eq!(history.find("FIX", 0), Some("fix it"));
        assert_eq!(history.find("FIX", 1), Some("Fix the test"));
        assert_eq!(history.find("FIX", 2), None);
    }
}
