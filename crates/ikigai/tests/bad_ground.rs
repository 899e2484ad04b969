//! A database that cannot be used: each time it is told what is wrong, where, and what to do, and nothing
//! is lost or half written.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ikigai_conversation::AgentId;
use ikigai_store::{InboxFilter, Step};
use serde_json::json;

use crate::full_disk::unshare;
use crate::support::{Workspace, ended, run, skip};

const ELSEWHERE: &str = "move it, or choose another path with --db sqlite://PATH";

/// Everything that opens the database.
const COMMANDS: [&[&str]; 7] = [
    &["mail", "inbox"],
    &["mail", "send", "0/", "x", "--json"],
    &["tool", "mail", r#"{"action":"inbox"}"#],
    &["agents", "add"],
    &["sessions", "--json"],
    &["sessions", "rm", "0"],
    &["log", "--follow"],
];

/// The tree is another folder than the one that has the file: agents could write there.
const ELSEWHERE_AT_WORK: [&str; 2] = ["-C", "../home"];

/// All commands fail with this text, and the doctor tells it as well.
#[track_caller]
fn check_refused(workspace: &Workspace, address: &str, text: &str) {
    for command in COMMANDS {
        let ended =
            ended(workspace.ikigai().args(ELSEWHERE_AT_WORK).args(["--db", address]).args(command));
        assert_eq!(ended, (1, String::new(), format!("ikigai: {text}\n")), "{command:?}");
    }
    let [c, home] = ELSEWHERE_AT_WORK;
    let (code, stdout, stderr) = workspace.run([c, home, "--db", address, "doctor"]);
    assert_eq!((code, &*stderr), (1, ""));
    assert!(stdout.ends_with(&format!("BAD database       {text}\n")), "{stdout}");
}

fn address(path: &Path) -> String {
    format!("sqlite://{}", path.display())
}

/// The names and contents of a folder's files.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        })
        .collect();
    files.sort();
    files
}

/// A database with one mail in it.
fn with_mail() -> Workspace {
    let workspace = Workspace::new();
    workspace.print(["mail", "send", "0/", "do not lose me"]);
    workspace
}

#[track_caller]
fn check_mail_is_there(workspace: &Workspace) {
    let listed = json!({"id": 1, "from": "user", "unread": true, "preview": "do not lose me"});
    let expected = json!({"messages": [listed], "unread_count": 1});
    assert_eq!(workspace.json(["mail", "inbox", "--json"]), expected);
}

#[test]
fn a_file_that_is_no_database_is_left_as_it_is() {
    let workspace = Workspace::new();
    let contents =
        ["x".to_owned(), "text\n".repeat(10), "text\n".repeat(10_000), "\0".repeat(4096)];
    for content in contents {
        workspace.write("file", &content);
        let text = format!("{} is not a database: {ELSEWHERE}", workspace.text("file"));
        check_refused(&workspace, &address(&workspace.path("file")), &text);
        assert_eq!(files(&workspace.directory()), [("file".to_owned(), content.into_bytes())]);
    }
}

/// The journal mode was set before the look at whose file it is.
#[test]
fn the_database_of_another_program_is_left_as_it_is() {
    let workspace = Workspace::new();
    for mode in ["delete", "wal"] {
        let path = workspace.path(format!("{mode}.db"));
        let other = rusqlite::Connection::open(&path).unwrap();
        other.pragma_update(None, "journal_mode", mode).unwrap();
        other.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)").unwrap();
        drop(other);
        let before = fs::read(&path).unwrap();
        let text = format!("{} is not a database: {ELSEWHERE}", path.display());
        // It is one, but not ours.
        check_refused(&workspace, &address(&path), &text);
        assert_eq!(fs::read(&path).unwrap(), before);
    }
    // The same while the other program has it open, with its last words in the write-ahead log.
    let path = workspace.path("wal.db");
    let other = rusqlite::Connection::open(&path).unwrap();
    other.execute_batch("INSERT INTO theirs VALUES (2)").unwrap();
    let before = files(&workspace.directory());
    check_refused(
        &workspace,
        &address(&path),
        &format!("{} is not a database: {ELSEWHERE}", path.display()),
    );
    // But for the shared memory, in which readers announce themselves.
    let lasting = |files: Vec<(String, Vec<u8>)>| -> Vec<(String, Vec<u8>)> {
        files.into_iter().filter(|(name, _)| !name.ends_with("-shm")).collect()
    };
    assert_eq!(lasting(files(&workspace.directory())), lasting(before));
}

