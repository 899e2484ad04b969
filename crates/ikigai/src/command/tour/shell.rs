//! The user's shell in the tour: its commands really run.

use std::sync::Arc;

use anyhow::Context as _;
use ikigai_host::{Environment, settings};
use ikigai_store::Step;
use ikigai_tools::{Commands, Context, Dispatcher, Work};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(super) struct Shell {
    dispatcher: Dispatcher<Step>,
    commands: Arc<Commands>,
    context: Context,
}

impl Shell {
    /// Unlike agents' commands, the user's commands have access to the database.
    pub(super) fn new(
        environment: &Environment,
        interrupt: CancellationToken,
    ) -> anyhow::Result<Shell> {
        const DATABASE: &str = "IKIGAI_DATABASE_URL";
        let mut variables = environment.for_commands();
        variables.push((DATABASE.into(), environment.settings.database_url()?.expose().into()));
        let commands = Arc::new(environment.commands(variables));
        let size = settings::output_size(&environment.settings);
        let context = Context::new(&environment.directory, size, commands.clone(), interrupt);
        Ok(Shell { dispatcher: ikigai_agents::catalogue(), commands, context })
    }

    /// Runs a command and returns its output.
    pub(super) async fn run(&self, command: &str) -> anyhow::Result<String> {
        let arguments = json!({ "command": command }).to_string();
        let result = match self.dispatcher.dispatch("bash", arguments.as_bytes()) {
            Ok(call) => match call.work() {
                Work::Executor(executor) => executor.run(&self.context).await.result,
                Work::Step(_) => unreachable!("bash is no step on the database"),
            },
            Err(refusal) => refusal,
        };
        let result: Value = serde_json::from_str(&result.to_string())?;
        let output = result["data"]["output"].as_str().context(result["error"].to_string())?;
        anyhow::ensure!(result["data"]["exit_code"] == 0, "'{command}' failed: {output}");
        Ok(output.to_owned())
    }

    /// Kills running commands.
    pub(super) async fn close(&self) {
        self.commands.close().await;
    }
}
