//! The tools that settings can name.

use crate::error::ValueError;
use crate::escape::excerpt;
use crate::layers::Layers;
use crate::suggestion;
use crate::value::Value;

/// Stands for [`KnownTools::core`] in `tools.enabled`.
const CORE: &str = "core";

/// The tools that `tools.enabled` and `[[rules]]` can name. The caller provides them: this crate
/// knows no tool.
#[derive(Debug)]
pub struct KnownTools {
    /// All names, in the order in which an error lists them.
    pub names: Vec<String>,
    /// The tools that `core` stands for in `tools.enabled`.
    pub core: Vec<String>,
    /// The tools that run commands: only these can be granted the network.
    pub commands: Vec<String>,
    /// Checks the pattern of a rule about a tool; the error says what is wrong with it.
    pub check_pattern: fn(tool: &str, pattern: &str) -> Result<(), String>,
}

impl KnownTools {
    /// Checks an entry of `tools.enabled`.
    pub(crate) fn check_entry(&self, name: &str) -> Result<(), ValueError> {
        check(name, &[&[CORE], &self.names()[..]].concat())
    }

    /// Checks the name of one tool.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), ValueError> {
        check(name, &self.names())
    }

    /// The tools in the `tools.enabled` of these layers. `None` means all.
    pub(crate) fn enabled(&self, layers: &Layers) -> Option<Vec<String>> {
        match layers.value("tools.enabled") {
            Some(Value::List(names)) => Some(self.expand(names)),
            None => None,
            other => unreachable!("a list by its kind: {other:?}"),
        }
    }

    /// The list with `core` expanded and without duplicates.
    pub(crate) fn expand(&self, names: &[String]) -> Vec<String> {
        let mut expanded: Vec<String> = Vec::new();
        for name in names {
            let tools = if name == CORE { &self.core } else { std::slice::from_ref(name) };
            for tool in tools {
                if !expanded.contains(tool) {
                    expanded.push(tool.clone());
                }
            }
        }
        expanded
    }

    fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }
}

fn check(name: &str, known: &[&str]) -> Result<(), ValueError> {
    if known.contains(&name) {
        return Ok(());
    }
    let suggestion = suggestion::for_name(name, known.iter().copied());
    Err(ValueError::NoTool { shown: excerpt(name), suggestion, known: known.join(", ") })
}
