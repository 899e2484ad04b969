//! Tests of the public API, in one binary.

// `cfg(test)` holds here anyway; it tells clippy that helpers outside of `#[test]` may unwrap too.
#[cfg(test)]
mod all {
    mod generate;
    mod json;
    mod repair;
    mod view;
    mod view_properties;

    #[test]
    fn every_test_file_is_listed() {
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
