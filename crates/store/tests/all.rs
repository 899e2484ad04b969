//! The store's guarantees, as one test binary: every file beside this one is a module of it.
//!
//! `grep m5_` finds the proof of M5. What a guarantee needs in order to fail is tried too, in the same file.
#![expect(clippy::disallowed_methods, reason = "tests start processes and read one variable")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod checker;
mod crashes;
mod durability;
mod exploration;
mod forks;
mod leases;
mod logs;
mod mail;
mod opening;
mod order;
mod rewinds;
mod sessions;
mod support;
mod turns;
mod undos;
mod waits;
mod waking;
mod work;
mod writer;

use std::fs;
use std::path::Path;

/// A file that nobody lists is a file of tests that never run.
#[test]
fn every_file_beside_this_one_is_listed_as_a_module() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = fs::read_to_string(here.join("all.rs")).unwrap();
    let unlisted: Vec<String> = fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| module != "all" && !listed.contains(&format!("\nmod {module};\n")))
        .collect();
    assert_eq!(unlisted, Vec::<String>::new());
}

/// No test: what the child processes of other tests run, since a test binary can only start itself.
#[test]
#[ignore = "the children of other tests run this"]
fn child() {
    support::run_as_child();
}
