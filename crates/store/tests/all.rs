//! The store's guarantees, as one test binary: every file beside this one is a module of it.
//!
//! What holds for both databases is in `suite/`, and runs once for each: as `sqlite::…` and as `postgres::…`.
//! `grep m5_` finds the proof of M5. What a guarantee needs in order to fail is tried too, in the same file.
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

/// A file that nobody lists is a file of tests that never run; and what is listed for one database is for both.
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

/// No test: what the child processes of other tests run, since a test binary can only start itself.
#[test]
#[ignore = "the children of other tests run this"]
fn child() {
    support::run_as_child();
}
