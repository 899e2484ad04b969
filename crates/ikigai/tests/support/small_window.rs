//! A model with a small context window: its server counts tokens, and refuses what is too long.

use std::process::Command;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply, strict};
use serde_json::json;

use super::Workspace;

/// The context window in tokens.
pub(crate) const WINDOW: usize = 8_000;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Anthropic,
    Responses,
    Google,
}

impl Wire {
    fn model(self) -> &'static str {
        match self {
            Wire::Chat => "openai/scripted",
            Wire::Anthropic => "anthropic/scripted",
            Wire::Responses => "answers/scripted",
            Wire::Google => "google/scripted",
        }
    }

    /// `ikigai` with a model that speaks this format.
    pub(crate) fn ikigai(self, workspace: &Workspace, server: &ModelServer) -> Command {
        let mut command = workspace.ikigai();
        command
            .env("OPENAI_BASE_URL", server.base_url())
            .env("OPENAI_API_KEY", "key-of-openai")
            .env("ANTHROPIC_BASE_URL", server.url())
            .env("ANTHROPIC_API_KEY", "key-of-anthropic")
            .env("GEMINI_BASE_URL", server.url())
            .env("GEMINI_API_KEY", "key-of-google")
            .env("IKIGAI_MODEL", self.model())
            .env("TERM", "dumb");
        command
    }

    fn judge(self, request: &CapturedRequest) -> Result<(), String> {
        match self {
            Wire::Chat => strict::chat::check(&request.json()),
            Wire::Anthropic => strict::anthropic::check(&request.json()),
            Wire::Responses => strict::responses::check(&request.json()),
            Wire::Google => strict::google::check(&request.json()),
        }
    }

    /// Fails unless every request is valid and fits.
    #[track_caller]
    pub(crate) fn assert_all_fit(self, server: &ModelServer) {
        for (number, request) in server.requests().iter().enumerate() {
            assert_eq!(self.judge(request), Ok(()), "request {number}: {}", request.text());
            let size = tokens(request);
            assert!(size <= WINDOW, "request {number} has {size} tokens");
        }
    }
}

/// A workspace whose configuration says how small the window is, and a file to read.
pub(crate) fn workspace(server: &ModelServer) -> Workspace {
    let workspace = unknown_window(server);
    let models = ["openai", "anthropic", "answers", "google"]
        .map(|provider| format!("[models.\"{provider}/scripted\"]\ncontext_window = {WINDOW}\n"));
    let config = format!("{}{}", providers(server), models.concat());
    workspace.write_config(&config);
    workspace
}

/// The same without the windows.
pub(crate) fn unknown_window(server: &ModelServer) -> Workspace {
    let workspace = Workspace::new();
    workspace.write_config(&providers(server));
    workspace.write("data.txt", "CONTENT- of a line in a file\n".repeat(80));
    workspace
}

fn providers(server: &ModelServer) -> String {
    format!(
        "[providers.answers]\nkind = \"openai-responses\"\nbase_url = \"{}\"\n\
         api_key_env = \"OPENAI_API_KEY\"\n",
        server.base_url()
    )
}

/// The tokens of a request, as the server counts them.
pub(crate) fn tokens(request: &CapturedRequest) -> usize {
    request.body.len() / 4
}

/// Whether this asks for a summary.
pub(crate) fn is_summary(request: &CapturedRequest) -> bool {
    request.text().contains("Write a handoff")
}

/// How many requests asked for a summary.
pub(crate) fn summaries(server: &ModelServer) -> usize {
    server.requests().iter().filter(|request| is_summary(request)).count()
}

/// Whether the model sees a summary.
pub(crate) fn is_summarized(request: &CapturedRequest) -> bool {
    request.text().contains("was summarized to make room")
}

/// A server that counts and refuses, and otherwise answers as `plan` says.
pub(crate) fn server(
    plan: impl Fn(&CapturedRequest) -> Reply + Send + Sync + 'static,
) -> ModelServer {
    ModelServer::choosing(move |request| counted(request, &plan))
}

/// An answer with what the request used, unless it is too long.
pub(crate) fn counted(
    request: &CapturedRequest,
    plan: impl Fn(&CapturedRequest) -> Reply,
) -> Reply {
    let size = tokens(request);
    if size > WINDOW {
        let words = format!(
            "This model's maximum context length is {WINDOW} tokens. However, your messages \
             resulted in {size} tokens."
        );
        return Reply::error(400, &words);
    }
    plan(request).usage(size as u64, 20)
}

/// A model that reads a file for each `SAY-N`, and then answers `answer-N`.
pub(crate) fn reader(request: &CapturedRequest) -> Reply {
    if is_summary(request) {
        return Reply::text("The user counts, and the file was read.");
    }
    let text = request.text();
    let last = |marker: &str| text.rfind(marker).unwrap_or(0);
    let (said, mail) = (last("SAY-"), last("[Notification:"));
    let done = last("CONTENT-").max(last("was summarized to make room"));
    let number: String = text[said..].chars().skip(4).take_while(char::is_ascii_digit).collect();
    if mail > said && mail > done {
        Reply::text("noted")
    } else if said > done {
        let id = format!("call_{number}");
        Reply::call(&id, "file_read", json!({"path": "data.txt"}))
    } else {
        Reply::text(&format!("answer-{number}."))
    }
}
