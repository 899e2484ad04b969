//! Rules that several APIs share.

use serde_json::{Map, Value};

/// Why a request is invalid.
pub(super) type Verdict<T = ()> = Result<T, String>;

pub(super) fn ensure(holds: bool, fault: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(fault()) }
}

pub(super) fn object<'a>(value: &'a Value, what: &str) -> Verdict<&'a Map<String, Value>> {
    value.as_object().ok_or_else(|| format!("{what} is no object: {value}"))
}

/// An object with exactly these fields: all of `required`, any of `optional`.
pub(super) fn fields<'a>(
    value: &'a Value,
    what: &str,
    required: &[&str],
    optional: &[&str],
) -> Verdict<&'a Map<String, Value>> {
    let fields = object(value, what)?;
    for name in required {
        ensure(fields.contains_key(*name), || format!("{what} has no {name}: {value}"))?;
    }
    for name in fields.keys() {
        let is_known = required.contains(&name.as_str()) || optional.contains(&name.as_str());
        ensure(is_known, || format!("{what} has {name}: {value}"))?;
    }
    Ok(fields)
}

pub(super) fn list<'a>(value: &'a Value, what: &str) -> Verdict<&'a [Value]> {
    let list = value.as_array().ok_or_else(|| format!("{what} is no list: {value}"))?;
    ensure(!list.is_empty(), || format!("{what} is empty"))?;
    Ok(list)
}

pub(super) fn text<'a>(value: &'a Value, what: &str) -> Verdict<&'a str> {
    value.as_str().ok_or_else(|| format!("{what} is no text: {value}"))
}

/// A text that is not blank.
pub(super) fn visible<'a>(value: &'a Value, what: &str) -> Verdict<&'a str> {
    let text = text(value, what)?;
    ensure(!text.trim().is_empty(), || format!("{what} is blank: {text:?}"))?;
    Ok(text)
}

/// Letters, digits, `_` and `-`, at most 64 of them.
pub(super) fn name<'a>(value: &'a Value, what: &str) -> Verdict<&'a str> {
    let name = text(value, what)?;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_valid = (1..=64).contains(&name.len()) && name.chars().all(is_allowed);
    ensure(is_valid, || format!("{what} is no name: {name:?}"))?;
    Ok(name)
}

/// The names of tools, which must be unique.
pub(super) fn distinct<'a>(names: impl IntoIterator<Item = &'a str>, what: &str) -> Verdict {
    let mut seen = std::collections::HashSet::new();
    names
        .into_iter()
        .try_for_each(|name| ensure(seen.insert(name), || format!("{what} {name} stands twice")))
}
