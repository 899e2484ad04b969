//! The statements that the server has already parsed, and their names.

use std::collections::HashMap;
use std::sync::Arc;

use crate::value::Value;

/// How many statements are kept. The store has a few hundred; any beyond the limit are sent unnamed.
const NAMED: usize = 512;

/// The statements of one connection.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    known: HashMap<Box<str>, Statement>,
    named: usize,
    /// The number in the latest name. Names are never reused, so one that the server may or may not know does no harm.
    next: u64,
    /// The latest name that the server has confirmed.
    confirmed: u64,
    /// Whether names last on the server. Behind a pooler they do not.
    pub(crate) may_be_named: bool,
}

#[derive(Debug, Clone)]
struct Statement {
    text: Arc<str>,
    name: Option<(u64, Vec<u32>)>,
}

/// How a statement is sent.
pub(crate) struct Sent {
    /// Empty for an unnamed statement.
    pub(crate) name: String,
    /// The SQL to parse first, unless the server knows the name.
    pub(crate) parse: Option<Arc<str>>,
}

impl Statements {
    /// How to send `sql` with these values.
    pub(crate) fn send(&mut self, sql: &str, values: &[Value<'_>]) -> Sent {
        if let Some(Statement { name: Some((number, types)), .. }) = self.known.get(sql)
            && types.iter().copied().eq(values.iter().map(|value| value.type_id()))
        {
            return Sent { name: format!("s{number}"), parse: None };
        }
        if !self.known.contains_key(sql) && self.known.len() >= NAMED {
            return Sent { name: String::new(), parse: Some(with_dollars(sql).into()) };
        }
        let may_be_named = self.may_be_named && self.named < NAMED;
        let statement = self
            .known
            .entry(sql.into())
            .or_insert_with(|| Statement { text: with_dollars(sql).into(), name: None });
        let parse = Some(Arc::clone(&statement.text));
        if !may_be_named {
            return Sent { name: String::new(), parse };
        }
        self.next += 1;
        self.named += 1;
        statement.name = Some((self.next, values.iter().map(|value| value.type_id()).collect()));
        Sent { name: format!("s{}", self.next), parse }
    }

    /// Notes that the server knows all names so far.
    pub(crate) fn confirm(&mut self) {
        self.confirmed = self.next;
    }

    /// Forgets unconfirmed names after an error: the server may not know them.
    pub(crate) fn forget_new(&mut self) {
        self.forget_after(self.confirmed);
    }

    fn forget_after(&mut self, number: u64) {
        for statement in self.known.values_mut() {
            statement.name.take_if(|(known, _)| *known > number);
        }
    }

    /// Sends all statements unnamed from now on.
    pub(crate) fn forget_names(&mut self) {
        self.may_be_named = false;
        self.forget_after(0);
    }
}

/// Writes parameters as `$1` for PostgreSQL, where the store writes `?1` for SQLite. Question marks in string literals
/// stay.
fn with_dollars(sql: &str) -> String {
    let mut out = String::with_capacity(sql.len());
    let (mut is_quoted, mut rest) = (false, sql.chars().peekable());
    while let Some(c) = rest.next() {
        is_quoted ^= c == '\'';
        let is_parameter = c == '?' && !is_quoted && rest.peek().is_some_and(char::is_ascii_digit);
        out.push(if is_parameter { '$' } else { c });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_with_dollars() {
        assert_eq!(
            with_dollars("a = ?1 AND b = '?2' OR c = ?12"),
            "a = $1 AND b = '?2' OR c = $12"
        );
        assert_eq!(with_dollars("'it''s ?1' ?1"), "'it''s ?1' $1");
    }

    #[test]
    fn a_statement_is_named_only_where_names_last() {
        let mut statements = Statements { may_be_named: true, ..Statements::default() };
        let first = statements.send("SELECT ?1", &[Value::Integer(None)]);
        assert_eq!((first.name.as_str(), first.parse.is_some()), ("s1", true));
        let again = statements.send("SELECT ?1", &[Value::Integer(Some(1))]);
        assert_eq!((again.name.as_str(), again.parse.is_some()), ("s1", false));
        let other_type = statements.send("SELECT ?1", &[Value::Text(None)]);
        assert_eq!((other_type.name.as_str(), other_type.parse.is_some()), ("s2", true));
        statements.forget_names();
        let unnamed = statements.send("SELECT ?1", &[Value::Integer(None)]);
        assert_eq!((unnamed.name.as_str(), unnamed.parse.is_some()), ("", true));
    }
}
