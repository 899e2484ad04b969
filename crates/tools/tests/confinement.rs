//! File tools confined to a tree read and write nothing outside it, and work inside as usual.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use ikigai_tools::{Reach, Tree};
use serde_json::json;

use crate::support::{SECRET, World};

/// The folder of the tree, where relative paths start.
const TREE: &str = "work";

/// No tool may use `path`, and each one says why.
#[track_caller]
fn refused(world: &World, path: &str) {
    for (tool, arguments) in World::calls(path) {
        let expected = format!("Not permitted: {path} is outside the working tree");
        assert_eq!(world.error(tool, &arguments), expected, "{tool}");
    }
    world.check_outside();
}

/// No tool may use `path`, and no message reveals what is there.
#[track_caller]
fn fails(world: &World, path: &str) {
    for (tool, arguments) in World::calls(path) {
        let result = world.call(tool, &arguments);
        assert_eq!(result["success"], false, "{tool} {path}: {result}");
        assert!(!result.to_string().contains("the secret"), "{tool} {path}: {result}");
    }
    world.check_outside();
}

#[test]
fn an_absolute_path_leads_nowhere_outside() {
    let world = World::new();
    refused(&world, &world.text("outside/secret"));
    refused(&world, &world.text("outside/folder"));
    refused(&world, &world.text("outside/nothing"));
    refused(&world, &world.text("work/../outside/secret"));
    refused(&world, "/");
    // A name that only starts like that of a root.
    refused(&world, &world.text("workshop/secret"));
}

#[test]
fn hidden_places_in_the_tree_are_not_touched() {
    let world = World::new();
    world.write("work/keys/secret", SECRET).write("work/secret-file", SECRET);
    world.write("work/sub/open", "no secret").link("work/sub/way", "../keys");
    let hidden = ["work/keys", "work/secret-file"].map(|name| world.path(name));
    let tree = Tree::open([world.path("work")]).unwrap().hiding(hidden);
    let world = world.confined_to(tree.into());
    for path in ["keys/secret", "keys", "secret-file", "sub/way/secret", "sub/../keys/new/file"] {
        fails(&world, path);
        let expected = format!("Not permitted: {path} contains secrets or ikigai's own files");
        let (tool, arguments) = &World::calls(path)[1];
        assert_eq!(world.error(tool, arguments), expected);
    }
    assert_eq!(world.output("grep", &json!({"pattern": "secret"})), "sub/open:1: no secret");
    assert_eq!(world.output("glob", &json!({"pattern": "**"})), "sub/open");
    assert_eq!(world.read("work/keys/secret"), SECRET);
}

#[test]
fn similar_names_are_only_named_where_the_agent_may_read() {
    let world = World::new();
    world.write("work/keys/secret", SECRET).write("work/secret-file", SECRET);
    world.write("work/sub/secret-fill", "open").write("more/other", "open");
    let hidden = ["work/keys", "work/secret-file"].map(|name| world.path(name));
    let roots = ["work", "more"].map(|name| world.path(name));
    let world = world.confined_to(Tree::open(roots).unwrap().hiding(hidden).into());
    let check = |path: &str, similar: &str| {
        for (tool, arguments) in World::calls(path) {
            if tool != "file_write" {
                let expected = format!("File not found: {path}{similar}");
                assert_eq!(world.error(tool, &arguments), expected, "{tool}");
            }
        }
    };
    check("secret-fil", "");
    check("secre", "");
    check("key/secret", "");
    check("sub/secret-fil", ". Did you mean sub/secret-fill?");
    check("subs/secret-fill", ". Did you mean sub/secret-fill?");
    check("secret-fill", ". Did you mean sub/secret-fill?");
    check("project/sub/secret-fill", ". Did you mean sub/secret-fill?");
    check("sub\\secret-fill", ". Did you mean sub/secret-fill?");
    check("../more/otter", ". Did you mean ../more/other?");
    world.check_outside();
}

#[test]
fn an_approved_file_that_is_not_there_names_no_other() {
    let world = World::new();
    let path = world.text("outside/secre");
    let result = world.call_approved("file_read", &json!({ "path": path }));
    assert_eq!(result["error"], format!("File not found: {path}"));
}

