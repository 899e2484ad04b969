//! The result of a step as the model sees it, in the envelope of all tools.

use ikigai_mail::render_result;
use ikigai_store::{Agent, AwaitedAgent, AwaitedCommand, Outcome, Status, Step, WaitReport};
use ikigai_tools::{OutputSize, ToolResult, counted, cut};
use serde_json::{Map, Value, json};

/// Renders the result of an outcome. Without an outcome, the database refused the step.
pub type Render = fn(Option<&Outcome>, OutputSize) -> ToolResult;

/// The function that renders the result of a step: bare for mail, in an envelope for all others.
pub fn renderer(step: &Step) -> Render {
    match step {
        Step::Inbox(_) | Step::Read(_) | Step::Peek(_) | Step::Unread(_) | Step::Send { .. } => {
            |outcome, _| render_result(outcome)
        }
        Step::Fork(_)
        | Step::Kill(_)
        | Step::Agents
        | Step::Wait(_)
        | Step::EndWait(_)
        | Step::AbandonWait => render,
    }
}

fn render(outcome: Option<&Outcome>, size: OutputSize) -> ToolResult {
    let Some(outcome) = outcome else {
        return ToolResult::failure("Database error");
    };
    match outcome {
        Outcome::Forked(child) => {
            success(json!({"agent": child})).summed_up(format!("forked {child}"))
        }
        Outcome::Killed(killed) => {
            let names: Vec<String> = killed.iter().map(ToString::to_string).collect();
            success(json!({"killed": killed})).summed_up(format!("killed {}", names.join(", ")))
        }
        Outcome::Agents(agents) => {
            let listed: Value = agents.iter().map(listed).collect();
            let line = counted(agents.len() as u64, "agent", "agents");
            success(json!({ "agents": listed })).summed_up(line)
        }
        Outcome::WaitEnded(waited) => {
            success(render_wait(waited, size)).summed_up(wait_line(waited))
        }
        Outcome::Abandoned => {
            ToolResult::failure("Interrupted: the wait ended, the agents continue")
        }
        Outcome::Refused(refusal) => ToolResult::failure(&refusal.to_string()),
        // No step of these tools has these outcomes.
        Outcome::Inbox(_)
        | Outcome::Read(_)
        | Outcome::Peeked(_)
        | Outcome::MadeUnread(_)
        | Outcome::Sent { .. }
        | Outcome::NoMail(_)
        | Outcome::NoAgent(_)
        | Outcome::Dead(_)
        | Outcome::Full(_) => render_result(Some(outcome)),
    }
}

fn success(data: Value) -> ToolResult {
    match data {
        Value::Object(data) => ToolResult::success(data),
        other => unreachable!("data is an object, not {other}"),
    }
}

fn listed(agent: &Agent) -> Value {
    json!({
        "id": agent.id,
        "name": agent.name,
        "state": agent.state.name(),
        "task": agent.task,
    })
}

/// All answers together share the size limit of one output.
fn render_wait(waited: &WaitReport, size: OutputSize) -> Value {
    let lengths = waited.results.iter().filter_map(|result| text_of(result).map(str::len));
    let share = fair_share(lengths.collect(), size.bytes());
    let mut truncated = false;
    let mut bounded = |text: &str| match cut(text, share) {
        Some(text) => {
            truncated = true;
            text
        }
        None => text.to_owned(),
    };
    let results: Value =
        waited.results.iter().map(|result| awaited(result, &mut bounded)).collect();
    let mut data = json!({"results": results, "unread": waited.unread});
    if !waited.commands.is_empty() {
        data["commands"] = waited.commands.iter().map(awaited_command).collect();
    }
    if truncated {
        data["truncated"] = Value::from(true);
    }
    data
}

/// The states of the awaited agents on one line: `0/0/ idle, 0/1/ running; 1 unread`.
fn wait_line(waited: &WaitReport) -> String {
    let status =
        |result: &AwaitedAgent| format!("{} {}", result.agent, status_name(&result.status));
    let results: Vec<String> = waited.results.iter().map(status).collect();
    let results = if results.is_empty() { "no agents".to_owned() } else { results.join(", ") };
    match waited.unread {
        0 => results,
        unread => format!("{results}; {unread} unread"),
    }
}

fn status_name(status: &Status) -> &'static str {
    match status {
        Status::Answered(_) | Status::Failed(_) => "idle",
        Status::Running => "running",
        Status::Dead => "dead",
    }
}

fn text_of(result: &AwaitedAgent) -> Option<&str> {
    match &result.status {
        Status::Answered(text) | Status::Failed(text) => Some(text),
        Status::Running | Status::Dead => None,
    }
}

fn awaited(result: &AwaitedAgent, bounded: &mut impl FnMut(&str) -> String) -> Value {
    let mut fields = Map::new();
    fields.insert("agent".to_owned(), json!(result.agent));
    let mut add = |name: &str, value: String| fields.insert(name.to_owned(), Value::from(value));
    add("status", status_name(&result.status).to_owned());
    match &result.status {
        Status::Answered(text) => drop(add("answer", bounded(text))),
        Status::Failed(error) => drop(add("error", bounded(error))),
        Status::Running | Status::Dead => {}
    }
    Value::Object(fields)
}

fn awaited_command(command: &AwaitedCommand) -> Value {
    let status = match (command.is_running, command.exit_code) {
        (true, _) => "running",
        (false, Some(_)) => "ended",
        (false, None) => "ended with ikigai",
    };
    json!({"id": command.id, "status": status, "exit_code": command.exit_code})
}

