//! The names that `tools.enabled` knows.

use ikigai_tools::CORE as CORE_TOOLS;

use super::error::Wrong;
use super::escape::excerpt;
use super::layers::Layers;
use super::nearest;
use super::value::Value;
use crate::catalogue;

/// Stands for the six in a list of tools.
const CORE: &str = "core";

/// Checks an entry of `tools.enabled`.
pub(super) fn check_name(name: &str) -> Result<(), Wrong> {
    check(name, [CORE].into_iter().chain(all()))
}

/// Checks the name of one tool.
pub(super) fn check_tool(name: &str) -> Result<(), Wrong> {
    check(name, all())
}

fn check(name: &str, known: impl Iterator<Item = &'static str> + Clone) -> Result<(), Wrong> {
    if known.clone().any(|tool| tool == name) {
        return Ok(());
    }
    Err(Wrong::NoTool {
        shown: excerpt(name),
        nearest: nearest::name(name, known.clone()),
        known: known.collect::<Vec<_>>().join(", "),
    })
}

/// The tools that `tools.enabled` of these layers names; `None` when all are on.
pub(super) fn enabled(layers: &Layers) -> Option<Vec<String>> {
    match layers.value("tools.enabled") {
        Some(Value::List(names)) => Some(expand(names)),
        None => None,
        other => unreachable!("a list by its kind: {other:?}"),
    }
}

/// The list with `core` replaced by the six, each name once.
pub(super) fn expand(names: &[String]) -> Vec<String> {
    let mut expanded: Vec<String> = Vec::new();
    for name in names {
        let tools: Vec<&str> = match name == CORE {
            true => CORE_TOOLS.to_vec(),
            false => vec![name],
        };
        for tool in tools {
            if !expanded.iter().any(|there| there == tool) {
                expanded.push(tool.to_owned());
            }
        }
    }
    expanded
}

fn all() -> impl Iterator<Item = &'static str> + Clone {
    catalogue::names().into_iter()
}
