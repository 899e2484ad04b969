//! Drawing the screen. Everything on it is a row of safe text; this module only decides where rows
//! go.

use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::AgentState;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use crate::app::{App, Picking, Popup};
use crate::draft::DraftRows;
use crate::pane::Pane;
use crate::safe::safe_line;
use crate::separator::Separator;
use crate::status::{StatusFacts, short};
use crate::style::{DIM, USER, WARNING, restrict};
use crate::team::Member;
use crate::team_list::{Doing, TeamView};
use crate::team_row::team_row;
use crate::transcript::Window;
use crate::update::Status;
use crate::wrap::fit;

/// The most visible offers, if the screen has three times as many rows.
const OFFERS: usize = 6;
/// The most rows for queued messages.
const QUEUED: usize = 4;
/// From this height on, an empty row sets the activity apart.
const ROOMY: usize = 16;
const PROMPT: &str = "❯ ";

/// The height of each part of the screen, from top to bottom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Heights {
    transcript: usize,
    queued: usize,
    activity: usize,
    separator: usize,
    input: usize,
    popup: usize,
    status: usize,
    team: usize,
}

impl App {
    /// Draws the screen and returns the position of the cursor. Changes nothing but cached layouts.
    pub fn draw(&mut self, buffer: &mut Buffer, now: Duration) -> Option<Position> {
        let area = buffer.area;
        self.size = area.as_size();
        let width = usize::from(area.width);
        let heights = self.heights();
        let mut pen = Pen { buffer, row: area.y };
        let rows = self.top_rows(width, heights.transcript, now);
        pen.skip(heights.transcript.saturating_sub(rows.len()));
        pen.rows(rows, heights.transcript);
        pen.rows(self.queued_rows(width), heights.queued);
        let status = self.status_in_view();
        let model = safe_line(&status.model);
        let activity = self.pane_in_view().activity.render(&model, now, width);
        pen.skip(heights.activity.saturating_sub(activity.len()));
        pen.rows(activity, heights.activity);
        pen.rows([self.separator(width)], heights.separator);
        let input_top = pen.row;
        let (rows, cursor) = self.input_rows(width, heights.input, now);
        pen.rows(rows, heights.input);
        pen.rows(self.popup_rows(width, heights.popup), heights.popup);
        let (used, running) = (self.pane_in_view().tokens, self.commands.len());
        let facts = StatusFacts { used, running, unread: self.unread, hint: self.keys() };
        pen.rows([status.render(facts, width)], heights.status);
        pen.rows(team_row(&self.team, &self.view, width), heights.team);
        restrict(pen.buffer, self.colours);
        let (row, column) = cursor?;
        let row = input_top.saturating_add(u16::try_from(row).ok()?);
        let column = u16::try_from(column).ok()?.min(area.width.saturating_sub(1));
        (row < area.bottom() && area.width > 0).then_some(Position::new(area.x + column, row))
    }

    /// The status of the agent in view, which may have its own model.
    fn status_in_view(&self) -> Status {
        let mut status = self.status.clone();
        let Some(pane) = self.panes.get(&self.view) else { return status };
        if let Some((model, context_tokens)) = pane.model.clone() {
            (status.model, status.context_tokens) = (model, context_tokens);
        }
        status.context_tokens = pane.window.or(status.context_tokens);
        status
    }

    /// The part of the screen for the conversation.
    pub(crate) fn window(&mut self) -> Window {
        let height = self.heights().transcript;
        Window { width: usize::from(self.size.width), height }
    }

    /// The columns for the draft.
    pub(crate) fn input_width(&self) -> usize {
        usize::from(self.size.width).saturating_sub(2).max(2)
    }

    /// The most rows for a question: two thirds of the screen, and more only if that is too few to
    /// read it.
    pub(crate) fn question_room(&self) -> usize {
        let height = usize::from(self.size.height);
        height.saturating_sub(3).min((height * 2 / 3).max(8))
    }

    /// Assigns rows from the bottom, where the user types, to the top.
    fn heights(&mut self) -> Heights {
        let (width, height) = (usize::from(self.size.width), usize::from(self.size.height));
        let status = height.min(1);
        let input = self.input_height(width).min(height - status);
        let separator = (height - status - input).min(1);
        let mut left = height - status - input - separator;
        let team = left.min(usize::from(self.team.members().len() > 1));
        left -= team;
        let mut give = |wanted: usize| {
            let given = wanted.min(left);
            left -= given;
            given
        };
        let popup = give(self.popup_height());
        let pane = self.pane_in_view();
        let activity = match pane.activity.height() {
            0 => 0,
            rows => give(rows + usize::from(height >= ROOMY)),
        };
        let queued = give(pane.queued.len().min(QUEUED));
        Heights { transcript: left, queued, activity, separator, input, popup, status, team }
    }

