//! What the scripted model says. Its next line is chosen by what is in the request, as a model's would be.

use serde_json::Value;

/// What the person says in the walk.
pub(super) const FIX: &str = "the test fails, please fix it";
pub(super) const ASK: &str = "ask agent 1/ to review the change";
pub(super) const SLOW: &str = "run the slow test";

/// What the person says on the full screen only.
pub(super) const FORK: &str = "fork a child that tries it with other numbers";
pub(super) const GUARD: &str = "let git run the test before every commit";

/// What the child is told.
const CHECK: &str = "Try sum.sh with 1 and with 100, then write to your parent";

/// As much of a request as the script goes by.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// What was said last: by the person, or the news of mail.
    said: String,
    /// The results of the calls since then.
    results: Vec<String>,
}

/// What the model says: words, and then perhaps a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) words: &'static str,
    pub(super) call: Option<Call>,
}

/// A call of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) tool: &'static str,
    /// A JSON object.
    pub(super) arguments: String,
}

/// A part of the walk: the calls that answer a cue, one after another, and the answer behind them.
struct Scene {
    /// What the last thing that was said has in it.
    cue: &'static str,
    steps: &'static [Step],
    answer: &'static str,
    /// The answer when a call was refused or went wrong.
    otherwise: &'static str,
}

struct Step {
    words: &'static str,
    tool: &'static str,
    /// `ID` in it is the number of the mail that was announced.
    arguments: &'static str,
}

const fn call(tool: &'static str, arguments: &'static str) -> Step {
    Step { words: "", tool, arguments }
}

