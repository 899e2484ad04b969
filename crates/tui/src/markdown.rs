//! Renders Markdown as rows. It is pure, and renders any prefix of a document while that streams.

mod inline;
mod table;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::highlight::highlight;
use crate::safe::safe;
use crate::style::{CODE, CODE_TINT, DIM, HEADINGS, PLAIN};
use crate::wrap::{Breaks, Margin, wrap};

use inline::Inline;
use table::Table;

/// Deeper nesting is not indented further, because that would leave no room.
const DEPTH: usize = 8;

/// Renders untrusted text in rows of at most `width` columns.
pub(crate) fn render_markdown(text: &str, width: usize) -> Vec<Line<'static>> {
    let text = safe(text);
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page {
        width,
        rows: Vec::new(),
        nests: Vec::new(),
        inline: Inline::default(),
        code: None,
        table: None,
        gap: Gap::None,
    };
    for event in Parser::new_ext(&text, options) {
        page.take(event);
    }
    page.flush();
    page.rows
}

/// The last block of code in a document, without its fences.
pub(crate) fn last_code(markdown: &str) -> Option<String> {
    let mut last = None;
    let mut code = None;
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
            Event::Text(text) => code.iter_mut().for_each(|code: &mut String| code.push_str(&text)),
            Event::End(TagEnd::CodeBlock) => last = code.take().or(last),
            _ => {}
        }
    }
    last
}

fn heading_style(level: HeadingLevel) -> Style {
    let [first, second, third, others] = HEADINGS;
    match level {
        HeadingLevel::H1 => first,
        HeadingLevel::H2 => second,
        HeadingLevel::H3 => third,
        HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => others,
    }
}

/// A container of rows.
enum Nest {
    Quote,
    /// The number of the next item; `None` for bullets.
    List(Option<u64>),
    Item(Margin),
}

/// Whether an empty row precedes the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    None,
    Line,
}

struct Page {
    width: usize,
    rows: Vec<Line<'static>>,
    nests: Vec<Nest>,
    inline: Inline,
    /// The current code block: its language and its text.
    code: Option<(String, String)>,
    table: Option<Table>,
    gap: Gap,
}

