//! The configuration, as the program obeys and shows it. Its rules are tested beside their code.

use serde_json::json;

use crate::support::{Workspace, ended, run};

/// What `ikigai ARGUMENTS` says when it refuses to start.
#[track_caller]
fn refusal(workspace: &Workspace, arguments: &[&str]) -> String {
    let output = run(workspace.ikigai().args(arguments));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[track_caller]
fn check_refused_for_a_project(setting: &str, key: &str) {
    let workspace = Workspace::new();
    workspace.write(".ikigai/config.toml", format!("max_agents = 5\n{setting}\n"));
    let told = refusal(&workspace, &["tool", "bash", r#"{"command":"touch ran"}"#]);
    let place = format!("{}:2: {key} ", workspace.text(".ikigai/config.toml"));
    assert!(told.contains(&place), "{told}");
    assert!(told.contains("home/config/ikigai/config.toml"), "names the user's file: {told}");
    assert!(!told.contains("evil"), "{told}");
    assert!(!workspace.path("ran").exists());
}

#[test]
fn a_project_cannot_say_where_keys_are_sent_or_data_is_stored() {
    check_refused_for_a_project(
        "providers.openai.base_url = \"http://evil.example/v1\"",
        "providers.openai.base_url",
    );
    check_refused_for_a_project(
        "providers.openai.api_key_env = \"AWS_SECRET_OF_evil\"",
        "providers.openai.api_key_env",
    );
    check_refused_for_a_project("database_url = \"sqlite:///tmp/evil.db\"", "database_url");
    check_refused_for_a_project("mode = \"full\"", "mode");
    check_refused_for_a_project("sandbox.network = true", "sandbox.network");
}

#[test]
fn a_wrong_setting_names_the_file_the_line_and_the_nearest_key() {
    let workspace = Workspace::new();
    workspace.write_config("mode = \"work\"\nmax_output_sise = 2000\n");
    let told = refusal(&workspace, &["config"]);
    assert!(told.contains("config.toml:2: unknown setting 'max_output_sise'"), "{told}");
    assert!(told.contains("did you mean 'max_output_size'?"), "{told}");
}

#[test]
fn a_configuration_file_that_was_asked_for_must_be_there() {
    let told = refusal(&Workspace::new(), &["--config", "nowhere.toml", "config"]);
    assert!(told.contains("nowhere.toml"), "{told}");
}

#[test]
fn max_output_size_is_obeyed_from_every_layer() {
    #[track_caller]
    fn check(workspace: &Workspace, variable: Option<&str>, expected: &str) {
        let mut tool = workspace.tool_command("file_read", json!({"path": "big"}));
        tool.envs(variable.map(|value| ("IKIGAI_MAX_OUTPUT_SIZE", value)));
        let output = String::from_utf8(run(&mut tool).stdout).unwrap();
        assert!(
            output.contains(&format!("showing first {expected} of 60000 bytes")),
            "{output:.200}"
        );
    }
    let workspace = Workspace::new();
    workspace.write("big", "x".repeat(60_000));
    check(&workspace, None, "51200");
    workspace.write_config("max_output_size = 4000");
    check(&workspace, None, "4000");
    workspace.write(".ikigai/config.toml", "max_output_size = 3000");
    check(&workspace, None, "3000");
    check(&workspace, Some("2000"), "2000");
}

#[test]
fn a_tool_that_is_not_enabled_is_neither_offered_nor_known() {
    let workspace = Workspace::new();
    workspace.write_config("tools.enabled = [\"core\"]");
    workspace.write(".ikigai/config.toml", "tools.enabled = [\"glob\", \"grep\"]");
    let listed = run(workspace.ikigai().args(["tools", "--json"])).stdout;
    let listed: serde_json::Value = serde_json::from_slice(&listed).unwrap();
    let names: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["glob", "grep"]);
    workspace.check("bash", json!({"command": "true"}), json!({"error": "Unknown tool: bash"}));
}

#[test]
fn the_listing_shows_every_layer_and_no_secret() {
    let workspace = Workspace::new();
    workspace.write_config(
        "max_agents = 7\n[providers.mine]\nbase_url = \"http://me:hunter2@localhost:1\"",
    );
    let mut command = workspace.ikigai();
    command.args(["config", "--mode", "read"]);
    command.env("IKIGAI_MAIL__MAX_WAKES", "3").env("OPENAI_API_KEY", "sk-hunter2");
    let output = run(&mut command);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for (setting, source) in [
        ("max_agents = 7", "config.toml:1"),
        ("mail.max_wakes = 3", "IKIGAI_MAIL__MAX_WAKES"),
        ("mode = \"read\"", "--mode"),
        ("max_depth = 4", "default"),
        ("providers.openai.api_key_env = \"OPENAI_API_KEY\"", "set"),
    ] {
        let line = text.lines().find(|line| line.starts_with(setting));
        assert!(line.is_some_and(|line| line.contains(source)), "{setting} from {source}: {text}");
    }
    assert!(!text.contains("hunter2"), "{text}");
}

#[test]
fn a_wrong_value_is_wrong_usage_when_it_was_typed_and_a_failure_when_it_was_found() {
    let workspace = Workspace::new();
    for flags in [["--mode", "bogus"], ["--model", "bogus"], ["--db", "bogus"]] {
        let (code, stdout, stderr) = ended(workspace.ikigai().args(["config"]).args(flags));
        assert_eq!((code, &*stdout), (2, ""), "{stderr}");
        assert!(stderr.contains(flags[0]), "{stderr}");
    }
    let (code, _, stderr) = ended(workspace.ikigai().arg("config").env("IKIGAI_MODE", "bogus"));
    assert_eq!(code, 1, "{stderr}");
}
