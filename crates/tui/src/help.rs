//! The help: the commands, and the table of keys.

use ikigai_protocol::SLASH_COMMANDS;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::style::{BOLD, DIM};
use crate::wrap::{Breaks, Margin, wrap};

/// What each key does.
const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; while the agent works: queue for its next step"),
    ("Ctrl+J, Alt+Enter", "start a new line"),
    ("Esc", "close a list; else interrupt the agent"),
    ("Esc Esc", "if the input is empty and the agent idle: return to an earlier message"),
    ("Ctrl+C", "clear the input, or interrupt; twice: leave"),
    ("Shift+Tab", "change the mode: work, read"),
    ("Ctrl+D", "leave, if the input is empty"),
    ("Tab", "complete commands, arguments, agents, models, and files after @"),
    ("Up", "if messages are queued: edit the last one"),
    ("!", "at the start: run the rest as your own command, without a sandbox"),
    ("@", "attach a file or a folder"),
    ("Up, Down", "move between lines; at the first and last: history"),
    ("Ctrl+R", "search the history"),
    ("Ctrl+A E K U W Y", "edit the line as in readline; also Alt+B F D, Home, End"),
    ("Ctrl+G", "edit the input in $EDITOR"),
    ("Enter on [Pasted …]", "expand the paste to edit it"),
    ("PgUp, PgDn, wheel", "scroll"),
    ("Ctrl+Home, Ctrl+End", "scroll to the top, to the end"),
    ("Ctrl+O", "unfold all blocks on the screen"),
    ("Alt+Up, Alt+Down", "select a block, if the input is empty; Enter unfolds it"),
    ("Ctrl+T", "show the team"),
    ("Ctrl+X", "open the oldest approval request of all agents"),
    ("Alt+Left, Alt+Right", "go to the previous, the next agent"),
    ("Ctrl+L, Ctrl+Z", "redraw the screen, suspend"),
    ("?", "show this table, if the input is empty"),
];

/// What `/help` shows.
pub(crate) fn help() -> String {
    let command = |(name, help): &(&str, &str)| format!("  /{name:<9} {help}\n");
    let commands: String = SLASH_COMMANDS.iter().map(command).collect();
    let column = column();
    let key = |(key, help): &(&str, &str)| format!("  {key:<column$}  {help}");
    let keys: Vec<String> = KEYS.iter().map(key).collect();
    format!("Commands\n{commands}\nKeys\n{}", keys.join("\n"))
}

/// The table of keys, scrolled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct KeyTable {
    /// How many rows are scrolled out at the top.
    above: usize,
}

impl KeyTable {
    /// Scrolls by so many rows, down for positive numbers.
    pub(crate) fn scroll(&mut self, rows: isize) {
        self.above = self.above.saturating_add_signed(rows);
    }

    pub(crate) fn rows(&mut self, width: usize, height: usize) -> Vec<Line<'static>> {
        let column = column().min(width / 2);
        let key = |(key, help): &(&str, &str)| {
            let mut margin = Margin::hanging(&" ".repeat(column + 3), DIM);
            margin.first = vec![Span::styled(format!(" {key:<column$}  "), BOLD)];
            wrap(&[Span::raw(*help)], width, &margin, Breaks::Words)
        };
        let all: Vec<Line<'static>> = KEYS.iter().flat_map(key).collect();
        self.above = self.above.min(all.len().saturating_sub(height));
        all.into_iter().skip(self.above).take(height).collect()
    }
}

/// The width of the widest key.
fn column() -> usize {
    KEYS.iter().map(|(key, _)| key.width()).max().unwrap_or(0)
}
