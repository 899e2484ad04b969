//! The tools from outside, as one test binary: every file beside this one is a module of it.
#![expect(
    clippy::disallowed_methods,
    reason = "a real bash is compared with what is thought of it"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod confinement;
mod effects;
mod gate;
#[cfg(target_os = "linux")]
mod gate_fuzz;
mod gate_spellings;
mod races;
mod remembering;
mod support;

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
