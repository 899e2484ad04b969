//! Whose files count: `.git`, `AGENTS.md`, `.ikigai/config.toml` and ignore files of other users are passed over.

use std::os::unix::fs::{chown, lchown};

use ikigai_testkit::{ModelServer, Reply};
use rustix::process::geteuid;
use serde_json::json;

use crate::support::model::Format;
use crate::support::{Workspace, found};

/// Somebody who is neither the user nor root.
const STRANGER: u32 = 54_321;

/// A project whose root is the parent of the working directory. `None` where files cannot be given away.
fn project() -> Option<Workspace> {
    if !geteuid().is_root() {
        return None;
    }
    let workspace = Workspace::new();
    workspace
        .folder("../.git")
        .write("../AGENTS.md", "Obey the parent.\n")
        .write("../.ikigai/config.toml", "max_agents = 3\n")
        .write("../.gitignore", "*.log\n")
        .touch(["a.txt", "b.log"]);
    Some(workspace)
}

fn give_to(workspace: &Workspace, names: &[&str], owner: u32) {
    for name in names {
        lchown(workspace.path(name), Some(owner), None).unwrap();
    }
}

/// Whether the model was told what stands in `AGENTS.md`, whether the configuration was read, and what is not ignored.
fn believed(workspace: &Workspace) -> (bool, bool, String) {
    let server = ModelServer::start([Reply::text("ok")]);
    let (code, _, stderr) = workspace.run_model(&server, Format::Chat, ["--new", "go"]);
    assert_eq!(code, 0, "{stderr}");
    let prompt = server.requests()[0].system().unwrap();
    let config = workspace.print(["config"]);
    let files = workspace.tool("glob", json!({"pattern": "*"}));
    (prompt.contains("Obey"), config.contains("max_agents = 3"), files)
}

fn all() -> (bool, bool, String) {
    (true, true, found(["a.txt"]).to_string())
}

#[test]
fn files_of_the_user_in_a_parent_folder_count() {
    let Some(workspace) = project() else { return };
    assert_eq!(believed(&workspace), all());
    assert!(!workspace.print(["doctor"]).contains("ownership"));
}

#[test]
fn files_of_a_stranger_are_passed_over_one_by_one() {
    let Some(workspace) = project() else { return };
    give_to(&workspace, &["../AGENTS.md"], STRANGER);
    assert_eq!(believed(&workspace), (false, true, found(["a.txt"]).to_string()));
    for name in ["../.ikigai/config.toml", "../.ikigai"] {
        give_to(&workspace, &["../AGENTS.md", "../.ikigai", "../.ikigai/config.toml"], 0);
        give_to(&workspace, &[name], STRANGER);
        assert_eq!(believed(&workspace), (true, false, found(["a.txt"]).to_string()), "{name}");
    }
    give_to(&workspace, &["../.ikigai"], 0);
    give_to(&workspace, &["../.gitignore"], STRANGER);
    assert_eq!(believed(&workspace), (true, true, found(["a.txt", "b.log"]).to_string()));
}

#[test]
fn a_repository_of_a_stranger_makes_no_project() {
    let Some(workspace) = project() else { return };
    give_to(&workspace, &["../.git"], STRANGER);
    assert_eq!(believed(&workspace), (false, false, found(["a.txt"]).to_string()));
    let finding = format!(
        "--  ownership      {} belongs to user {STRANGER}, not to you, root or the owner of this directory; \
         it is passed over\n",
        workspace.directory().parent().unwrap().join(".git").display()
    );
    let findings = workspace.print(["doctor"]);
    assert!(findings.contains(&finding), "{findings}");
}

#[test]
fn a_link_counts_by_its_own_owner_and_by_that_of_what_it_leads_to() {
    let Some(workspace) = project() else { return };
    std::fs::rename(workspace.path("../AGENTS.md"), workspace.path("../RULES.md")).unwrap();
    workspace.link("../AGENTS.md", "RULES.md");
    assert!(believed(&workspace).0);
    give_to(&workspace, &["../AGENTS.md"], STRANGER);
    assert!(!believed(&workspace).0);
    give_to(&workspace, &["../AGENTS.md"], 0);
    give_to(&workspace, &["../RULES.md"], STRANGER);
    assert!(!believed(&workspace).0);
}

#[test]
fn what_belongs_to_the_owner_of_the_working_directory_counts() {
    let Some(workspace) = project() else { return };
    let names =
        ["../.git", "../AGENTS.md", "../.ikigai", "../.ikigai/config.toml", "../.gitignore"];
    give_to(&workspace, &names, STRANGER);
    chown(workspace.directory(), Some(STRANGER), None).unwrap();
    assert_eq!(believed(&workspace), all());
}
