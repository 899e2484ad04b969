//! Roots: what a command can write is fixed when the session starts, and stays the same.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

use serde_json::{Value, json};

use crate::sandbox_landlock::without_bubblewrap;
use crate::support::sandboxed::{Isolation, REACHED, content, in_each_sandbox, open};
use crate::support::{Workspace, ended, result};

/// One command replaces a root with a link, and the next one would get access to its target.
#[test]
fn a_root_inside_another_one_cannot_be_swapped_for_a_link() {
    in_each_sandbox(|mut fixture| {
        fixture.workspace.folder("sub/deep");
        for name in ["sub", "sub/deep"] {
            fixture.sandbox.write.push(open(&fixture.workspace.path(name)));
        }
        let outside = fixture.root().join("outside");
        for name in ["sub", "sub/deep"] {
            let swap = format!("mv {name} aside; ln -sT {} {name}", outside.display());
            fixture.bash(&swap, Isolation::Sandboxed);
            let result = fixture.bash(&format!("echo new > {name}/file"), Isolation::Sandboxed);
            assert_eq!(content(outside.join("file")), "old\n", "{}: {result}", fixture.kind);
            let at = |name: &str| fixture.workspace.path(name);
            if at(name).is_symlink() {
                fs::remove_file(at(name)).unwrap();
                fs::rename(at("aside"), at(name)).unwrap();
            }
            let _ = fs::remove_dir_all(at("aside"));
        }
    });
}

#[test]
fn a_root_that_was_replaced_is_an_error_that_names_it() {
    in_each_sandbox(|mut fixture| {
        fixture.workspace.folder("../side");
        let side = fixture.root().join("side");
        fixture.sandbox.write.push(open(&side));
        assert_eq!(fixture.prints("echo ran"), "ran\n");
        let aside = fixture.root().join("aside");
        fs::rename(&side, &aside).unwrap();
        symlink(fixture.root().join("outside"), &side).unwrap();
        for _ in 0..2 {
            let result = fixture.bash("echo ran", Isolation::Sandboxed);
            let error = result["error"].as_str().unwrap();
            let named = format!("{} was moved or replaced since", side.display());
            assert!(error.contains(&named), "{}: {error}", fixture.kind);
        }
        fs::remove_file(&side).unwrap();
        fs::rename(&aside, &side).unwrap();
        assert_eq!(fixture.prints("echo ran"), "ran\n");
    });
}

/// Another user who runs such a file would act as its owner.
#[test]
fn no_file_is_left_with_a_setuid_or_setgid_bit() {
    in_each_sandbox(|fixture| {
        fixture.refuses(&format!("touch a && chmod 4755 a && test -u a && echo {REACHED}"));
        fixture.refuses(&format!("touch b && chmod g+s b && test -g b && echo {REACHED}"));
        let python = "import os; os.close(os.open('c', os.O_CREAT | os.O_WRONLY, 0o4755))";
        fixture.refuses(&format!("python3 -c \"{python}\"; test -u c && echo {REACHED}"));
        fixture.bash("touch d; install -m 4755 d e; cp --preserve a f; true", Isolation::Sandboxed);
        for entry in fs::read_dir(fixture.workspace.directory()).unwrap() {
            let entry = entry.unwrap();
            let is_made_inside = ["d", "e"].iter().any(|name| entry.file_name() == *name);
            let mode = entry.metadata().unwrap().permissions().mode();
            assert!(!is_made_inside || mode & 0o6000 == 0, "{entry:?}: {mode:o}");
        }
    });
}

