//! A turn with a real model, where a variable names its server.
//!
//! `REAL_MODEL_SERVER=http://127.0.0.1:8099 REAL_MODEL=NAME cargo test -p ikigai real_model`: the server speaks
//! Chat Completions under `/v1` and Anthropic's Messages. Models differ in what they say, so only the shape of the
//! turn is looked at.

use serde_json::Value;

use crate::support::model::{Format, events};
use crate::support::story::{assert_whole, kinds};
use crate::support::{Workspace, ended};

#[test]
fn a_real_model_calls_a_tool_gets_its_result_and_ends_the_turn() {
    let Ok(server) = std::env::var("REAL_MODEL_SERVER") else {
        return println!("skipped: REAL_MODEL_SERVER names no server");
    };
    let model = std::env::var("REAL_MODEL").unwrap_or_else(|_| "default".to_owned());
    for format in Format::BOTH {
        let workspace = Workspace::new();
        workspace.write("notes.txt", "hello");
        let provider = format.model().split('/').next().unwrap();
        let mut command = workspace.ikigai();
        command
            .env("OPENAI_BASE_URL", format!("{server}/v1"))
            .env("ANTHROPIC_BASE_URL", &server)
            .env("OPENAI_API_KEY", "none")
            .env("ANTHROPIC_API_KEY", "none")
            .args(["run", "--json", "--timeout", "900", "--model"])
            .arg(format!("{provider}/{model}"))
            .arg("List the files with the glob tool");
        let (code, stdout, stderr) = ended(&mut command);
        assert_eq!((code, &*stderr), (0, ""), "{format:?}: {stdout}");
        let last: Value = events(&stdout).pop().unwrap();
        assert_eq!(last["type"], "done");
        let log = workspace.log("0/");
        assert_whole(&log);
        assert!(kinds(&log).contains(&"tool_result"), "{format:?}: {stdout}");
    }
}
