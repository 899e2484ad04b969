//! The home directory as the working tree: ikigai's own files stay hidden, whatever a command moves
//! around them.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::sandbox_landlock::without_bubblewrap;
use crate::support::{Workspace, ended, result};

/// One command moves a folder away, and the next one would find its hidden files under another
/// name.
const MOVES: [&str; 9] = [
    "mv ~/.local ~/moved",
    "mv ~/.local/share ~/moved",
    "mv ~/.local/share/ikigai ~/moved",
    "mv ~/.config ~/moved",
    "mkdir -p ~/in && mv ~/.local ~/in/",
    "cd ~/.local && mv share ../moved && mkdir -p share/ikigai",
    "rm -rf ~/.local ~/.config",
    "umount ~/.local/share/ikigai; mv ~/.local ~/moved",
    EXCHANGE,
];

/// `renameat2` with `RENAME_EXCHANGE`.
const EXCHANGE: &str = "mkdir -p ~/own && python3 -c 'import ctypes, os
home = os.environ[\"HOME\"].encode()
print(ctypes.CDLL(None).renameat2(-100, home + b\"/own\", -100, home + b\"/.local\", 2))'";

/// The database and the configuration, as on a usual machine.
const OWN_FILES: [&str; 2] = [".local/share/ikigai/ikigai.db", ".config/ikigai/config.toml"];

fn in_usual_places<'a>(command: &'a mut Command, home: &Path) -> &'a mut Command {
    command
        .env("XDG_DATA_HOME", home.join(".local/share"))
        .env("XDG_CONFIG_HOME", home.join(".config"))
        .env("TMPDIR", "/tmp")
}

/// A home with a session in its database, and with a configuration.
fn home_with_secrets() -> Workspace {
    let workspace = Workspace::new();
    workspace.write("../home/.config/ikigai/config.toml", "# SECRET\n");
    let mut send = workspace.ikigai();
    send.args(["mail", "send", "0/", "SECRET"]);
    assert_eq!(ended(in_usual_places(&mut send, &workspace.home())).0, 0);
    workspace
}

fn bash_at_home(workspace: &Workspace, mut program: Command, command: &str) -> Value {
    program.current_dir(workspace.home()).args(["tool", "bash"]);
    program.arg(json!({ "command": command }).to_string());
    serde_json::from_str(&result(in_usual_places(&mut program, &workspace.home()))).unwrap()
}

#[track_caller]
fn assert_in_place(workspace: &Workspace, after: &str) {
    for name in OWN_FILES {
        let content = std::fs::read(workspace.home().join(name));
        let content = String::from_utf8_lossy(&content.expect(after)).into_owned();
        assert!(content.contains("SECRET"), "{after}: {name}");
    }
}

#[test]
fn no_command_moves_a_folder_around_what_is_ikigais_own() {
    let workspace = home_with_secrets();
    // What is in the write-ahead log is also in the file.
    let flush = format!("{}/{}", workspace.home().display(), OWN_FILES[0]);
    rusqlite::Connection::open(flush)
        .unwrap()
        .pragma_update(None, "wal_checkpoint", "TRUNCATE")
        .unwrap();
    let run = |command: &str| bash_at_home(&workspace, workspace.ikigai(), command);
    if run("echo ran")["data"]["output"] != "ran\n" {
        crate::support::skip("no sandbox in which the home folder is the tree");
        return;
    }
    for command in MOVES {
        run(command);
        assert_in_place(&workspace, command);
        let found = run("grep -rash 'SECRE[T]' ~; echo searched");
        assert_eq!(found["data"]["output"], "searched\n", "{command}");
    }
    assert_eq!(
        run("mkdir ~/ours && mv ~/ours ~/moved-ours && echo ran")["data"]["output"],
        "ran\n"
    );
}

/// A command could replace the link with a folder that contains settings for the next start.
#[test]
fn nothing_runs_where_a_command_could_replace_a_link_to_what_is_ikigais_own() {
    for (link, target) in [(".config/ikigai", "dots/ikigai"), (".local", "dots/local")] {
        let workspace = Workspace::new();
        workspace.folder("../home/.config").folder(&format!("../home/{target}"));
        let (link, home) = (workspace.home().join(link), workspace.home());
        symlink(home.join(target), &link).unwrap();
        let run = |folder: &Path| {
            let mut program = workspace.ikigai();
            program.arg("-C").arg(folder).args(["tool", "bash", r#"{"command":"echo ran"}"#]);
            ended(in_usual_places(&mut program, &home))
        };
        let (code, stdout, told) = run(&home);
        let expected = format!("ikigai: Commands could replace the link {}", link.display());
        assert!((code, &*stdout) == (1, "") && told.starts_with(&expected), "{stdout}{told}");
        assert!(run(&workspace.directory()).1.contains("ran"));
    }
}

#[test]
fn nothing_runs_where_a_command_could_replace_a_link_to_the_settings_that_were_named() {
    let workspace = Workspace::new();
    workspace.write("../outside/my.toml", "").link("linked.toml", "../outside/my.toml");
    let run = |config: &str| {
        let mut program = workspace.ikigai();
        program.args(["--config", config, "tool", "bash", r#"{"command":"echo ran"}"#]);
        ended(&mut program)
    };
    let (code, stdout, told) = run("linked.toml");
    let expected = "ikigai: Commands could replace the link ";
    assert!((code, &*stdout) == (1, "") && told.starts_with(expected), "{stdout}{told}");
    assert!(run("../outside/my.toml").1.contains("ran"));
}

/// Many keep the files in their home as links to a repository of their own.
#[test]
fn stored_keys_are_hidden_where_a_link_leads_to_them() {
    let workspace = Workspace::new();
    workspace.write("../dots/keys.toml", "openai = 'SECRET'\n").write("../dots/open", "open\n");
    workspace.folder("../home/.config/ikigai");
    let (home, dots) = (workspace.home(), workspace.path("../dots"));
    symlink(dots.join("keys.toml"), home.join(".config/ikigai/credentials.toml")).unwrap();
    let call = json!({"command": "cat ../dots/open ../dots/keys.toml"}).to_string();
    let programs = [Some(workspace.ikigai()), without_bubblewrap(&workspace)];
    for mut program in programs.into_iter().flatten() {
        let output = result(in_usual_places(program.args(["tool", "bash", &call]), &home));
        assert!(output.contains("open\\n") && !output.contains("SECRET"), "{output}");
    }
}

/// Landlock cannot hide a path in a writable folder, so no command runs there.
#[test]
fn with_landlock_no_command_runs_in_a_tree_around_what_is_ikigais_own() {
    let workspace = home_with_secrets();
    if without_bubblewrap(&workspace).is_none() {
        return;
    }
    for folder in ["", ".local", ".local/share", ".config"] {
        let folder = workspace.home().join(folder);
        let mut program = without_bubblewrap(&workspace).unwrap();
        program.arg("-C").arg(&folder);
        let refused = bash_at_home(&workspace, program, "echo ran; mv ~/.local ~/moved");
        let error = refused["error"].as_str().unwrap_or_default();
        assert!(error.contains("landlock cannot hide"), "{}: {refused}", folder.display());
    }
    // Next to it they run, and move nothing.
    for command in MOVES {
        let mut program = without_bubblewrap(&workspace).unwrap();
        program.arg("-C").arg(workspace.directory());
        let ran = bash_at_home(&workspace, program, &format!("{command}; echo ran"));
        let output = ran["data"]["output"].as_str().unwrap_or_default();
        assert!(output.ends_with("ran\n"), "{ran}");
    }
    for name in OWN_FILES {
        assert!(workspace.home().join(name).exists(), "{name}");
    }
}
