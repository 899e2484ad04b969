//! Commands that list tools and files.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use ikigai_protocol::{CommandError, Reply, TokenCount, ToolSummary};
use ikigai_store::Tokens;
use ikigai_tools::Declaration;

use crate::open::OpenSession;
use crate::settings;

impl OpenSession {
    /// The tools available in the current mode.
    pub(super) fn tools(&self) -> Reply {
        let mode = self.permissions.mode();
        let offered = settings::tools(&self.environment().settings).offered_in(mode);
        Reply::Tools(offered.declarations().map(tool_summary).collect())
    }

    /// The files and folders of the working tree, except those that git ignores.
    pub(super) async fn list_files(&self) -> Result<Reply, CommandError> {
        /// More than completion needs; a larger tree is listed in part.
        const FILES: usize = 100_000;
        const PATIENCE: Duration = Duration::from_secs(5);
        let directory = self.environment().directory.clone();
        let list = move || {
            with_folders(ikigai_tools::list_files(&directory, FILES, Instant::now() + PATIENCE))
        };
        let files = tokio::task::spawn_blocking(list).await;
        files.map(Reply::Files).map_err(|error| CommandError::Refused(error.to_string()))
    }
}

/// Adds each folder before its first file, with a slash at the end.
fn with_folders(files: Vec<String>) -> Vec<String> {
    let mut known = HashSet::new();
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        for (at, _) in file.match_indices('/') {
            let folder = &file[..=at];
            if known.insert(folder.to_owned()) {
                all.push(folder.to_owned());
            }
        }
        all.push(file);
    }
    all
}

/// Summarizes a tool for a list.
pub fn tool_summary(tool: &Declaration) -> ToolSummary {
    let (required, optional): (Vec<_>, Vec<_>) =
        tool.parameter_names().into_iter().partition(|(_, is_required)| *is_required);
    let names = |parameters: Vec<(&str, bool)>| {
        parameters.into_iter().map(|(name, _)| name.to_owned()).collect()
    };
    ToolSummary {
        name: tool.name.clone(),
        description: tool.description.clone(),
        required: names(required),
        optional: names(optional),
    }
}

pub(crate) fn token_count(tokens: Tokens) -> TokenCount {
    let count = |tokens: i64| u64::try_from(tokens).unwrap_or(0);
    TokenCount { input: count(tokens.input), output: count(tokens.output) }
}
