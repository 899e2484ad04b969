//! Commands that only tell: sessions, tools, usage, settings.

use ikigai_store::{StoreError, Tokens};

use super::Hand;
use super::agents::cost_text;
use crate::command::{sessions, tools};
use crate::print::safe;
use crate::settings;

/// A screen's worth; 'ikigai sessions' has them all.
const SESSIONS: usize = 20;

impl Hand<'_> {
    /// The newest sessions.
    pub(crate) async fn sessions(&self) -> String {
        match self.store.sessions().await {
            Ok(all) if all.is_empty() => "No sessions yet".to_owned(),
            Ok(all) => {
                let shown: String = all.iter().take(SESSIONS).map(sessions::render).collect();
                let more = match all.len().saturating_sub(SESSIONS) {
                    0 => String::new(),
                    more => format!("{more} more: 'ikigai sessions' lists all\n"),
                };
                safe(&format!("{shown}{more}'ikigai --session ID' goes on with one"))
            }
            Err(error) => format!("Error: {error}"),
        }
    }

    /// The tools that agents have in this mode.
    pub(crate) fn tools(&self) -> String {
        let mode = self.permissions.mode();
        let dispatcher = settings::tools(&self.environment.settings);
        let offered =
            dispatcher.declarations().filter(|tool| ikigai_tools::offers(mode, tool.name));
        tools::render(offered).trim_end().to_owned()
    }

    /// What the agents have cost, each and all.
    pub(crate) async fn usage(&self) -> String {
        let tokens = match self.store.tokens(self.session).await {
            Ok(tokens) => tokens,
            Err(StoreError::SessionNotFound(_)) => Vec::new(),
            Err(error) => return format!("Error: {error}"),
        };
        let all = tokens.iter().fold(Tokens::default(), |sum, (_, tokens)| Tokens {
            input: sum.input + tokens.input,
            output: sum.output + tokens.output,
        });
        let Some(all) = cost_text(all) else { return "No tokens were used yet".to_owned() };
        let line = |(agent, tokens): &(_, Tokens)| {
            cost_text(*tokens).map(|cost| format!("{agent} {cost}\n"))
        };
        let lines: String = tokens.iter().filter_map(line).collect();
        format!("{lines}all {all}")
    }

    /// The settings in force.
    pub(crate) fn config(&self) -> String {
        self.environment.settings.render().trim_end().to_owned()
    }
}
