//! A call that needs approval: what the user has seen of it, and the choice that is selected.

mod dialog;

use std::ops::Range;
use std::time::Duration;

use ikigai_conversation::{AgentId, Decision};
use ikigai_protocol::{ApprovalAnswer, ApprovalRequest};
use ratatui_core::text::Line;

use crate::draft::Draft;

use dialog::{Foot, Layout};

/// A call that waits for approval.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) request: ApprovalRequest,
    pub(crate) stage: Stage,
    /// When it was asked.
    pub(crate) since: Duration,
    /// The number of the selected choice, from 0.
    selected: usize,
    /// The first visible row.
    scrolled: usize,
    /// Whether the user was warned that not everything has been seen.
    is_warned: bool,
    /// The rows above the choices, cached: a question can be as long as a file and is drawn with
    /// every frame.
    layout: Option<Layout>,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Waits for a choice.
    Choice,
    /// Denied; asks for the reason.
    Reason(Draft),
    /// Set aside until later.
    Aside,
}

/// A choice of the dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Allow this call.
    Once,
    /// Allow calls like it for the rest of the session.
    Session,
    /// Allow calls like it from now on.
    Always,
    /// Refuse it.
    No,
}

/// Whether the dialog takes keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attention {
    /// It does.
    Ready,
    /// The user was typing when it came up.
    Typing,
}

impl Question {
    pub(crate) fn new(request: ApprovalRequest, since: Duration) -> Question {
        let (stage, layout) = (Stage::Choice, None);
        Question { request, stage, since, selected: 0, scrolled: 0, is_warned: false, layout }
    }