    fn input_height(&mut self, width: usize) -> usize {
        if self.is_question_shown() {
            let (room, view) = (self.question_room(), self.view.clone());
            let question = self.pane_in_view().questions.front_mut();
            return question.map_or(1, |question| question.height(&view, width, room).min(room));
        }
        if let Popup::Picker(_) = &self.popup {
            return 1;
        }
        let most = (usize::from(self.size.height) / 3).max(1);
        let input_width = self.input_width();
        self.pane_in_view().draft.rows(input_width).rows.len().min(most)
    }

    fn popup_height(&mut self) -> usize {
        let room = OFFERS.min(usize::from(self.size.height) / 3);
        match &self.popup {
            Popup::Search(_) => 1,
            Popup::Team(_) | Popup::Keys(_) | Popup::Picker(_) => 0,
            Popup::None if self.is_question_shown() => 0,
            Popup::None => self.completion.height().min(room),
        }
    }

    /// The conversation, or the team list over it.
    fn top_rows(&mut self, width: usize, height: usize, now: Duration) -> Vec<Line<'static>> {
        if let Popup::Keys(table) = &mut self.popup {
            return table.rows(width, height);
        }
        match &self.popup {
            Popup::Team(view) => {
                let view = view.clone();
                self.team_rows(&view, width, height, now)
            }
            Popup::Picker(picking) => picking.picker.rows(width, height),
            Popup::None | Popup::Keys(_) | Popup::Search(_) => {
                self.pane_in_view().transcript.rows(Window { width, height })
            }
        }
    }

    /// The team list, and below it the last lines of the agent that is peeked at.
    fn team_rows(
        &mut self,
        view: &TeamView,
        width: usize,
        height: usize,
        now: Duration,
    ) -> Vec<Line<'static>> {
        let peeked = view.peeked.as_ref().map_or(0, |_| height / 2);
        let doing = |agent: &AgentId| self.doing(agent, now);
        let mut rows = view.rows(&self.team, width, height - peeked, doing);
        if let Some(agent) = view.peeked.as_ref().filter(|_| peeked > 1) {
            rows.resize(height - peeked, Line::default());
            let title = self.team.member(agent).map(Member::title);
            let separator = Separator { agent: title, mail: None };
            rows.push(separator.render(width));
            let window = Window { width, height: peeked - 1 };
            rows.extend(self.pane(agent).transcript.rows(window));
        }
        rows
    }

    fn doing(&self, agent: &AgentId, now: Duration) -> Doing {
        let since = now.saturating_sub(self.team_since);
        let Some(pane) = self.panes.get(agent) else { return Doing { since, ..Doing::default() } };
        let action = match pane.questions.front() {
            Some(question) => Some(question.request.call.name.clone()),
            None => pane.activity.summary().or_else(|| pane.last_action.clone()),
        };
        let action = match pane.questions.is_empty() {
            true => action,
            false => action.map(|name| format!("needs approval for {name}")),
        };
        Doing { action, context: pane.tokens.map(short), since }
    }

    fn queued_rows(&mut self, width: usize) -> Vec<Line<'static>> {
        let queued = &self.pane_in_view().queued;
        let hidden = queued.len().saturating_sub(QUEUED);
        let row = |(number, text): (usize, &String)| {
            Line::styled(fit(&format!("queued {}: {}", number + 1, safe_line(text)), width), DIM)
        };
        let mut rows: Vec<Line<'static>> =
            queued.iter().enumerate().take(QUEUED).map(row).collect();
        if let (Some(last), true) = (rows.last_mut(), self.pane_in_view().draft.is_empty()) {
            let room = width.saturating_sub(last.width());
            last.push_span(Span::styled(fit(" · ↑ edits the last one", room), DIM));
        }
        if let Some(last) = rows.last_mut()
            && hidden > 0
        {
            *last = Line::styled(format!("queued {QUEUED} and {hidden} more"), DIM);
        }
        rows
    }

    fn separator(&self, width: usize) -> Line<'static> {
        let unread = self.team.member(&self.view).map_or(0, |member| member.unread);
        let pane = self.panes.get(&self.view);
        let is_held = |pane: &Pane| !pane.is_busy() && (!pane.draft.is_empty() || pane.holds_mail);
        let mail = (unread > 0).then(|| match pane.is_some_and(is_held) {
            true => format!("{unread} unread, delivered after your next message"),
            false => format!("[mail:{unread}]"),
        });
        let is_alone = self.team.members().len() < 2;
        let member = self.team.member(&self.view).filter(|_| !is_alone);
        let read_only = if self.why_read_only().is_some() { " (read only)" } else { "" };
        let agent = member.map(|member| format!("{}{read_only}", member.title()));
        Separator { agent, mail }.render(width)
    }

    /// The draft and its cursor, or the question that has to be answered first.
    fn input_rows(
        &mut self,
        width: usize,
        height: usize,
        now: Duration,
    ) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
        if self.is_question_shown() {
            let (view, attention) = (self.view.clone(), self.attention(now));
            let question = self.pane_in_view().questions.front_mut();
            let rows = question.map(|question| question.rows(&view, width, height, attention));
            return (rows.unwrap_or_default(), None);
        }
        if let Popup::Picker(picking) = &self.popup {
            return filter_row(picking, width);
        }
        let input_width = self.input_width();
        let DraftRows { rows, cursor, .. } = self.pane_in_view().draft.rows(input_width);
        // The cursor is always visible.
        let from = (cursor.0 + 1).saturating_sub(height.max(1));
        if self.pane_in_view().draft.is_empty() {
            return (vec![self.placeholder(width)], Some((0, PROMPT.width())));
        }
        let row = |(number, text): (usize, String)| {
            let prompt = if number == 0 { Span::styled(PROMPT, USER) } else { Span::raw("  ") };
            Line::from(vec![prompt, Span::raw(text)])
        };
        let rows = rows.into_iter().enumerate().skip(from).take(height).map(row).collect();
        (rows, Some((cursor.0 - from, cursor.1 + 2)))
    }

    /// What the empty input says.
    fn placeholder(&self, width: usize) -> Line<'static> {
        let is_busy = self.panes.get(&self.view).is_some_and(Pane::is_busy);
        let is_shell_busy = self.panes.get(&self.view).is_some_and(|pane| pane.is_shell_busy);
        let text = match (is_busy, self.popup_is_open()) {
            (_, false) if is_shell_busy => "Your command is running, Esc ends it",
            (_, true) => "",
            (true, false) => "Type what to do next",
            (false, false) => "Type a message, / for commands, @ for files, ? for keys",
        };
        let text = fit(text, width.saturating_sub(PROMPT.width()));
        Line::from(vec![Span::styled(PROMPT, USER), Span::styled(text, DIM)])
    }

    fn popup_is_open(&self) -> bool {
        !matches!(self.popup, Popup::None)
    }

    fn popup_rows(&self, width: usize, height: usize) -> Vec<Line<'static>> {
        match &self.popup {
            Popup::Team(_) | Popup::Keys(_) | Popup::Picker(_) => Vec::new(),
            Popup::None => self.completion.rows(width, height),
            Popup::Search(search) => {
                let found = search.found.as_deref().unwrap_or("(nothing)");
                let text = format!("search '{}': {found}", search.typed);
                vec![Line::styled(fit(&safe_line(&text), width), WARNING)]
            }
        }
    }

    /// A hint at the keys that matter now.
    fn keys(&self) -> &'static str {
        let pane = self.panes.get(&self.view);
        match &self.popup {
            _ if self.leaving => "Ctrl+C once more: leave",
            _ if self.escaping => "Esc once more: earlier messages",
            Popup::Team(_) => "Esc closes",
            Popup::Keys(_) => "Esc closes",
            Popup::Picker(picking) => picking.keys(),
            Popup::Search(_) => "Ctrl+R next · Enter accepts · Esc closes",
            Popup::None if self.is_question_shown() => "",
            Popup::None if self.completion.offers().is_some() => "Tab accepts · Esc closes",
            Popup::None if pane.is_some_and(|pane| !pane.questions.is_empty()) => {
                "Enter: the question"
            }
            Popup::None if pane.is_some_and(|pane| !pane.transcript.is_at_end()) => {
                "Ctrl+End: to the end"
            }
            Popup::None
                if self.team.members().iter().any(|member| member.state == AgentState::Asking) =>
            {
                "Ctrl+X: answer"
            }
            Popup::None if pane.is_some_and(|pane| pane.draft.is_at_paste()) => {
                "Enter expands the paste"
            }
            Popup::None if self.team.members().len() > 1 => "Ctrl+T team",
            Popup::None => "",
        }
    }
}

