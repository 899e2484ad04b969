//! The scroll position of a transcript and its visible rows.

use ratatui_core::text::Line;

use crate::style::REVERSED;

use super::piece::Fold;
use super::{LAID_OUT, Transcript};

/// The scroll position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Position {
    /// Follows the end.
    #[default]
    End,
    /// This row of this piece is the first visible one.
    At {
        /// The piece's number.
        piece: usize,
        /// The row in it.
        row: usize,
    },
}

/// The size of the part of the screen that shows a transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) width: usize,
    pub(crate) height: usize,
}

/// Where the selection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Reverses the first row with text.
fn mark_selected(rows: &mut [Line<'static>]) {
    let row = rows.iter_mut().find(|row| !row.spans.is_empty());
    for span in row.into_iter().flat_map(|row| &mut row.spans) {
        span.style = span.style.patch(REVERSED);
    }
}

impl Transcript {
    /// The visible rows: at most as many as fit. Changes nothing but cached layouts.
    pub(crate) fn rows(&mut self, window: Window) -> Vec<Line<'static>> {
        let (mut piece, mut row) = self.top(window);
        let mut rows = Vec::with_capacity(window.height);
        while rows.len() < window.height && piece < self.end() {
            let room = window.height - rows.len();
            let from = rows.len();
            rows.extend(self.layout(piece, window.width).iter().skip(row).take(room).cloned());
            if self.selected == Some(piece) {
                mark_selected(&mut rows[from..]);
            }
            (piece, row) = (piece + 1, 0);
        }
        rows
    }

    /// Whether the end is visible.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == Position::End
    }

    pub(crate) fn scroll_up(&mut self, rows: usize, window: Window) {
        let (mut piece, mut row) = self.top(window);
        let mut left = rows;
        loop {
            let step = left.min(row);
            row -= step;
            left -= step;
            if left == 0 || piece <= self.first {
                break;
            }
            piece -= 1;
            row = self.layout(piece, window.width).len();
        }
        self.settle(piece, row, window);
    }

    pub(crate) fn scroll_down(&mut self, rows: usize, window: Window) {
        let (mut piece, mut row) = self.top(window);
        row += rows;
        while piece < self.end() {
            let height = self.layout(piece, window.width).len();
            if row < height {
                break;
            }
            row -= height;
            piece += 1;
        }
        self.settle(piece, row, window);
    }

    pub(crate) fn scroll_to_top(&mut self, window: Window) {
        self.settle(self.first, 0, window);
    }

    /// Scrolls to the start of the last piece.
    pub(crate) fn scroll_to_last(&mut self, window: Window) {
        self.settle(self.end().saturating_sub(1).max(self.first), 0, window);
    }

    pub(crate) fn scroll_to_end(&mut self) {
        self.position = Position::End;
    }

    /// Unfolds all visible pieces, or folds them if none is folded.
    pub(crate) fn toggle_folds(&mut self, window: Window) {
        let mut folds = self.visible(window);
        folds.retain(|number| self.pieces[*number - self.first].content.folds());
        let is_folded = |number: &usize| self.pieces[*number - self.first].fold == Fold::Folded;
        let fold = if folds.iter().any(is_folded) { Fold::Open } else { Fold::Folded };
        for number in folds {
            let piece = &mut self.pieces[number - self.first];
            piece.fold = fold;
            piece.layout = None;
        }
    }

    /// Selects the next piece in a direction that can be unfolded, and scrolls to it. Below the last
    /// one is the end, where nothing is selected. Returns whether there is something in this
    /// direction.
    pub(crate) fn select(&mut self, direction: Direction, window: Window) -> bool {
        let visible = self.visible(window);
        let from = self.selected.filter(|selected| *selected >= self.first);
        let folds = |number: &usize| self.pieces[number - self.first].content.folds();
        let found = match (direction, from) {
            (Direction::Up, from) => {
                (self.first..from.unwrap_or_else(|| self.end())).rev().find(folds)
            }
            (Direction::Down, Some(from)) => (from + 1..self.end()).find(folds),
            (Direction::Down, None) => return false,
        };
        if direction == Direction::Up && found.is_none() {
            return from.is_some();
        }
        self.selected = found;
        match found {
            Some(piece) if !visible.contains(&piece) => self.settle(piece, 0, window),
            Some(_) => {}
            None => self.scroll_to_end(),
        }
        true
    }

    /// Selects nothing. Returns whether something was selected.
    pub(crate) fn deselect(&mut self) -> bool {
        self.selected.take().is_some()
    }

    /// Unfolds the selected piece, or folds it. Returns whether there is one.
    pub(crate) fn toggle_selected(&mut self) -> bool {
        let at = self.selected.and_then(|selected| selected.checked_sub(self.first));
        let Some(piece) = at.and_then(|at| self.pieces.get_mut(at)) else { return false };
        piece.fold = match piece.fold {
            Fold::Folded => Fold::Open,
            Fold::Open => Fold::Folded,
        };
        piece.layout = None;
        true
    }

    /// The numbers of the visible pieces.
    fn visible(&mut self, window: Window) -> Vec<usize> {
        let (mut piece, row) = self.top(window);
        let (mut seen, mut skipped) = (0, row);
        let mut numbers = Vec::new();
        while seen < window.height && piece < self.end() {
            seen += self.layout(piece, window.width).len().saturating_sub(skipped);
            skipped = 0;
            numbers.push(piece);
            piece += 1;
        }
        numbers
    }

    /// The first visible row.
    fn top(&mut self, window: Window) -> (usize, usize) {
        match self.position {
            Position::At { piece, row } if piece >= self.first => {
                // The width may have changed.
                let height = self.layout(piece, window.width).len();
                (piece, row.min(height.saturating_sub(1)))
            }
            Position::At { .. } => (self.first, 0),
            Position::End => self.last_top(window),
        }
    }

    /// The first visible row when scrolled to the end.
    fn last_top(&mut self, window: Window) -> (usize, usize) {
        let (mut piece, mut missing) = (self.end(), window.height);
        while piece > self.first {
            piece -= 1;
            let height = self.layout(piece, window.width).len();
            if height >= missing {
                return (piece, height - missing);
            }
            missing -= height;
        }
        (self.first, 0)
    }

    /// Scrolls to this row, or follows the end if that shows it.
    fn settle(&mut self, piece: usize, row: usize, window: Window) {
        let is_at_end = (piece, row) >= self.last_top(window);
        self.position = if is_at_end { Position::End } else { Position::At { piece, row } };
    }

    fn layout(&mut self, number: usize, width: usize) -> &[Line<'static>] {
        let index = number - self.first;
        if !self.pieces[index].is_laid_out(width) {
            self.pieces[index].lay_out(width);
            self.laid_out.push_back(number);
            if self.laid_out.len() > LAID_OUT {
                self.forget_oldest(number);
            }
        }
        self.pieces[index].rows()
    }

    fn forget_oldest(&mut self, but: usize) {
        let Some(oldest) = self.laid_out.pop_front() else { return };
        let is_again = self.laid_out.contains(&oldest);
        if oldest != but
            && !is_again
            && oldest >= self.first
            && let Some(piece) = self.pieces.get_mut(oldest - self.first)
        {
            piece.layout = None;
        }
    }
}