/// The maximum bytes of each text so that all fit. Long texts get the room that short ones leave.
fn fair_share(mut lengths: Vec<usize>, room: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut count) = (room, lengths.len());
    for length in lengths {
        if length > left / count {
            return left / count;
        }
        left -= length;
        count -= 1;
    }
    room
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, Time};
    use ikigai_store::{InboxPage, Refusal, State, Wait};

    use super::*;

    fn id(text: &str) -> AgentId {
        AgentId::parse(text).unwrap()
    }

    #[track_caller]
    fn check(outcome: &Outcome, expected: &str) {
        let size = OutputSize::clamped(51_200);
        assert_eq!(render(Some(outcome), size).to_string(), expected);
    }

    fn waited(results: Vec<(&str, Status)>, unread: u32) -> Outcome {
        let result = |(agent, status)| AwaitedAgent { agent: id(agent), status };
        Outcome::WaitEnded(WaitReport {
            results: results.into_iter().map(result).collect(),
            unread,
            commands: Vec::new(),
        })
    }

    #[test]
    fn results_have_the_fields_in_the_contract() {
        check(&Outcome::Forked(id("0/1/")), r#"{"success":true,"data":{"agent":"0/1/"}}"#);
        check(
            &Outcome::Killed(vec![id("0/1/0/"), id("0/1/")]),
            r#"{"success":true,"data":{"killed":["0/1/0/","0/1/"]}}"#,
        );
        let agent = Agent {
            id: id("0/"),
            name: None,
            state: State::Tool,
            unread: 3,
            notification_pending: false,
            model: None,
            task: "fix it".to_owned(),
            created_at: Time::from_millis(0),
        };
        let builder = Agent { id: id("0/0/"), name: Some("builder".to_owned()), ..agent.clone() };
        check(
            &Outcome::Agents(vec![agent, builder]),
            concat!(
                r#"{"success":true,"data":{"agents":[{"id":"0/","name":null,"state":"tool","task":"fix it"},"#,
                r#"{"id":"0/0/","name":"builder","state":"tool","task":"fix it"}]}}"#
            ),
        );
        let statuses = vec![
            ("0/0/", Status::Answered("42".to_owned())),
            ("0/1/", Status::Failed("no model".to_owned())),
            ("0/2/", Status::Running),
            ("0/3/", Status::Dead),
        ];
        check(
            &waited(statuses, 2),
            concat!(
                r#"{"success":true,"data":{"results":[{"agent":"0/0/","status":"idle","answer":"42"},"#,
                r#"{"agent":"0/1/","status":"idle","error":"no model"},{"agent":"0/2/","status":"running"},"#,
                r#"{"agent":"0/3/","status":"dead"}],"unread":2}}"#
            ),
        );
        check(&waited(vec![], 0), r#"{"success":true,"data":{"results":[],"unread":0}}"#);
    }

    #[test]
    fn failures_are_in_an_envelope_except_for_mail() {
        let text = r#"{"success":false,"error":"Maximum agents (20) reached"}"#;
        check(&Outcome::Refused(Refusal::TooMany(20)), text);
        let text = r#"{"success":false,"error":"Maximum agent depth (4) exceeded"}"#;
        check(&Outcome::Refused(Refusal::TooDeep(4)), text);
        let size = OutputSize::clamped(0);
        let failed = renderer(&Step::Agents)(None, size).to_string();
        assert_eq!(failed, r#"{"success":false,"error":"Database error"}"#);
        let failed = renderer(&Step::Read(1))(None, size).to_string();
        assert_eq!(failed, r#"{"error":"Database error"}"#);
        let inbox = Outcome::Inbox(InboxPage { mail: Vec::new(), unread: 0, more: 0 });
        let listed = renderer(&Step::Read(1))(Some(&inbox), size).to_string();
        assert_eq!(listed, r#"{"messages":[],"unread_count":0}"#);
        let wait =
            Wait { agents: Vec::new(), commands: Vec::new(), limit: std::time::Duration::ZERO };
        let interrupted = renderer(&Step::Wait(wait))(Some(&Outcome::Abandoned), size).to_string();
        assert!(interrupted.starts_with(r#"{"success":false,"error":"Interrupted: "#));
    }

    #[test]
    fn answers_share_the_size_limit_of_one_output() {
        assert_eq!(fair_share(vec![], 10), 10);
        assert_eq!(fair_share(vec![4, 6], 10), 10);
        assert_eq!(fair_share(vec![9, 9], 10), 5);
        assert_eq!(fair_share(vec![2, 90, 90], 10), 4);
        let texts = ["short".to_owned(), "ä".repeat(2_000), "x".repeat(600)];
        let results = ["0/0/", "0/1/", "0/2/"].into_iter().zip(texts);
        let results = results.map(|(id, text)| (id, Status::Answered(text))).collect();
        let outcome = waited(results, 0);
        let result = render(Some(&outcome), OutputSize::clamped(1_024)).to_string();
        let result: Value = serde_json::from_str(&result).unwrap();
        let answer = |at: usize| result["data"]["results"][at]["answer"].as_str().unwrap();
        assert_eq!(answer(0), "short");
        let marker = "\n[Output truncated: showing first 508 of 4000 bytes]";
        assert_eq!(answer(1), format!("{}{marker}", "ä".repeat(254)));
        assert!(answer(2).ends_with("[Output truncated: showing first 509 of 600 bytes]"));
        assert_eq!(result["data"]["truncated"], true);
    }
}
