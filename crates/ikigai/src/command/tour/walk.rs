//! The tour without the full screen, from start to end.

use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use anyhow::Context;
use ikigai_agents::{FreeAgents, SeatError, SessionChoice};
use ikigai_conversation::{AgentId, SessionId};
use ikigai_host::{AgentSlot, Environment, SessionOptions};
use ikigai_store::{Store, StoreError};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::pace::{Pace, Speed};
use super::page::{Page, SharedPage, lock};
use super::scratch::Scratch;
use super::script::{ASK, FIX, SLOW};
use super::shell::Shell;
use super::turn::{CallResult, Start, run_turn};

/// The limit on what another process should do immediately, generous for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Walk<'a> {
    environment: &'a Arc<Environment>,
    folder: PathBuf,
    store: Arc<Store>,
    shell: Shell,
    page: SharedPage,
    pace: Pace,
    interrupt: CancellationToken,
    /// Known after the first turn.
    session: Option<SessionId>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        environment: &'a Arc<Environment>,
        scratch: &Scratch,
        store: Store,
        page: SharedPage,
        pace: Pace,
        interrupt: CancellationToken,
    ) -> anyhow::Result<Walk<'a>> {
        let shell = Shell::new(environment, interrupt.clone())?;
        let (store, folder) = (Arc::new(store), scratch.folder().to_owned());
        Ok(Walk { environment, folder, store, shell, page, pace, interrupt, session: None })
    }

    /// Runs the tour to its end.
    pub(super) async fn run(&mut self) -> anyhow::Result<()> {
        self.introduce();
        self.pause().await?;
        self.fix_a_bug().await?;
        self.pause().await?;
        self.exchange_mail().await?;
        self.pause().await?;
        self.survive_a_kill().await?;
        self.show_next_steps();
        Ok(())
    }

    /// Kills running commands.
    pub(super) async fn close(&self) {
        self.shell.close().await;
    }

    fn introduce(&self) {
        let mut page = self.page();
        page.title("ikigai tour: the model is scripted, everything else is real");
        page.say(
            "The model in this tour is scripted, so it needs no key and no\n\
             network. The agents, tools, commands, mail and database are real. They live in",
        );
        page.say(&format!("  {}", self.folder.display()));
        page.say("and are removed at the end. Nothing of yours is touched.");
        page.empty_line();
        page.say(
            "  ❯  what you say to an agent      ●  what it says and does: the script\n  \
             $  what you type in a shell",
        );
    }

    async fn fix_a_bug(&mut self) -> anyhow::Result<()> {
        self.page().heading("1. An agent fixes a bug");
        self.type_out("❯ ", FIX).await?;
        let results = self.turn("0/", Start::Message(FIX)).await?;
        require_success(&results)?;
        let passed = results.last().is_some_and(|last| last.content == "exit 0");
        anyhow::ensure!(passed, "the test still fails: is the bash in your PATH the real one?");
        self.page().empty_line();
        self.page().say("Each call was stored before it ran, and each result right after.");
        Ok(())
    }

    async fn exchange_mail(&mut self) -> anyhow::Result<()> {
        self.page().heading("2. Agents write to each other");
        self.type_and_run("ikigai agents add reviewer").await?;
        self.type_out("❯ ", ASK).await?;
        require_success(&self.turn("0/", Start::Message(ASK)).await?)?;
        self.type_and_run("ikigai --agent 1/ mail inbox").await?;

        self.narrate("Agent 1/ is idle. The mail wakes it:").await?;
        require_success(&self.turn("1/", Start::Pending).await?)?;

        self.narrate("The answer wakes agent 0/:").await?;
        require_success(&self.turn("0/", Start::Pending).await?)?;
        self.type_and_run("ikigai mail inbox").await.map(drop)
    }

    async fn survive_a_kill(&mut self) -> anyhow::Result<()> {
        self.page().heading("3. Nothing is lost");
        self.page().say("A second process takes over agent 0/ and is killed while a command runs:");
        self.page().empty_line();
        let command = format!("ikigai run -c '{SLOW}' 2> run.log & echo $!");
        let output = self.type_and_run(&command).await?;
        let pid: u32 = output.trim().parse().context("the number of the second process")?;
        self.wait_for_command().await?;
        self.type_and_run("cat run.log").await?;
        self.type_and_run(&format!("kill -9 {pid}")).await?;

        self.narrate("The next process to take over agent 0/ finds the open call and continues:")
            .await?;
        let results = self.turn("0/", Start::Pending).await?;
        let closed = matches!(&results[..], [only] if !only.success);
        anyhow::ensure!(closed, "the log does not say that the command was interrupted");
        self.type_and_run("ikigai sessions | tail -n 1").await.map(drop)
    }

    fn show_next_steps(&self) {
        let mut page = self.page();
        page.heading("4. Next: your own model");
        page.say(
            "A key       export ANTHROPIC_API_KEY=…  (or OPENAI_API_KEY, GEMINI_API_KEY)\n\
             Or a local  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1  (here: Ollama)\n\
             server      and say which model: --model openai/NAME\n\
             \n\
             Then        ikigai                          talk to an agent, here\n            \
                         ikigai run 'explain this code'  one task, its answer\n            \
                         ikigai --help                   everything else",
        );
        page.empty_line();
        page.say("The model's answers were scripted. Everything else was real.");
    }

    /// Runs a turn of an agent and returns the results of its calls.
    async fn turn(&mut self, agent: &str, start: Start<'_>) -> anyhow::Result<Vec<CallResult>> {
        let slot = self.claim(AgentId::parse(agent)?).await?;
        self.session = Some(slot.session());
        let results = run_turn(self.environment, slot, start, &self.page, &self.interrupt).await?;
        self.require_reader()?;
        Ok(results)
    }

    /// Claims an agent. If its process was just killed, waits until that process is gone.
    async fn claim(&self, agent: AgentId) -> anyhow::Result<AgentSlot> {
        let which = self.session.map_or(SessionChoice::New, SessionChoice::Named);
        // The script decides which agent works when.
        let free_agents = FreeAgents::Left;
        let options = SessionOptions { free_agents, ..SessionOptions::UNATTENDED };
        let started = Instant::now();
        loop {
            let (store, agent) = (Arc::clone(&self.store), Some(agent.clone()));
            match AgentSlot::claim_in(self.environment, options, store, which, agent).await {
                Err(error) if is_held(&error) && started.elapsed() < PATIENCE => {
                    self.pause_briefly().await?;
                }
                claimed => return claimed,
            }
        }
    }

    /// Waits until the other process has started its slow command.
    async fn wait_for_command(&self) -> anyhow::Result<()> {
        let started = Instant::now();
        while !self.environment.directory.join("started").exists() {
            if started.elapsed() > PATIENCE {
                let log = self.shell.run("cat run.log").await?;
                anyhow::bail!("the second process did not start its command: {log}");
            }
            self.pause_briefly().await?;
        }
        Ok(())
    }

    async fn pause_briefly(&self) -> anyhow::Result<()> {
        sleep(Duration::from_millis(10)).await;
        self.require_reader()
    }

    /// Types a command, runs it and prints its output.
    async fn type_and_run(&self, command: &str) -> anyhow::Result<String> {
        self.type_out("$ ", command).await?;
        let output = self.shell.run(command).await?;
        self.require_reader()?;
        self.page().output(&output);
        self.pace.long_pause().await;
        Ok(output)
    }

    /// Prints a line as if it were typed.
    async fn type_out(&self, prompt: &str, text: &str) -> anyhow::Result<()> {
        self.page().typed(prompt);
        self.pace.short_pause().await;
        match self.pace.speed {
            Speed::AtOnce => self.page().typed(text),
            Speed::Readable => {
                for character in text.chars() {
                    self.page().typed(character.encode_utf8(&mut [0; 4]));
                    self.pace.key().await;
                }
            }
        }
        self.page().end_typed();
        self.pace.short_pause().await;
        self.require_reader()
    }

    /// Prints what comes next.
    async fn narrate(&self, text: &str) -> anyhow::Result<()> {
        self.page().empty_line();
        self.page().say(text);
        self.page().empty_line();
        self.pace.long_pause().await;
        self.require_reader()
    }

    /// Waits until the user has had time to read.
    async fn pause(&mut self) -> anyhow::Result<()> {
        if self.pace.speed == Speed::Readable && !self.pace.is_ahead() {
            self.page().hint(self.pace.hint());
            let pause_end = self.pace.reading_pause().await;
            self.page().clear_hint(pause_end);
        }
        self.require_reader()
    }

    /// Fails if the user has left. The error is not shown.
    fn require_reader(&self) -> anyhow::Result<()> {
        anyhow::ensure!(!self.interrupt.is_cancelled(), "interrupted");
        Ok(())
    }

    fn page(&self) -> MutexGuard<'_, Page> {
        lock(&self.page)
    }
}

/// Whether another process runs the agent.
fn is_held(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref::<SeatError>(),
        Some(SeatError::Store(StoreError::LeaseHeld { .. }))
    )
}

fn require_success(results: &[CallResult]) -> anyhow::Result<()> {
    match results.iter().find(|result| !result.success) {
        Some(failed) => {
            let what = failed.content.trim_start_matches("error: ");
            anyhow::bail!("{what}; the tour needs bash in your PATH and space for its folder")
        }
        None => Ok(()),
    }
}
