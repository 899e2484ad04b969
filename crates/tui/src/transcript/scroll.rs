//! The scroll position of a transcript and its visible rows.

use ratatui_core::text::Line;

use super::block::{Content, Fold};
use super::{LAID_OUT, Transcript};

/// The scroll position.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Position {
    /// Follows the end.
    #[default]
    End,
    /// This row of this block is the first visible one.
    At {
        /// The block's number.
        block: usize,
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

impl Transcript {
    /// The visible rows: at most as many as fit. Changes nothing but cached layouts.
    pub(crate) fn rows(&mut self, window: Window) -> Vec<Line<'static>> {
        let (mut block, mut row) = self.top(window);
        let mut rows = Vec::with_capacity(window.height);
        while rows.len() < window.height && block < self.end() {
            let room = window.height - rows.len();
            rows.extend(self.layout(block, window.width).iter().skip(row).take(room).cloned());
            (block, row) = (block + 1, 0);
        }
        rows
    }

    /// Whether the end is visible.
    pub(crate) fn is_at_end(&self) -> bool {
        self.position == Position::End
    }

    pub(crate) fn scroll_up(&mut self, rows: usize, window: Window) {
        let (mut block, mut row) = self.top(window);
        let mut left = rows;
        loop {
            let step = left.min(row);
            row -= step;
            left -= step;
            if left == 0 || block <= self.first {
                break;
            }
            block -= 1;
            row = self.layout(block, window.width).len();
        }
        self.settle(block, row, window);
    }

    pub(crate) fn scroll_down(&mut self, rows: usize, window: Window) {
        let (mut block, mut row) = self.top(window);
        row += rows;
        while block < self.end() {
            let height = self.layout(block, window.width).len();
            if row < height {
                break;
            }
            row -= height;
            block += 1;
        }
        self.settle(block, row, window);
    }

    pub(crate) fn scroll_to_top(&mut self, window: Window) {
        self.settle(self.first, 0, window);
    }

    /// Scrolls to the start of the last block.
    pub(crate) fn scroll_to_last(&mut self, window: Window) {
        self.settle(self.end().saturating_sub(1).max(self.first), 0, window);
    }

    pub(crate) fn scroll_to_end(&mut self) {
        self.position = Position::End;
    }

    /// Unfolds all visible blocks, or folds them if none is folded.
    pub(crate) fn toggle_folds(&mut self, window: Window) {
        let (mut block, row) = self.top(window);
        let mut seen = 0;
        let mut folds = Vec::new();
        let mut skipped = row;
        while seen < window.height && block < self.end() {
            seen += self.layout(block, window.width).len().saturating_sub(skipped);
            skipped = 0;
            if matches!(
                self.blocks[block - self.first].content,
                Content::Result { .. } | Content::Change { .. }
            ) {
                folds.push(block);
            }
            block += 1;
        }
        let is_folded = |number: &usize| self.blocks[*number - self.first].fold == Fold::Folded;
        let fold = if folds.iter().any(is_folded) { Fold::Open } else { Fold::Folded };
        for number in folds {
            let block = &mut self.blocks[number - self.first];
            block.fold = fold;
            block.layout = None;
        }
    }

    /// The first visible row.
    fn top(&mut self, window: Window) -> (usize, usize) {
        match self.position {
            Position::At { block, row } if block >= self.first => {
                // The width may have changed.
                let height = self.layout(block, window.width).len();
                (block, row.min(height.saturating_sub(1)))
            }
            Position::At { .. } => (self.first, 0),
            Position::End => self.last_top(window),
        }
    }

    /// The first visible row when scrolled to the end.
    fn last_top(&mut self, window: Window) -> (usize, usize) {
        let (mut block, mut missing) = (self.end(), window.height);
        while block > self.first {
            block -= 1;
            let height = self.layout(block, window.width).len();
            if height >= missing {
                return (block, height - missing);
            }
            missing -= height;
        }
        (self.first, 0)
    }

    /// Scrolls to this row, or follows the end if that shows it.
    fn settle(&mut self, block: usize, row: usize, window: Window) {
        let is_at_end = (block, row) >= self.last_top(window);
        self.position = if is_at_end { Position::End } else { Position::At { block, row } };
    }

    fn layout(&mut self, number: usize, width: usize) -> &[Line<'static>] {
        let index = number - self.first;
        if !self.blocks[index].is_laid_out(width) {
            self.blocks[index].lay_out(width);
            self.laid_out.push_back(number);
            if self.laid_out.len() > LAID_OUT {
                self.forget_oldest(number);
            }
        }
        self.blocks[index].rows()
    }

    fn forget_oldest(&mut self, but: usize) {
        let Some(oldest) = self.laid_out.pop_front() else { return };
        let is_again = self.laid_out.contains(&oldest);
        if oldest != but
            && !is_again
            && oldest >= self.first
            && let Some(block) = self.blocks.get_mut(oldest - self.first)
        {
            block.layout = None;
        }
    }
}
