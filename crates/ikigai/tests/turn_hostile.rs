//! Models that say anything at all: nothing panics, everything is bounded, no terminal is touched, and the next
//! request is valid.

use ikigai_testkit::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::Format;
use crate::support::story::{
    WELL_AGAIN, answered, assert_whole, at_once, check_goes_on, contents, of_type,
};

/// The longest line that a call or a result is told in on standard error.
const LONGEST_LINE: usize = 600;

/// A model sends these events, is asked again, and the conversation goes on. Gives the log.
#[track_caller]
fn check(format: Format, events: &[String]) -> (Workspace, Vec<Value>) {
    let server = ModelServer::start([
        format.stream(events),
        Reply::text("I have calmed down."),
        Reply::text(WELL_AGAIN),
    ]);
    let workspace = Workspace::new();
    let (code, stdout, stderr) = workspace.run_model(&server, format, ["go"]);
    assert_eq!((code, &*stdout), (0, "I have calmed down.\n"), "{stderr}");
    for line in stderr.lines() {
        assert!(line.len() <= LONGEST_LINE, "{} bytes: {line}", line.len());
        assert!(!line.contains(|c: char| c.is_control() && c != '\t'), "{line:?}");
    }
    let log = check_goes_on(&workspace, &server, format);
    (workspace, log)
}

/// A text as a JSON string.
fn quoted(text: impl AsRef<str>) -> String {
    Value::from(text.as_ref()).to_string()
}

/// The only call that the log has, and the error in its result.
#[track_caller]
fn only_error(log: &[Value]) -> String {
    let results: Vec<&Value> =
        log.iter().filter(|message| message["kind"] == "tool_result").collect();
    assert_eq!(results.len(), 1, "{results:?}");
    let output = results[0]["data"]["output"].as_str().unwrap();
    let output: Value = serde_json::from_str(output).unwrap();
    output["error"].as_str().unwrap_or_else(|| panic!("{output}")).to_owned()
}

