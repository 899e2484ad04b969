//! The ids of calls as an API accepts them: valid, and unique within a request.
//!
//! A log may contain any id, and an older one the same id twice: servers repeat ids, and a session
//! may change its provider. The id that is sent depends only on the calls before it, so a longer
//! log is sent with the same ids.

use std::collections::{HashMap, HashSet, VecDeque};

/// Which ids an API accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdRule {
    pub(crate) max_bytes: usize,
    /// Must be false for bytes that are not ASCII, and true for `_`, letters and digits.
    pub(crate) allows: fn(u8) -> bool,
}

impl IdRule {
    /// The Chat Completions of OpenAI.
    pub(crate) const CHAT: IdRule =
        IdRule { max_bytes: 40, allows: |byte| byte.is_ascii_graphic() };

    /// The Messages of Anthropic.
    pub(crate) const ANTHROPIC: IdRule = IdRule { max_bytes: 64, allows: is_word_byte };
}

/// Whether every API accepts a byte in names.
pub(crate) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Assigns ids to the calls of one request and to their results.
#[derive(Debug)]
pub(crate) struct CallIds {
    rule: IdRule,
    used: HashSet<String>,
    /// The number to try first for the next id with a stem. Without it, many calls with the same id
    /// would take quadratic time.
    next_number: HashMap<String, u32>,
    /// The ids of calls without results so far.
    open: VecDeque<String>,
}

impl CallIds {
    pub(crate) fn new(rule: IdRule) -> CallIds {
        let (used, next_number, open) = Default::default();
        CallIds { rule, used, next_number, open }
    }

    /// The id to send for the next call, whose id in the log is `id`.
    pub(crate) fn call(&mut self, id: &str) -> &str {
        let valid = self.valid(id);
        let unique = if self.used.contains(&valid) { self.numbered(&valid) } else { valid };
        self.used.insert(unique.clone());
        self.open.push_back(unique);
        self.open.back().map_or("", String::as_str)
    }

    /// The id to send for the next result. Results are in the order of their calls. `None` if there
    /// are more results than calls, which no view has.
    pub(crate) fn result(&mut self) -> Option<String> {
        self.open.pop_front()
    }

    fn valid(&self, id: &str) -> String {
        let allowed = |c: char| u8::try_from(c).is_ok_and(self.rule.allows);
        let valid = id.chars().map(|c| if allowed(c) { c } else { '_' });
        let valid: String = valid.take(self.rule.max_bytes).collect();
        if valid.is_empty() { "call".to_owned() } else { valid }
    }

    /// `id`, or its start, with the first number that makes it unique.
    fn numbered(&mut self, id: &str) -> String {
        let longest_number = "_4294967295".len();
        let stem = &id[..id.len().min(self.rule.max_bytes - longest_number)];
        let number = self.next_number.entry(stem.to_owned()).or_insert(2);
        loop {
            let unique = format!("{stem}_{number}");
            *number += 1;
            if !self.used.contains(&unique) {
                return unique;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(rule: IdRule, ids: &[(&str, &str)]) {
        let mut call_ids = CallIds::new(rule);
        for (id, sent) in ids {
            assert_eq!(call_ids.call(id), *sent);
        }
        let results: Vec<String> = std::iter::from_fn(|| call_ids.result()).collect();
        let sent: Vec<&str> = ids.iter().map(|(_, sent)| *sent).collect();
        assert_eq!(results, sent);
    }

    #[test]
    fn a_valid_new_id_is_unchanged() {
        check(IdRule::CHAT, &[("call_1", "call_1"), ("a.b:c-{~}", "a.b:c-{~}"), ("x", "x")]);
        check(IdRule::ANTHROPIC, &[("toolu_01-A", "toolu_01-A"), ("x", "x")]);
        let longest = "x".repeat(64);
        check(IdRule::ANTHROPIC, &[(&longest, &longest)]);
    }

    #[test]
    fn invalid_characters_are_replaced_and_long_ids_cut() {
        check(IdRule::CHAT, &[("", "call"), ("a b\n", "a_b_"), ("é👩", "__")]);
        check(IdRule::ANTHROPIC, &[("", "call"), ("functions.bash:0", "functions_bash_0")]);
        check(IdRule::CHAT, &[(&"x".repeat(41), &"x".repeat(40))]);
    }

    #[test]
    fn a_repeated_id_gets_a_number() {
        check(
            IdRule::CHAT,
            &[
                ("a", "a"),
                ("a", "a_2"),
                ("a_2", "a_2_2"),
                ("a", "a_3"),
                ("a_4", "a_4"),
                ("a", "a_5"),
            ],
        );
        let (long, stem) = ("x".repeat(40), "x".repeat(29));
        let (second, third) = (format!("{stem}_2"), format!("{stem}_3"));
        check(IdRule::CHAT, &[(&long, &long), (&long, &second), (&format!("{long}y"), &third)]);
    }

    proptest! {
        #[test]
        fn ids_are_valid_unique_and_depend_only_on_what_stands_before(
            ids in prop::collection::vec("[a_2é ]{0,4}|x{28,70}", 0..40),
        ) {
            for rule in [IdRule::CHAT, IdRule::ANTHROPIC] {
                let send = |ids: &[String]| -> Vec<String> {
                    let mut call_ids = CallIds::new(rule);
                    ids.iter().map(|id| call_ids.call(id).to_owned()).collect()
                };
                let sent = send(&ids);
                prop_assert_eq!(sent.iter().collect::<HashSet<_>>().len(), sent.len());
                for id in &sent {
                    prop_assert!((1..=rule.max_bytes).contains(&id.len()));
                    prop_assert!(id.bytes().all(rule.allows));
                }
                let half = ids.len() / 2;
                prop_assert_eq!(&send(&ids[..half])[..], &sent[..half]);
            }
        }
    }
}