#[test]
fn a_database_of_a_newer_version_is_left_as_it_is() {
    let workspace = with_mail();
    let connection = rusqlite::Connection::open(workspace.database()).unwrap();
    let known: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    drop(connection);
    workspace.sql("PRAGMA user_version = 99; PRAGMA wal_checkpoint(TRUNCATE)");
    let path = workspace.database();
    let before = fs::read(&path).unwrap();
    let text = format!(
        "The database {} was made by a newer version of ikigai (schema 99, this version knows {known}): update ikigai",
        path.display()
    );
    check_refused(&workspace, &address(&path), &text);
    assert_eq!(fs::read(&path).unwrap(), before);
    workspace.sql(&format!("PRAGMA user_version = {known}"));
    check_mail_is_there(&workspace);
}

#[test]
fn a_truncated_database_is_damaged_and_not_written_to() {
    let workspace = with_mail();
    workspace.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    let path = workspace.database();
    let whole = fs::read(&path).unwrap();
    // To its first page, to less than a page, and by its last page.
    for length in [4096, 1000, whole.len() - 4096] {
        fs::write(&path, &whole[..length]).unwrap();
        for command in COMMANDS {
            let (code, stdout, stderr) = ended(workspace.ikigai().args(command));
            assert_eq!((code, &*stdout), (1, ""), "{length} {command:?}");
            let text = format!("ikigai: The database {} is damaged: ", path.display());
            assert!(stderr.starts_with(&text), "{length} {command:?}: {stderr}");
            assert!(stderr.contains("restore a backup"), "{stderr}");
        }
        assert_eq!(fs::read(&path).unwrap(), &whole[..length], "{length}");
    }
    fs::write(&path, &whole).unwrap();
    check_mail_is_there(&workspace);
}

/// SQLite deletes a log beside an empty file, and the only copy of the mail was in it.
#[test]
fn a_log_whose_database_is_gone_is_kept() {
    for empty in [true, false] {
        let workspace = with_mail();
        let path = workspace.database();
        let kept = fs::read(&path).unwrap();
        match empty {
            true => fs::write(&path, "").unwrap(),
            false => fs::remove_file(&path).unwrap(),
        }
        let log = format!("{}-wal", path.display());
        let before = fs::read(&log).unwrap();
        let text = format!(
            "The database {} is missing or empty, but its log {log} exists and may contain mail: put the database back, or move the log",
            path.display()
        );
        check_refused(&workspace, &address(&path), &text);
        assert_eq!(fs::read(&log).unwrap(), before);
        fs::write(&path, kept).unwrap();
        check_mail_is_there(&workspace);
    }
}

#[test]
fn a_folder_in_the_files_place_and_a_file_in_the_folders_place_are_told() {
    let workspace = Workspace::new();
    workspace.folder("folder").write("file", "x");
    let text = format!("{} is not a database: {ELSEWHERE}", workspace.text("folder"));
    check_refused(&workspace, &address(&workspace.path("folder")), &text);
    for below in ["file/ikigai.db", "file/sub/ikigai.db"] {
        let path = workspace.path(below);
        let text = format!(
            "Cannot open the database {}: {} is not a folder; choose another path with --db sqlite://PATH",
            path.display(),
            path.parent().unwrap().display()
        );
        check_refused(&workspace, &address(&path), &text);
    }
    workspace.fifo("fifo");
    let text = format!("{} is not a database: {ELSEWHERE}", workspace.text("fifo"));
    check_refused(&workspace, &address(&workspace.path("fifo")), &text);
    assert_eq!(workspace.names(), ["fifo", "file", "folder/"]);
}

fn cannot_be_written(path: &Path) -> String {
    format!(
        "The database {} cannot be written: check the permissions of the file and its folder",
        path.display()
    )
}

#[test]
fn a_file_that_may_not_be_written_is_told() {
    let workspace = Workspace::of_plain_user();
    workspace.folder("data");
    let path = workspace.path("data/ikigai.db");
    let address = address(&path);
    workspace.print(["-C", "../home", "--db", &address, "mail", "send", "0/", "x"]);
    let before = files(&workspace.path("data"));
    for mode in [0o400, 0o000] {
        workspace.set_mode("data/ikigai.db", mode);
        check_refused(&workspace, &address, &cannot_be_written(&path));
    }
    workspace.set_mode("data/ikigai.db", 0o600);
    assert_eq!(files(&workspace.path("data")), before);
}

