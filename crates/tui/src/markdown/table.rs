//! Tables: columns are as wide as they need, narrower if there is too little room, and rows become
//! plain text if there is far too little.

use pulldown_cmark::Alignment;
use ratatui_core::text::{Line, Span};

use crate::style::{BOLD, DIM, PLAIN};
use crate::wrap::{Breaks, Margin, width_of, wrap};

type Cell = Vec<Span<'static>>;

/// The minimum width of a column.
const NARROWEST: usize = 3;
const BETWEEN: &str = " │ ";

pub(super) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn push_cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub(super) fn end_head(&mut self) {
        for span in self.row.iter_mut().flatten() {
            span.style = span.style.patch(BOLD);
        }
        self.end_row();
    }

    pub(super) fn end_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.resize(self.alignments.len(), Cell::new());
        self.rows.push(row);
    }

    pub(super) fn render(&self, width: usize) -> Vec<Line<'static>> {
        match self.column_widths(width) {
            Some(widths) => self.render_columns(&widths),
            None => self.render_rows(width),
        }
    }

    /// `None` if the columns do not fit.
    fn column_widths(&self, width: usize) -> Option<Vec<usize>> {
        let columns = self.alignments.len();
        let room = width.checked_sub(3 * columns.saturating_sub(1))?;
        let natural = |column: usize| {
            self.rows.iter().map(|row| width_of(&row[column])).max().unwrap_or_default().max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        if columns * NARROWEST > room && widths.iter().sum::<usize>() > room {
            return None;
        }
        // Shrink the widest columns until all fit, to the highest limit that works.
        let fits =
            |limit: usize| widths.iter().map(|width| *width.min(&limit)).sum::<usize>() <= room;
        let limit = (NARROWEST..=room).rev().find(|limit| fits(*limit)).unwrap_or(NARROWEST);
        widths.iter_mut().for_each(|width| *width = (*width).min(limit));
        Some(widths)
    }

    fn render_columns(&self, widths: &[usize]) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            lines.extend(self.render_row(row, widths));
            if number == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::from(Span::styled(rule.join("─┼─"), DIM)));
            }
        }
        lines
    }

    fn render_row(&self, row: &[Cell], widths: &[usize]) -> Vec<Line<'static>> {
        let cells: Vec<Vec<Line<'static>>> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| wrap(cell, *width, &Margin::default(), Breaks::Words))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or_default();
        (0..height).map(|at| self.render_line(&cells, widths, at)).collect()
    }

    fn render_line(
        &self,
        cells: &[Vec<Line<'static>>],
        widths: &[usize],
        at: usize,
    ) -> Line<'static> {
        let mut spans = Vec::new();
        let last = widths.len().saturating_sub(1);
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            let text = cell.get(at).cloned().unwrap_or_default();
            let space = width.saturating_sub(text.width());
            let before = match self.alignments[column] {
                Alignment::Right => space,
                Alignment::Center => space / 2,
                Alignment::Left | Alignment::None => 0,
            };
            spans.push(Span::raw(" ".repeat(before)));
            spans.extend(text.spans);
            if column < last {
                spans.push(Span::raw(" ".repeat(space - before)));
                spans.push(Span::styled(BETWEEN, DIM));
            }
        }
        Line::from(spans)
    }

    fn render_rows(&self, width: usize) -> Vec<Line<'static>> {
        let margin = Margin::hanging("", PLAIN);
        let line = |row: &Vec<Cell>| {
            let mut spans: Vec<Span<'static>> = Vec::new();
            for cell in row {
                if !spans.is_empty() {
                    spans.push(Span::styled(BETWEEN, DIM));
                }
                spans.extend_from_slice(cell);
            }
            wrap(&spans, width, &margin, Breaks::Words)
        };
        self.rows.iter().flat_map(line).collect()
    }
}