#[test]
fn a_name_and_an_id_of_any_length_are_an_unknown_tool() {
    for format in Format::BOTH {
        let name = quoted("ü".repeat(10_000));
        let (_, log) = check(format, &[format.call_event(0, [&name, &name, r#""{}""#])]);
        let error = only_error(&log);
        assert!(error.starts_with("Unknown tool: ü") && error.len() < 200, "{error}");
    }
}

#[test]
fn names_and_ids_may_be_anything() {
    at_once(Format::BOTH, |format| {
        for odd in [r#""""#, r#""\u0000""#, r#""a\nb\u001b[2J""#, r#""\ud800x""#, r#"" bash""#] {
            let call = format.call_event(0, [odd, odd, r#""{}""#]);
            let (_, log) = check(format, &[call]);
            assert!(only_error(&log).starts_with("Unknown tool: "), "{odd}");
        }
    });
}

#[test]
fn arguments_may_be_anything() {
    let deep = format!("{}{}", r#"{"command":["#.repeat(50_000), "]}".repeat(50_000));
    at_once(Format::BOTH, |format| {
        for (arguments, error) in [
            (&*quoted(&deep), "Invalid JSON arguments"),
            (&*quoted("[".repeat(100_000)), "Invalid JSON arguments"),
            (r#""{\"command\":\"echo \\ud800\"}""#, "Invalid JSON arguments"),
            (r#""{\"command\":1e999}""#, "Invalid JSON arguments"),
            (r#""no JSON \u001b[2J\u0000""#, "Invalid JSON arguments"),
            (
                r#""{\"command\":\"echo a\\u0000b > trace\"}""#,
                "Cannot start bash: the command holds a NUL character",
            ),
        ] {
            let call = format.call_event(0, [r#""c1""#, r#""bash""#, arguments]);
            let (workspace, log) = check(format, &[call]);
            assert_eq!(only_error(&log), error, "{arguments:.60}");
            assert_eq!(workspace.names(), Vec::<String>::new());
        }
    });
}

#[test]
fn a_path_with_a_nul_in_it_is_refused() {
    for (tool, arguments) in [
        ("file_write", r#"{"path":"a\u0000b","content":"x"}"#),
        ("file_read", r#"{"path":"a\u0000b"}"#),
        ("glob", r#"{"pattern":"*","path":"a\u0000b"}"#),
    ] {
        let call = [r#""c1""#, &quoted(tool), &quoted(arguments)];
        let (workspace, log) = check(Format::Chat, &[Format::Chat.call_event(0, call)]);
        assert!(!only_error(&log).is_empty());
        assert_eq!(workspace.names(), Vec::<String>::new());
    }
}

#[test]
fn arguments_of_megabytes_are_carried_out_and_told_in_a_line() {
    at_once(Format::BOTH, |format| {
        let content = "x".repeat(5 << 20);
        let arguments = json!({"path": "large", "content": content}).to_string();
        let call = [r#""c1""#, r#""file_write""#, &quoted(arguments)];
        let (workspace, log) = check(format, &[format.call_event(0, call)]);
        assert!(workspace.read_text("large") == content);
        assert_eq!(contents(&log, "tool_result").len(), 1);
    });
}

#[test]
fn a_thousand_calls_are_run_one_after_another() {
    at_once(Format::BOTH, |format| {
        let call = |index: usize| {
            let (id, name) = (quoted(format!("c{index}")), quoted("no_such_tool"));
            format.call_event(index, [&id, &name, r#""{}""#])
        };
        let calls: Vec<String> = (0..1000).map(call).collect();
        let (_, log) = check(format, &calls);
        assert_eq!(contents(&log, "tool_result"), vec!["error: Unknown tool: no_such_tool"; 1000]);
    });
}

#[test]
fn more_than_a_thousand_calls_are_no_answer() {
    at_once(Format::BOTH, |format| {
        let call = |index| format.call_event(index, [r#""c""#, r#""bash""#, r#""{}""#]);
        let calls: Vec<String> = (0..1001).map(call).collect();
        let server = ModelServer::start([format.stream(&calls), Reply::text(WELL_AGAIN)]);
        let workspace = Workspace::new();
        let (code, _, stderr) = workspace.run_model(&server, format, ["go"]);
        let told = "ikigai: the answer cannot be read: the response has more than 1000 parts";
        assert!(code == 1 && stderr.starts_with(told), "{stderr}");
        let log = check_goes_on(&workspace, &server, format);
        assert_eq!(contents(&log, "tool_call"), Vec::<&str>::new());
    });
}

/// Escape sequences that clear the screen, set its title, write to the clipboard; a bell, a NUL, one byte for
/// an escape and a bracket, and a backspace.
const NASTY: &str =
    "\u{1b}[2J\u{1b}]0;title\u{7}\u{1b}]52;c;eA==\u{1b}\\\u{0}\u{9b}31m\r\u{8}\u{7f}end";

#[test]
fn what_is_told_beside_the_answer_cannot_touch_a_terminal() {
    for format in Format::BOTH {
        let arguments = json!({"command": NASTY, NASTY: NASTY}).to_string();
        let events = [
            format.text_event(&quoted(NASTY)),
            format.call_event(1, [&quoted(NASTY), &quoted(NASTY), &quoted(&arguments)]),
            format.call_event(2, [r#""c2""#, r#""bash""#, &quoted(&arguments)]),
            format.call_event(
                3,
                [r#""c3""#, r#""file_read""#, &quoted(json!({"path": NASTY}).to_string())],
            ),
        ];
        check(format, &events);
        let refusal = Reply::json(400, &json!({"error": {"message": NASTY}}));
        let server = ModelServer::start([refusal]);
        let (code, _, stderr) = Workspace::new().run_model(&server, format, ["go"]);
        let is_harmless = !stderr.trim_end().contains(char::is_control);
        assert!(code == 1 && is_harmless, "{stderr:?}");
    }
}

/// A file or a program gets every byte of it.
#[test]
fn an_answer_goes_to_a_pipe_as_it_is() {
    for format in Format::BOTH {
        let server = ModelServer::start([Reply::text(NASTY), Reply::text(NASTY)]);
        let workspace = Workspace::new();
        let ended = workspace.run_model(&server, format, ["go"]);
        assert_eq!(ended, (0, format!("{NASTY}\n"), String::new()));
        let (code, events) = workspace.run_json(&server, format, ["-c", "again"]);
        assert_eq!((code, events.last()), (0, Some(&answered(NASTY))));
    }
}

#[test]
fn text_may_be_anything() {
    at_once(Format::BOTH, |format| {
        for text in [r#""\ud800 half""#, r#""half \udc00\ud800""#, r#""\u0000""#, r#""\u001b[2J""#]
        {
            let server = ModelServer::start([
                format.stream(&[format.text_event(text)]),
                Reply::text(WELL_AGAIN),
            ]);
            let workspace = Workspace::new();
            let (code, events) = workspace.run_json(&server, format, ["go"]);
            assert_eq!(code, 0, "{text}: {events:?}");
            assert_eq!(of_type(&events, "done").len(), 1);
            assert_whole(&check_goes_on(&workspace, &server, format));
        }
    });
}

#[test]
fn a_cost_may_be_any_number() {
    for usage in
        [json!({"prompt_tokens": u64::MAX, "completion_tokens": -1}), json!([]), json!("much")]
    {
        let end = json!({"choices": [], "usage": usage});
        let events = [Format::Chat.text_event(r#""hi""#), format!("data: {end}\n\n")];
        let server = ModelServer::start([Format::Chat.stream(&events), Reply::text(WELL_AGAIN)]);
        let workspace = Workspace::new();
        let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
        assert_eq!((code, events.last()), (0, Some(&answered("hi"))));
        check_goes_on(&workspace, &server, Format::Chat);
        let open = workspace.open();
        open.wait(open.store.tokens(open.session()));
    }
}
