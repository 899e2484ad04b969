//! Writes cells to the terminal.
//!
//! This is our own backend for two reasons. It sends the sixteen colours with their own codes:
//! their 256-colour form means "blinking, underlined" to terminals that do not support it. And it
//! positions the cursor after every character whose width terminals disagree on, so that a
//! disagreement affects one cell and does not shift the row.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::queue;
use crossterm::terminal::{Clear, ClearType as Region};
use ratatui_core::backend::{Backend, ClearType, WindowSize};
use ratatui_core::buffer::Cell;
use ratatui_core::layout::{Position, Size};
use ratatui_core::style::{Color, Modifier};

/// Writes frames. It never queries the position of the cursor: the response would arrive as input.
#[derive(Debug)]
pub(crate) struct Ansi<W: Write> {
    writer: W,
    cursor: Position,
}

impl<W: Write> Ansi<W> {
    pub(crate) fn new(writer: W) -> Ansi<W> {
        Ansi { writer, cursor: Position::ORIGIN }
    }

    fn put(&mut self, cell: &Cell, style: &mut Option<(Color, Color, Modifier)>) -> io::Result<()> {
        let wanted = (cell.fg, cell.bg, cell.modifier);
        if *style != Some(wanted) {
            write_style(&mut self.writer, wanted)?;
            *style = Some(wanted);
        }
        self.writer.write_all(cell.symbol().as_bytes())
    }
}

impl<W: Write> Write for Ansi<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl<W: Write> Backend for Ansi<W> {
    type Error = io::Error;

    fn draw<'a, I>(&mut self, content: I) -> io::Result<()>
    where
        I: Iterator<Item = (u16, u16, &'a Cell)>,
    {
        let mut style = None;
        // The position of the terminal's cursor, when certain.
        let mut known = None;
        for (x, y, cell) in content {
            if known != Some((x, y)) {
                queue!(self.writer, MoveTo(x, y))?;
            }
            self.put(cell, &mut style)?;
            known = cell.symbol().is_ascii().then_some((x + 1, y));
        }
        write_style(&mut self.writer, (Color::Reset, Color::Reset, Modifier::empty()))
    }

    fn hide_cursor(&mut self) -> io::Result<()> {
        queue!(self.writer, Hide)
    }

    fn show_cursor(&mut self) -> io::Result<()> {
        queue!(self.writer, Show)
    }

    fn get_cursor_position(&mut self) -> io::Result<Position> {
        Ok(self.cursor)
    }

    fn set_cursor_position<P: Into<Position>>(&mut self, position: P) -> io::Result<()> {
        self.cursor = position.into();
        queue!(self.writer, MoveTo(self.cursor.x, self.cursor.y))
    }

    fn clear(&mut self) -> io::Result<()> {
        self.clear_region(ClearType::All)
    }

    fn clear_region(&mut self, region: ClearType) -> io::Result<()> {
        let region = match region {
            ClearType::All => Region::All,
            ClearType::AfterCursor => Region::FromCursorDown,
            ClearType::BeforeCursor => Region::FromCursorUp,
            ClearType::CurrentLine => Region::CurrentLine,
            ClearType::UntilNewLine => Region::UntilNewLine,
        };
        queue!(self.writer, Clear(region))
    }

    fn size(&self) -> io::Result<Size> {
        let (width, height) = crossterm::terminal::size()?;
        Ok(Size::new(width, height))
    }

    fn window_size(&mut self) -> io::Result<WindowSize> {
        Ok(WindowSize { columns_rows: self.size()?, pixels: Size::ZERO })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn write_style(writer: &mut impl Write, style: (Color, Color, Modifier)) -> io::Result<()> {
    let (foreground, background, modifier) = style;
    writer.write_all(b"\x1b[0")?;
    for (bit, code) in [
        (Modifier::BOLD, 1),
        (Modifier::DIM, 2),
        (Modifier::ITALIC, 3),
        (Modifier::UNDERLINED, 4),
        (Modifier::REVERSED, 7),
        (Modifier::CROSSED_OUT, 9),
    ] {
        if modifier.contains(bit) {
            write!(writer, ";{code}")?;
        }
    }
    if let Some(code) = code(foreground) {
        write!(writer, ";{code}")?;
    }
    match background {
        // Only tints of a diff, which follow the background.
        Color::Indexed(number) => write!(writer, ";48;5;{number}")?,
        background => {
            if let Some(code) = code(background) {
                write!(writer, ";{}", code + 10)?;
            }
        }
    }
    writer.write_all(b"m")
}

/// The foreground code of a colour; `None` for the terminal's default.
fn code(colour: Color) -> Option<u8> {
    Some(match colour {
        Color::Black => 30,
        Color::Red => 31,
        Color::Green => 32,
        Color::Yellow => 33,
        Color::Blue => 34,
        Color::Magenta => 35,
        Color::Cyan => 36,
        Color::Gray => 37,
        Color::DarkGray => 90,
        Color::LightRed => 91,
        Color::LightGreen => 92,
        Color::LightYellow => 93,
        Color::LightBlue => 94,
        Color::LightMagenta => 95,
        Color::LightCyan => 96,
        Color::White => 97,
        // No fixed shades of text: they may be unreadable on the user's background.
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Style;

    use super::*;

    #[test]
    fn colours_are_ansi_and_the_cursor_is_positioned_after_non_ascii() {
        let cell = |text: &str, style: Style| {
            let mut cell = Cell::default();
            cell.set_symbol(text).set_style(style);
            cell
        };
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
        let cells = [cell("a", Style::new()), cell("日", red), cell("b", red), cell("c", red)];
        let mut backend = Ansi::new(Vec::new());
        let places = [(0, 0), (1, 0), (3, 0), (4, 0)];
        backend.draw(places.into_iter().zip(&cells).map(|((x, y), cell)| (x, y, cell))).unwrap();
        let written = String::from_utf8(backend.writer).unwrap();
        assert_eq!(written, "\x1b[1;1H\x1b[0ma\x1b[0;1;31m日\x1b[1;4Hbc\x1b[0m");
    }
}
