//! `ikigai quarantine`: what commands put into protected paths is listed and put back.

use serde_json::json;

use crate::support::{Workspace, ended, result};

/// Runs a command in the sandbox that changes one protected path, and returns the id under which that is in quarantine.
#[track_caller]
fn quarantined(workspace: &Workspace, command: &str) -> String {
    result(&mut workspace.tool_command("bash", json!({ "command": command })));
    let (code, listed, stderr) = ended(workspace.ikigai().arg("quarantine"));
    assert_eq!(code, 0, "{stderr}");
    let (id, _) = listed.split_once("  Moved ").unwrap_or_else(|| panic!("{listed}"));
    id.to_owned()
}

#[track_caller]
fn put_back(workspace: &Workspace, id: &str) -> String {
    let (code, said, stderr) = ended(workspace.ikigai().args(["quarantine", "--put-back", id]));
    assert_eq!(code, 0, "{stderr}");
    said
}

#[test]
fn putting_back_says_where_that_is_which_was_in_its_place() {
    let workspace = Workspace::new();
    let id = quarantined(&workspace, "echo theirs > AGENTS.md");
    workspace.write("AGENTS.md", "mine\n");
    let said = put_back(&workspace, &id);
    let path = workspace.text("AGENTS.md");
    let (before, kept) = said.trim_end().rsplit_once(": ").unwrap_or_else(|| panic!("{said}"));
    assert_eq!(before, format!("Put back {path}. The file it replaced is kept under {id}"));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine\n");
    assert_eq!(workspace.read_text("AGENTS.md"), "theirs\n");
}

#[test]
fn putting_back_to_a_free_place_names_nothing_else_and_is_safe_for_a_terminal() {
    let workspace = Workspace::new();
    let made = r"git init -q $'a\e[2J' && git -C a* config core.fsmonitor evil";
    let id = quarantined(&workspace, made);
    let said = put_back(&workspace, &id);
    assert!(said.starts_with("Put back ") && !said.contains("kept"), "{said}");
    assert!(!said.contains('\u{1b}'), "{said:?}");
}
