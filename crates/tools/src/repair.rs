//! Repairs a call with a slip that models make, where only one call can be meant.
//!
//! A repair is tried after the strict reading failed, and its outcome is read strictly again: what
//! is not certain stays refused. The log keeps the arguments as they came. Only tools that
//! [say so](crate::Tool::repairable) are repaired.

mod command;
mod json;
mod members;
mod names;
mod values;

use std::mem;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::declaration::Parameter;
use members::Members;

pub(crate) use names::means;

/// What was repaired in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repairs {
    /// The arguments as they were understood, as JSON on one line.
    pub arguments: String,
    /// What was repaired, a short text each, for the model.
    pub notes: Vec<String>,
}

/// Arguments that are being repaired.
pub(crate) struct Draft {
    arguments: Arguments,
    members: Members,
    notes: Vec<String>,
}

impl Draft {
    /// The arguments as an object; `None` if several objects can be meant, or none. A name with two
    /// values has two meanings, although the strict reading takes the last one.
    pub(crate) fn read(raw: &[u8]) -> Option<Draft> {
        let raw = std::str::from_utf8(raw).ok()?.trim_matches(json::BLANKS);
        let raw = if raw.is_empty() { "{}" } else { raw };
        if let Ok(arguments) = Arguments::parse_json(raw.as_bytes()) {
            return Some(Draft { arguments, members: Members::parse(raw)?, notes: Vec::new() });
        }
        let (text, notes) = json::mended(raw)?;
        let arguments = Arguments::parse_json(text.as_bytes()).ok()?;
        Some(Draft { arguments, members: Members::parse(&text)?, notes })
    }

    pub(crate) fn arguments(&self) -> &Arguments {
        &self.arguments
    }

    /// Adds that the tool was called by another name.
    pub(crate) fn note_name(&mut self, called: &str, name: &str) {
        self.notes.push(format!("tool {called} read as {name}"));
    }

    /// Repairs names and values of parameters. Returns whether anything changed.
    pub(crate) fn correct(&mut self, parameters: &[Parameter]) -> bool {
        let before = self.notes.len();
        let taken = mem::take(&mut self.arguments);
        let mut values = taken.0.clone();
        let corrected = values::rename(&mut values, &mut self.members, parameters)
            .map(|notes| (notes, values::convert(&mut values, &self.members, parameters)));
        self.arguments = match corrected {
            Some((renamed, converted)) => {
                self.notes.extend(renamed.into_iter().chain(converted));
                Arguments(values)
            }
            None => taken,
        };
        self.notes.len() > before
    }

    /// What was repaired; `None` if nothing was.
    pub(crate) fn finish(self) -> Option<Repairs> {
        let Draft { arguments, notes, .. } = self;
        let arguments = Value::Object(arguments.0).to_string();
        (!notes.is_empty()).then_some(Repairs { arguments, notes })
    }
}
