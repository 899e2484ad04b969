//! Ignore files that are no files, or too large: `glob` and `grep` pass over them and come to their end.

use std::fs;
use std::os::unix::net::UnixListener;

use ikigai_testkit::{ModelServer, Reply};
use serde_json::json;

use crate::support::model::{Format, results_in};
use crate::support::{Workspace, found};

/// Where ignore files are looked for, also above the working directory.
const PLACES: [&str; 6] =
    [".gitignore", ".ignore", ".git/info/exclude", "../.gitignore", "../.ignore", "sub/.gitignore"];

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    workspace.folder(".git/info").write("sub/a.txt", "needle\n").write("b.log", "needle\n");
    workspace
}

#[track_caller]
fn check_passed_over(workspace: &Workspace) {
    let lines = ["b.log:1: needle", "sub/a.txt:1: needle"];
    workspace
        .check("glob", json!({"pattern": "**"}), found(["b.log", "sub/a.txt"]))
        .check("grep", json!({"pattern": "needle"}), found(lines))
        .check("glob", json!({"pattern": "*", "path": "sub"}), found(["sub/a.txt"]));
}

#[test]
fn what_is_no_regular_file_is_passed_over() {
    for mode in ["work", "full"] {
        for place in PLACES {
            let workspace = workspace().in_mode(mode);
            workspace.fifo(place);
            check_passed_over(&workspace);
            fs::remove_file(workspace.path(place)).unwrap();
            workspace.link(place, "/dev/zero");
            check_passed_over(&workspace);
            fs::remove_file(workspace.path(place)).unwrap();
            let _listener = UnixListener::bind(workspace.path(place)).unwrap();
            check_passed_over(&workspace);
        }
    }
}

#[test]
fn a_repository_that_is_named_by_a_file_is_read_with_the_same_care() {
    let workspace = workspace();
    fs::remove_dir_all(workspace.path(".git")).unwrap();
    workspace.write(".git", "gitdir: ../main/.git/worktrees/tree\n");
    workspace.folder("../main/.git/info").folder("../main/.git/worktrees/tree");
    let common = "../main/.git/worktrees/tree/commondir";
    workspace.fifo(common);
    check_passed_over(&workspace);
    fs::remove_file(workspace.path(common)).unwrap();
    workspace.write(common, "../..\n").fifo("../main/.git/info/exclude");
    check_passed_over(&workspace);
    fs::remove_file(workspace.path("../main/.git/info/exclude")).unwrap();
    workspace.write("../main/.git/info/exclude", "*.log\n");
    workspace.check("glob", json!({"pattern": "**"}), found(["sub/a.txt"]));
}

#[test]
fn a_file_that_nobody_writes_by_hand_is_passed_over() {
    let workspace = workspace();
    let text = format!("{}\n*.log\n", "#".repeat(128 * 1024));
    workspace.write(".gitignore", &text);
    check_passed_over(&workspace);
    workspace.write(".gitignore", &text[10..128 * 1024]).write(".ignore", "*.log\n");
    workspace.check("glob", json!({"pattern": "**"}), found(["sub/a.txt"]));
    // A terabyte, of which nothing is stored.
    let sparse = fs::File::create(workspace.path("../.ignore")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    workspace.check("glob", json!({"pattern": "**"}), found(["sub/a.txt"]));
}

/// Each folder of a deep tree may have its own, and all of them hold in the innermost.
#[test]
fn files_that_hold_together_are_bounded_together() {
    let workspace = workspace();
    let long = format!("{}\nunused\n", "#".repeat(127 * 1024));
    workspace.write("../.ignore", &long).write(".ignore", &long);
    workspace.write("sub/.ignore", format!("{long}*.txt\n"));
    check_passed_over(&workspace);
    fs::remove_file(workspace.path(".ignore")).unwrap();
    workspace.check("glob", json!({"pattern": "**"}), found(["b.log"]));
}

#[test]
fn a_link_to_an_ignore_file_in_the_tree_counts_and_one_that_leads_out_does_not() {
    let workspace = workspace();
    workspace.write("rules", "*.log\n").link(".gitignore", "rules");
    workspace.check("glob", json!({"pattern": "**"}), found(["rules", "sub/a.txt"]));
    fs::remove_file(workspace.path(".gitignore")).unwrap();
    fs::rename(workspace.path("rules"), workspace.path("../rules")).unwrap();
    workspace.link(".gitignore", "../rules");
    check_passed_over(&workspace);
}

#[test]
fn what_git_ignores_outside_a_repository_does_not_count_in_it() {
    let workspace = workspace();
    workspace.write("../.gitignore", "*.log\n");
    check_passed_over(&workspace);
    workspace.write(".gitignore", "*.txt\n").folder("sub/.git");
    workspace.check("glob", json!({"pattern": "**"}), found(["b.log", "sub/a.txt"]));
    workspace.write("../.ignore", "*.log\n");
    workspace.check("glob", json!({"pattern": "**"}), found(["sub/a.txt"]));
}

#[test]
fn a_turn_ends_in_its_time_whatever_the_ignore_files_are() {
    let workspace = workspace();
    for place in PLACES {
        workspace.fifo(place);
    }
    let grep = json!({"pattern": "needle"});
    let server = ModelServer::start([Reply::call("c1", "grep", grep), Reply::text("found")]);
    let (code, stdout, stderr) =
        workspace.run_model(&server, Format::Chat, ["--timeout", "4", "go"]);
    assert_eq!((code, &*stdout), (0, "found\n"), "{stderr}");
    assert!(results_in(&server.requests()[1])[0].1.contains("b.log:1: needle"));
}
