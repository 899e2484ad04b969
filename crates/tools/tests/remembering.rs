//! What a call reports about the files it used, and what it refuses to overwrite.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ikigai_tools::{
    Before, Change, Content, DesiredState, Execution, FileMemory, FileState, FileUse, Reach,
    RestoreOutcome, Sight, ToolResult, find, restore,
};
use serde_json::{Value, json};

use crate::support::World;

/// An agent with its own memory, which works like that of a real agent.
struct Rememberer<'a> {
    world: &'a World,
    memory: Arc<FileMemory>,
}

impl Rememberer<'_> {
    fn new(world: &World) -> Rememberer<'_> {
        Rememberer { world, memory: Arc::default() }
    }

    fn call(&self, tool: &str, arguments: &Value) -> Execution {
        let ran = self.world.run_remembering(Arc::clone(&self.memory), tool, arguments);
        match &ran.file {
            Some(FileUse::Read(sight)) => self.memory.note(sight.clone()),
            Some(FileUse::Changed(change)) => {
                let (path, looks) = (change.path.clone(), change.looks.clone());
                self.memory.note(Sight { path, looks });
            }
            Some(FileUse::Stale(_)) | None => {}
        }
        ran
    }

    fn read(&self, path: &str) -> Execution {
        self.call("file_read", &json!({ "path": path }))
    }

    fn write(&self, path: &str, content: &str) -> Execution {
        self.call("file_write", &json!({"path": path, "content": content}))
    }

    fn edit(&self, path: &str, old: &str, new: &str) -> Execution {
        self.call("file_edit", &json!({"path": path, "old_string": old, "new_string": new}))
    }
}

#[track_caller]
fn change(ran: Execution) -> Change {
    match ran.file {
        Some(FileUse::Changed(change)) => change,
        other => panic!("nothing was changed: {} {other:?}", ran.result),
    }
}

fn content(text: &str, mode: u32) -> Before {
    Before::Content(Content { bytes: text.as_bytes().to_vec(), mode })
}

#[track_caller]
fn check_refused(ran: &Execution, text: &str) {
    assert_eq!(ran.result.to_string(), json!({"success": false, "error": text}).to_string());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_change_tells_what_it_has_replaced() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/a", "one\n");
    set_mode(&world.path("work/a"), 0o4751);
    let edited = change(agent.edit("a", "one", "two"));
    assert_eq!((edited.path, edited.before), (world.path("work/a"), content("one\n", 0o4751)));
    let written = change(agent.write("a", "three\n"));
    assert_eq!((written.before, written.new_folders), (content("two\n", 0o4751), 0));
    let created = change(agent.write("new/folder/b", "b"));
    let expected = (world.path("work/new/folder/b"), Before::Absent, 2);
    assert_eq!((created.path, created.before, created.new_folders), expected);
    assert_eq!(change(agent.write("new/c/d", "d")).new_folders, 1);
}

#[test]
fn a_link_is_told_by_where_it_leads() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/folder/real", "one").link("work/link", "folder/real");
    world.link("work/to-folder", "folder");
    let Some(FileUse::Read(sight)) = agent.read("to-folder/real").file else {
        panic!("it was read")
    };
    assert_eq!(sight.path, world.path("work/folder/real"));
    let change = change(agent.write("link", "two"));
    assert_eq!((change.path, change.before), (sight.path, content("one", 0o644)));
    assert!(world.path("work/link").is_symlink());
}

#[test]
fn more_than_ten_megabytes_are_not_kept() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    let most = "x".repeat(10 * 1024 * 1024);
    world.write("work/most", &most).write("work/more", &format!("{most}x"));
    let Before::Content(kept) = change(agent.edit("most", &most[..most.len()], "y")).before else {
        panic!("it is just as much as is kept")
    };
    assert_eq!(kept.bytes.len(), most.len());
    agent.read("more");
    assert_eq!(change(agent.write("more", "y")).before, Before::NotKept);
}