/// A variable that looks like a secret is only for commands approved to leave the sandbox.
#[test]
fn secrets_in_the_environment_are_not_handed_to_sandboxed_commands() {
    let workspace = Workspace::new();
    let print = json!({"command": "echo $GITHUB_TOKEN,$MY_KEY,$db_password,$PLAIN"});
    let run = |workspace: &Workspace| {
        let mut command = workspace.tool_command("bash", print.clone());
        for name in ["GITHUB_TOKEN", "MY_KEY", "db_password", "PLAIN"] {
            command.env(name, name);
        }
        result_of(&mut command)
    };
    assert_eq!(run(&workspace)["data"]["output"], ",,,PLAIN\n");
    workspace.write_config("sandbox.env = ['MY_KEY']\n");
    assert_eq!(run(&workspace)["data"]["output"], ",MY_KEY,,PLAIN\n");
    let (_, told, _) = ended(workspace.ikigai().arg("doctor").env("GITHUB_TOKEN", "hunter2"));
    assert!(told.contains("look like secrets: GITHUB_TOKEN (sandbox.env"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    let outside = Workspace::unconfined();
    assert_eq!(run(&outside)["data"]["output"], "GITHUB_TOKEN,MY_KEY,db_password,PLAIN\n");
}

/// They need not be in the home directory.
#[test]
fn secrets_are_hidden_wherever_the_environment_says_they_are() {
    let workspace = Workspace::new();
    let moved = [
        // A process that can read it can type into the user's windows.
        ("XAUTHORITY", "../moved/x", "../moved/x"),
        ("KUBECONFIG", "../moved/kube", "../moved/kube"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "../moved/account.json", "../moved/account.json"),
        ("DB_PASSWORD_FILE", "../moved/password", "../moved/password"),
        ("XDG_CONFIG_HOME", "../moved/config", "../moved/config/gh/hosts.yml"),
        ("CARGO_HOME", "../moved/cargo", "../moved/cargo/credentials.toml"),
        ("GNUPGHOME", "../moved/gpg", "../moved/gpg/key"),
    ];
    let open = ["../moved/open", "../moved/config/open", "in_tree"];
    let secrets = moved.map(|(_, _, file)| file);
    for (file, text) in
        secrets.map(|file| (file, "SECRET\n")).iter().chain(&open.map(|file| (file, "open\n")))
    {
        workspace.write(file, text);
    }
    let command = format!("cat {} {}", secrets.join(" "), open.join(" "));
    let arguments = json!({ "command": command }).to_string();
    let programs = [Some(workspace.ikigai()), without_bubblewrap(&workspace)];
    for mut program in programs.into_iter().flatten() {
        let variables = moved.map(|(name, path, _)| (name, workspace.path(path)));
        program.args(["tool", "bash", &arguments]).envs(variables);
        // What is in the tree is a file of the project.
        program.env("NETRC", workspace.path("in_tree")).env("HISTFILE", "/dev/null");
        let output = result_of(&mut program)["data"]["output"].to_string();
        assert_eq!(output.matches("open\\n").count(), open.len(), "{output}");
        assert!(!output.contains("SECRET"), "{output}");
    }
}

/// One command could replace it with a link, and the next one would get access to its target.
#[test]
fn the_folder_for_temporary_files_is_never_inside_the_tree() {
    let workspace = Workspace::new();
    workspace.folder("tmp");
    let mut command = workspace.tool_command("bash", json!({"command": "echo $TMPDIR"}));
    let result = result_of(command.env("TMPDIR", workspace.path("tmp")));
    let folder = result["data"]["output"].as_str().unwrap();
    assert!(!folder.starts_with(&workspace.text("")), "{folder}");
    let (code, _, stderr) =
        ended(workspace.ikigai().args(["-C", "/", "tool", "bash", r#"{"command":":"}"#]));
    assert_eq!(code, 1);
    assert!(stderr.contains("no folder for temporary files"), "{stderr}");
}

/// Another user may have taken the name first.
#[test]
fn a_temporary_folder_that_is_taken_by_somebody_else_is_passed_over() {
    let workspace = Workspace::new();
    let own = format!("../home/ikigai-{}", rustix::process::getuid().as_raw());
    workspace.write(&own, "");
    let mut command = workspace.tool_command("bash", json!({"command": "echo $TMPDIR"}));
    let result = result_of(&mut command);
    assert_eq!(result["data"]["exit_code"], 0, "{result}");
}

/// With a folder of the tree first in `PATH`, `bash` could have been planted by the agent.
#[test]
fn a_planted_bash_is_run_by_nobody() {
    in_each_sandbox(|mut fixture| {
        fixture.workspace.write("bin/bash", format!("#!/bin/sh\necho {REACHED}\n"));
        let planted = fixture.workspace.path("bin/bash");
        fs::set_permissions(&planted, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:/usr/bin:/bin", fixture.workspace.text("bin"));
        fixture.reopen_with("PATH", &path);
        for isolation in [Isolation::Sandboxed, Isolation::Unconfined] {
            let result = fixture.bash("echo $PATH", isolation);
            assert_eq!(result["data"]["output"], format!("{path}\n"), "{isolation:?}");
        }
    });
}

/// The rule is about the program that the user has.
#[test]
fn a_planted_program_is_not_granted_the_network() {
    let workspace = Workspace::new();
    workspace.write_config("[[rules]]\ntool = 'bash'\nmatch = 'id *'\ndecision = 'network'\n");
    workspace.write("bin/id", format!("#!/bin/sh\necho {REACHED}\n"));
    fs::set_permissions(workspace.path("bin/id"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", workspace.text("bin"));
    // Without the network it only concerns the agent.
    for (command, is_planted) in [("true; id -u", true), ("id -u", false)] {
        let arguments = json!({ "command": command });
        let result = result_of(workspace.tool_command("bash", arguments).env("PATH", &path));
        let output = result["data"]["output"].as_str().unwrap_or_default();
        assert_eq!(output.contains(REACHED), is_planted, "{result}");
    }
}

fn result_of(command: &mut Command) -> Value {
    serde_json::from_str(&result(command)).unwrap()
}
