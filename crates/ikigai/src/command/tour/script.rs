//! The script of the model. Like a real model, it chooses its next line by the request alone.

use serde_json::Value;

/// The user's messages in the tour.
pub(super) const FIX: &str = "the test fails, please fix it";
pub(super) const ASK: &str = "ask agent 1/ to review the change";
pub(super) const SLOW: &str = "run the slow test";

/// The user's messages on the full screen only.
pub(super) const FORK: &str = "fork a child that tries it with other numbers";
pub(super) const GUARD: &str = "let git run the test before every commit";

/// The prompt of the child.
const CHECK: &str = "Try sum.sh with 1 and with 100, then write to your parent";

/// The part of a request that the script depends on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ModelRequest {
    /// The last message: the user's, or a notification of mail.
    prompt: String,
    /// The results of calls since that message.
    results: Vec<String>,
}

/// A response of the model: text, and possibly a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) text: &'static str,
    pub(super) call: Option<Call>,
}

/// A tool call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) tool: &'static str,
    /// A JSON object.
    pub(super) arguments: String,
}

/// A part of the tour: the calls made in response to a cue, and the final answer.
struct Scene {
    /// Text contained in the last message.
    cue: &'static str,
    steps: &'static [Step],
    answer: &'static str,
    /// The answer if a call was refused or failed.
    on_failure: &'static str,
}

struct Step {
    text: &'static str,
    tool: &'static str,
    /// `ID` is replaced by the number of the mail in the notification.
    arguments: &'static str,
}

const fn call(tool: &'static str, arguments: &'static str) -> Step {
    Step { text: "", tool, arguments }
}

