//! A tool defined at run time, with unknown effects: it works without changes anywhere else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ikigai_agents::{AgentCommand, User};
use ikigai_conversation::{
    Body, CallSummary, Decision, EffectKind, Kind, Message, Mode, Preview, ResultState,
    ResultSummary,
};
use ikigai_protocol::EventKind;
use ikigai_store::Step;
use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use ikigai_tools::{
    Arguments, Call, Decision as RuleDecision, Declaration, Dispatcher, Rule, Tool, ToolResult,
};
use serde_json::{Value, json};

use crate::support::{Abilities, Process};

/// A custom tool that has a declaration and nothing else.
#[derive(Debug)]
struct Deploy {
    declaration: Declaration,
    runs: Arc<AtomicUsize>,
}

impl Tool<Step> for Deploy {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn prepare(&self, arguments: &Arguments) -> Result<Call<Step>, ToolResult> {
        let to = arguments.value("to").and_then(Value::as_str).map(str::to_owned);
        let to = to.ok_or_else(|| ToolResult::error("Missing required parameter: to"))?;
        let runs = Arc::clone(&self.runs);
        Ok(Call::blocking(move |_| {
            runs.fetch_add(1, Ordering::Relaxed);
            ToolResult::output(format!("deployed to {to}\nin 3 s"))
        }))
    }
}

struct Outcome {
    events: Vec<EventKind>,
    requests: Vec<Arc<CapturedRequest>>,
    runs: usize,
}

/// The outcome of two calls of the tool.
async fn deploy(mode: Mode, rules: &[RuleDecision], answer: Option<Decision>) -> Outcome {
    let runs = Arc::new(AtomicUsize::new(0));
    let declaration = Declaration {
        name: "deploy".to_owned(),
        description: "Deploy the program".to_owned(),
        parameters: json!({"type": "object", "properties": {"to": {"type": "string"}}}),
    };
    let tool = Deploy { declaration, runs: Arc::clone(&runs) };
    let call = |id, to| Reply::call(id, "deploy", json!({"to": to, "fast": true}));
    let script = [call("c1", "staging"), call("c2", "production"), Reply::text("done")];
    let server = ModelServer::start(script);
    let rule = |decision: &RuleDecision| {
        Rule::new("deploy", &[EffectKind::Unknown], "*", *decision).unwrap()
    };
    let user = if answer.is_some() { User::Present } else { User::Absent };
    let (tools, rules) = (Dispatcher::new(vec![Arc::new(tool)]), rules.iter().map(rule).collect());
    let abilities = Abilities { tools, mode, rules, user };
    let mut process = Process::start_with(server, abilities).await;
    process.order(AgentCommand::Say("do it".to_owned())).await.unwrap();
    let mut events = Vec::new();
    loop {
        let event = process.wait_for(|_| true).await.kind;
        if let EventKind::ApprovalRequested(request) = &event {
            process.answer("0/", request, answer.unwrap()).await;
        }
        let is_over = matches!(event, EventKind::TurnEnded(_));
        events.push(event);
        if is_over {
            break;
        }
    }
    let requests = process.model.requests();
    process.end().await;
    Outcome { events, requests, runs: runs.load(Ordering::Relaxed) }
}

impl Outcome {
    fn of_kind(&self, kind: Kind) -> Vec<&Message> {
        let messages = self.events.iter().filter_map(|event| match event {
            EventKind::Message(message) if message.kind() == kind => Some(message),
            _ => None,
        });
        messages.collect()
    }

    fn summaries(&self) -> Vec<ResultSummary> {
        let results = self.of_kind(Kind::ToolResult).into_iter();
        let summary = |message: &Message| match &message.body {
            Body::ToolResult(result) => ResultSummary::of(result, &message.content),
            other => panic!("{other:?}"),
        };
        results.map(summary).collect()
    }

    fn previews(&self) -> Vec<(Preview, String)> {
        let asked = self.events.iter().filter_map(|event| match event {
            EventKind::ApprovalRequested(asking) => {
                Some((asking.preview.clone(), asking.why.clone()))
            }
            _ => None,
        });
        asked.collect()
    }
}

