//! No command sees a key: not in its environment, not in that of ikigai or the watchdog.

use serde_json::{Value, json};

use crate::support::{Workspace, result};

/// The variables that hold secrets: the built-in providers' keys, one that the configuration names, and the
/// address of the database.
const KEYS: [&str; 5] = [
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "GEMINI_API_KEY",
    "KEY_OF_MY_OWN",
    "IKIGAI_DATABASE_URL",
];

fn secret(key: &str) -> String {
    format!("postgres://me:secret-of-{key}@localhost/db")
}

/// The output of a command, with every key in the environment of ikigai.
#[track_caller]
fn output(workspace: &Workspace, command: &str) -> String {
    workspace.write_config(
        "[providers.mine]\nbase_url = \"http://localhost:1\"\napi_key_env = \"KEY_OF_MY_OWN\"",
    );
    let mut ikigai = workspace.tool_command("bash", json!({ "command": command }));
    ikigai.env("HARMLESS", "shown-to-all").envs(KEYS.map(|key| (key, secret(key))));
    let result: Value = serde_json::from_str(&result(&mut ikigai)).unwrap();
    result["data"]["output"].as_str().unwrap().to_owned()
}

#[track_caller]
fn check_hidden(output: &str) {
    for key in KEYS {
        assert!(!output.contains(key) && !output.contains(&secret(key)), "{key} shows: {output}");
    }
}

#[test]
fn the_environment_of_a_command_has_no_key_and_all_else() {
    let output = output(&Workspace::new(), "env; cat /proc/self/environ | tr '\\0' '\\n'");
    check_hidden(&output);
    assert_eq!(output.matches("HARMLESS=shown-to-all\n").count(), 2, "{output}");
}

#[test]
fn the_parent_of_a_command_has_no_key() {
    // Root reads it all the same; what it reads holds no key.
    let parent = "cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' '\\n'";
    check_hidden(&output(&Workspace::new(), parent));
    check_hidden(&output(&Workspace::of_plain_user(), parent));
}

#[test]
fn the_command_line_of_ikigai_has_no_key() {
    let all = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -a secret-of";
    check_hidden(&output(&Workspace::unconfined(), all));
}

/// As root everything can be read, so this runs as another user, who owns both processes.
#[test]
fn environment_and_memory_of_ikigai_cannot_be_read_from_a_command() {
    let command = "ikigai=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status); \
        for pid in $ikigai $PPID; do \
            tr '\\0' ' ' < /proc/$pid/comm | cut -c1-6; \
            for file in environ mem maps auxv; do \
                (cat /proc/$pid/$file > stolen) 2>/dev/null && echo read $file || echo refused $file; \
            done; \
        done; \
        cat stolen";
    let refused = "ikigai\nrefused environ\nrefused mem\nrefused maps\nrefused auxv\n";
    let workspace = Workspace::of_plain_user().in_mode("full");
    assert_eq!(output(&workspace, command), refused.repeat(2));
}

#[test]
fn a_command_inherits_no_file_of_ikigai() {
    let output = output(&Workspace::new(), "for fd in /proc/self/fd/*; do readlink $fd; done");
    let strange: Vec<&str> =
        output.lines().filter(|file| *file != "/dev/null" && !file.starts_with("pipe:")).collect();
    assert_eq!(strange, Vec::<&str>::new());
    assert!(!output.contains("socket:"), "{output}");
}
