//! Quotes, escapes, expansions and nested commands.

use super::{Reader, is_of_name, split_at};
use crate::gate::script::Doubt;

/// How deep nested commands are examined. Legitimate commands are not deeper.
const DEEPEST: usize = 8;

/// Each is scanned for its end, and a command may consist of nothing else.
const LONGEST_EXPANSION: usize = 200;

impl Reader<'_> {
    pub(super) fn single_quotes(&mut self) {
        self.draft().is_plain = false;
        loop {
            match self.rest.next() {
                Some('\'') => return,
                Some(c) => self.draft().text.push(c),
                None => return self.hidden("a quote is not closed"),
            }
        }
    }

    pub(super) fn double_quotes(&mut self) {
        self.draft().is_plain = false;
        loop {
            match self.next() {
                Some('"') => return,
                Some('\\') => match self.rest.next() {
                    Some(c @ ('$' | '`' | '"' | '\\')) => self.draft().text.push(c),
                    Some(c) => self.draft().text.extend(['\\', c]),
                    None => return self.hidden("a quote is not closed"),
                },
                Some('$') => self.expand_parameter(),
                Some('`') => self.back_ticks(),
                Some(c) => self.draft().text.push(c),
                None => return self.hidden("a quote is not closed"),
            }
        }
    }

    pub(super) fn escape(&mut self) {
        match self.rest.next() {
            Some(c) => {
                let draft = self.draft();
                draft.text.push(c);
                draft.is_plain = false;
            }
            None => self.hidden("it ends in a backslash"),
        }
    }

    pub(super) fn expand(&mut self) {
        match self.peek() {
            Some('\'' | '"') => self.hidden("it has quotes with a dollar sign"),
            _ => self.expand_parameter(),
        }
    }

    /// Handles what follows a dollar sign. `$NAME` and `${NAME}` are unknown values. Anything else
    /// may run commands: `$(…)`, but also `${NAME@P}`, and subscripts of arrays and in arithmetic.
    fn expand_parameter(&mut self) {
        match self.peek() {
            Some('(') => {
                let inner = self.inside_parentheses(0);
                self.command_within("it has a command in $(…)", inner);
            }
            Some('[') => self.hidden("it has arithmetic"),
            Some('{') => {
                let inside = self.rest.clone().skip(1).take(LONGEST_EXPANSION);
                let inside: String = inside.take_while(|c| *c != '}').collect();
                let end = inside.chars().count() + 1;
                if !is_value(&inside) || self.rest.clone().nth(end) != Some('}') {
                    return self.hidden("it has an expansion ${…}");
                }
                self.rest.nth(end);
                self.draft().expand();
            }
            Some(c) if is_of_name(c) || "?$#@*!-".contains(c) => {
                let is_special = !is_of_name(c) || c.is_ascii_digit();
                self.next();
                if !is_special {
                    while self.next_if(is_of_name).is_some() {}
                }
                self.draft().expand();
            }
            _ => self.draft().text.push('$'),
        }
    }

    pub(super) fn back_ticks(&mut self) {
        let mut inner = String::new();
        let inner = loop {
            match self.rest.next() {
                Some('`') => break Some(inner),
                Some('\\') => match self.rest.next() {
                    Some(c @ ('$' | '`' | '\\')) => inner.push(c),
                    Some(c) => inner.extend(['\\', c]),
                    None => break None,
                },
                Some(c) => inner.push(c),
                None => break None,
            }
        };
        self.command_within("it has a command in back-ticks", inner);
    }

    /// The text up to the closing parenthesis, given how many are already open; `None` if they are
    /// not closed.
    pub(super) fn inside_parentheses(&mut self, already: usize) -> Option<String> {
        let (mut inner, mut open, mut quote) = (String::new(), already, None);
        while let Some(c) = self.rest.next() {
            inner.push(c);
            match (c, quote) {
                ('\\', None | Some('"')) => inner.extend(self.rest.next()),
                ('\'' | '"', None) => quote = Some(c),
                (c, Some(begun)) if c == begun => quote = None,
                ('(', None) => open += 1,
                (')', None) if open > 1 => open -= 1,
                (')', None) => return Some(inner[1 - already.min(1)..inner.len() - 1].to_owned()),
                _ => {}
            }
        }
        None
    }

    /// Adds a nested command, whose output becomes a word. It is a part like any other.
    pub(super) fn command_within(&mut self, why: &'static str, inner: Option<String>) {
        self.doubt();
        self.draft().expand();
        match inner.filter(|_| self.depth < DEEPEST) {
            Some(inner) => {
                let script = split_at(self.depth + 1, &inner);
                if let Doubt::Words(why) = script.doubt {
                    self.hidden(why);
                }
                self.script.parts.extend(script.parts);
            }
            None => self.hidden(why),
        }
    }
}

/// Whether the text in `${…}` is only a value with an optional default. Other expansions may run
/// commands.
fn is_value(inside: &str) -> bool {
    let name: String = inside.chars().take_while(|c| is_of_name(*c)).collect();
    let behind = &inside[name.len()..];
    let instead =
        [":-", ":+", "-", "+", "#", "%"].iter().find_map(|begin| behind.strip_prefix(begin));
    let is_plain = |text: &str| !text.contains(['$', '`', '\\', '\'', '"', '(', '{', '\n']);
    !name.is_empty() && (behind.is_empty() || instead.is_some_and(is_plain))
}
