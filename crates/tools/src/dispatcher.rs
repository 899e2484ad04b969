//! From a name and raw arguments to a call that is ready to run.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;

use serde_json::Value;

use crate::arguments::Arguments;
use crate::context::Context;
use crate::declaration::Declaration;
use crate::gate::{Access, Facts, FileFacts, Subject};
use crate::place::Place;
use crate::result::{Achieved, Outcome, Ran, Refusal, ToolResult};

/// The tools of this crate. Those that work on the database are listed by whoever has one.
const TOOLS: &[Tool] = &[
    crate::glob::TOOL,
    crate::file_read::TOOL,
    crate::grep::TOOL,
    crate::file_write::TOOL,
    crate::bash::TOOL,
    crate::file_edit::TOOL,
];

/// The tools that every session has; a model is told of them first, in this order.
pub const CORE: [&str; 6] = ["glob", "file_read", "grep", "file_write", "bash", "mail"];

/// A tool: what it says of itself, and how a call of it is made ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    pub(crate) declaration: &'static Declaration,
    pub(crate) prepare: fn(&Arguments) -> Result<Call, Refusal>,
}

/// A tool that works on the database: it only prepares a step, which whoever holds the database commits
/// together with its result.
#[derive(Debug)]
pub struct StepTool<S> {
    /// What a model and a person are told about it.
    pub declaration: &'static Declaration,
    /// Makes the step of a call, or the result that says why there is none.
    pub prepare: fn(&Arguments) -> Result<S, ToolResult>,
}

#[derive(Debug)]
enum Entry<S> {
    Tool(Tool),
    Step(StepTool<S>),
}

impl<S> Entry<S> {
    fn declaration(&self) -> &'static Declaration {
        match self {
            Entry::Tool(tool) => tool.declaration,
            Entry::Step(tool) => tool.declaration,
        }
    }
}

/// The tools that a model is offered, and the way from its calls to them. `S` is a step on the database.
#[derive(Debug)]
pub struct Dispatcher<S> {
    entries: Vec<Entry<S>>,
}

/// A call that was understood.
#[derive(Debug)]
pub enum Prepared<S> {
    /// To be run.
    Call(Call),
    /// To be committed.
    Step(S),
}

impl<S> Dispatcher<S> {
    /// All tools of this crate, and those that work on the database.
    pub fn new(step_tools: Vec<StepTool<S>>) -> Dispatcher<S> {
        let own = TOOLS.iter().copied().map(Entry::Tool);
        let mut entries: Vec<Entry<S>> =
            own.chain(step_tools.into_iter().map(Entry::Step)).collect();
        let core_position = |name| CORE.iter().position(|&core| core == name);
        entries.sort_by_key(|entry| core_position(entry.declaration().name).unwrap_or(CORE.len()));
        Dispatcher { entries }
    }

    /// Only the tools whose names `offered` wants; the order stays.
    pub fn only(mut self, offered: impl Fn(&str) -> bool) -> Dispatcher<S> {
        self.entries.retain(|entry| offered(entry.declaration().name));
        self
    }

    /// What is said of the tools on offer, in their order.
    pub fn declarations(&self) -> impl Iterator<Item = &'static Declaration> {
        self.entries.iter().map(Entry::declaration)
    }

    /// The array of schemas exactly as a model gets it.
    pub fn schemas(&self) -> Value {
        self.declarations().map(Declaration::schema).collect()
    }

    /// Makes a call ready to run.
    ///
    /// # Errors
    /// A call that cannot be run is answered at once, with the single field `error`. The checks are, in
    /// this order: a name at all, a JSON object, a known name, then the tool's own parameters.
    pub fn dispatch(&self, name: &str, arguments: &[u8]) -> Result<Prepared<S>, ToolResult> {
        let unknown = || Refusal::UnknownTool(name.to_owned());
        if name.is_empty() {
            return Err(unknown().into());
        }
        let arguments = Arguments::parse_json(arguments)?;
        let entry = self.entries.iter().find(|entry| entry.declaration().name == name);
        match entry.ok_or_else(unknown)? {
            Entry::Tool(tool) => Ok(Prepared::Call((tool.prepare)(&arguments)?)),
            Entry::Step(tool) => Ok(Prepared::Step((tool.prepare)(&arguments)?)),
        }
    }
}

/// A call with typed parameters, ready to run.
pub struct Call {
    subject: Subject,
    work: Work,
}

type Blocking = Box<dyn FnOnce(&Context) -> Achieved + Send>;
type Waiting = Box<dyn FnOnce(Context) -> Pin<Box<dyn Future<Output = Outcome> + Send>> + Send>;

/// How the work of a tool is done.
enum Work {
    /// It computes or uses files, and runs on a thread for that.
    Blocking(Blocking),
    /// It mostly waits.
    Waiting(Waiting),
}

impl Call {
    pub(crate) fn blocking<A: Into<Achieved>>(
        subject: Subject,
        work: impl FnOnce(&Context) -> A + Send + 'static,
    ) -> Call {
        let work = Work::Blocking(Box::new(move |context| work(context).into()));
        Call { subject, work }
    }

    pub(crate) fn waiting<F>(
        subject: Subject,
        work: impl FnOnce(Context) -> F + Send + 'static,
    ) -> Call
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let work = Work::Waiting(Box::new(move |context| Box::pin(work(context))));
        Call { subject, work }
    }

    /// What the call is about, for [`Gate::judge`](crate::Gate::judge). Looks at the disk, but only inside the
    /// tree of the context.
    pub fn facts(&self, context: &Context) -> Facts {
        self.subject.look(context)
    }

    /// Where the path of the call leads, links followed: the one that was judged, or where it leads now if what lies
    /// outside the tree was not looked at. `None` for a call without a path.
    pub fn destination(&self, context: &Context, facts: &Facts) -> Option<PathBuf> {
        let (access, named) = match (&self.subject, facts) {
            (_, Facts::File(FileFacts { real: Some(real), .. })) => return Some(real.clone()),
            (Subject::File { access, named }, _) => (access, named),
            (Subject::Command { .. }, _) => return None,
        };
        let path = context.resolve(named);
        let real = match access {
            Access::Read => path.canonicalize().ok(),
            Access::Write => Place::anywhere(&path).ok().and_then(|place| place.real_path().ok()),
        };
        // What leads nowhere now may lead somewhere later, which nobody has approved.
        Some(real.unwrap_or(path))
    }

    /// Runs the call to its end, or until the context is interrupted.
    ///
    /// # Cancel safety
    /// Dropping the future ends a running command. File tools run on until they notice the interrupt
    /// of the context; a file that is being written is finished.
    pub async fn run(self, context: &Context) -> Ran {
        let achieved = match self.work {
            // The one door to blocking work: the walkers and the file tools never wait on the runtime.
            Work::Blocking(work) => {
                let context = context.clone();
                tokio::task::spawn_blocking(move || work(&context)).await.unwrap_or_else(|error| {
                    Outcome::Failure(format!("The tool failed: {error}")).into()
                })
            }
            Work::Waiting(work) => work(context.clone()).await.into(),
        };
        achieved.into()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.work {
            Work::Blocking(_) => "Call(blocking)",
            Work::Waiting(_) => "Call(waiting)",
        })
    }
}