    /// The choices, in order. Where no rule can allow the call, none can be saved.
    pub(crate) fn choices(&self) -> &'static [Choice] {
        match &self.request.rule {
            Some(_) => &[Choice::Once, Choice::Session, Choice::Always, Choice::No],
            None => &[Choice::Once, Choice::Session, Choice::No],
        }
    }

    pub(crate) fn selected(&self) -> Choice {
        self.choices().get(self.selected).copied().unwrap_or(Choice::No)
    }

    /// Moves the selection: down for positive numbers.
    pub(crate) fn select(&mut self, by: isize) {
        let last = self.choices().len() - 1;
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// The answer. Saving a rule allows the call for this session as well.
    pub(crate) fn answer(&self, choice: Choice, reason: Option<String>) -> ApprovalAnswer {
        let decision = match choice {
            Choice::Once => Decision::Once,
            Choice::Session | Choice::Always => Decision::Always,
            Choice::No => Decision::No,
        };
        let save_rule = self.request.rule.clone().filter(|_| choice == Choice::Always);
        let ApprovalRequest { call, hash, .. } = &self.request;
        let (call, hash) = (call.tool_call_id.clone(), hash.clone());
        ApprovalAnswer { call, hash, decision, reason, save_rule }
    }

    /// Whether an approval counts: everything has been seen, or the user was warned and approves
    /// again.
    pub(crate) fn confirms_approval(
        &mut self,
        agent: &AgentId,
        width: usize,
        height: usize,
    ) -> bool {
        self.note_seen(agent, width, height);
        let layout = self.layout(agent, width);
        layout.seen >= layout.preview || std::mem::replace(&mut self.is_warned, true)
    }

    /// Comes back after it was set aside, from its top.
    pub(crate) fn reopen(&mut self) {
        if matches!(self.stage, Stage::Aside) {
            self.stage = Stage::Choice;
            self.scrolled = 0;
        }
    }

    /// Scrolls within `height` rows: down for positive numbers.
    pub(crate) fn scroll(&mut self, agent: &AgentId, width: usize, height: usize, rows: isize) {
        let last = self.height(agent, width, height).saturating_sub(height);
        self.scrolled = self.scrolled.saturating_add_signed(rows).min(last);
    }

    /// The rows to scroll by for a page of `height` rows: the last row becomes the first one.
    pub(crate) fn page(&self, width: usize, height: usize) -> usize {
        let row_for_more = 1;
        let rows = self.layout.as_ref().map_or(0, |layout| layout.rows.len());
        height.saturating_sub(self.foot(rows, width, height).height() + row_for_more + 1).max(1)
    }

    /// The dialog in at most `height` rows, which always include the choices.
    pub(crate) fn rows(
        &mut self,
        agent: &AgentId,
        width: usize,
        height: usize,
        attention: Attention,
    ) -> Vec<Line<'static>> {
        self.note_seen(agent, width, height);
        let shown = self.shown(agent, width, height);
        let rows = self.layout(agent, width).rows.len();
        let foot = self.foot(rows, width, height);
        let hint = self.hint(attention);
        self.layout(agent, width).render(shown, &foot, hint)
    }

    /// The total number of rows, if there are at most `room`.
    pub(crate) fn height(&mut self, agent: &AgentId, width: usize, room: usize) -> usize {
        let rows = self.layout(agent, width).rows.len();
        rows + self.foot(rows, width, room).height()
    }

    /// The rows above the choices that fit into `height` rows. If there are more, the last row says
    /// so.
    fn shown(&mut self, agent: &AgentId, width: usize, height: usize) -> Range<usize> {
        let count = self.layout(agent, width).rows.len();
        let room = height.saturating_sub(self.foot(count, width, height).height());
        let scrolled = self.scrolled;
        let from = scrolled.min(count.saturating_sub(room));
        match count.min(from + room) {
            to if to == count => from..count,
            to => from..to.saturating_sub(1).max(from),
        }
    }

    /// Rows after skipped ones do not count as seen.
    fn note_seen(&mut self, agent: &AgentId, width: usize, height: usize) {
        let shown = self.shown(agent, width, height);
        let layout = self.layout(agent, width);
        if shown.start <= layout.seen {
            layout.seen = layout.seen.max(shown.end);
        }
    }

    /// Everything above the choices, laid out once per width.
    fn layout(&mut self, agent: &AgentId, width: usize) -> &mut Layout {
        let layout = match self.layout.take() {
            Some(layout) if layout.width == width => layout,
            Some(_) | None => Layout::new(&self.request, agent, width),
        };
        self.layout.insert(layout)
    }

    /// What stands below so many rows: the choices, in one row if there is little room.
    fn foot(&self, rows: usize, width: usize, room: usize) -> Foot {
        /// As many rows of what the call would do are always visible.
        const ROWS: usize = 3;
        match &self.stage {
            Stage::Choice | Stage::Aside => {
                let list = Foot::list(self, width);
                let fits = list.height() + rows.min(ROWS) <= room;
                if fits { list } else { Foot::row(self, width) }
            }
            Stage::Reason(reason) => Foot::reason(&reason.whole(), width),
        }
    }

    /// The keys, in the lower edge.
    fn hint(&self, attention: Attention) -> &'static str {
        match (&self.stage, attention, self.is_warned) {
            (Stage::Reason(_), _, _) => "enter says no · esc goes back",
            (_, Attention::Typing, _) => "stop typing for a moment to answer",
            (_, _, true) => "you have not seen all of it: pgdn, or choose again",
            (_, _, false) if self.choices().len() == 4 => "↑↓ enter · 1-4 · esc decide later",
            (_, _, false) => "↑↓ enter · 1-3 · esc decide later",
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ikigai_conversation::{Body, FileDiff, Hunk, NewMessage, Preview, ResponseId, ToolCallId};

    use super::*;

    pub(crate) fn approval_request(name: &str, preview: Preview) -> ApprovalRequest {
        let id = ToolCallId::new("c");
        let call = NewMessage::tool_call(id, name, "{}", ResponseId::new("r"));
        let Body::ToolCall(call) = call.body else { unreachable!("it is a call") };
        let (why, cause) = ("needs approval".to_owned(), "fix it".to_owned());
        ApprovalRequest { call, preview, why, rule: None, cause, hash: "hash".to_owned() }
    }

    pub(crate) fn command(command: &str) -> Preview {
        Preview::Command { command: command.to_owned() }
    }

    fn change(remark: Option<&str>, lines: &[&str]) -> Preview {
        let lines = lines.iter().map(|line| (*line).to_owned().into()).collect();
        let hunks = vec![Hunk { old: 7, new: 7, lines }];
        let diff = FileDiff { path: "f".to_owned(), added: 1, removed: 0, hunks, omitted: 0 };
        Preview::Change { remark: remark.map(str::to_owned), diff }
    }

    fn rows(question: &mut Question, width: usize, height: usize) -> Vec<String> {
        let rows = question.rows(&AgentId::top_level(0), width, height, Attention::Ready);
        assert!(rows.iter().all(|row| row.width() == width), "{rows:?}");
        rows.iter().map(Line::to_string).collect()
    }

    #[test]
    fn a_command_is_shown_whole_above_the_choices() {
        let request = approval_request("bash", command("rm -r a\n\u{1b}[2Jb"));
        let mut question = Question::new(request.clone(), Duration::ZERO);
        let expected = [
            "╭ Agent 0/ wants to run a command ─────────────────────────╮",
            "│ needs approval                                           │",
            "│   rm -r a                                                │",
            "│   \u{fffd}[2Jb                                                  │",
            "│ Because of: fix it                                       │",
            "│ ❯ 1 Yes                                                  │",
            "│   2 Yes, and don't ask again this session                │",
            "│   3 No, and tell it why…                                 │",
            "╰ ↑↓ enter · 1-3 · esc decide later ───────────────────────╯",
        ];
        assert_eq!(rows(&mut question, 60, 20), expected);
        let rule = Some("[[rules]]\ntool = \"bash\"".to_owned());
        let mut question = Question::new(ApprovalRequest { rule, ..request }, Duration::ZERO);
        question.select(2);
        let shown = rows(&mut question, 60, 20);
        let expected = [
            "│   2 Yes, and don't ask again this session                │",
            "│ ❯ 3 Yes, and always allow this (saved to config)         │",
            "│     [[rules]]                                            │",
            "│     tool = \"bash\"                                        │",
            "│   4 No, and tell it why…                                 │",
            "╰ ↑↓ enter · 1-4 · esc decide later ───────────────────────╯",
        ];
        assert_eq!(shown[6..], expected);
    }

    #[test]
    fn more_rows_are_announced_and_a_small_dialog_has_its_choices_in_one_row() {
        let mut question =
            Question::new(approval_request("bash", command("a\nb\nc\nd")), Duration::ZERO);
        let expected = [
            "╭ Agent 0/ wants to run a command ─────────────────────────╮",
            "│ needs approval                                           │",
            "│   a                                                      │",
            "│ … 4 more rows: PgDn                                      │",
            "│ 1 yes · 2 yes, this session · 3 no                       │",
            "╰ ↑↓ enter · 1-3 · esc decide later ───────────────────────╯",
        ];
        assert_eq!(rows(&mut question, 60, 6), expected);
    }

    fn shown(preview: Preview) -> Vec<String> {
        let mut question = Question::new(approval_request("some_tool", preview), Duration::ZERO);
        let rows = rows(&mut question, 60, usize::MAX);
        let text = |row: &String| row.trim_matches(['│', ' ']).to_owned();
        rows[2..rows.len() - 5].iter().map(text).collect()
    }

    #[test]
    fn a_change_is_shown_with_its_path_or_its_remark() {
        assert_eq!(shown(change(None, &[" 0", "-1", "+2"])), ["f", "7   0", "8 − 1", "8 + 2"]);
        let remark = "f: all 5 bytes of the file are replaced by";
        assert_eq!(shown(change(Some(remark), &["+2"])), [remark, "7 + 2"]);
    }

    /// Regression: a message said that the text was too large, and the change could still be
    /// approved.
    #[test]
    fn a_large_change_is_shown_whole() {
        let shown = shown(change(None, &vec!["+x"; 200_000]));
        assert_eq!(shown.iter().filter(|row| row.ends_with(" + x")).count(), 200_000);
    }

    #[test]
    fn other_calls_show_all_their_arguments() {
        let arguments = r#"{"to":"staging"}"#.to_owned();
        assert_eq!(shown(Preview::Arguments { arguments }), [r#"{"to":"staging"}"#]);
    }
}
