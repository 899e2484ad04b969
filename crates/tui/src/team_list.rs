//! The team overlay: a tree of agents, one of them selected, with the last lines of one below.

use std::time::Duration;

use ikigai_conversation::AgentId;
use ikigai_protocol::{AgentState, Runner, render_elapsed};
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use crate::safe::safe_line;
use crate::style::{BOLD, DANGER, DIM, PLAIN, REVERSED, WARNING};
use crate::team::{Member, Team};
use crate::wrap::{fit, width_of};

/// The overlay and its selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamView {
    /// The agents from top to bottom, as they were when the overlay was opened: nothing moves under
    /// the cursor.
    order: Vec<AgentId>,
    pub(crate) chosen: AgentId,
    /// The agent whose last lines are shown.
    pub(crate) peeked: Option<AgentId>,
    /// The agent that `k` kills once the user confirms.
    pub(crate) to_kill: Option<AgentId>,
}

/// What the conversation of an agent knows better than the list.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doing {
    /// What it does now.
    pub(crate) action: Option<String>,
    /// How full its context is.
    pub(crate) context: Option<String>,
    /// How much older it is than the list says.
    pub(crate) since: Duration,
}

impl TeamView {
    /// Opens the overlay. The selection is on the first agent that needs the user, else on the one
    /// in view.
    pub(crate) fn open(team: &Team, view: &AgentId) -> TeamView {
        let ranked = team.ranked();
        let asking = ranked.first().filter(|member| member.state == AgentState::Asking);
        let chosen = asking.map_or_else(|| view.clone(), |member| member.id.clone());
        let order = ranked.iter().map(|member| member.id.clone()).collect();
        TeamView { order, chosen, peeked: None, to_kill: None }
    }

    /// The agents that are alive: new ones below those that were there.
    pub(crate) fn members<'a>(&self, team: &'a Team) -> Vec<&'a Member> {
        let known = self.order.iter().filter_map(|id| team.member(id));
        let new = team.members().iter().filter(|member| !self.order.contains(&member.id));
        known.chain(new).collect()
    }

    /// Moves the selection by so many lines, down for positive numbers.
    pub(crate) fn go(&mut self, team: &Team, by: isize) {
        let members = self.members(team);
        let at = members.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(members.len().saturating_sub(1));
        if let Some(member) = members.get(at) {
            self.chosen = member.id.clone();
        }
    }

    /// The keys that matter now.
    pub(crate) fn hint(&self) -> String {
        match &self.to_kill {
            Some(agent) => {
                format!("Kill {agent} and its children? y kills · any other key does not")
            }
            None => "enter opens · p peeks · m mails · k kills · a answers · esc closes".to_owned(),
        }
    }

    /// The list as rows of at most `height`.
    pub(crate) fn rows(
        &self,
        team: &Team,
        width: usize,
        height: usize,
        doing: impl Fn(&AgentId) -> Doing,
    ) -> Vec<Line<'static>> {
        let members = self.members(team);
        let chosen = members.iter().position(|member| member.id == self.chosen).unwrap_or(0);
        let room = height.saturating_sub(2);
        // The selection is always visible.
        let from = (chosen + 1).saturating_sub(room);
        let columns = Columns::of(&members, width, &doing);
        let shown = members.iter().enumerate().skip(from).take(room);
        let rows = shown.map(|(number, member)| {
            columns.row(number, member, number == chosen, &doing(&member.id))
        });
        let hint_style = if self.to_kill.is_some() { DANGER } else { DIM };
        let hint = Line::styled(fit(&self.hint(), width), hint_style);
        std::iter::once(columns.head()).chain(rows).chain([hint]).collect()
    }
}

/// The widths of the columns. With little room, the columns on the right are left out.
struct Columns {
    width: usize,
    who: usize,
    state: usize,
    context: usize,
    cost: usize,
    mail: usize,
    age: usize,
}

impl Columns {
    const AGE: usize = 8;
    const STATE: usize = 8;
    const MAIL: usize = 5;