/// The filter of a list, in place of the draft.
fn filter_row(picking: &Picking, width: usize) -> (Vec<Line<'static>>, Option<(usize, usize)>) {
    let Some((typed, hint)) = picking.typed() else { return (vec![Line::default()], None) };
    let typed = fit(&safe_line(&typed), width.saturating_sub(PROMPT.width() + 1));
    let column = PROMPT.width() + typed.width();
    let shown = match typed.is_empty() {
        true => Span::styled(hint, DIM),
        false => Span::raw(typed),
    };
    (vec![Line::from(vec![Span::styled(PROMPT, USER), shown])], Some((0, column)))
}

/// Draws rows one below the other.
struct Pen<'a> {
    buffer: &'a mut Buffer,
    row: u16,
}

impl Pen<'_> {
    fn skip(&mut self, rows: usize) {
        self.row = self.row.saturating_add(u16::try_from(rows).unwrap_or(u16::MAX));
    }

    fn rows(&mut self, rows: impl IntoIterator<Item = Line<'static>>, most: usize) {
        let Rect { x, width, .. } = self.buffer.area;
        for row in rows.into_iter().take(most) {
            if self.row < self.buffer.area.bottom() {
                self.buffer.set_line(x, self.row, &row, width);
            }
            self.skip(1);
        }
    }
}
