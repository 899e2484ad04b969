//! The command line: what is printed where, and with which exit code.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Ended, Workspace, ended, found, input, line_of, run};

fn ikigai<const N: usize>(arguments: [&str; N]) -> Ended {
    ended(Workspace::new().ikigai().current_dir("/").args(arguments))
}

#[test]
fn a_result_is_one_line_with_exit_code_0_also_when_it_tells_of_a_failure() {
    let line = |text: &str| (0, format!("{text}\n"), String::new());
    let refused = line(r#"{"error":"Missing required parameter: pattern"}"#);
    assert_eq!(ikigai(["tool", "glob"]), refused);
    assert_eq!(ikigai(["tool", "glob", ""]), refused);
    assert_eq!(ikigai(["tool", "glob", "{}"]), refused);
    assert_eq!(ikigai(["tool", "nothing", "{}"]), line(r#"{"error":"Unknown tool: nothing"}"#));
    assert_eq!(ikigai(["tool", "", "{}"]), line(r#"{"error":"Unknown tool: "}"#));
    let failed = line(r#"{"success":false,"error":"File not found: nowhere"}"#);
    assert_eq!(ikigai(["tool", "file_read", r#"{"path":"nowhere"}"#]), failed);
    let ran = line(r#"{"success":true,"data":{"output":"","exit_code":3}}"#);
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    assert_eq!(ended(command.args(["tool", "bash", r#"{"command":"exit 3"}"#])), ran);
}

#[test]
fn arguments_come_from_standard_input_for_a_dash() {
    let workspace = Workspace::new();
    workspace.touch(["a.c"]);
    let mut command = workspace.ikigai();
    command.args(["tool", "glob", "-"]).stdin(input("{\"pattern\":\"*.c\"}\n"));
    assert_eq!(line_of(run(&mut command)), found(["a.c"]).to_string());
    let mut command = workspace.ikigai();
    command.args(["tool", "glob", "-"]).stdin(Stdio::null());
    let expected = json!({"error": "Missing required parameter: pattern"}).to_string();
    assert_eq!(line_of(run(&mut command)), expected);
}

/// Standard input is not touched otherwise: it may be a terminal or somebody else's.
#[test]
fn standard_input_is_left_alone_without_a_dash() {
    let workspace = Workspace::new();
    let script = r#"{ "$IKIGAI" tool glob '{"pattern":"*"}'; "$IKIGAI" tool bash '{"command":"cat"}'; cat; }"#;
    let mut command = workspace.script(script);
    command.stdin(input("kept\n"));
    let (code, output, _) = ended(&mut command);
    assert_eq!((code, output.lines().last()), (0, Some("kept")));
}

#[test]
fn arguments_that_are_no_utf8_are_no_json() {
    let expected = json!({"error": "Invalid JSON arguments"}).to_string();
    let bytes = b"{\"pattern\":\"\xff\"}";
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    command.args(["tool", "glob", "-"]).stdin(input(bytes));
    assert_eq!(line_of(run(&mut command)), expected);
    let mut command = workspace.ikigai();
    command.args(["tool", "glob"]).arg(OsStr::from_bytes(bytes));
    assert_eq!(line_of(run(&mut command)), expected);
}

#[test]
fn wrong_usage_ends_with_2_and_says_why_on_standard_error() {
    #[track_caller]
    fn check<const N: usize>(arguments: [&str; N], reason: &str) {
        let (code, stdout, stderr) = ikigai(arguments);
        assert_eq!((code, &*stdout), (2, ""));
        assert!(stderr.contains(reason), "{stderr}");
    }
    check([], "not a terminal: use 'ikigai run PROMPT'");
    check(["tool"], "<NAME>");
    check(["tool", "glob", "{}", "{}"], "unexpected argument");
    check(["no-such-command"], "unrecognized subcommand");
    check(["tool", "--no-such-option"], "unexpected argument");
    check(["tools", "--set", "all"], "invalid value 'all'");
    check(["completions"], "<SHELL>");
    check(["completions", "tcsh"], "invalid value 'tcsh'");
    check(["-C"], "a value is required");
}

#[test]
fn what_fails_ends_with_1_and_says_why_on_standard_error() {
    let workspace = Workspace::new();
    workspace.touch(["file"]);
    #[track_caller]
    fn check(command: &mut Command, reason: &str) {
        assert_eq!(ended(command), (1, String::new(), format!("ikigai: {reason}\n")));
    }
    check(
        workspace.ikigai().args(["-C", "nowhere", "tools"]),
        "cannot work in nowhere: No such file or directory (os error 2)",
    );
    check(workspace.ikigai().args(["-C", "file", "tools"]), "cannot work in file: not a directory");
}

#[test]
fn another_directory_can_be_chosen_before_or_after_the_command() {
    let workspace = Workspace::new();
    workspace.touch(["sub/a.c"]);
    for arguments in [
        ["-C", "sub", "tool", "glob", r#"{"pattern":"*"}"#],
        ["tool", "-C", "sub", "glob", r#"{"pattern":"*"}"#],
        ["tool", "glob", r#"{"pattern":"*"}"#, "-C", "./sub/"],
    ] {
        let output = run(workspace.ikigai().args(arguments));
        assert_eq!(line_of(output), found(["a.c"]).to_string());
    }
    let pwd = json!({"command": "echo $PWD; /bin/pwd"}).to_string();
    let output = run(workspace.ikigai().env("PWD", "/").args(["-C", "sub", "tool", "bash", &pwd]));
    let here = workspace.text("sub");
    let expected =
        json!({"success": true, "data": {"output": format!("{here}\n{here}\n"), "exit_code": 0}});
    assert_eq!(line_of(output), expected.to_string());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let workspace = Workspace::new();
    let script = r#"
        "$IKIGAI" tool bash '{"command":"seq 1 100000"}' | true
        echo "${PIPESTATUS[0]}"
        "$IKIGAI" man | true
        echo "${PIPESTATUS[0]}"
    "#;
    assert_eq!(ended(&mut workspace.script(script)), (0, "0\n0\n".to_owned(), String::new()));
}

#[test]
fn a_standard_output_that_is_full_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let workspace = Workspace::new();
    let mut command = workspace.ikigai();
    command.args(["tool", "glob", "{}"]).stdout(full);
    let expected =
        "ikigai: cannot write to standard output: No space left on device (os error 28)\n";
    assert_eq!(ended(&mut command), (1, String::new(), expected.to_owned()));
}

#[test]
fn the_list_of_tools_names_each_with_its_parameters() {
    let expected = "\
glob        Find files; skips ignored and hidden ones
              pattern [path]
file_read   Read a text file
              path [offset] [limit]
grep        Search files; skips ignored, hidden and binary ones
              pattern [glob] [path]
file_write  Create or replace a file, with missing folders
              path content
bash        Run a command with bash -c
              command [timeout] [sandbox] [network] [background] [notify_on]
mail        Send and receive messages to/from other agents
              action [to] [body] [id] [unread] [from] [limit] [offset] [end_turn]
";
    assert_eq!(ikigai(["tools", "--set", "core"]), (0, expected.to_owned(), String::new()));
    let others = "\
file_edit   Replace a string in a file; it must occur exactly once unless replace_all is true
              path old_string new_string [replace_all]
command     Look at background commands, or end one
              action [id] [offset] [pattern] [wait]
fork        Start a child agent; it works in parallel and mails you its result
              prompt [name] [context]
wait        Wait until agents are idle, commands end, or mail comes
              [agents] [timeout] [commands]
kill        End an agent and its descendants
              agent
agents      List the living agents
";
    assert_eq!(ikigai(["tools"]), (0, format!("{expected}{others}"), String::new()));
}

#[test]
fn help_and_version_are_results() {
    for arguments in [vec!["--help"], vec!["tool", "--help"], vec!["help", "tools"]] {
        let (code, stdout, stderr) =
            ended(Workspace::new().ikigai().current_dir("/").args(&arguments));
        assert_eq!((code, &*stderr), (0, ""));
        assert!(stdout.contains("Usage: ikigai"), "{stdout}");
        assert!(!stdout.contains("watchdog"), "{stdout}");
    }
    let version = format!("ikigai {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(ikigai(["--version"]), (0, version, String::new()));
}

#[test]
fn every_shell_gets_completions_for_every_command() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let (code, script, stderr) = ikigai(["completions", shell]);
        assert_eq!((code, &*stderr), (0, ""));
        for command in ["tools", "tool", "config", "completions", "man"] {
            assert!(script.contains(command), "{shell} does not know {command}");
        }
    }
}

#[test]
fn bash_takes_its_completions() {
    let script = r#"
        source <("$IKIGAI" completions bash)
        COMP_WORDS=(ikigai to) COMP_CWORD=1
        _ikigai ikigai to ikigai
        echo "${COMPREPLY[@]}"
    "#;
    let expected = (0, "tour tools tool\n".to_owned(), String::new());
    assert_eq!(ended(&mut Workspace::new().script(script)), expected);
}

#[test]
fn the_manual_page_is_one_and_names_every_command() {
    let (code, page, stderr) = ikigai(["man"]);
    assert_eq!((code, &*stderr), (0, ""));
    assert!(page.contains(".TH ikigai 1"), "{page}");
    for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS"] {
        assert!(page.contains(&format!(".SH {section}")), "no section {section}");
    }
    for command in ["tools", "tool", "config", "completions", "man"] {
        assert!(page.contains(&format!(r"ikigai\-{command}(1)")), "{command} is not in it");
    }
}

/// A home directory is neither needed nor touched, nor is any other place.
#[test]
fn nothing_is_written_beside_what_a_tool_was_asked_to_write() {
    let workspace = Workspace::new();
    workspace.touch(["file"]);
    workspace.tool("bash", json!({"command": "true"}));
    workspace.tool("file_write", json!({"path": "file", "content": "x"}));
    assert_eq!(workspace.names(), ["file"]);
    let home = workspace.directory().parent().unwrap().join("home");
    assert_eq!(std::fs::read_dir(home).unwrap().count(), 0);
}

#[test]
fn whoever_starts_the_watchdog_by_hand_gets_an_error() {
    let (code, stdout, _) = ikigai(["__watchdog"]);
    assert_eq!((code, &*stdout), (1, ""));
}
