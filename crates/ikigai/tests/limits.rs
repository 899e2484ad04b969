//! What only the library can be asked for: a small limit of a result's size, an interrupt that leaves the program
//! running, the mark of a turn's last call.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use ikigai_tools::{Commands, Context, Dispatcher, OutputSize, Prepared, ToolResult};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{Workspace, failure, found, success, wait_for_pid, wait_until_gone};

const LIMIT: usize = 1_024;

/// Runs a call with the smallest limit.
fn call(workspace: &Workspace, tool: &str, arguments: &Value) -> ToolResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(call_until(workspace, tool, arguments, &CancellationToken::new()))
}

/// The same, until it is interrupted.
async fn call_until(
    workspace: &Workspace,
    tool: &str,
    arguments: &Value,
    interrupt: &CancellationToken,
) -> ToolResult {
    let path = ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into());
    let program = Path::new(env!("CARGO_BIN_EXE_ikigai"));
    let commands = Arc::new(Commands::new(program, OsStr::new("__watchdog"), vec![path]));
    let size = OutputSize::new(LIMIT).unwrap();
    let context = Context::new(&workspace.directory(), size, commands.clone(), interrupt.clone());
    let dispatcher = Dispatcher::<()>::new(Vec::new());
    let Ok(Prepared::Call(call)) = dispatcher.dispatch(tool, arguments.to_string().as_bytes())
    else {
        panic!("{tool} is refused");
    };
    let result = call.run(&context).await;
    commands.close().await;
    result
}

/// The program goes on after an interrupt, so the result tells the model of it.
#[test]
fn an_interrupted_command_is_ended_and_may_have_had_effects() {
    let workspace = Workspace::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(async {
        let interrupt = CancellationToken::new();
        let arguments = json!({"command": "echo $$ > pid; sleep 31415.6; true"});
        let pid_file = workspace.path("pid");
        let interrupt_it = async {
            tokio::task::spawn_blocking(move || wait_for_pid(&pid_file)).await.unwrap();
            interrupt.cancel();
        };
        tokio::join!(call_until(&workspace, "bash", &arguments, &interrupt), interrupt_it).0
    });
    let expected = failure("Interrupted: the command was ended and may have had effects");
    assert_eq!(result.to_string(), expected.to_string());
    wait_until_gone(wait_for_pid(&workspace.path("pid")));
}

#[track_caller]
fn check(workspace: &Workspace, tool: &str, arguments: Value, expected: Value) {
    assert_eq!(call(workspace, tool, &arguments).to_string(), expected.to_string());
}

/// What a tool shows of `text`.
fn cut(text: &str, shown: usize) -> String {
    format!("{}\n[Output truncated: showing first {shown} of {} bytes]", &text[..shown], text.len())
}

#[test]
fn a_file_of_the_limits_size_is_shown_whole_and_one_byte_more_is_cut() {
    let workspace = Workspace::new();
    let text = "x".repeat(LIMIT + 1);
    workspace.write("exact", &text[..LIMIT]).write("more", &text);
    check(
        &workspace,
        "file_read",
        json!({"path": "exact"}),
        success(json!({"output": text[..LIMIT]})),
    );
    let expected = success(json!({"output": cut(&text, LIMIT), "truncated": true}));
    check(&workspace, "file_read", json!({"path": "more"}), expected);
}

#[test]
fn a_cut_does_not_split_a_character() {
    let workspace = Workspace::new();
    for shift in 0..4 {
        let text = format!("{}{}", "x".repeat(shift), "😀".repeat(LIMIT));
        workspace.write("file", &text);
        let shown = text.floor_char_boundary(LIMIT);
        let expected = success(json!({"output": cut(&text, shown), "truncated": true}));
        check(&workspace, "file_read", json!({"path": "file"}), expected);
    }
}

#[test]
fn only_the_lines_that_were_asked_for_count() {
    let workspace = Workspace::new();
    let line = format!("{}\n", "x".repeat(99));
    workspace.write("file", line.repeat(1_000));
    let some = success(json!({"output": line.repeat(10)}));
    check(&workspace, "file_read", json!({"path": "file", "offset": 500, "limit": 10}), some);
    let expected = success(json!({"output": cut(&line.repeat(20), LIMIT), "truncated": true}));
    check(&workspace, "file_read", json!({"path": "file", "offset": 500, "limit": 20}), expected);
    let rest = success(json!({"output": cut(&line.repeat(501), LIMIT), "truncated": true}));
    check(&workspace, "file_read", json!({"path": "file", "offset": 500}), rest);
}

#[test]
fn a_marker_stands_on_a_line_of_its_own() {
    let workspace = Workspace::new();
    let text = format!("{}\n", "x".repeat(63)).repeat(17);
    workspace.write("file", &text);
    let marker = format!("[Output truncated: showing first {LIMIT} of {} bytes]", text.len());
    let expected =
        success(json!({"output": format!("{}{marker}", &text[..LIMIT]), "truncated": true}));
    check(&workspace, "file_read", json!({"path": "file"}), expected);
}

