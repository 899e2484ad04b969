//! A list to choose from, over the conversation. Typing filters it.

use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::safe::{safe, safe_line};
use crate::style::{BOLD, DIM, PLAIN, REVERSED};
use crate::wrap::fit;

/// Below this height there is no room for a preview.
const PREVIEW_FROM: usize = 14;
/// The most rows of a preview.
const PREVIEW: usize = 6;

/// An entry of a picker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Item {
    /// What is chosen.
    pub(crate) text: String,
    /// Facts about it, at the right edge.
    pub(crate) detail: String,
    /// More about it, shown below the list while it is selected.
    pub(crate) preview: String,
}

/// How entries are chosen besides with the arrow keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choosing {
    /// Typing filters them.
    Filter,
    /// A digit chooses one.
    Digits,
}

/// A list, its filter and its selection. What an entry means is known to its owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Picker {
    title: String,
    /// What is shown if there are no entries.
    empty: &'static str,
    choosing: Choosing,
    items: Vec<Item>,
    typed: String,
    /// The entries that match, as indices.
    matching: Vec<usize>,
    /// The selection, as an index into `matching`.
    chosen: usize,
}

impl Picker {
    /// A list whose entries are on their way.
    pub(crate) fn loading(title: &str, choosing: Choosing) -> Picker {
        let (items, typed, matching, empty) = (Vec::new(), String::new(), Vec::new(), "Loading…");
        Picker { title: title.to_owned(), empty, choosing, items, typed, matching, chosen: 0 }
    }

    /// Replaces the entries and selects one of them; `empty` is shown if there are none.
    pub(crate) fn fill(&mut self, items: Vec<Item>, chosen: usize, empty: &'static str) {
        (self.items, self.empty) = (items, empty);
        self.filter();
        self.chosen = self.matching.iter().position(|index| *index == chosen).unwrap_or(0);
    }

    /// Shows more about an entry while it is selected.
    pub(crate) fn set_preview(&mut self, index: usize, preview: &str) {
        if let Some(item) = self.items.get_mut(index) {
            preview.clone_into(&mut item.preview);
        }
    }

    /// Replaces what is chosen by an entry.
    pub(crate) fn set_text(&mut self, index: usize, text: &str) {
        if let Some(item) = self.items.get_mut(index) {
            text.clone_into(&mut item.text);
        }
    }

    pub(crate) fn set_title(&mut self, title: &str) {
        title.clone_into(&mut self.title);
    }

    /// The index of the selected entry.
    pub(crate) fn chosen(&self) -> Option<usize> {
        self.matching.get(self.chosen).copied()
    }

    /// What was typed, if typing filters the entries.
    pub(crate) fn typed(&self) -> Option<&str> {
        (self.choosing == Choosing::Filter).then_some(&*self.typed)
    }

    /// Types into the filter. Returns whether a digit chose an entry.
    pub(crate) fn push(&mut self, text: &str) -> bool {
        /// Longer than any useful filter.
        const TYPED: usize = 200;
        if self.choosing == Choosing::Digits {
            let digit = text.parse::<usize>().ok().and_then(|digit| digit.checked_sub(1));
            let is_entry = digit.filter(|digit| *digit < self.matching.len());
            self.chosen = is_entry.unwrap_or(self.chosen);
            return is_entry.is_some();
        }
        let room = TYPED.saturating_sub(self.typed.len());
        let line = text.lines().next().unwrap_or_default();
        self.typed.push_str(&line[..line.floor_char_boundary(room)]);
        self.chosen = 0;
        self.filter();
        false
    }

    /// Removes the last character of the filter.
    pub(crate) fn pop(&mut self) {
        self.typed.pop();
        self.chosen = 0;
        self.filter();
    }

    /// Clears the filter. Returns whether there was one.
    pub(crate) fn clear(&mut self) -> bool {
        let was_filtered = !self.typed.is_empty();
        let chosen = self.chosen();
        self.typed.clear();
        self.filter();
        self.chosen = chosen.unwrap_or(0);
        was_filtered
    }

    /// Moves the selection by so many entries, down for positive numbers.
    pub(crate) fn go(&mut self, by: isize) {
        let last = self.matching.len().saturating_sub(1);
        self.chosen = self.chosen.saturating_add_signed(by).min(last);
    }

    /// The entries that contain every word of the filter, in their order.
    fn filter(&mut self) {
        let words: Vec<String> = self.typed.split_whitespace().map(str::to_lowercase).collect();
        let is_match = |item: &Item| {
            let text = format!("{} {}", item.text, item.detail).to_lowercase();
            words.iter().all(|word| text.contains(word))
        };
        let all = self.items.iter().enumerate();
        self.matching = all.filter(|(_, item)| is_match(item)).map(|(index, _)| index).collect();
        self.chosen = self.chosen.min(self.matching.len().saturating_sub(1));
    }

