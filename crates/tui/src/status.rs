//! The status line at the bottom of the screen.

use ikigai_conversation::Mode;
use ikigai_protocol::render_context_use;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::safe::safe_line;
use crate::style::{CAUTION, DANGER, DIM, PLAIN, WARNING};
use crate::update::Status;
use crate::wrap::fit;

const BETWEEN: &str = " · ";
/// The columns between the left side and the right one.
const GAP: usize = 2;

/// From how many percent of the context on the meter warns.
const FILLING: u64 = 75;
/// The same for the second warning.
const FULL: u64 = 90;

/// What is left out if there is little room, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LeftOut {
    Nothing,
    Branch,
    Sandbox,
    Cost,
    Model,
}

/// What the line says besides the settings.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StatusFacts<'a> {
    /// How many tokens of the context are used, if that is known.
    pub(crate) used: Option<u64>,
    /// How many background commands run.
    pub(crate) running: usize,
    /// How much unread mail the user has.
    pub(crate) unread: u32,
    /// The keys that matter now.
    pub(crate) hint: &'a str,
}

impl Status {
    /// The line: what the agent works with at the left, what it uses at the right. With little room,
    /// parts are left out, but never the mode, the hint, unread mail, running commands and the
    /// meter.
    pub(crate) fn render(&self, facts: StatusFacts<'_>, width: usize) -> Line<'static> {
        use LeftOut::{Branch, Cost, Model, Nothing, Sandbox};
        let fits = |left_out: &LeftOut| {
            let (left, right) = (self.left(*left_out, facts), self.right(*left_out, facts.used));
            width_with_gaps(&left) + GAP + width_with_gaps(&right) <= width
        };
        let left_out = [Nothing, Branch, Sandbox, Cost].into_iter().find(fits).unwrap_or(Model);
        let (mut left, right) = (self.left(left_out, facts), self.right(left_out, facts.used));
        let surplus =
            (width_with_gaps(&left) + GAP + width_with_gaps(&right)).saturating_sub(width);
        if let Some((last, _)) = left.last_mut() {
            *last = fit(last, last.width().saturating_sub(surplus));
        }
        let space = width.saturating_sub(width_with_gaps(&left) + width_with_gaps(&right));
        let mut spans = joined(left);
        spans.push(Span::raw(" ".repeat(space)));
        spans.extend(joined(right));
        Line::from(spans)
    }

    fn left(&self, left_out: LeftOut, facts: StatusFacts<'_>) -> Vec<(String, Style)> {
        let label = self.label.as_deref().map(safe_line).unwrap_or_default();
        let model = match left_out < LeftOut::Model {
            true => fit(&safe_line(&self.model), 30),
            false => String::new(),
        };
        let mode = if self.mode == Mode::Full { DANGER } else { DIM };
        let branch =
            if left_out < LeftOut::Branch { safe_line(&self.branch) } else { String::new() };
        let running = match facts.running {
            0 => String::new(),
            running => format!("{running} running"),
        };
        let unread = match facts.unread {
            0 => String::new(),
            unread => format!("✉ {unread}"),
        };
        let parts = [
            (label, WARNING),
            (model, DIM),
            (self.mode_text(left_out), mode),
            (unread, WARNING),
            (running, PLAIN),
            (fit(&branch, 30), DIM),
            (facts.hint.to_owned(), DIM),
        ];
        parts.into_iter().filter(|(text, _)| !text.is_empty()).collect()
    }

    fn right(&self, left_out: LeftOut, used: Option<u64>) -> Vec<(String, Style)> {
        let meter = used.map(|used| render_context_use(used, self.context_tokens));
        let cost = self.cost.as_deref().filter(|_| left_out < LeftOut::Cost).map(safe_line);
        let meter = meter.map(|meter| (meter, self.meter_style(used.unwrap_or_default())));
        meter.into_iter().chain(cost.map(|cost| (cost, DIM))).collect()
    }

    fn mode_text(&self, left_out: LeftOut) -> String {
        match (self.mode, self.sandbox.is_empty()) {
            (Mode::Work, _) if left_out >= LeftOut::Sandbox => self.mode.word().to_owned(),
            (Mode::Work, false) => format!("{} ({})", self.mode.word(), safe_line(&self.sandbox)),
            (Mode::Work, true) => format!("{} (no sandbox)", self.mode.word()),
            (Mode::Read | Mode::Full, _) => self.mode.word().to_owned(),
        }
    }

    fn meter_style(&self, used: u64) -> Style {
        let window = self.context_tokens.filter(|window| *window > 0);
        match window.map(|window| used.saturating_mul(100) / window) {
            Some(percent) if percent >= FULL => DANGER,
            Some(percent) if percent >= FILLING => CAUTION,
            Some(_) | None => DIM,
        }
    }
}

/// A number of tokens: `12.3k`
pub(crate) fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{:.1}k", tokens as f64 / 1e3),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

fn width_with_gaps(parts: &[(String, Style)]) -> usize {
    let texts: usize = parts.iter().map(|(text, _)| text.width()).sum();
    texts + BETWEEN.width() * parts.len().saturating_sub(1)
}

fn joined(parts: Vec<(String, Style)>) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    for (text, style) in parts {
        if !spans.is_empty() {
            spans.push(Span::styled(BETWEEN, DIM));
        }
        spans.push(Span::styled(text, style));
    }
    spans
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn status(mode: Mode) -> Status {
        Status {
            model: "gpt-5".to_owned(),
            mode,
            sandbox: "landlock".to_owned(),
            branch: "main".to_owned(),
            context_tokens: Some(200_000),
            cost: Some("$0.12".to_owned()),
            label: None,
        }
    }

