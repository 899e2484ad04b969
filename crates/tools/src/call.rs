//! A call with typed parameters: what it would do, how it is shown, and how it is run.

use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use ikigai_conversation::{CallSummary, EffectKind, Preview, ToolCall};

use crate::arguments::Arguments;
use crate::context::Context;
use crate::effect::Effect;
use crate::gate::{Fact, FileFacts};
use crate::place::Place;
use crate::repair::Repairs;
use crate::result::{Execution, ToolResult};

/// A call that was understood. It may be judged, shown and run several times, and is always the same call.
#[derive(Clone)]
pub struct Call<S> {
    /// The name of its tool.
    tool: String,
    repairs: Option<Arc<Repairs>>,
    effects: Vec<Effect>,
    summary: Option<CallSummary>,
    preview: Option<PreviewMaker>,
    work: Work<S>,
    ends_turn: bool,
}

/// How a call does its work.
#[derive(Debug, Clone)]
pub enum Work<S> {
    /// By running.
    Executor(Executor),
    /// By a step on the database, which is committed together with its result.
    Step(S),
}

/// Runs a call.
#[derive(Clone)]
pub struct Executor {
    kind: Kind,
    /// What was repaired in the call, for its result.
    repairs: Option<Arc<Repairs>>,
}

#[derive(Clone)]
enum Kind {
    /// It computes or uses files, and runs on a thread for that.
    Blocking(Blocking),
    /// It mostly waits.
    Waiting(Waiting),
}

type PreviewMaker = Arc<dyn Fn(&Context) -> Preview + Send + Sync>;
type Blocking = Arc<dyn Fn(&Context) -> Execution + Send + Sync>;
type Waiting =
    Arc<dyn Fn(Context) -> Pin<Box<dyn Future<Output = Execution> + Send>> + Send + Sync>;

impl<S> Call<S> {
    /// A call that computes or uses files. Its effects are unknown until it names them.
    pub fn blocking<E: Into<Execution>>(
        work: impl Fn(&Context) -> E + Send + Sync + 'static,
    ) -> Call<S> {
        let work = Kind::Blocking(Arc::new(move |context| work(context).into()));
        Call::executed(work)
    }