const SCENES: &[Scene] = &[
    Scene {
        cue: FIX,
        steps: &[
            Step {
                text: "I'll run the test first.",
                tool: "bash",
                arguments: r#"{"command":"bash test.sh"}"#,
            },
            call("grep", r#"{"pattern":"for ","glob":"*.sh"}"#),
            call("file_read", r#"{"path":"sum.sh"}"#),
            call("file_edit", r#"{"path":"sum.sh","old_string":"i < $1","new_string":"i <= $1"}"#),
            call("bash", r#"{"command":"bash test.sh"}"#),
        ],
        answer: "Fixed: the loop in sum.sh left out the last number. The test passes now.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: ASK,
        steps: &[call(
            "mail",
            r#"{"action":"send","to":"1/","body":"Please review the loop in sum.sh"}"#,
        )],
        answer: "I've written to 1/. Its answer will wake me.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: FORK,
        steps: &[call(
            "fork",
            r#"{"prompt":"Try sum.sh with 1 and with 100, then write to your parent","name":"checker"}"#,
        )],
        answer: "My child is trying it. Its mail will wake me.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: CHECK,
        steps: &[
            call("bash", r#"{"command":"bash sum.sh 1; bash sum.sh 100"}"#),
            call(
                "mail",
                r#"{"action":"send","to":"parent","body":"Right also for 1 and for 100"}"#,
            ),
        ],
        answer: "I tried it and wrote to my parent.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: "from 0/0/",
        steps: &[call("mail", r#"{"action":"read","id":ID}"#)],
        answer: "My child tried the change with other numbers: it is correct.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: GUARD,
        steps: &[call(
            "file_write",
            r##"{"path":".git/hooks/pre-commit","content":"#!/bin/sh\nexec bash test.sh\n"}"##,
        )],
        answer: "Done. After `chmod +x .git/hooks/pre-commit` git runs the test before every commit.",
        on_failure: "You said no, so I left it unchanged.",
    },
    Scene {
        cue: "from 0/",
        steps: &[
            call("mail", r#"{"action":"read","id":ID}"#),
            call("bash", r#"{"command":"bash sum.sh 1; bash sum.sh 100"}"#),
            call("mail", r#"{"action":"send","to":"0/","body":"Right also for 1 and for 100"}"#),
        ],
        answer: "I tried it with other numbers and replied.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: "from 1/",
        steps: &[call("mail", r#"{"action":"read","id":ID}"#)],
        answer: "1/ tried the change with other numbers: it is correct.",
        on_failure: GIVEN_UP,
    },
    Scene {
        cue: SLOW,
        steps: &[call("bash", r#"{"command":"bash slow.sh"}"#)],
        answer: CUT_OFF,
        on_failure: CUT_OFF,
    },
];

/// In this scene the call fails on purpose.
const CUT_OFF: &str = "The slow test ended with my process. I can run it again.";

/// The answer when a call failed that the rest depends on.
pub(super) const GIVEN_UP: &str = "That did not work, so I stop here.";

/// The answer to a message that is not in the script.
const NOT_IN_SCRIPT: &str = "I'm the tour's script and only know my lines.";

/// The possible final answers to a message of the tour on the full screen.
pub(super) fn final_answers(said: &str) -> [&'static str; 2] {
    // A fork is done when the child's mail has been read.
    let cue = if said == FORK { "from 0/0/" } else { said };
    let scene = SCENES.iter().find(|scene| scene.cue == cue);
    scene.map_or([NOT_IN_SCRIPT; 2], |scene| match scene.on_failure {
        GIVEN_UP => [scene.answer; 2],
        on_failure => [scene.answer, on_failure],
    })
}

impl ModelRequest {
    /// Parses a request in Chat Completions format.
    pub(super) fn parse(body: &[u8]) -> Option<ModelRequest> {
        let request: Value = serde_json::from_slice(body).ok()?;
        let messages = request["messages"].as_array()?;
        let last = messages.iter().rposition(|message| message["role"] == "user")?;
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let since = &messages[last + 1..];
        let results = since.iter().filter(|message| message["role"] == "tool").map(text);
        Some(ModelRequest { prompt: text(&messages[last]), results: results.collect() })
    }

    /// The model's next line.
    pub(super) fn reply(&self) -> Reply {
        let only = |text| Reply { text, call: None };
        let Some(scene) = SCENES.iter().find(|scene| self.prompt.contains(scene.cue)) else {
            return only(NOT_IN_SCRIPT);
        };
        let step = scene.steps.get(self.results.len());
        let has_failed = self.has_error() || step.is_none() && self.has_bad_exit();
        if has_failed {
            return only(scene.on_failure);
        }
        let Some(step) = step else { return only(scene.answer) };
        let arguments = step.arguments.replace("ID", self.mail_id());
        Reply { text: step.text, call: Some(Call { tool: step.tool, arguments }) }
    }

    fn has_error(&self) -> bool {
        self.last_result().get("error").is_some()
    }

    fn has_bad_exit(&self) -> bool {
        self.last_result()["data"]["exit_code"].as_i64().is_some_and(|code| code != 0)
    }

    fn last_result(&self) -> Value {
        let last = self.results.last().and_then(|result| serde_json::from_str(result).ok());
        last.unwrap_or_default()
    }

    /// The number of the mail in `#7 from 1/: …`.
    fn mail_id(&self) -> &str {
        let behind = self.prompt.split_once('#').map_or("", |(_, behind)| behind);
        behind.split_once(' ').map_or("0", |(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(said: &str, results: &[&str]) -> ModelRequest {
        let results = results.iter().map(|result| (*result).to_owned()).collect();
        ModelRequest { prompt: said.to_owned(), results }
    }

    #[track_caller]
    fn check(request: &ModelRequest, text: &str, call: Option<(&str, &str)>) {
        let reply = request.reply();
        let said = reply.call.as_ref().map(|call| (call.tool, call.arguments.as_str()));
        assert_eq!((reply.text, said), (text, call));
    }

    #[test]
    fn a_request_is_what_was_said_last_and_the_results_since_then() {
        let body = json!({"model": "x", "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "one"},
            {"role": "tool", "content": "old"},
            {"role": "assistant", "content": "a"},
            {"role": "user", "content": "two"},
            {"role": "assistant", "content": null, "tool_calls": []},
            {"role": "tool", "content": "new"},
        ]});
        assert_eq!(
            ModelRequest::parse(body.to_string().as_bytes()),
            Some(request("two", &["new"]))
        );
    }

    #[test]
    fn an_invalid_request_is_none() {
        for body in ["", "{", "[]", r#"{"messages":7}"#, r#"{"messages":[{"role":"tool"}]}"#] {
            assert_eq!(ModelRequest::parse(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn the_next_call_follows_from_the_results_so_far() {
        let said = format!("[You are agent 0/]\n\n{FIX}");
        let test = ("bash", r#"{"command":"bash test.sh"}"#);
        check(&request(&said, &[]), "I'll run the test first.", Some(test));
        check(&request(&said, &["{}"; 2]), "", Some(("file_read", r#"{"path":"sum.sh"}"#)));
        check(&request(&said, &["{}"; 5]), SCENES[0].answer, None);
        check(&request(&said, &["{}"; 99]), SCENES[0].answer, None);
    }

    #[test]
    fn mail_is_read_by_the_number_in_the_notification() {
        let said = "[Notification: You have 1 unread message in your inbox]\n#17 from 1/: \"x\"";
        check(&request(said, &[]), "", Some(("mail", r#"{"action":"read","id":17}"#)));
    }

    #[test]
    fn a_failed_call_ends_the_scene() {
        let failed = r#"{"success":false,"error":"no bash"}"#;
        check(&request(FIX, &[failed]), GIVEN_UP, None);
        check(&request(SLOW, &[failed]), CUT_OFF, None);
    }

    #[test]
    fn a_fix_is_only_claimed_if_the_test_passes() {
        let ended = |code: i32| json!({"success": true, "data": {"exit_code": code}}).to_string();
        let last = |code| request(FIX, &["{}", "{}", "{}", "{}", &ended(code)]);
        check(&last(0), SCENES[0].answer, None);
        check(&last(1), GIVEN_UP, None);
        // The first failure is the reason for the fix.
        assert!(request(FIX, &[&ended(1)]).reply().call.is_some());
    }

    #[test]
    fn a_message_outside_the_script_is_not_answered() {
        check(&request("write me a poem", &[]), NOT_IN_SCRIPT, None);
    }

    #[test]
    fn every_call_of_the_script_is_one_that_the_tools_understand() {
        let tools = ikigai_agents::catalogue();
        for step in SCENES.iter().flat_map(|scene| scene.steps) {
            let arguments = step.arguments.replace("ID", "1");
            let prepared = tools.dispatch(step.tool, arguments.as_bytes());
            assert!(prepared.is_ok(), "{} {arguments}", step.tool);
        }
    }
}
