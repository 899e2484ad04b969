//! A folder is constantly replaced with a link to the outside while tools use it.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::json;

use crate::support::World;

/// Calls `attempt` repeatedly while `work/swapped` alternates between a folder and a link to the
/// outside. Without confinement a few dozen rounds suffice to escape.
fn while_swapping(world: &World, rounds: usize, attempt: impl Fn(usize)) {
    world.write("work/swapped/inside", "inside\n");
    world.link("work/link", world.path("outside/folder"));
    let (swapped, link) = (world.path("work/swapped"), world.path("work/link"));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                renameat_with(CWD, &swapped, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        // The other thread must end even if an attempt fails its check.
        let _over = OnDrop(&is_over);
        (0..rounds).for_each(attempt);
    });
    world.check_outside();
}

struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn nothing_outside_is_read() {
    let world = World::new();
    while_swapping(&world, 2_000, |_| {
        for arguments in
            [json!({"path": "swapped/secret"}), json!({"path": "swapped/../swapped/secret"})]
        {
            assert_eq!(world.call("file_read", &arguments)["success"], false);
        }
    });
}

#[test]
fn nothing_outside_is_searched_or_listed() {
    let world = World::new();
    while_swapping(&world, 250, |_| {
        for (tool, arguments) in [
            ("grep", json!({"pattern": "secret"})),
            ("grep", json!({"pattern": "secret", "path": "swapped"})),
            ("glob", json!({"pattern": "**"})),
            ("glob", json!({"pattern": "*", "path": "swapped"})),
        ] {
            let result = world.call(tool, &arguments).to_string();
            assert!(!result.contains("secret"), "{tool} {arguments}: {result}");
        }
    });
}

#[test]
fn nothing_outside_is_written() {
    let world = World::new();
    while_swapping(&world, 500, |round| {
        let path = if round % 2 == 0 { "swapped/secret" } else { "swapped/new/file" };
        world.call("file_write", &json!({"path": path, "content": "changed"}));
    });
}

#[test]
fn nothing_outside_is_edited() {
    let world = World::new();
    while_swapping(&world, 1_000, |_| {
        let edit =
            json!({"path": "swapped/secret", "old_string": "secret", "new_string": "changed"});
        assert_eq!(world.call("file_edit", &edit)["success"], false);
    });
}

/// Neither write turns the folder into a repository by itself, and until then its settings were
/// writable.
#[test]
fn two_writes_at_once_make_no_repository() {
    let world = World::new();
    for round in 0..100 {
        let write = |name: &str| {
            let path = format!("x{round}/{name}");
            world.call("file_write", &json!({"path": path, "content": "x"}))["success"] == true
        };
        assert!(write("config") && write("refs/x"));
        let (head, objects) = std::thread::scope(|scope| {
            let head = scope.spawn(|| write("HEAD"));
            let objects = scope.spawn(|| write("objects/x"));
            (head.join().unwrap(), objects.join().unwrap())
        });
        assert!(head != objects, "round {round}: {head} {objects}");
    }
}