    #[track_caller]
    fn check(mode: Mode, hint: &str, width: usize, expected: &str) {
        let facts = StatusFacts { used: Some(30_000), hint, ..StatusFacts::default() };
        let line = status(mode).render(facts, width).to_string();
        assert_eq!(line, expected);
    }

    #[test]
    fn branch_sandbox_and_cost_are_left_out_in_this_order() {
        let (wide, work) = ("gpt-5 · work (landlock) · main    15% context · $0.12", Mode::Work);
        check(work, "", 53, wide);
        check(work, "", 50, "gpt-5 · work (landlock)        15% context · $0.12");
        check(work, "", 40, "gpt-5 · work         15% context · $0.12");
        check(work, "", 28, "gpt-5 · work     15% context");
        check(Mode::Full, "", 20, "full     15% context");
    }

    #[test]
    fn a_hint_stays_at_the_expense_of_everything_but_mode_and_meter() {
        check(Mode::Work, "Esc closes", 44, "gpt-5 · work · Esc closes        15% context");
        check(Mode::Full, "Esc closes", 33, "full · Esc closes     15% context");
        check(Mode::Full, "Esc closes", 25, "full · Esc …  15% context");
    }

    #[test]
    fn running_commands_and_unread_mail_are_counted() {
        let facts = StatusFacts { running: 2, unread: 3, ..StatusFacts::default() };
        let line = status(Mode::Work).render(facts, 60).to_string();
        assert_eq!(line, "gpt-5 · work (landlock) · ✉ 3 · 2 running · main       $0.12");
    }

    #[test]
    fn full_mode_is_red() {
        let line = status(Mode::Full).render(StatusFacts::default(), 80);
        assert!(line.spans.iter().any(|span| span.content == "full" && span.style == DANGER));
    }

    #[test]
    fn the_meter_warns_at_three_quarters_and_again_at_nine_tenths() {
        let style = |used| status(Mode::Work).meter_style(used);
        let styles = [149_999, 150_000, 180_000].map(style);
        assert_eq!(styles, [DIM, CAUTION, DANGER]);
    }

    #[test]
    fn without_a_window_the_meter_counts_tokens() {
        let status = Status { context_tokens: None, cost: None, ..status(Mode::Read) };
        assert_eq!(
            status.render(StatusFacts { used: Some(18), ..StatusFacts::default() }, 26).to_string(),
            "gpt-5 · read     18 tokens"
        );
    }
}
