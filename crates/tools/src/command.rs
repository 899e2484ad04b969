//! `command`: looks at background commands, and ends them.

use std::sync::Arc;
use std::time::Duration;

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use ikigai_conversation::{CommandId, EffectKind};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout, timeout_at};

use crate::arguments::{Argument, Arguments, Whole};
use crate::background::{BackgroundCommand, Listed, Wanted};
use crate::call::Call;
use crate::context::Context;
use crate::declaration::{ParameterType, tool};
use crate::effect::Effect;
use crate::gate::interrupted;
use crate::result::{Execution, Refusal, ToolResult, counted};
use crate::tool::{BuiltIn, Tool};
use crate::watchdog::GRACE;

pub(crate) fn tool<S: 'static>() -> Arc<dyn Tool<S>> {
    BuiltIn::new(BackgroundCall::declaration(), &[EffectKind::Database], prepare)
        .repairing(BackgroundCall::PARAMETERS)
        .shared()
}

tool! {
    /// Look at background commands, or end one
    struct BackgroundCall = "command" {
        /// Operation
        action: Action,
        /// Command ID
        id: Option<Whole<1, { i64::MAX as u64 }>>,
        /// Byte to read output from; default: what is new
        offset: Option<Whole<0, { i64::MAX as u64 }>>,
        /// Only lines that match this regex
        pattern: Option<String>,
        /// Seconds to wait for output or the end
        wait: Option<Whole<0, 300>>,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    List,
    Output,
    Stop,
}

impl Action {
    const ALL: [Action; 3] = [Action::List, Action::Output, Action::Stop];
    const NAMES: &[&str] = &["list", "output", "stop"];
}

impl Argument for Action {
    const TYPE: ParameterType = ParameterType::Choice(Action::NAMES);
    const REQUIRED: bool = true;

    fn parse(value: Option<&Value>, name: &'static str) -> Result<Action, Refusal> {
        let named = value.and_then(Value::as_str).ok_or(Refusal::Missing(name))?;
        let at = Action::NAMES.iter().position(|known| *known == named);
        at.map(|at| Action::ALL[at]).ok_or(Refusal::Invalid(name))
    }
}

fn prepare<S>(arguments: &Arguments) -> Result<Call<S>, ToolResult> {
    let call = BackgroundCall::parse(arguments)?;
    let id = call.id.and_then(|Whole(id)| CommandId::new(id.try_into().ok()?));
    let request = match (call.action, id) {
        (Action::List, _) => Request::List,
        (Action::Output | Action::Stop, None) => return Err(Refusal::Missing("id").into()),
        (Action::Stop, Some(id)) => Request::Stop(id),
        (Action::Output, Some(id)) => {
            let pattern = call.pattern.as_deref().map(RegexMatcher::new_line_matcher).transpose();
            let pattern =
                pattern.map_err(|error| ToolResult::error(&format!("Invalid pattern: {error}")))?;
            let offset = call.offset.map(|Whole(offset)| offset);
            let wait = call.wait.map(|Whole(seconds)| Duration::from_secs(seconds));
            Request::Output(Reading { id, offset, pattern, wait })
        }
    };
    let subject = match &request {
        Request::List => "list".to_owned(),
        Request::Output(Reading { id, .. }) => format!("output of #{id}"),
        Request::Stop(id) => format!("stop #{id}"),
    };
    let request = Arc::new(request);
    let work = move |context: Context| {
        let request = Arc::clone(&request);
        async move { request.carry_out(&context).await }
    };
    Ok(Call::waiting(work).with_effects([Effect::Database]).shown_as("Command", &subject))
}

enum Request {
    List,
    Output(Reading),
    Stop(CommandId),
}

/// Which output to read.
struct Reading {
    id: CommandId,
    offset: Option<u64>,
    pattern: Option<RegexMatcher>,
    wait: Option<Duration>,
}

impl Request {
    async fn carry_out(&self, context: &Context) -> Execution {
        let (id, command) = match self {
            Request::List => return list(context),
            Request::Output(Reading { id, .. }) | Request::Stop(id) => {
                match context.commands.background().find(&context.agent, *id) {
                    Some(command) => (*id, command),
                    None => return ToolResult::error(&format!("Command #{id} not found")).into(),
                }
            }
        };
        match self {
            Request::Output(reading) => reading.read(context, &command).await,
            Request::List | Request::Stop(_) => stop(context, id, &command).await,
        }
    }
}

fn list(context: &Context) -> Execution {
    let all = context.commands.background().list();
    let own: Vec<Listed> = all.into_iter().filter(|it| it.agent == context.agent).collect();
    let listed = |command: &Listed| {
        let mut fields = state_of(command.id, command.exit_code);
        fields.insert("command".to_owned(), Value::from(command.line.as_str()));
        fields.insert("seconds".to_owned(), Value::from(command.elapsed.as_secs()));
        fields.insert("last_line".to_owned(), Value::from(command.last_line.as_str()));
        Value::Object(fields)
    };
    let commands: Vec<Value> = own.iter().map(listed).collect();
    let line = counted(commands.len() as u64, "command", "commands");
    let data = Map::from_iter([("commands".to_owned(), Value::from(commands))]);
    let ended = own.iter().filter(|command| command.exit_code.is_some());
    let ended = ended.map(|command| command.id).collect();
    Execution { ended, ..ToolResult::success(data).summed_up(line).into() }
}

/// The fields that say whether a command runs.
fn state_of(id: CommandId, exit_code: Option<i32>) -> Map<String, Value> {
    let fields = match exit_code {
        None => json!({"command_id": id, "running": true}),
        Some(code) => json!({"command_id": id, "running": false, "exit_code": code}),
    };
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

impl Reading {
    async fn read(&self, context: &Context, command: &BackgroundCommand) -> Execution {
        let mut progress = command.progress();
        let deadline = self.wait.map(|wait| Instant::now() + wait);
        let mut offset = self.offset.unwrap_or_else(|| command.seen());
        let matches = |line: &[u8]| match &self.pattern {
            Some(pattern) => pattern.is_match(line).unwrap_or(false),
            None => true,
        };
        let wanted = self.pattern.as_ref().map(|_| &matches as Wanted<'_>);
        loop {
            // Before the output: what it printed until its end is all there then.
            let end = progress.borrow_and_update().end;
            let (output, next) = match command.output(offset, context.output_size, wanted) {
                Ok(read) => read,
                Err(error) => {
                    let error = format!("The output of #{} cannot be read: {error}", self.id);
                    return ToolResult::failure(&error).into();
                }
            };
            let is_over = deadline.is_none_or(|deadline| Instant::now() >= deadline);
            if is_over || end.is_some() || !output.text.is_empty() {
                return self.result(end.map(|(code, _)| code), output, next);
            }
            offset = next;
            let limit = deadline.unwrap_or_else(Instant::now);
            let more = timeout_at(limit, progress.changed());
            if context.until_interrupted(more).await.is_none() {
                return interrupted().into();
            }
        }
    }

    fn result(
        &self,
        exit_code: Option<i32>,
        output: crate::output::Output,
        next: u64,
    ) -> Execution {
        let line = match exit_code {
            None => "running".to_owned(),
            Some(code) => format!("exit {code}"),
        };
        let mut result = ToolResult::from(output);
        for (name, value) in state_of(self.id, exit_code) {
            result = result.with(&name, value);
        }
        let ended = exit_code.map(|_| self.id).into_iter().collect();
        Execution { ended, ..result.with("offset", next).summed_up(line).into() }
    }
}

/// Ends a command, and waits for that.
async fn stop(context: &Context, id: CommandId, command: &BackgroundCommand) -> Execution {
    /// Longer than it takes, even if the command does not end on its own.
    const PATIENCE: Duration = Duration::from_secs(5);
    command.stop();
    let mut progress = command.progress();
    let ended = timeout(GRACE + PATIENCE, progress.wait_for(|progress| progress.end.is_some()));
    let end = match context.until_interrupted(ended).await {
        None => return interrupted().into(),
        Some(Ok(Ok(progress))) => progress.end,
        Some(Ok(Err(_)) | Err(_)) => None,
    };
    let Some((exit_code, _)) = end else {
        return ToolResult::failure(&format!("Command #{id} does not end")).into();
    };
    let result = ToolResult::success(state_of(id, Some(exit_code)));
    Execution { ended: vec![id], ..result.summed_up(format!("exit {exit_code}")).into() }
}
