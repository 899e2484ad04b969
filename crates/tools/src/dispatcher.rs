//! From a name and raw arguments to a call that is ready to run.

use std::fmt;
use std::pin::Pin;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::declaration::Declaration;
use crate::result::{Outcome, Refusal, ToolResult};

/// Every tool, in the order in which a model is told of them. The six of the core set come first.
const TOOLS: &[Tool] = &[
    crate::glob::TOOL,
    crate::file_read::TOOL,
    crate::grep::TOOL,
    crate::file_write::TOOL,
    crate::bash::TOOL,
    crate::mail::TOOL,
    crate::file_edit::TOOL,
];

/// How many of [`TOOLS`], from the first, are the core set.
const CORE: usize = 6;

/// A tool: what it says of itself, and how a call of it is made ready.
#[derive(Debug, Clone, Copy)]
pub struct Tool {
    pub(crate) declaration: &'static Declaration,
    pub(crate) prepare: fn(&Arguments) -> Result<Call, Refusal>,
}

impl Tool {
    /// What a model and a person are told about it.
    pub fn declaration(&self) -> &'static Declaration {
        self.declaration
    }
}

/// A named selection of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// The six that every session has.
    Core,
    /// All there are.
    All,
}

impl ToolSet {
    /// The names of its tools, in their order.
    pub fn names(self) -> impl Iterator<Item = &'static str> + Clone {
        let tools = match self {
            ToolSet::Core => &TOOLS[..CORE],
            ToolSet::All => TOOLS,
        };
        tools.iter().map(|tool| tool.declaration.name)
    }
}

/// The tools that a model is offered, and the way from its calls to them.
#[derive(Debug, Clone)]
pub struct Dispatcher {
    tools: Vec<Tool>,
}

impl Dispatcher {
    /// All tools.
    pub fn all() -> Dispatcher {
        Dispatcher { tools: TOOLS.to_vec() }
    }

    /// Only the tools whose names `offered` wants; the order stays.
    pub fn only(offered: impl Fn(&str) -> bool) -> Dispatcher {
        let tools = TOOLS.iter().copied().filter(|tool| offered(tool.declaration.name));
        Dispatcher { tools: tools.collect() }
    }

    /// The tools on offer.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The array of schemas exactly as a model gets it.
    pub fn schemas(&self) -> Value {
        self.tools.iter().map(|tool| tool.declaration.schema()).collect()
    }

    /// Makes a call ready to run.
    ///
    /// # Errors
    /// A call that cannot be run is answered at once, with the single field `error`. The checks are, in
    /// this order: a name at all, a JSON object, a known name, then the tool's own parameters.
    pub fn dispatch(&self, name: &str, arguments: &[u8]) -> Result<Call, ToolResult> {
        Ok(self.prepare(name, arguments)?)
    }

    fn prepare(&self, name: &str, arguments: &[u8]) -> Result<Call, Refusal> {
        let unknown = || Refusal::UnknownTool(name.to_owned());
        if name.is_empty() {
            return Err(unknown());
        }
        let arguments = Arguments::parse_json(arguments)?;
        let tool =
            self.tools.iter().find(|tool| tool.declaration.name == name).ok_or_else(unknown)?;
        (tool.prepare)(&arguments)
    }
}

/// A call with typed parameters, ready to run.
pub struct Call(Work);

type Blocking = Box<dyn FnOnce(&Context) -> Outcome + Send>;
type Waiting = Box<dyn FnOnce(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send>;

/// How the work of a tool is done.
enum Work {
    /// It computes or uses files, and runs on a thread for that.
    Blocking(Blocking),
    /// It mostly waits.
    Waiting(Waiting),
}

impl Call {
    pub(crate) fn blocking(work: impl FnOnce(&Context) -> Outcome + Send + 'static) -> Call {
        Call(Work::Blocking(Box::new(work)))
    }

    pub(crate) fn waiting<F>(work: impl FnOnce(Context) -> F + Send + 'static) -> Call
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        Call(Work::Waiting(Box::new(move |context| Box::pin(work(context)))))
    }

    /// Runs the call to its end, or until the context is interrupted.
    ///
    /// # Cancel safety
    /// Dropping the future ends a running command. File tools run on until they notice the interrupt
    /// of the context; a file that is being written is finished.
    pub async fn run(self, context: &Context) -> ToolResult {
        let outcome = match self.0 {
            // The one door to blocking work: the walkers and the file tools never wait on the runtime.
            Work::Blocking(work) => {
                let context = context.clone();
                tokio::task::spawn_blocking(move || work(&context))
                    .await
                    .unwrap_or_else(|error| Outcome::Failure(format!("The tool failed: {error}")))
            }
            Work::Waiting(work) => work(context.clone()).await,
        };
        outcome.into()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Work::Blocking(_) => "Call(blocking)",
            Work::Waiting(_) => "Call(waiting)",
        })
    }
}
