//! A home directory as people have it.

use std::fs;
use std::path::Path;

/// Makes secrets, and two hundred folders beside them.
pub(crate) fn furnish(home: &Path) {
    let secrets = [".ssh", ".config/gh", ".docker"].map(str::to_owned);
    let others = (0..100).flat_map(|n| [format!("folder{n}"), format!(".config/program{n}")]);
    for name in secrets.into_iter().chain(others) {
        fs::create_dir_all(home.join(name)).expect("a folder of our own can be made");
    }
}