impl Page {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some((_, code)) => code.push_str(&text),
                None => self.inline.push(&text, PLAIN),
            },
            Event::Code(text) => self.inline.push(&text, CODE),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.push(&text, CODE),
            Event::Html(text) | Event::InlineHtml(text) => self.inline.push_lines(&text),
            Event::SoftBreak => self.inline.push(" ", PLAIN),
            Event::HardBreak => self.inline.break_line(),
            Event::Rule => self.rule(),
            Event::TaskListMarker(true) => self.inline.push("[x] ", PLAIN),
            Event::TaskListMarker(false) => self.inline.push("[ ] ", PLAIN),
            Event::FootnoteReference(name) => self.inline.push(&format!("[^{name}]"), DIM),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.flush();
                self.inline.enter(heading_style(level));
            }
            Tag::BlockQuote(_) => self.nest(Nest::Quote),
            Tag::CodeBlock(kind) => {
                self.flush();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => {
                        info.split([' ', ',', '{']).next().unwrap_or_default().to_owned()
                    }
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => self.nest(Nest::List(first)),
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(alignments));
            }
            Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Link { .. }
            | Tag::Image { .. } => {
                self.inline.start(&tag);
            }
            Tag::Paragraph
            | Tag::HtmlBlock
            | Tag::FootnoteDefinition(_)
            | Tag::TableHead
            | Tag::TableRow
            | Tag::TableCell
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => {
                self.flush();
                self.gap = Gap::Line;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.leave();
                self.gap = Gap::Line;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::BlockQuote(_) | TagEnd::List(_) => {
                self.flush();
                self.nests.pop();
                self.gap = Gap::Line;
            }
            TagEnd::Item => {
                self.flush();
                self.nests.pop();
                self.gap = Gap::None;
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead => self.with_table(|table, _| table.end_head()),
            TagEnd::TableRow => self.with_table(|table, _| table.end_row()),
            TagEnd::TableCell => {
                self.with_table(|table, inline| table.push_cell(inline.take_line()));
            }
            TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image => self.inline.end(tag),
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn nest(&mut self, nest: Nest) {
        self.flush();
        if matches!(nest, Nest::List(_))
            && self.nests.iter().any(|nest| matches!(nest, Nest::Item(_)))
        {
            self.gap = Gap::None;
        }
        self.nests.push(nest);
    }

    fn start_item(&mut self) {
        self.flush();
        let marker = match self.nests.last_mut() {
            Some(Nest::List(Some(number))) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(Nest::List(None) | Nest::Quote | Nest::Item(_)) | None => "• ".to_owned(),
        };
        self.nests.push(Nest::Item(Margin::hanging(&marker, DIM)));
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take().filter(|(_, code)| !code.is_empty()) else {
            return;
        };
        self.leave_gap();
        let from = self.rows.len();
        for spans in highlight(&language, &code) {
            self.write_code(spans);
        }
        // The background is a block, no wider than the code: a terminal copies it with the text.
        let widest = self.rows[from..].iter().map(Line::width).max().unwrap_or_default();
        for row in &mut self.rows[from..] {
            let space = " ".repeat(widest - row.width());
            row.spans.push(Span::styled(space, CODE_TINT));
        }
        self.gap = Gap::Line;
    }

    /// Writes a line of code. It breaks between words, and continues below its indent.
    fn write_code(&mut self, spans: Vec<Span<'static>>) {
        let is_space = |c: &char| *c == ' ';
        let indent =
            spans.iter().flat_map(|span| span.content.chars()).take_while(is_space).count();
        let tinted: Vec<Span<'static>> = spans
            .into_iter()
            .map(|span| Span::styled(span.content, CODE_TINT.patch(span.style)))
            .collect();
        let mut margin = self.margin();
        // A deep indent leaves no room for the code.
        let indent = if indent * 2 > self.width { 0 } else { indent };
        margin.rest.push(Span::styled(" ".repeat(indent), CODE_TINT));
        self.write_below(&tinted, &margin, Breaks::Words);
    }

    fn with_table(&mut self, change: impl FnOnce(&mut Table, &mut Inline)) {
        if let Some(table) = &mut self.table {
            change(table, &mut self.inline);
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        self.leave_gap();
        let room = self.width.saturating_sub(crate::wrap::width_of(&self.margin().first));
        for row in table.render(room) {
            self.write(&row.spans, Breaks::Anywhere);
        }
        self.gap = Gap::Line;
    }

    fn rule(&mut self) {
        self.flush();
        self.leave_gap();
        let width = self.width.saturating_sub(crate::wrap::width_of(&self.margin().first)).min(40);
        self.write(&[Span::styled("─".repeat(width), DIM)], Breaks::Anywhere);
        self.gap = Gap::Line;
    }

    /// Writes the pending inline text.
    fn flush(&mut self) {
        let lines = self.inline.take();
        if lines.is_empty() {
            return;
        }
        self.leave_gap();
        for line in lines {
            self.write(&line, Breaks::Words);
        }
    }

    fn leave_gap(&mut self) {
        if self.gap == Gap::Line && !self.rows.is_empty() {
            // A new item keeps its marker for its text.
            let rest: Vec<Span<'static>> = self.margin().rest;
            let is_blank = rest.iter().all(|span| span.content.trim().is_empty());
            self.rows.push(if is_blank { Line::default() } else { Line::from(rest) });
        }
        self.gap = Gap::None;
    }

    fn write(&mut self, spans: &[Span<'static>], breaks: Breaks) {
        let margin = self.margin();
        self.write_below(spans, &margin, breaks);
    }

    fn write_below(&mut self, spans: &[Span<'static>], margin: &Margin, breaks: Breaks) {
        self.rows.extend(wrap(spans, self.width, margin, breaks));
        for nest in &mut self.nests {
            if let Nest::Item(margin) = nest {
                margin.finish_first_row();
            }
        }
    }

    /// The margin of a row at the current nesting.
    fn margin(&self) -> Margin {
        let mut whole = Margin::default();
        let quote = Margin::even("▌ ", DIM);
        for nest in self.nests.iter().filter(|nest| !matches!(nest, Nest::List(_))).take(DEPTH) {
            let margin = match nest {
                Nest::Quote | Nest::List(_) => &quote,
                Nest::Item(margin) => margin,
            };
            whole.first.extend_from_slice(&margin.first);
            whole.rest.extend_from_slice(&margin.rest);
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let rows = render_markdown(text, 24);
        // The background of code ends behind its longest line.
        let rows = rows.iter().map(|row| row.to_string().trim_end().to_owned());
        let expected = expected.iter().map(|row| row.trim_end());
        assert_eq!(rows.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn paragraphs_and_headings_are_separated() {
        check(
            "# One\ntext and\nmore of it here\n\nnext",
            &["One", "", "text and more of it here", "", "next"],
        );
    }

    #[test]
    fn lists_hang_and_nest() {
        check(
            "- one two three four five six\n- b\n  - c\n\n3. x\n4. y",
            &["• one two three four", "  five six", "• b", "  • c", "", "3. x", "4. y"],
        );
        check("- [x] done\n- [ ] open", &["• [x] done", "• [ ] open"]);
        check("- a\n\n  second\n- b", &["• a", "", "  second", "• b"]);
    }

    #[test]
    fn every_row_of_a_quote_is_marked() {
        check(
            "> one two three four five\n>\n> next",
            &["▌ one two three four", "▌ five", "▌ ", "▌ next"],
        );
    }

    #[test]
    fn code_keeps_its_lines() {
        check(
            "a\n```rust\nfn  main() {\n\n}\n```\nb",
            &["a", "", "fn  main() {", "", "}", "", "b"],
        );
        check("```\nnot closed", &["not closed"]);
    }

    #[test]
    fn code_never_breaks_inside_a_word_and_continues_below_its_indent() {
        check(
            "```\n    let value = self.some_term();\n```",
            &["    let value =", "    self.some_term();"],
        );
    }

    #[test]
    fn code_has_a_background_as_wide_as_its_longest_line() {
        let rows = render_markdown("```rust\nlet x = 1;\n}\n```", 24);
        assert_eq!(rows.iter().map(Line::width).collect::<Vec<_>>(), [10, 10]);
        let spans = rows.iter().flat_map(|row| &row.spans).filter(|span| !span.content.is_empty());
        assert!(spans.map(|span| span.style.bg).all(|background| background == CODE_TINT.bg));
    }

    #[test]
    fn headings_are_told_apart() {
        let style = |text: &str| render_markdown(text, 24)[0].spans[0].style;
        let styles = ["# a", "## a", "### a", "#### a"].map(style);
        assert_eq!(styles, HEADINGS);
        for (at, style) in styles.iter().enumerate() {
            let is_same = |other: &Style| other.add_modifier == style.add_modifier;
            assert!(!styles[at + 1..].iter().any(is_same), "without colours too");
        }
    }

    #[test]
    fn the_last_code_is_found_without_its_fences() {
        let text = "```sh\nls\n```\n> ~~~\n> a\n> b\n> ~~~\n`c`";
        assert_eq!(last_code(text).as_deref(), Some("a\nb\n"));
        assert_eq!(last_code("`c`"), None);
    }

    #[test]
    fn a_link_shows_its_target() {
        check("[docs](http://a.b)", &["docs (http://a.b)"]);
        check("<http://a.b>", &["http://a.b"]);
        check("![a cat](c.png)", &["a cat (c.png)"]);
    }

    #[test]
    fn a_table_has_columns() {
        check("| a | bb |\n|---|---:|\n| one | 2 |", &["a   │ bb", "────┼───", "one │  2"]);
        check(
            "| name | what it is for |\n|-|-|\n| x | a long explanation |",
            &[
                "name │ what it is for",
                "─────┼──────────────────",
                "x    │ a long",
                "     │ explanation",
            ],
        );
    }

    #[test]
    fn html_and_rules_are_harmless() {
        check("<b>x</b>\n\n---", &["<b>x</b>", "", &"─".repeat(24)]);
    }

    proptest! {
        #[test]
        fn rows_of_any_text_fit(text in "[ -~\\n|*_`#>\\-é日]{0,300}", width in 1usize..60) {
            for row in render_markdown(&text, width) {
                // A margin can be wider than a very narrow screen; drawing cuts it off.
                prop_assert!(row.width() <= width.max(30), "{row:?}");
            }
        }
    }
}