#[test]
fn what_was_never_read_is_not_overwritten() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/a", "one\ntwo\n");
    check_refused(&agent.write("a", "x"), "Read a before overwriting it");
    assert_eq!(agent.write("a", "x").file, None);
    assert_eq!(world.read("work/a"), "one\ntwo\n");
    // Part of it is enough, also through another path.
    agent.call("file_read", &json!({"path": world.text("work/./a"), "limit": 1}));
    assert_eq!(change(agent.write("a", "x")).before, content("one\ntwo\n", 0o644));
    // It has seen its own writes.
    change(agent.write("a", "y"));
    change(agent.write("new", "x"));
    change(agent.write("new", "y"));
    world.write("work/edited", "one");
    change(agent.edit("edited", "one", "two"));
    change(agent.write("edited", "three"));
}

#[test]
fn what_was_changed_since_is_not_overwritten() {
    let world = World::new();
    let (one, other) = (Rememberer::new(&world), Rememberer::new(&world));
    world.write("work/a", "one");
    one.read("a");
    let changed = change(other.edit("a", "one", "two"));
    let refused = one.write("a", "x");
    check_refused(&refused, "File changed since you read it: a");
    let Some(FileUse::Stale(stale)) = refused.file else { panic!("it is stale") };
    assert_eq!((&stale.now.path, &stale.now.looks), (&changed.path, &changed.looks));
    let text = "File changed since you read it (by agent 0/1/, 40 seconds ago): a";
    let result = ToolResult::stale(&stale, "by agent 0/1/, 40 seconds ago");
    assert_eq!(result.to_string(), json!({"success": false, "error": text}).to_string());
    one.read("a");
    change(one.write("a", "x"));
    // A deleted file no longer exists.
    fs::remove_file(world.path("work/a")).unwrap();
    assert_eq!(change(one.write("a", "y")).before, Before::Absent);
}

#[test]
fn a_read_that_failed_is_none() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/binary", "\0");
    assert_eq!(agent.read("binary").file, None);
    assert_eq!(agent.read("none").file, None);
    check_refused(&agent.write("binary", "x"), "Read binary before overwriting it");
}

#[test]
fn without_a_memory_nothing_is_checked_and_nothing_told() {
    let world = World::new();
    world.write("work/a", "one");
    let write = json!({"path": "a", "content": "two"});
    assert_eq!(world.run_reaching(Reach::Tree, "file_write", &write).file, None);
    assert_eq!(world.read("work/a"), "two");
}

/// Two agents have read the same file: only one of them may overwrite it, whatever the timing.
#[test]
fn of_two_agents_that_write_at_once_one_is_refused() {
    let world = World::new();
    for round in 0..60 {
        world.write("work/a", &format!("old {round}"));
        let agents = [Rememberer::new(&world), Rememberer::new(&world)];
        agents.iter().for_each(|agent| drop(agent.read("a")));
        let (changed, refused) = at_once(&agents, "a", round);
        let [(writer, change)] = &changed[..] else { panic!("round {round}: {changed:?}") };
        assert_eq!(change.before, content(&format!("old {round}"), 0o644));
        assert_eq!(world.read("work/a"), format!("{writer} in {round}"));
        check_refused(&refused[0], "File changed since you read it: a");
    }
}

#[test]
fn of_two_agents_that_create_at_once_one_is_refused() {
    let world = World::new();
    for round in 0..60 {
        let name = format!("new {round}");
        let agents = [Rememberer::new(&world), Rememberer::new(&world)];
        let (changed, refused) = at_once(&agents, &name, round);
        let [(writer, change)] = &changed[..] else { panic!("round {round}: {changed:?}") };
        assert_eq!(change.before, Before::Absent);
        assert_eq!(world.read(&format!("work/{name}")), format!("{writer} in {round}"));
        check_refused(&refused[0], &format!("Read {name} before overwriting it"));
    }
}

fn at_once(
    agents: &[Rememberer<'_>; 2],
    path: &str,
    round: usize,
) -> (Vec<(usize, Change)>, Vec<Execution>) {
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let write = |number: usize| agents[number].write(path, &format!("{number} in {round}"));
        let both = [scope.spawn(move || write(0)), scope.spawn(move || write(1))];
        for (number, ran) in both.map(|thread| thread.join().unwrap()).into_iter().enumerate() {
            match ran.file {
                Some(FileUse::Changed(change)) => changed.push((number, change)),
                _ => refused.push(ran),
            }
        }
    });
    (changed, refused)
}