    pub(crate) fn rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let preview = self.preview_rows(width, height);
        let room = height.saturating_sub(1 + preview.len());
        let mut rows = vec![self.title_row(width)];
        if self.matching.is_empty() {
            let text = if self.items.is_empty() { self.empty } else { "No match" };
            rows.push(Line::styled(fit(&format!("  {text}"), width), DIM));
        }
        // The selection is always visible.
        let from = (self.chosen + 1).saturating_sub(room);
        let shown = self.matching.iter().enumerate().skip(from).take(room);
        rows.extend(shown.map(|(number, index)| self.row(number, &self.items[*index], width)));
        rows.extend(preview);
        rows.truncate(height);
        rows
    }

    fn title_row(&self, width: usize) -> Line<'static> {
        let count = match (self.choosing, self.items.len()) {
            (Choosing::Digits, _) | (_, 0) => String::new(),
            (Choosing::Filter, all) => match self.matching.len() {
                shown if shown == all => format!(" {all}"),
                shown => format!(" {shown} of {all}"),
            },
        };
        let title = fit(&safe_line(&self.title), width.saturating_sub(count.width()));
        Line::from(vec![Span::styled(title, BOLD), Span::styled(count, DIM)])
    }

    /// An entry: its text, and its detail at the right edge if there is room for both.
    fn row(&self, number: usize, item: &Item, width: usize) -> Line<'static> {
        let is_chosen = number == self.chosen;
        let mark = if is_chosen { "❯ " } else { "  " };
        let digit = match self.choosing {
            Choosing::Digits => format!("{} ", number + 1),
            Choosing::Filter => String::new(),
        };
        let text = format!("{mark}{digit}{}", safe_line(&item.text));
        let detail = safe_line(&item.detail);
        let detail = match self.choosing {
            Choosing::Filter => fit(&detail, width / 2),
            // The entries of a menu are few words, and all of them matter.
            Choosing::Digits if text.width() + 2 + detail.width() > width => String::new(),
            Choosing::Digits => detail,
        };
        let taken = if detail.is_empty() { 0 } else { detail.width() + 2 };
        let text = fit(&text, width.saturating_sub(taken));
        let space = " ".repeat(width.saturating_sub(text.width() + detail.width()));
        let style = |style: Style| if is_chosen { REVERSED } else { style };
        Line::from(vec![
            Span::styled(text, style(PLAIN)),
            Span::styled(space, style(PLAIN)),
            Span::styled(detail, style(DIM)),
        ])
    }

    fn preview_rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        let item = self.chosen().and_then(|index| self.items.get(index));
        let Some(item) = item.filter(|item| !item.preview.is_empty() && height >= PREVIEW_FROM)
        else {
            return Vec::new();
        };
        let row = |line: &str| Line::styled(fit(&format!("  {line}"), width), DIM);
        let rule = Line::styled("╌".repeat(width), DIM);
        let text = safe(&item.preview);
        std::iter::once(rule).chain(text.lines().take(PREVIEW).map(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picker(choosing: Choosing) -> Picker {
        let mut picker = Picker::loading("Fruit", choosing);
        let item = |text: &str, detail: &str| Item {
            text: text.to_owned(),
            detail: detail.to_owned(),
            preview: format!("About {text}"),
        };
        picker.fill(
            vec![item("apple", "red"), item("pear", "green"), item("grape", "green")],
            0,
            "",
        );
        picker
    }

    fn shown(picker: &Picker, width: usize, height: usize) -> Vec<String> {
        let rows = picker.rows(width, height);
        rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect()
    }

    #[test]
    fn typing_filters_by_every_word_in_text_and_detail() {
        let mut picker = picker(Choosing::Filter);
        picker.push("AP");
        assert_eq!(
            shown(&picker, 20, 9),
            ["Fruit 2 of 3", "❯ apple          red", "  grape        green"]
        );
        picker.push(" gree");
        assert_eq!((shown(&picker, 20, 9).len(), picker.chosen()), (2, Some(2)));
        picker.push("x");
        assert_eq!(shown(&picker, 20, 9), ["Fruit 0 of 3", "  No match"]);
        assert!(picker.clear() && !picker.clear());
    }

    #[test]
    fn the_selection_stays_in_view_and_has_a_preview_where_there_is_room() {
        let mut picker = picker(Choosing::Filter);
        picker.go(9);
        assert_eq!(shown(&picker, 20, 2), ["Fruit 3", "❯ grape        green"]);
        assert_eq!(shown(&picker, 20, 14).last().unwrap(), "  About grape");
    }

    #[test]
    fn a_digit_chooses_an_entry_of_a_menu() {
        let mut picker = picker(Choosing::Digits);
        assert!(!picker.push("4") && !picker.push("x") && picker.push("2"));
        assert_eq!(picker.chosen(), Some(1));
        assert_eq!(shown(&picker, 20, 9)[2], "❯ 2 pear       green");
    }

    #[test]
    fn an_empty_list_says_so() {
        let mut picker = Picker::loading("Fruit", Choosing::Filter);
        assert_eq!(shown(&picker, 20, 9), ["Fruit", "  Loading…"]);
        picker.fill(Vec::new(), 0, "None left");
        assert_eq!(shown(&picker, 20, 9), ["Fruit", "  None left"]);
    }
}
