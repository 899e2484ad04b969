//! The team row at the bottom of the screen: a chip for each agent.

use ikigai_conversation::AgentId;
use ikigai_protocol::AgentState;
use ratatui_core::text::{Line, Span};

use crate::safe::safe_line;
use crate::style::{BOLD, DIM};
use crate::team::{Member, Team};
use crate::team_list::mark;
use crate::wrap::{fit, width_of};

const BETWEEN: &str = "  ";

/// The chips, those that need the user first: `? docs needs you  ⠹ tests  ✓ review`. What does not
/// fit is counted. `None` if there is only one agent.
pub(crate) fn team_row(team: &Team, view: &AgentId, width: usize) -> Option<Line<'static>> {
    let members = team.ranked();
    if members.len() < 2 {
        return None;
    }
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (number, member) in members.iter().enumerate() {
        let chip = chip(member, member.id == *view);
        let left = members.len() - number;
        // Room for the number of those that do not fit.
        let more = if left > 1 { format!("{BETWEEN}+{}", left - 1).len() } else { 0 };
        if width_of(&spans) + width_of(&chip) + BETWEEN.len() + more > width && number > 0 {
            spans.push(Span::styled(format!("{BETWEEN}+{left}"), DIM));
            break;
        }
        if number > 0 {
            spans.push(Span::raw(BETWEEN));
        }
        spans.extend(chip);
    }
    Some(Line::from(spans))
}

fn chip(member: &Member, is_in_view: bool) -> Vec<Span<'static>> {
    /// A name has at most this many columns.
    const NAME: usize = 20;
    let (sign, style) = mark(member.state);
    let name = member.name.clone().unwrap_or_else(|| member.id.to_string());
    let name = fit(&safe_line(&name), NAME);
    let name = Span::styled(name, if is_in_view { BOLD } else { style });
    let mut chip = vec![Span::styled(format!("{sign} "), style), name];
    if member.state == AgentState::Asking {
        chip.push(Span::styled(" needs you", style));
    }
    chip
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::team::tests::team_of;

    #[track_caller]
    fn check(width: usize, expected: &str) {
        let team = team_of(&[
            ("0/", None, AgentState::Waiting),
            ("0/0/", Some("tests"), AgentState::Tool),
            ("0/1/", Some("docs"), AgentState::Asking),
            ("1/", Some("review"), AgentState::Idle),
        ]);
        let row = team_row(&team, &AgentId::top_level(0), width).unwrap();
        assert_eq!(row.to_string(), expected);
        assert!(row.width() <= width, "{row:?}");
    }

    #[test]
    fn those_that_need_the_user_come_first_and_the_others_are_counted() {
        check(80, "? docs needs you  ⠹ 0/  ⠹ tests  ✓ review");
        check(30, "? docs needs you  ⠹ 0/  +2");
        check(20, "? docs needs you  +3");
    }

    #[test]
    fn a_single_agent_has_no_row() {
        let team = team_of(&[("0/", None, AgentState::Idle)]);
        assert_eq!(team_row(&team, &AgentId::top_level(0), 80), None);
    }
}
