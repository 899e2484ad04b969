//! `wait`: waits until other agents are idle. It takes more than one step; see `../wait.rs`.

use std::sync::Arc;
use std::time::Duration;

use ikigai_conversation::{CommandId, EffectKind};
use ikigai_mail::parse_named;
use ikigai_store::{Step, Wait};
use ikigai_tools::{Arguments, BuiltIn, Call, Refusal, Texts, Tool, ToolResult, Whole, tool};

pub(crate) fn tool() -> Arc<dyn Tool<Step>> {
    BuiltIn::new(WaitFor::declaration(), &[EffectKind::Database], prepare)
        .repairing(WaitFor::PARAMETERS)
        .shared()
}

/// The default timeout in seconds.
const DEFAULT: u64 = 300;

tool! {
    /// Wait until agents are idle, commands end, or mail comes
    struct WaitFor = "wait" {
        /// Their IDs; default: all children
        agents: Option<Texts>,
        /// Seconds, default 300
        timeout: Option<Whole<0, 3_600>>,
        /// IDs of background commands
        commands: Option<Texts>,
    }
}

fn prepare(arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
    let WaitFor { agents, timeout, commands } = WaitFor::parse(arguments)?;
    let commands = commands.map_or(Ok(Vec::new()), |Texts(ids)| command_ids(&ids))?;
    let agents = agents.map_or_else(Vec::new, |Texts(agents)| agents);
    let seconds = timeout.map_or(DEFAULT, |Whole(seconds)| seconds);
    let named = commands.iter().map(|id| format!("#{id}"));
    let named: Vec<String> = agents.iter().cloned().chain(named).collect();
    let subject = match named.is_empty() {
        true => "for all children".to_owned(),
        false => format!("for {}", named.join(", ")),
    };
    let wait = Wait {
        agents: agents.iter().map(|agent| parse_named(agent)).collect(),
        commands,
        limit: Duration::from_secs(seconds),
    };
    let call = Call::step(Step::Wait(wait)).shown_as("Wait", &subject);
    Ok(call.shown_while_running(&format!("Waiting {subject}")))
}

/// The numbers of commands; models also write `#3`.
fn command_ids(ids: &[String]) -> Result<Vec<CommandId>, Refusal> {
    let id = |id: &String| CommandId::new(id.trim_start_matches('#').parse().ok()?);
    ids.iter().map(id).collect::<Option<_>>().ok_or(Refusal::Invalid("commands"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::testing::check;

    fn wait(agents: &[&str], seconds: u64) -> Step {
        let agents = agents.iter().map(|agent| parse_named(agent)).collect();
        Step::Wait(Wait { agents, commands: Vec::new(), limit: Duration::from_secs(seconds) })
    }

    #[test]
    fn agents_default_to_all_children_and_a_single_one_needs_no_list() {
        for arguments in ["", "{}", r#"{"agents":[]}"#, r#"{"agents":null,"timeout":null}"#] {
            check("wait", arguments, Ok(wait(&[], 300)));
        }
        check("wait", r#"{"agents":["0/1","builder"]}"#, Ok(wait(&["0/1/", "builder"], 300)));
        check("wait", r#"{"agents":"0/1"}"#, Ok(wait(&["0/1/"], 300)));
        check("wait", r#"{"agents":[1,"2/"]}"#, Ok(wait(&["1/", "2/"], 300)));
        let many = format!(r#"{{"agents":[{}1]}}"#, "1,".repeat(1_000));
        for wrong in [r#"{"agents":[null]}"#, r#"{"agents":{}}"#, r#"{"agents":[-1]}"#, &many] {
            check("wait", wrong, Err(r#"{"error":"Invalid parameter: agents"}"#));
        }
    }

    #[test]
    fn commands_are_numbers() {
        let commands = [3, 4].map(|id| CommandId::new(id).unwrap()).to_vec();
        let limit = Duration::from_secs(300);
        let step = Step::Wait(Wait { agents: Vec::new(), commands, limit });
        check("wait", r##"{"commands":[3,"#4"]}"##, Ok(step));
        for wrong in [r#"{"commands":["x"]}"#, r#"{"commands":[0]}"#, r#"{"commands":3.5}"#] {
            check("wait", wrong, Err(r#"{"error":"Invalid parameter: commands"}"#));
        }
    }

    #[test]
    fn a_timeout_is_at_most_one_hour() {
        for (given, seconds) in [("0", 0), ("3600", 3_600), (r#""20""#, 20), ("20.0", 20)] {
            check("wait", &format!(r#"{{"timeout":{given}}}"#), Ok(wait(&[], seconds)));
        }
        for wrong in ["3601", "-1", "1.5", r#""soon""#, "true"] {
            let text = r#"{"error":"Invalid parameter: timeout"}"#;
            check("wait", &format!(r#"{{"timeout":{wrong}}}"#), Err(text));
        }
    }
}
