//! A database on a server, as a person meets it: `--db`, `doctor`, `config`, and sessions that move.

use ikigai_testkit::{PostgresServer, drop_database, fresh_database};

use crate::support::{Workspace, ended};

/// A workspace whose configuration file names a server.
fn configured(address: &str) -> Workspace {
    let workspace = Workspace::new();
    let folder = workspace.home().join("config/ikigai");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), format!("database_url = \"{address}\"\n")).unwrap();
    workspace
}

#[test]
fn doctor_looks_at_a_server_and_says_what_is_wrong_with_it() {
    let address = fresh_database();
    let workspace = configured(&address);
    let found = workspace.run(["doctor"]).1;
    assert!(found.contains("ok  database       postgres://postgres@/"), "{found}");
    assert!(found.contains("(PostgreSQL "), "{found}");
    let away = "postgres://me:hunter2@127.0.0.1:1/work";
    let (code, stdout, stderr) = workspace.run(["doctor", "--db", away]);
    assert_eq!((code, &*stderr), (1, ""));
    let told = "BAD database       The database server postgres://me@127.0.0.1:1/work cannot be reached \
         (Connection refused): start it, or check the address; nothing was lost\n";
    assert!(stdout.contains(told), "{stdout}");
    let nowhere = address.replace("/t_", "/nowhere_").replace("postgres@", "postgres:hunter2@");
    let nowhere = format!("{nowhere}&require_auth=none");
    let (_, stdout, _) = workspace.run(["doctor", "--db", &nowhere]);
    assert!(stdout.contains("make it on the server with: createdb NAME"), "{stdout}");
    assert!(!stdout.contains("hunter2"), "{stdout}");
    drop_database(&address);
}

#[test]
fn another_machine_without_tls_is_refused_before_anything_is_sent() {
    let workspace = Workspace::new();
    let plain = "postgres://me:hunter2@db.example/work?sslmode=disable";
    for arguments in [["agents", "--db", plain], ["config", "--db", plain]] {
        let (code, stdout, stderr) = workspace.run(arguments);
        assert_ne!(code, 0, "{stdout}");
        assert!(stderr.contains("TLS") && !stderr.contains("hunter2"), "{stderr}");
    }
    let (code, _, stderr) = workspace.run(["sessions", "copy", "01900000", "--to", plain]);
    assert!(code != 0 && !stderr.contains("hunter2"), "{stderr}");
}

/// A server that is set to listen on the loopback, with a certificate of its own making.
#[test]
fn a_server_that_is_to_have_tls_and_has_none_is_refused() {
    let server = PostgresServer::start_on_loopback();
    let workspace = Workspace::new();
    let port = server.loopback_port();
    let address = format!("postgres://postgres:hunter2@127.0.0.1:{port}/postgres?sslmode=require");
    let (code, stdout, _) = workspace.run(["doctor", "--db", &address]);
    assert_eq!(code, 1);
    assert!(stdout.contains("the server offers no TLS"), "{stdout}");
    assert!(!stdout.contains("hunter2"), "{stdout}");
}

#[test]
fn a_session_moves_to_a_server_and_back_letter_by_letter() {
    let address = fresh_database();
    let (here, there, back) = (Workspace::with_agents(2), configured(&address), Workspace::new());
    for number in 0..5 {
        here.print(["mail", "send", "1/", &format!("number {number}")]);
    }
    here.print(["mail", "read", "2", "--agent", "1/"]);
    here.open().say("0/", "hello\u{0}there");
    let id = here.json(["sessions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let told = format!("Session {id} copied to postgres://postgres@");
    assert!(here.print(["sessions", "copy", &id, "--to", &address]).starts_with(&told));
    let file = format!("sqlite://{}", back.database().display());
    let copied = there.print(["sessions", "copy", &id[..12], "--to", &file]);
    assert_eq!(copied, format!("Session {id} copied to {file}\n"));
    for arguments in [
        ["log", "--json", "--session", &id, "--agent", "0/"],
        ["agents", "--json", "--session", &id, "--agent", "0/"],
        ["mail", "inbox", "--json", "--session", &id, "--agent=1/"],
    ] {
        let expected = here.print(arguments);
        assert_eq!(there.print(arguments), expected, "{arguments:?}");
        assert_eq!(back.print(arguments), expected, "{arguments:?}");
    }
    let again = here.run(["sessions", "copy", &id, "--to", &address]);
    assert_eq!(again.0, 1);
    assert!(again.2.contains("is already in that database"), "{}", again.2);
    drop_database(&address);
}

#[test]
fn many_commands_at_once_stay_within_the_connections_of_the_server() {
    let server = PostgresServer::start();
    let workspace = configured(&server.address("postgres"));
    workspace.print(["agents", "add"]);
    let commands: Vec<_> = (0..16)
        .map(|number| {
            let mut command = workspace.ikigai();
            command.args(["mail", "send", "1/", &format!("number {number}")]);
            std::thread::spawn(move || ended(&mut command))
        })
        .collect();
    for command in commands {
        let (code, _, stderr) = command.join().unwrap();
        assert_eq!((code, &*stderr), (0, ""));
    }
    let inbox = workspace.json(["mail", "inbox", "--json", "--agent", "1/"]);
    assert_eq!(inbox["unread_count"], 16);
}