const DONE: &str = r#"{"success":true,"data":{"output":"deployed to staging\nin 3 s"}}"#;

#[tokio::test]
async fn in_work_mode_it_needs_approval_of_all_its_arguments() {
    let once = deploy(Mode::Work, &[], Some(Decision::Once)).await;
    assert_eq!(once.runs, 2);
    let arguments = |to| format!(r#"{{"to":"{to}","fast":true}}"#);
    let asked = |to| {
        let preview = Preview::Arguments { arguments: arguments(to) };
        (preview, "the effects of deploy are unknown".to_owned())
    };
    assert_eq!(once.previews(), [asked("staging"), asked("production")]);
    assert_eq!(once.requests[1].tool_output("c1").to_string(), DONE);
    let refused = deploy(Mode::Work, &[], Some(Decision::No)).await;
    assert_eq!((refused.runs, refused.previews().len()), (0, 2));
}

/// The approval was for this call, not for everything that the tool does.
#[tokio::test]
async fn approval_for_the_session_is_for_the_same_call_only() {
    let always = deploy(Mode::Work, &[], Some(Decision::Always)).await;
    assert_eq!((always.runs, always.previews().len()), (2, 2));
}

#[tokio::test]
async fn in_read_mode_it_is_not_offered_and_is_refused() {
    let rules = [RuleDecision::Trust];
    let outcome = deploy(Mode::Read, &rules, Some(Decision::Once)).await;
    assert_eq!((outcome.runs, outcome.previews().len()), (0, 0));
    assert_eq!(outcome.requests[0].tool_names(), Vec::<String>::new());
    let summary = outcome.summaries().remove(0);
    let expected = "error: Not permitted: deploy is not offered in mode read";
    assert_eq!((summary.outcome.as_str(), summary.state), (expected, ResultState::Refused));
}

#[tokio::test]
async fn without_a_user_it_is_refused_with_the_rule_that_would_allow_it() {
    let outcome = deploy(Mode::Work, &[], None).await;
    assert_eq!(outcome.runs, 0);
    assert_eq!(outcome.requests[0].tool_names(), ["deploy"]);
    let summary = outcome.summaries().remove(0);
    let rule = "[[rules]]\ntool = \"deploy\"\nmatch = \"*\"\ndecision = \"allow\"";
    assert_eq!((summary.state, summary.rule.as_deref()), (ResultState::Refused, Some(rule)));
    assert!(!summary.outcome.contains("[[rules]]"), "{}", summary.outcome);
    let result = outcome.requests[1].tool_output("c1");
    assert!(result["error"].as_str().unwrap().ends_with(rule), "{result}");
}

#[tokio::test]
async fn a_rule_for_the_whole_tool_allows_it() {
    let outcome = deploy(Mode::Work, &[RuleDecision::Allow], None).await;
    assert_eq!((outcome.runs, outcome.previews().len()), (2, 0));
}

#[tokio::test]
async fn it_is_displayed_by_name_and_first_text_which_is_not_sent_to_the_model() {
    let outcome = deploy(Mode::Full, &[], None).await;
    let Body::ToolCall(call) = &outcome.of_kind(Kind::ToolCall)[0].body else {
        panic!("it is a call")
    };
    assert_eq!(call.effects.as_deref(), Some(&[EffectKind::Unknown][..]));
    let shown = CallSummary::of(call).to_string();
    assert_eq!(shown, "deploy  staging");
    let summary = outcome.summaries().remove(0);
    assert_eq!(
        (summary.outcome.as_str(), summary.state),
        ("deployed to staging", ResultState::Succeeded)
    );
    // The log has the summaries, but requests do not.
    for request in &outcome.requests {
        for part in ["shown", "verb", "effects", "outcome"] {
            assert!(!request.text().contains(&format!("\"{part}\"")), "{}", request.text());
        }
    }
    let stored = outcome.of_kind(Kind::ToolResult)[0].encode();
    assert!(stored.contains(r#""shown":{"outcome":"deployed to staging""#), "{stored}");
}
