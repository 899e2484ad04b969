//! The help for slash commands and keys.

use ikigai_protocol::SLASH_COMMANDS;

const KEYS: &str = "\
Enter sends, Ctrl+J or Alt+Enter starts a new line; while the agent works, messages are queued for the next step
Esc interrupts, Ctrl+C clears or interrupts, twice it leaves; Ctrl+D leaves
Up and Down: history, Ctrl+R searches it; Tab completes, even files after @; Ctrl+G edits in $EDITOR
PgUp, PgDn, Ctrl+Home, Ctrl+End scroll; Ctrl+O unfolds results
Alt+arrows: parent, child, siblings; Ctrl+T: the team";

pub(crate) fn help() -> String {
    let lines: String =
        SLASH_COMMANDS.iter().map(|(name, help)| format!("  /{name:<9} {help}\n")).collect();
    format!("{lines}{KEYS}")
}
