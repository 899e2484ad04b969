//! Sessions with a scripted model. One test binary; every file beside this one is a module.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod commands;
mod conversation;
mod every_command;
mod example;
mod support;

use std::fs;
use std::path::Path;

/// Tests in a file that is not listed would never run.
#[test]
fn every_file_beside_this_one_is_listed_as_a_module() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = fs::read_to_string(here.join("all.rs")).unwrap();
    let unlisted: Vec<String> = fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| module != "all" && !listed.contains(&format!("\nmod {module};\n")))
        .collect();
    assert_eq!(unlisted, Vec::<String>::new());
}
