//! The guarantees of the store. All files beside this one are modules of one test binary.
//!
//! Tests for both databases are in `suite/`, and run once for each: as
//! `sqlite::…` and as `postgres::…`. `grep m5_` finds the proof of M5. The
//! same file shows what makes a guarantee fail.
#![expect(clippy::duplicate_mod, reason = "what holds for both databases is tested on both")]
#![expect(clippy::disallowed_methods, reason = "tests start processes and read one variable")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod checker;
mod copies;
mod crowd;
mod durability;
mod opening;
mod postgres;
mod server;
mod sqlite;
mod support;
mod writer;

use std::fs;
use std::path::Path;

/// Tests in an unlisted file would never run. What is listed for one
/// database must be listed for both.
#[test]
fn every_file_beside_this_one_is_listed_as_a_module() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let read = |name: &str| fs::read_to_string(here.join(name)).unwrap();
    assert_eq!(unlisted(&here, &read("all.rs")), Vec::<String>::new());
    for kind in ["sqlite.rs", "postgres.rs"] {
        assert_eq!(unlisted(&here.join("suite"), &read(kind)), Vec::<String>::new(), "{kind}");
    }
}

fn unlisted(folder: &Path, listed: &str) -> Vec<String> {
    fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| module != "all" && !listed.contains(&format!("\nmod {module};\n")))
        .collect()
}

/// Not a test, but the program of child processes: a test binary can only start itself.
#[test]
#[ignore = "the children of other tests run this"]
fn child() {
    support::run_as_child();
}
