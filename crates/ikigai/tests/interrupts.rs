//! Calls that are ended while the program goes on, through the library.

use std::future::Future;

use rustix::process::Pid;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::{
    Library, Workspace, block_on, failure, success, wait_for_pid, wait_until_gone,
};

/// A process of the command's own group, one in a group that timeout(1) makes, a job with a group of its
/// own. What bash says of its jobs is nobody's business.
const FAMILY: &str = "exec 2> /dev/null; echo $$ > leader; \
    (timeout 31415 bash -c 'echo $$ > limited; sleep 31415.61; true'; true) & \
    set -m; bash -c 'echo $$ > job; sleep 31415.62; true' & wait";

/// Runs a call of `bash` beside `meanwhile`, and waits for the end of all its processes while the program that
/// started them is still there: it is not its end that ends them.
fn call(
    arguments: Value,
    meanwhile: impl Future<Output = ()>,
    interrupt: &CancellationToken,
    workspace: &Workspace,
) -> String {
    let library = Library::new(workspace, 51_200);
    block_on(async {
        let (result, ()) = tokio::join!(library.call("bash", &arguments, interrupt), meanwhile);
        for pid in family(workspace).await {
            tokio::task::spawn_blocking(move || wait_until_gone(pid)).await.unwrap();
        }
        library.close().await;
        result.to_string()
    })
}

/// The processes of the command, as soon as all of them run.
async fn family(workspace: &Workspace) -> Vec<Pid> {
    let files = ["leader", "limited", "job"].map(|name| workspace.path(name));
    let wait = move || files.map(|file| wait_for_pid(&file)).to_vec();
    tokio::task::spawn_blocking(wait).await.unwrap()
}

#[test]
fn an_interrupted_command_is_ended_and_its_result_says_so() {
    let (workspace, interrupt) = (Workspace::new(), CancellationToken::new());
    let meanwhile = async {
        family(&workspace).await;
        interrupt.cancel();
    };
    let result = call(json!({"command": FAMILY}), meanwhile, &interrupt, &workspace);
    let output = "[Interrupted: the command was ended]";
    let expected = json!({"success": true, "data": {"output": output, "exit_code": 130}});
    assert_eq!(result, expected.to_string());
}

/// Groups that the children of a command had made went on after its time limit.
#[test]
fn a_command_at_its_time_limit_is_ended_with_all_that_it_started() {
    let workspace = Workspace::new();
    let arguments = json!({"command": FAMILY, "timeout": 3});
    let result = call(arguments, async {}, &CancellationToken::new(), &workspace);
    let output = "[Time limit of 3 s reached: the command was ended]";
    assert_eq!(result, success(json!({"output": output, "exit_code": 124})).to_string());
}

/// What is left in the background goes on after its command, until the program ends.
#[test]
fn a_background_process_goes_on_until_the_program_ends() {
    let workspace = Workspace::new();
    let library = Library::new(&workspace, 51_200);
    block_on(async {
        let no_interrupt = CancellationToken::new();
        // It prints all the time: nobody reads that, but the pipe must not break.
        let command = "while :; do echo tick; echo $BASHPID > pid; sleep 0.01; done & exit 3";
        library.call("bash", &json!({ "command": command }), &no_interrupt).await;
        let file = workspace.path("pid");
        let first = tokio::task::spawn_blocking(move || wait_for_pid(&file)).await.unwrap();
        let look = format!(
            "rm pid; until [ -s pid ]; do sleep 0.01; done; kill -0 {first} && echo goes on"
        );
        let result = library.call("bash", &json!({ "command": look }), &no_interrupt).await;
        let expected = success(json!({"output": "goes on\n", "exit_code": 0}));
        assert_eq!(result.to_string(), expected.to_string());
        library.close().await;
        tokio::task::spawn_blocking(move || wait_until_gone(first)).await.unwrap();
    });
}

#[test]
fn what_an_interrupted_tool_had_read_does_not_pass_for_the_whole() {
    let workspace = Workspace::new();
    workspace.write("file", "x\n");
    let interrupt = CancellationToken::new();
    interrupt.cancel();
    let library = Library::new(&workspace, 51_200);
    let interrupted = failure("Interrupted: the result would not be complete").to_string();
    for (tool, arguments) in [
        ("file_read", json!({"path": "file"})),
        ("glob", json!({"pattern": "*"})),
        ("grep", json!({"pattern": "x"})),
        ("grep", json!({"pattern": "x", "path": "file"})),
    ] {
        let result = block_on(library.call(tool, &arguments, &interrupt));
        assert_eq!(result.to_string(), interrupted, "{tool}");
    }
}
