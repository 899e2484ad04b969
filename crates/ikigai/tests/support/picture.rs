//! A picture of a screen as SVG, as a terminal with a dark or a light background shows it.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;
use vt100::{Cell, Color};

/// The size of a cell in units of the picture.
const CELL: (usize, usize) = (9, 18);
/// Around the screen.
const MARGIN: usize = 14;

/// How a terminal shows its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Theme {
    Dark,
    Light,
}

impl Theme {
    pub(crate) const BOTH: [Theme; 2] = [Theme::Dark, Theme::Light];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Theme::Dark => "dark",
            Theme::Light => "light",
        }
    }

    fn background(self) -> &'static str {
        match self {
            Theme::Dark => "#16181d",
            Theme::Light => "#ffffff",
        }
    }

    fn foreground(self) -> &'static str {
        match self {
            Theme::Dark => "#d7dae0",
            Theme::Light => "#24292f",
        }
    }

    fn dim(self) -> &'static str {
        match self {
            Theme::Dark => "#7d8590",
            Theme::Light => "#6e7781",
        }
    }

    /// The first eight ANSI colours; the bright ones look the same.
    fn ansi(self) -> [&'static str; 8] {
        match self {
            Theme::Dark => [
                "#16181d", "#ff7b72", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd",
                "#d7dae0",
            ],
            Theme::Light => [
                "#24292f", "#cf222e", "#116329", "#9a6700", "#0969da", "#8250df", "#1b7c83",
                "#57606a",
            ],
        }
    }

    /// The tint that the program uses on this background: the terminal of the tests says nothing
    /// about its own, and gets the dark ones.
    fn tint(self, number: u8) -> u8 {
        match (self, number) {
            (Theme::Light, 22) => 194,
            (Theme::Light, 52) => 224,
            (Theme::Light, 236) => 254,
            (Theme::Dark | Theme::Light, number) => number,
        }
    }

    fn colour(self, colour: Color) -> Option<String> {
        match colour {
            Color::Default => None,
            Color::Idx(number @ 0..16) => Some(self.ansi()[usize::from(number % 8)].to_owned()),
            Color::Idx(number) => Some(fixed(self.tint(number))),
            Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}

/// A colour of the palette of 256.
fn fixed(number: u8) -> String {
    if number >= 232 {
        let grey = 8 + 10 * (number - 232);
        return format!("#{grey:02x}{grey:02x}{grey:02x}");
    }
    let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
    let cube = number - 16;
    let (red, green, blue) = (level(cube / 36), level(cube / 6 % 6), level(cube % 6));
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// How a cell looks.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Look {
    fill: String,
    behind: Option<String>,
    style: String,
}

impl Look {
    fn of(cell: &Cell, theme: Theme) -> Look {
        let mut fill = theme.colour(cell.fgcolor());
        let mut behind = theme.colour(cell.bgcolor());
        if cell.inverse() {
            let foreground = fill.unwrap_or_else(|| theme.foreground().to_owned());
            fill = Some(behind.unwrap_or_else(|| theme.background().to_owned()));
            behind = Some(foreground);
        }
        let plain = if cell.dim() { theme.dim() } else { theme.foreground() };
        let mut style = String::new();
        for (is_set, text) in [
            (cell.bold(), " font-weight=\"bold\""),
            (cell.italic(), " font-style=\"italic\""),
            (cell.underline(), " text-decoration=\"underline\""),
        ] {
            style.push_str(if is_set { text } else { "" });
        }
        Look { fill: fill.unwrap_or_else(|| plain.to_owned()), behind, style }
    }
}

/// The screen as SVG.
pub(crate) fn picture(screen: &vt100::Screen, theme: Theme) -> String {
    let (rows, columns) = size(screen);
    let (width, height) = (usize::from(columns) * CELL.0, usize::from(rows) * CELL.1);
    let (wide, high) = (width + 2 * MARGIN, height + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {high}\" \
         font-family=\"DejaVu Sans Mono, Menlo, Consolas, monospace\" font-size=\"14\">\n\
         <rect width=\"{wide}\" height=\"{high}\" rx=\"8\" fill=\"{}\"/>\n",
        theme.background()
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            column = run(&mut svg, screen, row, column, theme);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn size(screen: &vt100::Screen) -> (u16, u16) {
    let (rows, columns) = screen.size();
    (rows.get(), columns.get())
}

/// Draws the cells from `from` that look the same, and gives the column behind them.
fn run(svg: &mut String, screen: &vt100::Screen, row: u16, from: u16, theme: Theme) -> u16 {
    let (_, columns) = size(screen);
    let cell = |column| screen.cell(row, column);
    let Some(look) = cell(from).map(|cell| Look::of(cell, theme)) else { return columns };
    let mut text = String::new();
    let mut to = from;
    while let Some(cell) = cell(to).filter(|cell| {
        to < columns && (cell.is_wide_continuation() || Look::of(cell, theme) == look)
    }) {
        if !cell.is_wide_continuation() {
            text.push_str(if cell.has_contents() { cell.contents() } else { " " });
        }
        to += 1;
        // A character whose width fonts disagree on does not shift those behind it.
        if !cell.contents().is_ascii() {
            break;
        }
        if to >= columns {
            break;
        }
    }
    let (x, y) = (MARGIN + usize::from(from) * CELL.0, MARGIN + usize::from(row) * CELL.1);
    let width = usize::from(to - from) * CELL.0;
    if let Some(behind) = &look.behind {
        let high = CELL.1;
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{high}\" fill=\"{behind}\"/>"
        )
        .unwrap();
    }
    let shown = text.trim_end();
    if !shown.is_empty() {
        let (length, base) = (shown.width() * CELL.0, y + CELL.1 - 5);
        let Look { fill, style, .. } = look;
        let shown = shown.replace('&', "&amp;").replace('<', "&lt;");
        writeln!(
            svg,
            "<text x=\"{x}\" y=\"{base}\" textLength=\"{length}\" xml:space=\"preserve\" \
             fill=\"{fill}\"{style}>{shown}</text>"
        )
        .unwrap();
    }
    to.max(from + 1)
}
