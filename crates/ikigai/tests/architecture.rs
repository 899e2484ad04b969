//! ARCHITECTURE.md says what is true of the crates, and can be read in ten minutes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

type Edges = BTreeMap<String, BTreeSet<String>>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The crates that each crate uses, by what cargo says. Tests' own helpers are left out.
fn real_edges() -> Edges {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["metadata", "--no-deps", "--offline", "--locked", "--format-version", "1"]);
    let output = command.current_dir(root()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let short = |name: &str| name.strip_prefix("ikigai-").unwrap_or(name).to_owned();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let edges = packages.map(|package| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        let used = dependencies
            .filter(|dependency| dependency["kind"].is_null())
            .map(|dependency| dependency["name"].as_str().unwrap())
            .filter(|name| name.starts_with("ikigai-"));
        (short(package["name"].as_str().unwrap()), used.map(short).collect())
    });
    edges.filter(|(name, _)| name != "testkit").collect()
}

/// The same, by the list on the page: a block in which each line is a crate and those it uses.
fn documented_edges(text: &str) -> Edges {
    let block = text.split("```").find(|block| block.starts_with("text\nconversation")).unwrap();
    let edges = block.lines().skip(1).map(|line| {
        let mut names = line.split_whitespace().map(str::to_owned);
        (names.next().unwrap(), names.collect())
    });
    edges.collect()
}

#[test]
fn the_crates_use_what_the_page_says() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert_eq!(documented_edges(&text), real_edges());
}

#[test]
fn the_page_is_short_enough_to_be_read() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    assert!(text.lines().count() <= 250, "{} lines", text.lines().count());
    let long = text.lines().filter(|line| line.chars().count() > 100);
    assert_eq!(long.collect::<Vec<_>>(), Vec::<&str>::new());
}

/// Front ends show what they are told; they must not come to reach for the database or the network.
#[test]
fn the_screen_and_line_mode_use_no_database_and_no_network() {
    let edges = real_edges();
    for front_end in ["tui", "lines"] {
        let mut used: BTreeSet<&str> = BTreeSet::new();
        let mut waiting = vec![front_end];
        while let Some(name) = waiting.pop() {
            waiting.extend(edges[name].iter().map(String::as_str).filter(|name| used.insert(name)));
        }
        assert_eq!(used.into_iter().collect::<Vec<_>>(), ["conversation", "protocol"]);
    }
}

/// The same with the crates of others.
#[test]
fn the_screen_and_line_mode_link_neither_a_database_nor_an_http_client() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    for front_end in ["ikigai-tui", "ikigai-lines"] {
        let mut command = Command::new(&cargo);
        command.args(["tree", "-p", front_end, "-e", "normal", "--prefix", "none"]);
        let output = command.args(["--offline", "--locked"]).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.contains("ikigai-protocol"), "{tree}");
        for name in ["rusqlite", "reqwest", "rustls", "hyper", "postgres-protocol"] {
            assert!(!tree.lines().any(|line| line.starts_with(name)), "{front_end} uses {name}");
        }
    }
}