    fn of(members: &[&Member], width: usize, doing: impl Fn(&AgentId) -> Doing) -> Columns {
        let widest = |texts: &mut dyn Iterator<Item = usize>| texts.max().unwrap_or(0);
        let who = widest(&mut members.iter().map(|member| who(member).chars().count()));
        let cost =
            widest(&mut members.iter().filter_map(|member| member.cost.as_ref()).map(String::len));
        let context = widest(
            &mut members
                .iter()
                .filter_map(|member| doing(&member.id).context)
                .map(|text| text.len()),
        );
        let has_mail = members.iter().any(|member| member.unread > 0);
        let mut columns = Columns {
            width,
            who: who.clamp(2, (width / 3).max(2)),
            state: Columns::STATE,
            context: if context > 0 { context.max("context".len()) } else { 0 },
            cost: if cost > 0 { cost.max("cost".len()) } else { 0 },
            mail: if has_mail { Columns::MAIL } else { 0 },
            age: if members.iter().any(|member| member.age.is_some()) { Columns::AGE } else { 0 },
        };
        // What the agents do needs the room most.
        const ACTION: usize = 16;
        for column in [Column::Cost, Column::Context, Column::Age, Column::Mail] {
            if columns.action() < ACTION {
                *columns.get(column) = 0;
            }
        }
        columns
    }

    fn get(&mut self, column: Column) -> &mut usize {
        match column {
            Column::Age => &mut self.age,
            Column::Context => &mut self.context,
            Column::Cost => &mut self.cost,
            Column::Mail => &mut self.mail,
        }
    }

    /// The columns for what an agent does.
    fn action(&self) -> usize {
        let right = [self.age, self.context, self.cost, self.mail];
        let right: usize = right.iter().filter(|width| **width > 0).map(|width| width + 1).sum();
        self.width.saturating_sub(4 + self.who + 1 + self.state + 1 + right)
    }

    fn head(&self) -> Line<'static> {
        let mut text = format!("    {} ", pad("team", self.who + self.state + 1));
        text.push_str(&pad("", self.action()));
        for (title, width) in self.right(["age", "context", "cost", "mail"].map(str::to_owned)) {
            text.push_str(&format!(" {title:>width$}"));
        }
        Line::styled(fit(&text, self.width), DIM)
    }

    /// The columns on the right that are shown, with these texts.
    fn right(&self, texts: [String; 4]) -> impl Iterator<Item = (String, usize)> + use<> {
        let widths = [self.age, self.context, self.cost, self.mail];
        texts.into_iter().zip(widths).filter(|(_, width)| *width > 0)
    }

    fn row(&self, number: usize, member: &Member, is_chosen: bool, doing: &Doing) -> Line<'static> {
        let cursor = if is_chosen { "❯" } else { " " };
        let digit = if number < 9 { (number + 1).to_string() } else { " ".to_owned() };
        let (mark, style) = mark(member.state);
        let state = match member.runner {
            Runner::ThisProcess => member.state.name(),
            Runner::OtherProcess => "elsewhere",
            Runner::None => "no term.",
        };
        let action = doing.action.clone().unwrap_or_else(|| member.task.clone());
        let age = member.age.map(|age| render_elapsed(age + doing.since)).unwrap_or_default();
        let mail = if member.unread > 0 { format!("✉ {}", member.unread) } else { String::new() };
        let context = doing.context.clone().unwrap_or_default();
        let cost = member.cost.clone().unwrap_or_default();
        let name_style = if is_chosen { REVERSED } else { BOLD };
        let mut spans = vec![
            Span::styled(format!("{cursor}{digit}"), DIM),
            Span::styled(format!("{mark} "), style),
            Span::styled(pad(&who(member), self.who), name_style),
            Span::styled(format!(" {} ", pad(state, self.state)), style),
            Span::styled(pad(&safe_line(&action), self.action()), PLAIN),
        ];
        for (text, width) in self.right([age, context, cost, mail]) {
            let style = if text.starts_with('✉') { WARNING } else { DIM };
            spans.push(Span::styled(format!(" {}", pad_left(&text, width)), style));
        }
        Line::from(spans)
    }
}

#[derive(Debug, Clone, Copy)]
enum Column {
    Age,
    Context,
    Cost,
    Mail,
}

/// The sign of a state, and its style.
pub(crate) fn mark(state: AgentState) -> (&'static str, Style) {
    match state {
        AgentState::Asking => ("?", DANGER),
        AgentState::Waiting | AgentState::Tool => ("⠹", WARNING),
        AgentState::Idle => ("✓", DIM),
    }
}

/// The agent in its place in the tree: `  0/1/ tests`
fn who(member: &Member) -> String {
    let indent = "  ".repeat(member.id.depth() - 1);
    let name = member.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    safe_line(&format!("{indent}{}{name}", member.id))
}

/// A text in exactly so many columns.
fn pad(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let rest = width.saturating_sub(width_of(&[Span::raw(text.as_str())]));
    format!("{text}{}", " ".repeat(rest))
}

fn pad_left(text: &str, width: usize) -> String {
    let text = fit(text, width);
    let rest = width.saturating_sub(width_of(&[Span::raw(text.as_str())]));
    format!("{}{text}", " ".repeat(rest))
}
