//! Tests of the public API. All files beside this one are modules of one test binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asking;
mod chat_requests;
mod chat_responses;
mod leaving;
mod logs;
mod models;
mod other_requests;
mod other_responses;
mod recorded;
mod retries;
mod secrets;
mod tls;
mod transport;

use std::fs;
use std::path::Path;

/// Tests in an unlisted file would never run.
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
