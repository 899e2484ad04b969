//! The status line at the bottom of the screen.

use ikigai_conversation::Mode;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::safe::safe_line;
use crate::style::{DANGER, DIM, PLAIN, WARNING};
use crate::update::Status;
use crate::wrap::fit;

const BETWEEN: &str = " · ";

impl Status {
    /// The line. With little room, the least important parts are left out, but never the mode.
    /// `running` is how many background commands run.
    pub(crate) fn render(
        &self,
        tokens: Option<u64>,
        running: usize,
        keys: &str,
        width: usize,
    ) -> Line<'static> {
        let running = Some(running).filter(|running| *running > 0);
        let running = running.map(|running| format!("{running} running")).unwrap_or_default();
        let mut parts: Vec<(u8, String, Style)> = vec![
            (2, fit(&safe_line(&self.model), 30), DIM),
            (0, self.mode_text(), if self.mode == Mode::Full { DANGER } else { DIM }),
            (1, running, PLAIN),
            (6, safe_line(&self.session), DIM),
            (4, tokens.map(|tokens| self.tokens_text(tokens)).unwrap_or_default(), DIM),
            (5, self.cost.as_deref().map(safe_line).unwrap_or_default(), DIM),
            (7, safe_line(&self.directory), DIM),
            (3, keys.to_owned(), DIM),
        ];
        if let Some(label) = &self.label {
            parts.insert(0, (1, safe_line(label), WARNING));
        }
        parts.retain(|(_, text, _)| !text.is_empty());
        while parts.len() > 1 && total(&parts) > width {
            let least = (0..parts.len()).max_by_key(|at| parts[*at].0).unwrap_or_default();
            parts.remove(least);
        }
        let mut spans = Vec::new();
        for (_, text, style) in parts {
            if !spans.is_empty() {
                spans.push(Span::styled(BETWEEN, DIM));
            }
            spans.push(Span::styled(text, style));
        }
        Line::from(spans)
    }

    fn mode_text(&self) -> String {
        match (self.mode, self.sandbox.is_empty()) {
            (Mode::Work, false) => format!("{} ({})", self.mode.word(), safe_line(&self.sandbox)),
            (Mode::Work, true) => format!("{} (no sandbox)", self.mode.word()),
            (Mode::Read | Mode::Full, _) => self.mode.word().to_owned(),
        }
    }

    fn tokens_text(&self, tokens: u64) -> String {
        let share = self.context_tokens.filter(|all| *all > 0);
        let share = share.map(|all| format!(" ({} %)", tokens.saturating_mul(100) / all));
        format!("{}{}", short(tokens), share.unwrap_or_default())
    }
}

fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

fn total(parts: &[(u8, String, Style)]) -> usize {
    let texts: usize = parts.iter().map(|(_, text, _)| text.width()).sum();
    texts + BETWEEN.width() * parts.len().saturating_sub(1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn status(mode: Mode) -> Status {
        Status {
            model: "gpt-5".to_owned(),
            mode,
            sandbox: "landlock".to_owned(),
            session: "0192ab".to_owned(),
            context_tokens: Some(200_000),
            cost: Some("$0.12".to_owned()),
            directory: "~/project".to_owned(),
            label: None,
        }
    }

    #[track_caller]
    fn check(mode: Mode, width: usize, expected: &str) {
        assert_eq!(
            status(mode).render(Some(30_000), 0, "Ctrl+T team", width).to_string(),
            expected
        );
    }

    #[test]
    fn the_least_important_part_is_left_out_first() {
        check(
            Mode::Work,
            90,
            "gpt-5 · work (landlock) · 0192ab · 30.0k (15 %) · $0.12 · ~/project · Ctrl+T team",
        );
        check(Mode::Work, 60, "gpt-5 · work (landlock) · 30.0k (15 %) · $0.12 · Ctrl+T team");
        check(Mode::Full, 20, "gpt-5 · full");
        check(Mode::Full, 3, "full");
    }

    #[test]
    fn running_commands_are_counted() {
        let line = status(Mode::Work).render(None, 2, "", 60).to_string();
        assert_eq!(line, "gpt-5 · work (landlock) · 2 running · 0192ab · $0.12");
    }

    #[test]
    fn full_mode_is_red() {
        let line = status(Mode::Full).render(None, 0, "", 80);
        assert!(line.spans.iter().any(|span| span.content == "full" && span.style == DANGER));
    }
}
