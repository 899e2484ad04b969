//! The line between the conversation and the input.

use ratatui_core::text::{Line, Span};

use crate::safe::safe_line;
use crate::style::{DIM, WARNING};
use crate::wrap::{fit, width_of};

/// A thin rule. With several agents it carries the name of the one in view: `── tests 0/1/ ──`.
pub(crate) struct Separator {
    /// The agent in view, if there are several.
    pub(crate) agent: Option<String>,
    /// The note on unread mail.
    pub(crate) mail: Option<String>,
}

impl Separator {
    pub(crate) fn render(&self, width: usize) -> Line<'static> {
        let mut spans = vec![Span::styled("──", DIM)];
        if let Some(agent) = &self.agent {
            let room = width.saturating_sub(6);
            spans.push(Span::raw(format!(" {} ", fit(&safe_line(agent), room))));
            spans.push(Span::styled("──", DIM));
        }
        if let Some(mail) = &self.mail {
            spans.push(Span::styled(format!(" {mail} "), WARNING));
            spans.push(Span::styled("──", DIM));
        }
        let used = width_of(&spans);
        spans.push(Span::styled("─".repeat(width.saturating_sub(used)), DIM));
        Line::from(spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: Option<&str>, mail: Option<&str>, expected: &str) {
        let own = |text: Option<&str>| text.map(str::to_owned);
        let separator = Separator { agent: own(agent), mail: own(mail) };
        assert_eq!(separator.render(30).to_string(), expected);
    }

    #[test]
    fn the_separator_names_the_agent_and_counts_its_mail() {
        check(None, None, &"─".repeat(30));
        check(Some("tests 0/1/"), None, &format!("── tests 0/1/ ──{}", "─".repeat(14)));
        check(None, Some("[mail:2]"), &format!("── [mail:2] ──{}", "─".repeat(16)));
        let both = format!("── 0/ ── [mail:2] ──{}", "─".repeat(10));
        check(Some("0/"), Some("[mail:2]"), &both);
    }
}