#[test]
fn a_folder_that_may_not_be_written_is_told() {
    let workspace = Workspace::of_plain_user();
    workspace.folder("data");
    let path = workspace.path("data/ikigai.db");
    let address_of = |name: &str| address(&workspace.path(name));
    workspace.set_mode("data", 0o500);
    check_refused(&workspace, &address_of("data/ikigai.db"), &cannot_be_written(&path));
    let below = workspace.path("data/sub/ikigai.db");
    check_refused(&workspace, &address_of("data/sub/ikigai.db"), &cannot_be_written(&below));
    assert_eq!(workspace.names(), ["data/"]);
    // There is a database, but no room for its log beside it.
    workspace.set_mode("data", 0o700);
    let text = "do not lose me";
    workspace.print(["-C", "../home", "--db", &address(&path), "mail", "send", "0/", text]);
    let rows = || {
        let connection = rusqlite::Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
        fs::read(&path).unwrap()
    };
    let before = rows();
    for helper in ["data/ikigai.db-wal", "data/ikigai.db-shm"] {
        let _ = fs::remove_file(workspace.path(helper));
    }
    workspace.set_mode("data", 0o500);
    check_refused(&workspace, &address(&path), &cannot_be_written(&path));
    workspace.set_mode("data", 0o700);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_full_disk_is_told_and_what_was_sent_is_kept() {
    let Some(options) = unshare() else {
        skip("this system does not let the tests mount a small file system");
        return;
    };
    let workspace = Workspace::new();
    workspace.folder("disk").folder("tiny").write("body", "x".repeat(16_000));
    let script = r#"
        mount -t tmpfs -o size=512k tmpfs disk || exit 1
        mount -t tmpfs -o size=16k tmpfs tiny || exit 1
        "$0" -C "$HOME" --db sqlite://$PWD/tiny/ikigai.db mail inbox 2>&1
        echo $?
        db="-C $HOME --db sqlite://$PWD/disk/ikigai.db"
        sent=0
        while "$0" $db mail send 0/ - < body > /dev/null 2> error; do
            sent=$((sent + 1))
            if [ $sent -gt 100 ]; then echo never full; exit; fi
        done
        cat error
        "$0" $db mail --json send 0/ - < body
        mount -o remount,size=4m disk
        "$0" $db mail --json inbox | grep -o '"unread_count":'$sent
        "$0" $db mail send 0/ - < body
        "$0" $db doctor | grep -o 'ok  database'
    "#;
    let mut command = workspace.under("unshare", &[&options[..], &["bash", "-c", script]].concat());
    let output = run(&mut command);
    let stdout = String::from_utf8(output.stdout).unwrap();
    let full = |folder: &str| {
        let path = workspace.path(folder).join("ikigai.db");
        format!(
            "ikigai: No space left for the database {}: free some space; nothing was lost",
            path.display()
        )
    };
    let lines: Vec<&str> = stdout.lines().collect();
    let [tiny, one, disk, error, unread, sent, healthy] = lines[..] else {
        panic!("{stdout}");
    };
    assert_eq!((tiny, one, disk), (&*full("tiny"), "1", &*full("disk")));
    assert_eq!(error, r#"{"error":"Database error"}"#);
    assert!(unread.starts_with("\"unread_count\":") && !unread.ends_with(":0"), "{stdout}");
    assert_eq!((sent, healthy), ("Mail sent to agent 0/", "ok  database"));
    assert_eq!(String::from_utf8_lossy(&output.stderr), format!("{}\n", full("disk")));
}

/// Somebody moves the file away while a process has it open: SQLite would go on writing into it.
#[test]
fn a_database_that_vanishes_or_is_replaced_takes_no_more_mail() {
    let workspace = with_mail();
    let database = workspace.open();
    let session = database.session();
    let path = workspace.database();
    let look = || {
        let filter = InboxFilter { unread: None, from: None, limit: 1, offset: 0 };
        database.store.perform(session, AgentId::top_level(0), Step::Inbox(filter), None)
    };
    let vanished = format!(
        "The database {} was moved or deleted while it was in use: put it back, or restart",
        path.display()
    );
    let aside = path.with_extension("aside");
    let told = || database.wait(async { Ok::<_, ()>(look().await) }).unwrap_err().to_string();
    fs::rename(&path, &aside).unwrap();
    assert_eq!(told(), vanished);
    fs::write(&path, "").unwrap();
    assert_eq!(told(), vanished);
    fs::rename(&aside, &path).unwrap();
    database.wait(look());
    check_mail_is_there(&workspace);
}

#[test]
fn an_address_that_cannot_be_used_is_told_without_its_password() {
    let workspace = Workspace::new();
    let text = "The database server postgres://me@127.0.0.1:1/db cannot be reached (Connection refused): \
        start it, or check the address; nothing was lost";
    check_refused(&workspace, "postgres://me:hunter2@127.0.0.1:1/db", text);
    let (code, stdout, stderr) =
        workspace.run(["mail", "inbox", "--db", "mysql://me:hunter2@h/db"]);
    assert_eq!((code, &*stdout), (2, ""));
    assert!(stderr.contains("it must start with sqlite: or postgres://"), "{stderr}");
    assert!(!stderr.contains("hunter2"), "{stderr}");
}

/// It crashed.
#[test]
fn no_folder_for_a_database_is_told() {
    let workspace = Workspace::new();
    for command in COMMANDS {
        let mut ikigai = workspace.ikigai();
        ikigai.args(command).env_remove("HOME").env_remove("XDG_DATA_HOME");
        let text = "ikigai: no folder for the database: set XDG_DATA_HOME or HOME, or choose a \
            path with --db sqlite://PATH\n";
        assert_eq!(ended(&mut ikigai), (1, String::new(), text.to_owned()));
    }
}

#[test]
fn the_database_is_the_users_alone_whatever_the_mask() {
    let workspace = Workspace::new();
    let script = r#"umask 0; "$IKIGAI" mail send 0/ x && "$IKIGAI" mail read 1 > /dev/null"#;
    let sent = (0, "Mail sent to agent 0/\n".to_owned(), String::new());
    assert_eq!(ended(&mut workspace.script(script)), sent);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let folder = workspace.database().parent().unwrap().to_owned();
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    let mut modes: Vec<(String, u32)> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().to_str().unwrap().to_owned(), mode(&entry.path())))
        .collect();
    modes.sort();
    let expected =
        ["ikigai.db", "ikigai.db-shm", "ikigai.db-wal"].map(|name| (name.to_owned(), 0o600));
    assert_eq!(modes, expected);
}