/// Another program that ignores the lock keeps replacing the file. Whatever an edit replaced is
/// reported, and whatever was not edited is the other program's file.
#[test]
fn what_is_told_is_what_was_replaced_whoever_meddles() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    let (file, other) = (world.path("work/a"), world.path("work/other"));
    fs::write(&file, "x 0").unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
                fs::write(&other, format!("x {number}")).unwrap();
                fs::rename(&other, &file).unwrap();
            }
        });
        for _ in 0..500 {
            let ran = agent.edit("a", "x", "y");
            if let Some(FileUse::Changed(change)) = ran.file {
                let Before::Content(before) = change.before else { panic!("it is kept") };
                let before = String::from_utf8(before.bytes).unwrap();
                assert!(before.starts_with("x "), "{before}");
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let names = fs::read_dir(world.path("work")).unwrap().count();
    assert_eq!(names, 1, "something was left beside it");
}

#[track_caller]
fn check_restored(world: &World, name: &str, change: &Change, expected: RestoreOutcome) {
    let wanted = match &change.before {
        Before::Absent => DesiredState::Absent { folders: change.new_folders },
        Before::Content(content) => DesiredState::Content(content.clone()),
        Before::NotKept => panic!("it is kept"),
    };
    let restored = restore(&world.path(name), Some(&change.hash), &wanted);
    assert_eq!(restored, Ok(expected), "{name}");
}

#[test]
fn a_change_is_taken_back_unless_somebody_was_there_since() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/a", "one");
    set_mode(&world.path("work/a"), 0o640);
    let edited = change(agent.edit("a", "one", "two"));
    check_restored(&world, "work/a", &edited, RestoreOutcome::Done);
    let mode = fs::metadata(world.path("work/a")).unwrap().permissions().mode() & 0o7777;
    assert_eq!((world.read("work/a"), mode), ("one".to_owned(), 0o640));
    check_restored(&world, "work/a", &edited, RestoreOutcome::Already);
    world.write("work/a", "three");
    check_restored(&world, "work/a", &edited, RestoreOutcome::Differs);
    assert_eq!(world.read("work/a"), "three");
    fs::remove_file(world.path("work/a")).unwrap();
    check_restored(&world, "work/a", &edited, RestoreOutcome::Differs);
    fs::create_dir(world.path("work/a")).unwrap();
    check_restored(&world, "work/a", &edited, RestoreOutcome::Differs);
    assert_eq!(find(&world.path("work/a")), Ok(FileState::Other));
}

#[test]
fn a_new_file_is_removed_with_the_folders_that_were_made_for_it() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/kept/other", "");
    for (name, beside) in [("kept/new/a", None), ("fresh/new/b", Some("work/fresh/c"))] {
        let created = change(agent.write(name, "x"));
        if let Some(beside) = beside {
            world.write(beside, "");
        }
        check_restored(&world, &format!("work/{name}"), &created, RestoreOutcome::Done);
        check_restored(&world, &format!("work/{name}"), &created, RestoreOutcome::Already);
    }
    assert!(world.path("work/kept").is_dir() && !world.path("work/kept/new").exists());
    assert!(world.path("work/fresh/c").is_file() && !world.path("work/fresh/new").exists());
    // And recreated with its earlier permissions.
    let content = Content { bytes: b"x".to_vec(), mode: 0o600 };
    let path = world.path("work/kept/new/a");
    assert_eq!(
        restore(&path, None, &DesiredState::Content(content.clone())),
        Ok(RestoreOutcome::Done)
    );
    let Ok(FileState::File { content: Some(found), .. }) = find(&path) else {
        panic!("it is there")
    };
    assert_eq!(found, content);
}

#[test]
fn a_link_that_somebody_has_put_there_is_not_followed() {
    let world = World::new();
    let agent = Rememberer::new(&world);
    world.write("work/a", "one").write("work/folder/b", "one").write("more/a", "two");
    world.write("more/b", "two");
    let direct = change(agent.edit("a", "one", "two"));
    let inside = change(agent.edit("folder/b", "one", "two"));
    fs::remove_file(world.path("work/a")).unwrap();
    fs::remove_dir_all(world.path("work/folder")).unwrap();
    world.link("work/a", world.path("more/a")).link("work/folder", world.path("more"));
    check_restored(&world, "work/a", &direct, RestoreOutcome::Differs);
    check_restored(&world, "work/folder/b", &inside, RestoreOutcome::Differs);
    assert_eq!((world.read("more/a"), world.read("more/b")), ("two".to_owned(), "two".to_owned()));
}
