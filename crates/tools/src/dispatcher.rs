//! From a name and raw arguments to a call that is ready to run.

use std::sync::Arc;

use ikigai_conversation::EffectKind;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::call::Call;
use crate::declaration::Declaration;
use crate::gate::{Mode, offers};
use crate::repair::{Draft, means};
use crate::result::{Refusal, ToolResult};
use crate::tool::Tool;

/// The tools of this crate. Those that work on the database are listed where there is one.
pub fn built_in<S: 'static>() -> Vec<Arc<dyn Tool<S>>> {
    vec![
        crate::glob::tool(),
        crate::file_read::tool(),
        crate::grep::tool(),
        crate::file_write::tool(),
        crate::bash::tool(),
        crate::file_edit::tool(),
        crate::command::tool(),
    ]
}

/// The tools that `core` stands for in the configuration. Models get them first, in this order.
pub const CORE: [&str; 6] = ["glob", "file_read", "grep", "file_write", "bash", "mail"];

/// The tools that an agent has, and the way from its calls to them. `S` is a step on the database.
#[derive(Debug)]
pub struct Dispatcher<S> {
    tools: Vec<Arc<dyn Tool<S>>>,
}

impl<S> Clone for Dispatcher<S> {
    fn clone(&self) -> Dispatcher<S> {
        Dispatcher { tools: self.tools.clone() }
    }
}

impl<S> Dispatcher<S> {
    /// These tools, those of [`CORE`] first. Of several with one name the first is called.
    pub fn new(mut tools: Vec<Arc<dyn Tool<S>>>) -> Dispatcher<S> {
        let core_position = |name: &str| CORE.iter().position(|&core| core == name);
        tools.sort_by_key(|tool| core_position(&tool.declaration().name).unwrap_or(CORE.len()));
        Dispatcher { tools }
    }

    /// Only the tools that `wanted` takes; the order stays.
    pub fn only(mut self, wanted: impl Fn(&dyn Tool<S>) -> bool) -> Dispatcher<S> {
        self.tools.retain(|tool| wanted(tool.as_ref()));
        self
    }

    /// Only the tools that a model is offered in a mode.
    pub fn offered_in(self, mode: Mode) -> Dispatcher<S> {
        self.only(|tool| offers(mode, tool.effects()))
    }

    /// The tools, in their order.
    pub fn tools(&self) -> impl Iterator<Item = &dyn Tool<S>> {
        self.tools.iter().map(AsRef::as_ref)
    }

    /// What is said of the tools, in their order.
    pub fn declarations(&self) -> impl Iterator<Item = &Declaration> {
        self.tools().map(Tool::declaration)
    }

    /// What calls of a tool may do; unknown for one that is not in the list.
    pub fn effects_of(&self, name: &str) -> &[EffectKind] {
        self.find(name).map_or(&[EffectKind::Unknown], Tool::effects)
    }

    /// The array of schemas exactly as a model gets it.
    pub fn schemas(&self) -> Value {
        self.declarations().map(Declaration::schema).collect()
    }

    /// Makes a call ready to run. One that is wrong in a way that models often are is repaired, if
    /// only one call can be meant.
    ///
    /// # Errors
    /// A call that cannot be run is answered at once, with the single field `error`. The checks are, in
    /// this order: a name at all, a JSON object, a known name, then the tool's own parameters.
    pub fn dispatch(&self, name: &str, arguments: &[u8]) -> Result<Call<S>, ToolResult> {
        self.strict(name, arguments).or_else(|refusal| self.repaired(name, arguments, refusal))
    }

    /// The same call without a slip; else the refusal of what is left when all slips are repaired.
    fn repaired(
        &self,
        called: &str,
        arguments: &[u8],
        refusal: ToolResult,
    ) -> Result<Call<S>, ToolResult> {
        let meant = self.find(called).or_else(|| self.find_similar(called));
        let repairable = meant.and_then(|tool| Some((tool, tool.repairable()?)));
        let (Some((tool, parameters)), Some(mut draft)) = (repairable, Draft::read(arguments))
        else {
            return Err(refusal);
        };
        let name = &tool.declaration().name;
        if name != called {
            draft.note_name(called, name);
        }
        let call = match tool.prepare(draft.arguments()) {
            Err(_) if draft.correct(parameters) => tool.prepare(draft.arguments())?,
            call => call?,
        };
        Ok(call.of_tool(name, draft.arguments(), tool.effects()).with_repairs(draft.finish()))
    }

    fn strict(&self, name: &str, arguments: &[u8]) -> Result<Call<S>, ToolResult> {
        let unknown = || Refusal::UnknownTool(name.to_owned());
        if name.is_empty() {
            return Err(unknown().into());
        }
        let arguments = Arguments::parse_json(arguments)?;
        let tool = self.find(name).ok_or_else(unknown)?;
        let call = tool.prepare(&arguments)?;
        Ok(call.of_tool(name, &arguments, tool.effects()))
    }

    /// The only tool whose name differs in case, or in `-` for `_`.
    fn find_similar(&self, called: &str) -> Option<&dyn Tool<S>> {
        let mut similar = self.tools().filter(|tool| means(called, &tool.declaration().name));
        let only = similar.next()?;
        similar.next().is_none().then_some(only)
    }

    fn find(&self, name: &str) -> Option<&dyn Tool<S>> {
        self.tools().find(|tool| tool.declaration().name == name)
    }
}
