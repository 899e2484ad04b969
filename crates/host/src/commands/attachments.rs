//! `@file` in a message of the user: the file goes with the message.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use ikigai_agents::User;
use ikigai_conversation::AgentId;
use ikigai_protocol::{Attachment, attach};

use crate::open::OpenSession;

/// The largest file that is attached with its content.
const FILE: u64 = 20 * 1024;
/// The most files of one message.
const FILES: usize = 10;
/// The most names of a folder.
const NAMES: usize = 500;

const TOO_LARGE: &str = "Too large to attach. Read the parts that you need.";
const NO_TEXT: &str = "Not a text file.";

impl OpenSession {
    /// The text of a message with the files that it names, and what the user's own commands printed
    /// since the last one. Only a user attaches anything, not a prompt of a program.
    ///
    /// It reads at once, a bounded amount: messages have to keep their order.
    pub(super) fn with_attachments(&self, agent: &AgentId, text: &str) -> String {
        let mut attachments = self.shell.take_ended(agent);
        if self.slot.user() == User::Present {
            attachments.extend(attached_files(text, &self.environment().directory));
        }
        attach(text, &attachments)
    }
}

/// The files and folders of the working tree that a text names with an `@`.
fn attached_files(text: &str, directory: &Path) -> Vec<Attachment> {
    let mut paths: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let Some(path) = word.strip_prefix('@').and_then(|path| existing(path, directory)) else {
            continue;
        };
        if !paths.contains(&path) && paths.len() < FILES {
            paths.push(path);
        }
    }
    paths.iter().filter_map(|path| attachment(path, directory)).collect()
}

/// The path, without punctuation behind it, if it is in the tree.
fn existing<'a>(path: &'a str, directory: &Path) -> Option<&'a str> {
    let trimmed = path.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '/');
    [path, trimmed].into_iter().find(|path| is_in_tree(path, directory))
}

/// Links that lead out of the tree do not count.
fn is_in_tree(path: &str, directory: &Path) -> bool {
    let (found, root) = (directory.join(path).canonicalize(), directory.canonicalize());
    let is_inside = found.ok().zip(root.ok()).is_some_and(|(found, root)| found.starts_with(root));
    !path.is_empty() && is_inside
}

fn attachment(path: &str, directory: &Path) -> Option<Attachment> {
    let (full, path) = (directory.join(path), path.to_owned());
    let metadata = fs::metadata(&full).ok()?;
    if metadata.is_dir() {
        return Some(Attachment::Folder { path, names: names(&full)? });
    }
    // Reading a pipe or a device would not end.
    if !metadata.is_file() {
        return None;
    }
    let bytes = metadata.len();
    if bytes > FILE {
        return Some(Attachment::Reference { path, bytes, advice: TOO_LARGE });
    }
    let mut content = Vec::new();
    File::open(full).ok()?.take(FILE).read_to_end(&mut content).ok()?;
    Some(match String::from_utf8(content) {
        Ok(text) if !text.contains('\0') => Attachment::File { path, text },
        Ok(_) | Err(_) => Attachment::Reference { path, bytes, advice: NO_TEXT },
    })
}

/// The sorted names in a folder; those of folders end with a slash.
fn names(folder: &Path) -> Option<String> {
    let name = |entry: fs::DirEntry| {
        let slash = if entry.path().is_dir() { "/" } else { "" };
        format!("{}{slash}", entry.file_name().to_string_lossy())
    };
    let mut names: Vec<String> =
        fs::read_dir(folder).ok()?.flatten().take(NAMES).map(name).collect();
    names.sort();
    Some(names.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_files_folders_and_large_files_of_the_tree_are_attached() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("src/deep")).unwrap();
        fs::write(tree.join("src/a.rs"), "fn a() {}\n").unwrap();
        fs::write(tree.join("large"), "x".repeat(20 * 1024 + 1)).unwrap();
        fs::write(tree.join("binary"), b"a\0b").unwrap();
        fs::write(folder.path().join("outside"), "secret").unwrap();
        std::os::unix::fs::symlink(folder.path().join("outside"), tree.join("link")).unwrap();
        let text = "see @src/a.rs, (@large) @large, @binary @src @src/a.rs and me@src/a.rs \
            @../outside @link @nothing @";
        let path = |path: &str| path.to_owned();
        let expected = [
            Attachment::File { path: path("src/a.rs"), text: "fn a() {}\n".to_owned() },
            Attachment::Reference { path: path("large"), bytes: 20 * 1024 + 1, advice: TOO_LARGE },
            Attachment::Reference { path: path("binary"), bytes: 3, advice: NO_TEXT },
            Attachment::Folder { path: path("src"), names: "a.rs\ndeep/".to_owned() },
        ];
        assert_eq!(attached_files(text, &tree), expected);
    }
}