#[test]
fn lossy_is_told_beside_truncated() {
    let workspace = Workspace::new();
    let text = [&b"\xff"[..], &[b'x'; 2 * LIMIT]].concat();
    workspace.write("file", &text);
    let shown = format!("\u{fffd}{}", "x".repeat(LIMIT - 3));
    let marker = format!("[Output truncated: showing first {LIMIT} of {} bytes]", text.len());
    let output = format!("{shown}\n{marker}");
    let expected = success(json!({"output": output, "lossy": true, "truncated": true}));
    check(&workspace, "file_read", json!({"path": "file"}), expected);
}

#[test]
fn paths_that_are_not_shown_are_counted() {
    let workspace = Workspace::new();
    let mut names: Vec<String> =
        (0..300).map(|number| format!("folder{}/file{number}", number % 3)).collect();
    for name in &names {
        workspace.write(name, "");
    }
    names.sort();
    let output = cut(&names.join("\n"), LIMIT);
    let expected = success(json!({"output": output, "count": 300, "truncated": true}));
    check(&workspace, "glob", json!({"pattern": "**"}), expected);
    check(&workspace, "glob", json!({"pattern": "*/file17"}), found(["folder2/file17"]));
}

#[test]
fn matches_that_are_not_shown_are_counted_also_those_in_very_long_lines() {
    let workspace = Workspace::new();
    let long = format!("needle{}", "x".repeat(100_000));
    workspace.write("a", "needle\n").write("b", format!("{long}\n{long}\n")).write("c", "needle\n");
    let all = format!("a:1: needle\nb:1: {long}\nb:2: {long}\nc:1: needle");
    let expected = success(json!({"output": cut(&all, LIMIT), "count": 4, "truncated": true}));
    check(&workspace, "grep", json!({"pattern": "needle"}), expected);
}

#[test]
fn of_a_command_half_of_the_limit_is_the_beginning_and_half_the_end() {
    let workspace = Workspace::new();
    let exact = success(json!({"output": "x".repeat(LIMIT), "exit_code": 0}));
    check(&workspace, "bash", json!({"command": "printf 'x%.0s' {1..1024}"}), exact);
    let half = LIMIT / 2;
    let marker =
        format!("[Output truncated: showing first {half} and last {half} of {} bytes]", LIMIT + 1);
    let output = format!("{}\n{marker}\n{}", "a".repeat(half), "b".repeat(half));
    let cut = success(json!({"output": output, "exit_code": 7, "truncated": true}));
    let command = "printf 'a%.0s' {1..513}; printf 'b%.0s' {1..512}; exit 7";
    check(&workspace, "bash", json!({"command": command}), cut);
}

#[test]
fn a_time_limit_is_told_in_the_last_line_also_of_a_cut_output() {
    let result =
        call(&Workspace::new(), "bash", &json!({"command": "yes; sleep 3600", "timeout": 1}));
    let result: Value = serde_json::from_str(&result.to_string()).unwrap();
    let output = result["data"]["output"].as_str().unwrap();
    assert_eq!(output.lines().last(), Some("[Time limit of 1 s reached: the command was ended]"));
    assert_eq!(
        (&result["data"]["exit_code"], &result["data"]["truncated"]),
        (&json!(124), &json!(true))
    );
}

#[test]
fn a_turns_last_result_says_so_at_its_root() {
    let mut result = call(&Workspace::new(), "glob", &json!({"pattern": "*"}));
    result.mark_limit_reached(50);
    let expected = concat!(
        r#"{"success":true,"data":{"output":"","count":0},"limit_reached":true,"#,
        r#""limit_message":"Tool call limit reached (50). Stopping tool loop."}"#
    );
    assert_eq!(result.to_string(), expected);
}

#[test]
fn a_limit_out_of_range_does_not_exist() {
    for (bytes, exists) in [
        (0, false),
        (1_023, false),
        (1_024, true),
        (51_200, true),
        (104_857_600, true),
        (104_857_601, false),
    ] {
        assert_eq!(OutputSize::new(bytes).is_some(), exists, "{bytes}");
    }
}

/// The limit of the program itself is 51,200 bytes unless somebody sets another.
#[test]
fn the_limit_is_51_200_bytes_by_default() {
    let workspace = Workspace::new();
    let text = "x".repeat(51_201);
    workspace.write("exact", &text[..51_200]).write("more", &text);
    workspace.check(
        "file_read",
        json!({"path": "exact"}),
        success(json!({"output": text[..51_200]})),
    );
    let expected = success(json!({"output": cut(&text, 51_200), "truncated": true}));
    workspace.check("file_read", json!({"path": "more"}), expected);
}
