//! The screen on a real pseudo-terminal, with a program behind it that plays the agents.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod child;
mod support;
mod terminal;

#[test]
fn every_file_beside_this_one_is_listed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = include_str!("all.rs");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(name == "all" || listed.contains(&format!("mod {name};")), "{name}");
    }
}
