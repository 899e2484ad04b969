//! `ikigai doctor`: what was looked at, and how it is.

use ikigai_tools::SandboxKind;

use crate::support::sandboxed::in_sandbox;
use crate::support::{Workspace, ended};

const NO_MODEL: &str = "\
--  keys           ANTHROPIC_API_KEY, GEMINI_API_KEY, OPENAI_API_KEY not set
--  model          no model is connected. Connect one:
  a key           ikigai auth add anthropic (or openai, google),
                  or export ANTHROPIC_API_KEY=… (or OPENAI_API_KEY, GEMINI_API_KEY)
  a local server  export OPENAI_BASE_URL=http://127.0.0.1:11434/v1
                  and add --model openai/NAME
  the tour        ikigai tour
";

const NO_TERMINAL: &str = "--  terminal       none; 'ikigai run' does not need one\n";

/// Which sandbox works is the machine's business.
fn without_sandbox(found: &str) -> String {
    let (sandbox, others): (Vec<&str>, Vec<&str>) = found
        .split_inclusive('\n')
        .partition(|line| line.get(4..).is_some_and(|rest| rest.starts_with("sandbox")));
    assert_eq!(sandbox.len(), 1, "{found}");
    others.concat()
}

#[test]
fn the_sandbox_that_works_is_named_with_the_mode() {
    let workspace = Workspace::new();
    let found = workspace.run(["doctor"]).1;
    let ran = workspace.tool("bash", r#"{"command":"true"}"#);
    let works = !ran.contains("there is no sandbox here");
    let said = ["bubblewrap, in mode work", "landlock, in mode work; "];
    let is_said = said.iter().any(|text| found.contains(&format!("ok  sandbox        {text}")));
    assert_eq!(is_said, works, "{found}");
    let found = workspace.run(["doctor", "--mode", "full"]).1;
    assert!(!works || found.contains("mode full runs commands without it"), "{found}");
}

#[test]
fn whether_commands_share_a_loopback_is_said() {
    in_sandbox(SandboxKind::Bubblewrap, |fixture| {
        let workspace = Workspace::new();
        let found = workspace.run(["doctor"]).1;
        // A name space of the network is known by its number.
        let networks = ["readlink /proc/self/ns/net"; 2].map(|command| fixture.prints(command));
        let said = match networks[0] == networks[1] {
            true => "bubblewrap, in mode work; the commands of an agent share a private loopback",
            false => "bubblewrap, in mode work; each command has its own loopback",
        };
        assert!(found.contains(said), "{found}");
        workspace.write_config("sandbox.network = true\n");
        let found = workspace.run(["doctor"]).1;
        assert!(found.contains("bubblewrap, in mode work; commands have the network"), "{found}");
    });
}

#[test]
fn a_place_of_the_sandbox_that_is_not_there_is_named() {
    let workspace = Workspace::new();
    workspace
        .write_config("sandbox.write = [\"~/none\", \"~\"]\nsandbox.read = [\"/nowhere/x\"]\nsandbox.hide = [\"~/secrts\"]\n");
    let found = workspace.print(["doctor"]);
    let home = workspace.home();
    for place in [
        "sandbox.read names /nowhere/x".to_owned(),
        format!("sandbox.write names {}/none", home.display()),
    ] {
        let line = format!("\n--  sandbox        {place}, which is not there\n");
        assert!(found.contains(&line), "{found}");
    }
    assert_eq!(found.matches("which is not there").count(), 3, "{found}");
}

#[test]
fn a_healthy_installation_has_nothing_bad() {
    let workspace = Workspace::with_agents(2);
    workspace.print(["mail", "send", "1/", "x"]);
    let database = workspace.open();
    database.say("0/", "hello");
    let expected = format!(
        "ok  configuration  read; 'ikigai config' shows it\n{NO_MODEL}{NO_TERMINAL}\
         ok  database       sqlite://{} (SQLite {}; sessions: 1, log messages: 1, mail: 1)\n",
        workspace.database().display(),
        rusqlite::version()
    );
    assert_eq!(without_sandbox(&workspace.print(["doctor"])), expected);
}

#[test]
fn a_bad_database_is_told_with_what_to_do() {
    let workspace = Workspace::new();
    workspace.write("file", "this is no database, as everybody can see who looks at it");
    let address = format!("sqlite://{}", workspace.text("file"));
    let expected = format!(
        "ok  configuration  read; 'ikigai config' shows it\n{NO_MODEL}{NO_TERMINAL}\
         BAD database       {} is not a database: move it, or choose another path with --db sqlite://PATH\n",
        workspace.text("file")
    );
    let (code, stdout, stderr) = workspace.run(["-C", "../home", "doctor", "--db", &address]);
    assert_eq!((code, without_sandbox(&stdout), &*stderr), (1, expected, ""));
}

/// A page in the middle that is all zeros: it opens, and only a look at every page shows it.
#[test]
fn damage_that_no_command_has_met_yet_is_found() {
    let workspace = Workspace::with_agents(1);
    workspace.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = std::fs::read(workspace.database()).unwrap();
    let end = bytes.len();
    bytes[end - 4096..].fill(0);
    std::fs::write(workspace.database(), &bytes).unwrap();
    let (code, stdout, stderr) = workspace.run(["doctor"]);
    assert_eq!((code, &*stderr), (1, ""));
    let told =
        format!("BAD database       The database {} is damaged: ", workspace.database().display());
    assert!(stdout.contains(&told), "{stdout}");
}

#[test]
fn no_place_for_a_database_is_a_finding() {
    let workspace = Workspace::new();
    let (code, stdout, _) =
        ended(workspace.ikigai().arg("doctor").env_remove("HOME").env_remove("XDG_DATA_HOME"));
    assert_eq!(code, 1);
    assert!(stdout.contains("BAD database       no folder for the database"), "{stdout}");
}

#[test]
fn a_wrong_configuration_is_a_finding_too() {
    let workspace = Workspace::new();
    workspace.write_config("max_agent = 3");
    let (code, text, told) = ended(workspace.ikigai().arg("doctor"));
    assert_eq!((code, told.as_str()), (1, ""), "{text}");
    assert!(text.starts_with("BAD configuration  ") && text.contains("config.toml:1: "), "{text}");
}
