//! Commands of the user's own (`!command`). They run outside the sandbox with the user's rights; only
//! what the user types gets here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ikigai_conversation::AgentId;
use ikigai_protocol::{Attachment, CommandError, Reply, ShellOutput};
use ikigai_tools::{Commands, Context, OutputSize, Work};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::open::OpenSession;

/// How much of an output is shown and goes with the next message.
const OUTPUT: usize = 20 * 1024;
/// How many outputs wait for the next message; earlier ones are dropped.
const WAITING: usize = 10;
/// The longest that the tools let a command run, in seconds.
const LIMIT: u64 = 3_600;

/// The user's own commands in a session.
#[derive(Debug, Default)]
pub(crate) struct UserShell {
    /// Made with the first command.
    commands: OnceLock<Arc<Commands>>,
    by_agent: Mutex<BTreeMap<AgentId, AgentShell>>,
}

/// What belongs to the conversation with one agent.
#[derive(Debug, Default)]
struct AgentShell {
    /// Interrupts the command that runs.
    running: Option<CancellationToken>,
    /// The outputs that go with the next message.
    ended: Vec<Attachment>,
}

impl UserShell {
    /// Interrupts the command that runs beside an agent. Returns whether there is one.
    pub(crate) fn interrupt(&self, agent: &AgentId) -> bool {
        let running = self.lock().get(agent).and_then(|shell| shell.running.clone());
        running.is_some_and(|running| {
            running.cancel();
            true
        })
    }

    /// Takes the outputs that go with the next message.
    pub(super) fn take_ended(&self, agent: &AgentId) -> Vec<Attachment> {
        let mut shells = self.lock();
        shells.get_mut(agent).map(|shell| std::mem::take(&mut shell.ended)).unwrap_or_default()
    }

    /// Notes the start of a command; `None` if another one runs.
    fn start(&self, agent: &AgentId) -> Option<CancellationToken> {
        let mut shells = self.lock();
        let shell = shells.entry(agent.clone()).or_default();
        if shell.running.is_some() {
            return None;
        }
        let token = CancellationToken::new();
        shell.running = Some(token.clone());
        Some(token)
    }

    fn end(&self, agent: &AgentId, output: Option<&ShellOutput>) {
        let mut shells = self.lock();
        let shell = shells.entry(agent.clone()).or_default();
        shell.running = None;
        if let Some(ShellOutput { line, exit_code, output }) = output {
            let (line, output) = (line.clone(), output.clone());
            shell.ended.push(Attachment::Command { line, exit_code: *exit_code, output });
            let surplus = shell.ended.len().saturating_sub(WAITING);
            shell.ended.drain(..surplus);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentId, AgentShell>> {
        self.by_agent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenSession {
    /// Runs a command of the user and waits for its end.
    pub(super) async fn run_shell(
        &self,
        agent: &AgentId,
        line: String,
    ) -> Result<Reply, CommandError> {
        let Some(interrupt) = self.shell.start(agent) else {
            let why = "A command of yours is still running. Esc ends it";
            return Err(CommandError::Refused(why.to_owned()));
        };
        let result = self.execute_shell(&line, interrupt).await;
        let output = result.as_ref().ok().map(|result| output_of(&line, result));
        self.shell.end(agent, output.as_ref());
        match (result, output) {
            (Ok(_), Some(output)) => Ok(Reply::Shell(output)),
            (Ok(_), None) => Err(CommandError::Closed),
            (Err(why), _) => Err(CommandError::Refused(why)),
        }
    }

    /// The result of the command as the tool for commands reports it.
    async fn execute_shell(
        &self,
        line: &str,
        interrupt: CancellationToken,
    ) -> Result<Value, String> {
        let environment = self.environment();
        let commands = self
            .shell
            .commands
            .get_or_init(|| Arc::new(environment.commands(environment.for_commands())));
        let size = OutputSize::clamped(OUTPUT);
        // Without a sandbox: it is the user's.
        let context = Context::new(&environment.directory, size, Arc::clone(commands), interrupt);
        let arguments = json!({ "command": line, "timeout": LIMIT }).to_string();
        let result = match ikigai_agents::catalogue().dispatch("bash", arguments.as_bytes()) {
            Ok(call) => match call.work() {
                Work::Executor(executor) => executor.run(&context).await.result,
                Work::Step(_) => return Err("bash is no command".to_owned()),
            },
            Err(refusal) => refusal,
        };
        let result: Value =
            serde_json::from_str(&result.to_string()).map_err(|error| error.to_string())?;
        match result["success"].as_bool() {
            Some(true) => Ok(result),
            _ => Err(result["error"].as_str().unwrap_or("the command cannot be run").to_owned()),
        }
    }
}

fn output_of(line: &str, result: &Value) -> ShellOutput {
    ShellOutput {
        line: line.to_owned(),
        exit_code: result["data"]["exit_code"].as_i64().unwrap_or_default(),
        output: result["data"]["output"].as_str().unwrap_or_default().to_owned(),
    }
}