#[test]
fn two_dots_lead_nowhere_outside() {
    let world = World::new();
    world.write("work/sub/file", "inside");
    for path in [
        "../outside/secret",
        "../outside/nothing/at/all",
        "sub/../../outside/secret",
        "./sub/./../../outside/folder",
        "..",
        "../../../../../../../..",
    ] {
        refused(&world, path);
    }
}

#[test]
fn a_link_leads_nowhere_outside() {
    let world = World::new();
    world
        .link("work/file", world.path("outside/secret"))
        .link("work/folder", world.path("outside/folder"))
        .link("work/relative", "../outside/secret")
        .link("work/up", "..")
        .link("work/new", world.path("outside/new"))
        .link("work/chain", "chained")
        .link("work/chained", "more")
        .link("work/more", world.path("more/out"))
        .link("more/out", "../outside/secret");
    for path in
        ["file", "folder", "folder/secret", "relative", "up/outside/secret", "new", "chain", "up"]
    {
        refused(&world, path);
    }
    // After a link, `..` is the parent of the link's target.
    refused(&world, "folder/../secret");
    // Missing folders are not created outside.
    refused(&world, "folder/new/file");
}

#[test]
fn a_loop_of_links_ends() {
    let world = World::new();
    world.link("work/a", "b").link("work/b", "a").link("work/self", "self/self");
    for path in ["a", "b/c", "self", "self/x"] {
        fails(&world, path);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn proc_leads_nowhere_outside() {
    let world = World::new();
    let folder = fs::File::open(world.path("outside")).unwrap();
    let file = fs::File::open(world.path("outside/secret")).unwrap();
    let outside = world.text("outside/secret");
    let of_folder = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let of_file = format!("/proc/self/fd/{}", file.as_raw_fd());
    world
        .link("work/root", "/proc/self/root")
        .link("work/cwd", "/proc/self/cwd")
        .link("work/opened", &of_folder)
        .link("work/opened-file", &of_file);
    for path in [
        &format!("/proc/self/root{outside}"),
        "/proc/self/cwd",
        &format!("{of_folder}/secret"),
        &of_file,
        &format!("root{outside}"),
        "cwd/secret",
        "opened/secret",
        "opened-file",
    ] {
        refused(&world, path);
    }
}

/// The magic links of /proc are refused even if /proc is in the tree.
#[cfg(target_os = "linux")]
#[test]
fn proc_in_the_tree_is_followed_as_text_only() {
    let world = World::new();
    let folder = fs::File::open(world.path("outside")).unwrap();
    let tree = std::sync::Arc::new(Tree::open([Path::new("/proc")]).unwrap());
    let world = world.confined_to(tree);
    for path in [
        format!("/proc/self/fd/{}/secret", folder.as_raw_fd()),
        format!("/proc/self/root{}", world.text("outside/secret")),
    ] {
        refused(&world, &path);
    }
}

#[test]
fn the_patterns_of_glob_lead_nowhere_outside() {
    let world = World::new();
    world.link("work/folder", world.path("outside/folder")).write("work/file", "inside");
    for pattern in
        ["../outside/*", "../**", &format!("{}/**", world.text("outside")), "/*", "../../*/x"]
    {
        let expected = format!("Not permitted: {pattern} is outside the working tree");
        assert_eq!(world.error("glob", &json!({"pattern": pattern})), expected);
    }
    assert_eq!(world.output("glob", &json!({"pattern": "**"})), "file");
    assert_eq!(world.output("glob", &json!({"pattern": "folder/*"})), "");
    assert_eq!(world.output("grep", &json!({"pattern": "secret"})), "");
}

#[test]
fn what_is_inside_is_read_and_searched_as_ever() {
    let world = World::new();
    world
        .write("work/sub/file", "a line\n")
        .write("more/file", "more lines\n")
        .write("temporary/file", "for now\n");
    let absolute = world.text("work/sub/file");
    let (beside, around) = (format!("../{TREE}/sub/file"), format!("../more/../{TREE}/sub/file"));
    for path in ["sub/file", "./sub/../sub/file", &beside, &around, &absolute] {
        assert_eq!(world.output("file_read", &json!({"path": path})), "a line\n", "{path}");
    }
    assert_eq!(world.output("file_read", &json!({"path": "../more/file"})), "more lines\n");
    let temporary = world.text("temporary/file");
    assert_eq!(world.output("file_read", &json!({"path": temporary})), "for now\n");
    assert_eq!(world.output("glob", &json!({"pattern": "**"})), "sub/file");
    assert_eq!(world.output("glob", &json!({"pattern": "*", "path": "../more"})), "../more/file");
    assert_eq!(world.output("glob", &json!({"pattern": "../more/*"})), "../more/file");
    let found = world.output("grep", &json!({"pattern": "line", "path": "sub"}));
    assert_eq!(found, "sub/file:1: a line");
    let found = world.output("grep", &json!({"pattern": "line", "path": "sub/file"}));
    assert_eq!(found, "sub/file:1: a line");
}

#[test]
fn what_goes_wrong_inside_is_said_as_ever() {
    let world = World::new();
    world.write("work/file", "text").write("work/folder/x", "text");
    let error = |tool: &str, path: &str| {
        let (_, arguments) =
            World::calls(path).into_iter().find(|(name, _)| *name == tool).unwrap();
        world.error(tool, &arguments)
    };
    assert_eq!(error("file_read", "nothing"), "File not found: nothing");
    assert_eq!(error("file_read", "nothing/at/all"), "File not found: nothing/at/all");
    assert_eq!(error("file_read", "file/x"), "File not found: file/x");
    assert_eq!(error("file_read", ""), "File not found: ");
    assert_eq!(error("file_read", "a\0b"), "File not found: a\0b");
    assert_eq!(error("file_read", "folder"), "Is a directory: folder");
    assert_eq!(error("file_read", "folder/"), "Is a directory: folder/");
    assert_eq!(error("file_read", "."), "Is a directory: .");
    assert_eq!(error("file_write", "folder"), "Is a directory: folder");
    assert_eq!(error("file_write", "new/"), "Is a directory: new/");
    assert_eq!(error("file_write", "file/x"), "Not a directory: file/x");
    assert_eq!(error("file_edit", "nothing"), "File not found: nothing");
    assert_eq!(error("grep", "nothing"), "File not found: nothing");
    assert_eq!(error("glob", "nothing"), "File not found: nothing");
    assert_eq!(error("glob", "file"), "Not a directory: file");
}

#[test]
fn links_that_stay_inside_work_and_are_kept() {
    let world = World::new();
    world
        .write("work/sub/file", "a line\n")
        .write("more/file", "more lines\n")
        .link("work/relative", "sub/file")
        .link("work/absolute", world.path("work/sub/file"))
        .link("work/folder", "sub")
        .link("work/absolute-folder", world.path("work/sub"))
        .link("work/sub/up", "..")
        .link("work/other", world.path("more/file"))
        .link("work/other-folder", "../more")
        .link("work/around", format!("../{TREE}/sub/file"))
        .link("work/dangling", "sub/new");
    for path in [
        "relative",
        "absolute",
        "folder/file",
        "absolute-folder/file",
        "sub/up/sub/up/relative",
        "around",
        "absolute-folder/up/around",
    ] {
        assert_eq!(world.output("file_read", &json!({"path": path})), "a line\n", "{path}");
        let edit = json!({"path": path, "old_string": "line", "new_string": "LINE"});
        world.output("file_edit", &edit);
        assert_eq!(world.read("work/sub/file"), "a LINE\n", "{path}");
        world.write("work/sub/file", "a line\n");
    }
    for path in ["other", "other-folder/file"] {
        assert_eq!(world.output("file_read", &json!({"path": path})), "more lines\n", "{path}");
    }
    let found = world.output("grep", &json!({"pattern": "line", "path": "absolute-folder"}));
    assert_eq!(found, "absolute-folder/file:1: a line");
    world.output("file_write", &json!({"path": "dangling", "content": "new"}));
    assert_eq!(world.read("work/sub/new"), "new");
    for name in ["relative", "absolute", "around", "dangling"] {
        assert!(world.path("work").join(name).is_symlink(), "{name}");
    }
}

#[test]
fn writing_inside_makes_missing_folders_and_keeps_the_mode() {
    let world = World::new();
    let write = json!({"path": "a/b/c/file", "content": "new"});
    assert_eq!(world.output("file_write", &write), "Wrote 3 bytes to a/b/c/file");
    assert_eq!(world.read("work/a/b/c/file"), "new");
    let path = world.path("work/a/b/c/file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    world.output("file_write", &json!({"path": path, "content": "newer"}));
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
    assert_eq!(world.read("work/a/b/c/file"), "newer");
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn edits_at_the_same_time_lose_nothing() {
    const EDITORS: usize = 4;
    const EACH: usize = 25;
    let lines = |word: &str| -> String {
        (0..EDITORS * EACH).map(|number| format!("{word} {number:03}\n")).collect()
    };
    let world = World::new();
    world.write("work/file", &lines("old"));
    std::thread::scope(|scope| {
        for editor in 0..EDITORS {
            let world = &world;
            scope.spawn(move || {
                for number in editor * EACH..(editor + 1) * EACH {
                    let [old, new] = ["old", "new"].map(|word| format!("{word} {number:03}"));
                    let edit = json!({"path": "file", "old_string": old, "new_string": new});
                    world.output("file_edit", &edit);
                }
            });
        }
    });
    assert_eq!(world.read("work/file"), lines("new"));
}

#[test]
fn what_is_always_asked_for_is_not_written_without_a_yes() {
    let world = World::new();
    world.write("work/.git/config", "[core]\n").link("work/innocent", ".git/config");
    world.link("work/folder", ".git");
    for path in [
        "AGENTS.md",
        ".git/config",
        "innocent",
        "folder/hooks/pre-commit",
        ".git/hooks/new/pre-commit",
        ".ikigai/config.toml",
        "sub/.bashrc",
    ] {
        let write = json!({"path": path, "content": "x"});
        let expected = format!("Not permitted: {path} can only be written with approval");
        assert_eq!(world.error("file_write", &write), expected);
    }
    assert_eq!(world.read("work/.git/config"), "[core]\n");
    assert_eq!(world.output("file_read", &json!({"path": "innocent"})), "[core]\n");
    let write = json!({"path": "folder/hooks/pre-commit", "content": "x"});
    let result = world.call_reaching(Reach::TreeAndGuarded, "file_write", &write);
    assert_eq!(result["success"], true);
    assert_eq!(world.read("work/.git/hooks/pre-commit"), "x");
    let write = json!({"path": "../outside/secret", "content": "x"});
    let result = world.call_reaching(Reach::TreeAndGuarded, "file_write", &write);
    assert_eq!(result["success"], false);
    world.check_outside();
}

#[test]
fn a_call_that_may_reach_anywhere_does() {
    let world = World::new();
    let read = json!({"path": "../outside/secret"});
    let result = world.call_reaching(Reach::Anywhere, "file_read", &read);
    assert_eq!(result["data"]["output"], SECRET);
}

/// A root named through a link is that folder, under both names.
#[test]
fn a_root_may_be_named_by_a_link() {
    let world = World::new();
    world.write("work/file", "inside").link("alias", world.path("work"));
    let tree = std::sync::Arc::new(Tree::open([world.path("alias")]).unwrap());
    let text = world.text("alias/file");
    let world = world.confined_to(tree);
    assert_eq!(world.output("file_read", &json!({"path": text})), "inside");
    assert_eq!(world.output("file_read", &json!({"path": "file"})), "inside");
}

/// The folder that was opened counts, not one that later has its name.
#[test]
fn a_root_that_is_swapped_for_a_link_leads_nowhere_else() {
    let world = World::new();
    world.write("work/secret", "inside");
    fs::rename(world.path("work"), world.path("moved")).unwrap();
    world.link("work", world.path("outside"));
    assert_eq!(world.output("file_read", &json!({"path": "secret"})), "inside");
    world.output("file_write", &json!({"path": "secret", "content": "changed"}));
    assert_eq!(world.read("moved/secret"), "changed");
    assert_eq!(world.output("grep", &json!({"pattern": "the secret"})), "");
    world.check_outside();
}
