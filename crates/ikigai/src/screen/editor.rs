//! Ctrl+G: edit the input in the user's editor.

use std::fs;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use anyhow::Context;
use ikigai_host::{Environment, TemporaryFolder};
use tokio::process::Command;

/// Larger texts belong in a file.
const LIMIT: u64 = 1024 * 1024;

/// Lets the user edit a text in an editor, which needs the terminal meanwhile.
pub(super) async fn edit(
    environment: &Environment,
    text: String,
) -> anyhow::Result<Option<String>> {
    let folder = TemporaryFolder::of_process(environment)?;
    // The extension selects the editor's syntax highlighting.
    let path = folder.path().join("message.md");
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
    file.write_all(text.as_bytes()).context("cannot write the text for the editor")?;
    drop(file);
    let editor = ["VISUAL", "EDITOR"].iter().find_map(|name| environment.variable(name));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    #[expect(clippy::disallowed_methods, reason = "the editor is the user's, not an agent's")]
    let mut shell = Command::new("/bin/sh");
    // A shell parses the command, which may have options. `exec` replaces the shell, so that
    // dropping this future kills the editor itself and nothing else reads from the terminal.
    let is_one_command = !editor.contains(|c: char| "=;&|<>(){}`\n".contains(c));
    let exec = if is_one_command { "exec " } else { "" };
    let status = shell
        .arg("-c")
        .arg(format!("{exec}{editor} \"$1\""))
        .arg("sh")
        .arg(&path)
        .env_clear()
        .envs(environment.for_programs_of_the_user()?)
        .current_dir(&environment.directory)
        .kill_on_drop(true)
        .status()
        .await
        .with_context(|| format!("cannot start the editor '{editor}'"))?;
    anyhow::ensure!(
        status.success(),
        "the editor '{editor}' failed ({status}); set EDITOR to another one"
    );
    let size = fs::metadata(&path)?.len();
    anyhow::ensure!(
        size <= LIMIT,
        "the text is too long ({size} bytes): put it into a file and mention the file"
    );
    let edited = fs::read(&path).context("cannot read what the editor wrote")?;
    Ok(Some(String::from_utf8_lossy(&edited).into_owned()))
}
