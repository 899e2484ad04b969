//! Styles. They use only the sixteen ANSI colours, in the shades that the user has configured, and
//! stay readable on light and on dark backgrounds: no white, no black, no yellow text.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier, Style};

/// Which styles the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// All of them.
    Sixteen,
    /// No colours and no dim text, for `NO_COLOR`. Bold, italic and underlined text stays.
    None,
}

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const ITALIC: Style = Style::new().add_modifier(Modifier::ITALIC);
pub(crate) const STRUCK: Style = Style::new().add_modifier(Modifier::CROSSED_OUT);
pub(crate) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
pub(crate) const HEADING: Style = BOLD.add_modifier(Modifier::UNDERLINED);
pub(crate) const LINK: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::UNDERLINED);
pub(crate) const CODE: Style = Style::new().fg(Color::Cyan);
pub(crate) const USER: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
pub(crate) const AGENT: Style = Style::new().fg(Color::Green);
pub(crate) const CALL: Style = Style::new().fg(Color::Cyan);
pub(crate) const WARNING: Style = Style::new().fg(Color::Magenta);
pub(crate) const FAULT: Style = Style::new().fg(Color::Red);
pub(crate) const DANGER: Style = FAULT.add_modifier(Modifier::BOLD);
pub(crate) const ADDED: Style = Style::new().fg(Color::Green);
pub(crate) const REMOVED: Style = Style::new().fg(Color::Red);

/// Removes the styles that the terminal must not get, after everything has been drawn.
pub(crate) fn restrict(buffer: &mut Buffer, colours: Colours) {
    match colours {
        Colours::Sixteen => {}
        Colours::None => {
            for cell in &mut buffer.content {
                cell.fg = Color::Reset;
                cell.bg = Color::Reset;
                cell.modifier.remove(Modifier::DIM);
            }
        }
    }
}