#[test]
fn a_relative_address_is_a_file_in_the_current_directory() {
    let workspace = Workspace::new();
    // In a tree that is elsewhere.
    let send =
        |address| workspace.print(["-C", "../home", "mail", "send", "0/", "x", "--db", address]);
    send("sqlite:own.db");
    let (code, stdout, _) = workspace.run(["-C", "../home", "doctor", "--db", "sqlite:own.db"]);
    assert_eq!(code, 0, "{stdout}");
    assert!(workspace.names().contains(&"own.db".to_owned()), "{:?}", workspace.names());
    // SQLite takes this for a database that is nowhere.
    send("sqlite::memory:");
    let arguments = ["-C", "../home", "mail", "inbox", "--json", "--db", "sqlite::memory:"];
    assert_eq!(workspace.json(arguments)["unread_count"], 1);
    assert!(!workspace.database().exists());
}

/// SQLite replays a journal that lies beside a database, whoever wrote it.
#[test]
fn a_database_where_agents_can_write_is_refused() {
    let workspace = Workspace::new();
    workspace.folder("../other").folder("../granted").folder("sub");
    workspace.link("../other/into.db", workspace.path("sub/a.db"));
    workspace.link("out", workspace.home());
    workspace.write("own.db-journal", "forged").write_config(&format!(
        "sandbox.write = ['{}']",
        workspace.path("../granted").canonicalize().unwrap().display()
    ));
    let top = workspace.directory().parent().unwrap().to_owned();
    let names = workspace.names();
    let check = |arguments: &[&str], database: &str, folder: &str, root: &str| {
        let shown = |name: &str| top.join(name).display().to_string();
        let text = format!(
            "ikigai: Cannot open the database {}: agents can write to {} and could change it \
                unnoticed. Move it out of {}, or choose another path with --db sqlite://PATH\n",
            shown(database),
            shown(folder),
            shown(root)
        );
        let ended = ended(workspace.ikigai().args(["mail", "send", "0/", "x"]).args(arguments));
        assert_eq!(ended, (1, String::new(), text), "{arguments:?}");
    };
    check(&["--db", "sqlite:own.db"], "work/own.db", "work", "work");
    check(&["--db", "sqlite:sub/new/a.db"], "work/sub/new/a.db", "work/sub/new", "work");
    let [into, other, granted] =
        ["other/into.db", "other/a.db", "granted/a.db"].map(|name| address(&top.join(name)));
    check(&["--db", &into], "other/into.db", "work/sub", "work");
    check(&["--db", "sqlite:out/a.db"], "work/out/a.db", "work", "work");
    check(&["--db", &other, "--add-dir", "../other"], "other/a.db", "other", "other");
    check(&["--db", &granted], "granted/a.db", "granted", "granted");
    // A session is not copied to such a place, either.
    workspace.print(["mail", "send", "0/", "x"]);
    let id = workspace.json(["sessions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let (code, _, told) = workspace.run(["sessions", "copy", &id, "--to", "sqlite:own.db"]);
    assert!(code == 1 && told.contains("agents can write to"), "{told}");
    assert_eq!(workspace.names(), names);
    workspace.print(["mail", "send", "0/", "x", "--db", &other]);
}