    /// The same for a call that mostly waits.
    pub fn waiting<F>(work: impl Fn(Context) -> F + Send + Sync + 'static) -> Call<S>
    where
        F: Future<Output = Execution> + Send + 'static,
    {
        let work = Kind::Waiting(Arc::new(move |context| Box::pin(work(context))));
        Call::executed(work)
    }

    /// A call that works on the database.
    pub fn step(step: S) -> Call<S> {
        Call { effects: vec![Effect::Database], ..Call::new(Work::Step(step)) }
    }

    fn new(work: Work<S>) -> Call<S> {
        Call {
            tool: String::new(),
            repairs: None,
            effects: Vec::new(),
            summary: None,
            preview: None,
            work,
            ends_turn: false,
        }
    }

    fn executed(kind: Kind) -> Call<S> {
        Call::new(Work::Executor(Executor { kind, repairs: None }))
    }

    /// The same call, which has these effects and no others.
    #[must_use]
    pub fn with_effects(self, effects: impl Into<Vec<Effect>>) -> Call<S> {
        Call { effects: effects.into(), ..self }
    }

    /// The same call, with which the turn ends if it succeeds.
    #[must_use]
    pub fn ending_turn(self) -> Call<S> {
        Call { ends_turn: true, ..self }
    }

    /// The same call, shown as this verb and what it is about.
    #[must_use]
    pub fn shown_as(self, verb: &str, subject: &str) -> Call<S> {
        Call { summary: Some(CallSummary::new(verb, subject)), ..self }
    }

    /// The same call, shown as this while it runs.
    #[must_use]
    pub fn shown_while_running(self, text: &str) -> Call<S> {
        let summary = self.summary.map(|summary| summary.while_running(text));
        Call { summary, ..self }
    }

    /// The same call, which says itself what it would do. The context is one that reaches as far as the call may.
    #[must_use]
    pub fn with_preview(
        self,
        preview: impl Fn(&Context) -> Preview + Send + Sync + 'static,
    ) -> Call<S> {
        Call { preview: Some(Arc::new(preview)), ..self }
    }

    /// Completes a call of a tool: what it does not say is unknown, and shown by its name and arguments.
    pub(crate) fn of_tool(
        mut self,
        name: &str,
        arguments: &Arguments,
        declared: &[EffectKind],
    ) -> Call<S> {
        self.tool = name.to_owned();
        let is_declared = |effect: &Effect| declared.contains(&effect.kind());
        if self.effects.is_empty() || !self.effects.iter().all(is_declared) {
            self.effects.push(Effect::Unknown);
        }
        // As text only where they are needed: they may be as long as a file.
        self.summary.get_or_insert_with(|| CallSummary::of_arguments(name, &arguments.to_string()));
        self.preview.get_or_insert_with(|| {
            let arguments = arguments.to_string();
            Arc::new(move |_| Preview::Arguments { arguments: arguments.clone() })
        });
        self
    }

    /// The same call, which was understood only after these repairs.
    pub(crate) fn with_repairs(mut self, repairs: Option<Repairs>) -> Call<S> {
        self.repairs = repairs.map(Arc::new);
        if let Work::Executor(executor) = &mut self.work {
            executor.repairs = self.repairs.clone();
        }
        self
    }

    /// The name of its tool, however the model called it.
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// What was repaired in it, if anything was. The result of an executor says so already.
    pub fn repairs(&self) -> Option<&Repairs> {
        self.repairs.as_deref()
    }

    /// The call of a model as it was understood.
    pub fn understood(&self, call: &ToolCall) -> ToolCall {
        let arguments = self.repairs().map(|repairs| repairs.arguments.clone());
        let arguments = arguments.unwrap_or_else(|| call.arguments.clone());
        ToolCall { name: self.tool.clone(), arguments, ..call.clone() }
    }

    /// What it would do; never empty.
    pub fn effects(&self) -> &[Effect] {
        &self.effects
    }

    /// The kinds of its effects, each once.
    pub fn effect_kinds(&self) -> Vec<EffectKind> {
        let mut kinds: Vec<EffectKind> = self.effects.iter().map(Effect::kind).collect();
        kinds.sort();
        kinds.dedup();
        kinds
    }

    /// What it does, in a few words.
    pub fn summary(&self) -> CallSummary {
        self.summary.clone().unwrap_or_else(|| CallSummary::new("", ""))
    }

    /// How it does its work.
    pub fn work(&self) -> &Work<S> {
        &self.work
    }

    /// Whether the turn ends with it if it succeeds.
    pub fn ends_turn(&self) -> bool {
        self.ends_turn
    }

    /// All that it would do, for approval. The context is the one that it would run in.
    pub async fn preview(&self, context: &Context) -> Preview {
        let Some(preview) = self.preview.clone() else {
            return Preview::Arguments { arguments: String::new() };
        };
        let context = context.clone();
        let made = tokio::task::spawn_blocking(move || preview(&context)).await;
        made.unwrap_or_else(|error| Preview::Arguments { arguments: error.to_string() })
    }

    /// What there is to be known of it, for [`Gate::judge`](crate::Gate::judge). Looks at the disk, but only inside
    /// the tree of the context.
    pub fn facts(&self, context: &Context) -> Vec<Fact> {
        self.effects.iter().map(|effect| Fact::of(effect, context)).collect()
    }

    /// Where the paths of the call lead, links followed: those that were judged, or where they lead now if what lies
    /// outside the tree was not looked at.
    pub fn destinations(&self, context: &Context, facts: &[Fact]) -> Vec<PathBuf> {
        let known = self.effects.iter().zip(facts);
        known.filter_map(|(effect, fact)| destination(effect, fact, context)).collect()
    }
}

fn destination(effect: &Effect, fact: &Fact, context: &Context) -> Option<PathBuf> {
    if let Fact::File(FileFacts { real: Some(real), .. }) = fact {
        return Some(real.clone());
    }
    let (path, real) = match effect {
        Effect::Read(named) => {
            let path = context.resolve(named);
            let real = path.canonicalize().ok();
            (path, real)
        }
        Effect::Write(named) => {
            let path = context.resolve(named);
            let real = Place::anywhere(&path).ok().and_then(|place| place.real_path().ok());
            (path, real)
        }
        Effect::Command { .. } | Effect::Host(_) | Effect::Database | Effect::Unknown => {
            return None;
        }
    };
    // What leads nowhere now may lead somewhere later, which was not approved.
    Some(real.unwrap_or(path))
}

impl Executor {
    /// Runs the call to its end, or until the context is interrupted.
    ///
    /// # Cancel safety
    /// Dropping the future ends a running command. File tools run on until they notice the interrupt
    /// of the context; a file that is being written is finished.
    pub async fn run(&self, context: &Context) -> Execution {
        let execution = match &self.kind {
            // The one door to blocking work: the walkers and the file tools never wait on the runtime.
            Kind::Blocking(work) => {
                let (work, context) = (Arc::clone(work), context.clone());
                tokio::task::spawn_blocking(move || work(&context)).await.unwrap_or_else(|error| {
                    ToolResult::failure(&format!("The tool failed: {error}")).into()
                })
            }
            Kind::Waiting(work) => work(context.clone()).await,
        };
        Execution { result: execution.result.with_repairs(self.repairs.as_deref()), ..execution }
    }
}

impl<S> fmt::Debug for Call<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("effects", &self.effects).finish_non_exhaustive()
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Blocking(_) => "Executor(blocking)",
            Kind::Waiting(_) => "Executor(waiting)",
        })
    }
}
