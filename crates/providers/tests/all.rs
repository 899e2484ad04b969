//! The crate through its API, in one binary.

// `cfg(test)` holds here anyway; it tells clippy that helpers outside of `#[test]` may unwrap too.
#[cfg(test)]
mod all {
    mod asking;
    mod leaving;
    mod models;
    mod retries;
    mod secrets;
    mod tls;
    mod transport;

    #[test]
    fn every_file_of_tests_is_listed() {
        let listed = include_str!("all.rs");
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(module) = name.strip_suffix(".rs") {
                assert!(listed.contains(&format!("mod {module};")), "{name}");
            }
        }
    }
}
