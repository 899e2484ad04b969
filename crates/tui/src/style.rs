//! Styles. They use the sixteen ANSI colours, in the shades that the user has configured, and stay
//! readable on light and on dark backgrounds: no white, no black, no plain yellow text. Only the
//! tints behind code and the lines of a diff are fixed colours, which follow the background.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::style::{Color, Modifier, Style};

/// Which styles the terminal supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    /// The ANSI colours and fixed ones.
    Many(Background),
    /// Only the sixteen ANSI colours.
    Sixteen,
    /// None, for `NO_COLOR`. Bold, dim, italic and underlined text stays.
    None,
}

/// The background of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// Dark, or unknown.
    Dark,
    /// Light.
    Light,
}

/// Starts an answer or a call.
pub(crate) const BULLET: &str = "●";

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
/// Dim, and plain where there are no colours. The colour is a mark that is never sent.
pub(crate) const NOTIFICATION: Style = DIM.fg(Color::Rgb(1, 1, 1));
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(crate) const ITALIC: Style = Style::new().add_modifier(Modifier::ITALIC);
pub(crate) const STRUCK: Style = Style::new().add_modifier(Modifier::CROSSED_OUT);
pub(crate) const REVERSED: Style = Style::new().add_modifier(Modifier::REVERSED);
/// Headings from the first level to the last, told apart without colours too.
pub(crate) const HEADINGS: [Style; 4] = [
    BOLD.add_modifier(Modifier::UNDERLINED),
    BOLD.fg(Color::Cyan),
    BOLD.add_modifier(Modifier::ITALIC),
    ITALIC,
];
pub(crate) const LINK: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::UNDERLINED);
pub(crate) const CODE: Style = Style::new().fg(Color::Cyan).bg(DARK_TINTS[2]);
/// The sign of a mail card.
pub(crate) const MAIL: Style = Style::new().fg(Color::Cyan);
pub(crate) const USER: Style = Style::new().fg(Color::Blue).add_modifier(Modifier::BOLD);
pub(crate) const CALL: Style = Style::new().fg(Color::Cyan);
pub(crate) const WARNING: Style = Style::new().fg(Color::Magenta);
/// Yellow, which is hard to read on light backgrounds, so it is bold.
pub(crate) const CAUTION: Style = BOLD.fg(Color::Yellow);
pub(crate) const FAULT: Style = Style::new().fg(Color::Red);
pub(crate) const DANGER: Style = FAULT.add_modifier(Modifier::BOLD);
pub(crate) const ADDED: Style = Style::new().fg(Color::Green);
pub(crate) const REMOVED: Style = Style::new().fg(Color::Red);
/// The background of added and removed lines, where there are 256 colours.
pub(crate) const ADDED_TINT: Style = Style::new().bg(DARK_TINTS[0]);
pub(crate) const REMOVED_TINT: Style = Style::new().bg(DARK_TINTS[1]);
/// The background of code.
pub(crate) const CODE_TINT: Style = Style::new().bg(DARK_TINTS[2]);
/// A command or file tool that worked.
pub(crate) const WORKED: Style = Style::new().fg(Color::Green);

const DARK_TINTS: [Color; 3] = [Color::Indexed(22), Color::Indexed(52), Color::Indexed(236)];
const LIGHT_TINTS: [Color; 3] = [Color::Indexed(194), Color::Indexed(224), Color::Indexed(254)];

/// Replaces the styles that the terminal must not get, after everything has been drawn.
pub(crate) fn restrict(buffer: &mut Buffer, colours: Colours) {
    for cell in &mut buffer.content {
        let is_colour_only = Some(cell.fg) == NOTIFICATION.fg;
        if is_colour_only {
            cell.fg = Color::Reset;
        }
        match colours {
            Colours::Many(Background::Dark) => {}
            Colours::Many(Background::Light) => {
                if let Some(tint) = DARK_TINTS.iter().position(|tint| cell.bg == *tint) {
                    cell.bg = LIGHT_TINTS[tint];
                }
            }
            Colours::Sixteen => {
                if DARK_TINTS.contains(&cell.bg) {
                    cell.bg = Color::Reset;
                }
            }
            Colours::None => {
                if is_colour_only {
                    cell.modifier.remove(Modifier::DIM);
                }
                remove_colours(cell);
            }
        }
    }
}

/// The state of a call, which its bullet shows by a colour, becomes another sign.
fn remove_colours(cell: &mut Cell) {
    if cell.symbol() == BULLET {
        if Some(cell.fg) == FAULT.fg {
            cell.set_symbol("✗");
        } else if Some(cell.fg) == WARNING.fg {
            cell.set_symbol("!");
        }
    }
    cell.fg = Color::Reset;
    cell.bg = Color::Reset;
}