const SCENES: &[Scene] = &[
    Scene {
        cue: FIX,
        steps: &[
            Step {
                words: "I run the test first.",
                tool: "bash",
                arguments: r#"{"command":"bash test.sh"}"#,
            },
            call("grep", r#"{"pattern":"for ","glob":"*.sh"}"#),
            call("file_read", r#"{"path":"sum.sh"}"#),
            call("file_edit", r#"{"path":"sum.sh","old_string":"i < $1","new_string":"i <= $1"}"#),
            call("bash", r#"{"command":"bash test.sh"}"#),
        ],
        answer: "Fixed: the loop in sum.sh left out the last number. The test passes now.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: ASK,
        steps: &[call(
            "mail",
            r#"{"action":"send","to":"1/","body":"Please review the loop in sum.sh"}"#,
        )],
        answer: "I have written to 1/. Its answer will wake me.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: FORK,
        steps: &[call(
            "fork",
            r#"{"prompt":"Try sum.sh with 1 and with 100, then write to your parent","name":"checker"}"#,
        )],
        answer: "My child tries it. Its mail will wake me.",
        otherwise: GIVEN_UP,
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
        answer: "I tried it, and have written to my parent.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: "from 0/0/",
        steps: &[call("mail", r#"{"action":"read","id":ID}"#)],
        answer: "My child has tried the change with other numbers: it is right.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: GUARD,
        steps: &[call(
            "file_write",
            r##"{"path":".git/hooks/pre-commit","content":"#!/bin/sh\nexec bash test.sh\n"}"##,
        )],
        answer: "Done. After `chmod +x .git/hooks/pre-commit` git runs the test before every commit.",
        otherwise: "You said no, so I left it as it was.",
    },
    Scene {
        cue: "from 0/",
        steps: &[
            call("mail", r#"{"action":"read","id":ID}"#),
            call("bash", r#"{"command":"bash sum.sh 1; bash sum.sh 100"}"#),
            call("mail", r#"{"action":"send","to":"0/","body":"Right also for 1 and for 100"}"#),
        ],
        answer: "I tried it with other numbers, and have written back.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: "from 1/",
        steps: &[call("mail", r#"{"action":"read","id":ID}"#)],
        answer: "1/ has tried the change with other numbers: it is right.",
        otherwise: GIVEN_UP,
    },
    Scene {
        cue: SLOW,
        steps: &[call("bash", r#"{"command":"bash slow.sh"}"#)],
        answer: CUT_OFF,
        otherwise: CUT_OFF,
    },
];

/// That a call goes wrong is what the walk shows there.
const CUT_OFF: &str = "The slow test was cut off with my process. I can run it again.";

/// What is said when a call went wrong on which all the rest stands.
pub(super) const GIVEN_UP: &str = "That did not work, so I stop here.";

/// The walk asks nothing else; the script is for nobody's own questions.
const SPEECHLESS: &str = "I am the script of the tour, and know only its lines.";

/// The words with which a part of the walk on the full screen ends, however it does.
pub(super) fn closing_words(said: &str) -> [&'static str; 2] {
    // A child's mail is the end of what its fork began.
    let cue = if said == FORK { "from 0/0/" } else { said };
    let scene = SCENES.iter().find(|scene| scene.cue == cue);
    scene.map_or([SPEECHLESS; 2], |scene| match scene.otherwise {
        GIVEN_UP => [scene.answer; 2],
        otherwise => [scene.answer, otherwise],
    })
}

impl Asked {
    /// Reads a request in the format of Chat Completions.
    pub(super) fn parse(body: &[u8]) -> Option<Asked> {
        let request: Value = serde_json::from_slice(body).ok()?;
        let messages = request["messages"].as_array()?;
        let last = messages.iter().rposition(|message| message["role"] == "user")?;
        let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
        let since = &messages[last + 1..];
        let results = since.iter().filter(|message| message["role"] == "tool").map(text);
        Some(Asked { said: text(&messages[last]), results: results.collect() })
    }

    /// The model's next line.
    pub(super) fn reply(&self) -> Reply {
        let only = |words| Reply { words, call: None };
        let Some(scene) = SCENES.iter().find(|scene| self.said.contains(scene.cue)) else {
            return only(SPEECHLESS);
        };
        let step = scene.steps.get(self.results.len());
        let has_failed = self.has_error() || step.is_none() && self.has_bad_exit();
        if has_failed {
            return only(scene.otherwise);
        }
        let Some(step) = step else { return only(scene.answer) };
        let arguments = step.arguments.replace("ID", self.announced());
        Reply { words: step.words, call: Some(Call { tool: step.tool, arguments }) }
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
    fn announced(&self) -> &str {
        let behind = self.said.split_once('#').map_or("", |(_, behind)| behind);
        behind.split_once(' ').map_or("0", |(number, _)| number)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(said: &str, results: &[&str]) -> Asked {
        let results = results.iter().map(|result| (*result).to_owned()).collect();
        Asked { said: said.to_owned(), results }
    }

    #[track_caller]
    fn check(asked: &Asked, words: &str, call: Option<(&str, &str)>) {
        let reply = asked.reply();
        let said = reply.call.as_ref().map(|call| (call.tool, call.arguments.as_str()));
        assert_eq!((reply.words, said), (words, call));
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
        assert_eq!(Asked::parse(body.to_string().as_bytes()), Some(asked("two", &["new"])));
    }

    #[test]
    fn what_is_no_request_is_none() {
        for body in ["", "{", "[]", r#"{"messages":7}"#, r#"{"messages":[{"role":"tool"}]}"#] {
            assert_eq!(Asked::parse(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn the_next_call_follows_from_the_results_so_far() {
        let said = format!("[You are agent 0/]\n\n{FIX}");
        let test = ("bash", r#"{"command":"bash test.sh"}"#);
        check(&asked(&said, &[]), "I run the test first.", Some(test));
        check(&asked(&said, &["{}"; 2]), "", Some(("file_read", r#"{"path":"sum.sh"}"#)));
        check(&asked(&said, &["{}"; 5]), SCENES[0].answer, None);
        check(&asked(&said, &["{}"; 99]), SCENES[0].answer, None);
    }

    #[test]
    fn mail_is_read_by_the_number_that_was_announced() {
        let said = "[Notification: You have 1 unread message in your inbox]\n#17 from 1/: \"x\"";
        check(&asked(said, &[]), "", Some(("mail", r#"{"action":"read","id":17}"#)));
    }

    #[test]
    fn a_call_that_went_wrong_ends_the_scene_unless_the_walk_meant_it() {
        let failed = r#"{"success":false,"error":"no bash"}"#;
        check(&asked(FIX, &[failed]), GIVEN_UP, None);
        check(&asked(SLOW, &[failed]), CUT_OFF, None);
    }

    #[test]
    fn only_a_test_that_passes_is_called_one() {
        let ended = |code: i32| json!({"success": true, "data": {"exit_code": code}}).to_string();
        let last = |code| asked(FIX, &["{}", "{}", "{}", "{}", &ended(code)]);
        check(&last(0), SCENES[0].answer, None);
        check(&last(1), GIVEN_UP, None);
        // That it fails at first is why it is looked at.
        assert!(asked(FIX, &[&ended(1)]).reply().call.is_some());
    }

    #[test]
    fn a_prompt_of_somebodys_own_is_not_answered() {
        check(&asked("write me a poem", &[]), SPEECHLESS, None);
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
