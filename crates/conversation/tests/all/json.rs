//! Messages as lines of JSON and as database columns.

use ikigai_conversation::{
    Body, CallSummary, DiffLine, EffectKind, FileDiff, Fork, Hunk, Kind, MailId, Message,
    NewMessage, ResponseId, ResultState, ResultSummary, Time, Usage,
};
use proptest::prelude::*;

use super::generate::{agent, answer, any_body, any_message, call, id, result, summary};

#[track_caller]
fn check(new: NewMessage, kind_content_and_data: &str) {
    let message = new.into_message(id(7), agent("0/1/"), Time::from_millis(1_705_314_600_123));
    let expected = format!(
        r#"{{"id":7,"agent":"0/1/",{kind_content_and_data},"created_at":"2024-01-15T10:30:00.123Z"}}"#
    );
    assert_eq!(message.encode(), expected);
    assert_eq!(Message::decode(&expected).unwrap(), message);
}

#[test]
fn each_kind_is_encoded_as_in_the_contract() {
    check(NewMessage::system("p"), r#""kind":"system","content":"p","data":{}"#);
    check(NewMessage::user("hi\n"), r#""kind":"user","content":"hi\n","data":{}"#);
    check(answer("yes", "r1"), r#""kind":"assistant","content":"yes","data":{"response":"r1"}"#);
    check(
        call("glob", "c1", "r1"),
        r#""kind":"tool_call","content":"glob()","data":{"tool_call_id":"c1","name":"glob","arguments":"{}","response":"r1"}"#,
    );
    check(
        result("bash", "c1", r#"{"success":true,"data":{"output":"a\nb","exit_code":1}}"#),
        r#""kind":"tool_result","content":"a","data":{"tool_call_id":"c1","name":"bash","output":"{\"success\":true,\"data\":{\"output\":\"a\\nb\",\"exit_code\":1}}","success":true}"#,
    );
    check(
        NewMessage::notification("[Notification: …]", vec![MailId::new(5).unwrap()]),
        r#""kind":"notification","content":"[Notification: …]","data":{"mail":[5]}"#,
    );
    check(
        summary("s", id(3)),
        r#""kind":"summary","content":"s","data":{"up_to":3,"kept":[],"obligations":"","before":0,"after":0,"elapsed_ms":0}"#,
    );
    check(
        NewMessage::fork(Fork { parent: agent("0/"), up_to: Some(id(3)) }),
        r#""kind":"fork","content":"Forked from 0/","data":{"parent":"0/","up_to":3}"#,
    );
    check(
        NewMessage::usage(Usage {
            input_tokens: 10,
            output_tokens: 2,
            cache_read_tokens: Some(8),
            cache_write_tokens: None,
            reasoning_tokens: None,
            cost: None,
            unreported: None,
            model: "m".to_owned(),
            response: ResponseId::new("r1"),
        }),
        r#""kind":"usage","content":"","data":{"input_tokens":10,"output_tokens":2,"cache_read_tokens":8,"cost":null,"model":"m","response":"r1"}"#,
    );
}

#[test]
fn usage_has_what_it_cost_and_earlier_versions_stored_no_cost() {
    let usage = |cost, unreported| {
        NewMessage::usage(Usage {
            input_tokens: 10,
            output_tokens: 2,
            cache_read_tokens: None,
            cache_write_tokens: None,
            reasoning_tokens: Some(1),
            cost,
            unreported,
            model: "m".to_owned(),
            response: ResponseId::new("r1"),
        })
    };
    check(
        usage(Some(1_234), Some(2)),
        r#""kind":"usage","content":"","data":{"input_tokens":10,"output_tokens":2,"reasoning_tokens":1,"cost":1234,"unreported":2,"model":"m","response":"r1"}"#,
    );
    let earlier =
        r#"{"input_tokens":10,"output_tokens":2,"reasoning_tokens":1,"model":"m","response":"r1"}"#;
    assert_eq!(Body::from_parts("usage", earlier).unwrap(), usage(None, None).body);
}

/// Summaries are stored next to the data in the contract; logs of earlier versions have none.
#[test]
fn summaries_are_stored_with_the_call_and_its_result() {
    let shown = CallSummary::new("Edit", "a.rs");
    check(
        call("file_edit", "c1", "r1").with_shown(vec![EffectKind::Write], shown),
        r#""kind":"tool_call","content":"file_edit()","data":{"tool_call_id":"c1","name":"file_edit","arguments":"{}","response":"r1","effects":["write"],"shown":{"verb":"Edit","subject":"a.rs"}}"#,
    );
    let Body::ToolCall(edit) = call("file_edit", "c1", "r1").body else { panic!("it is a call") };
    let lines = vec![DiffLine::Removed("b".to_owned()), DiffLine::Added("c".to_owned())];
    let hunks = vec![Hunk { old: 3, new: 3, lines }];
    let diff = FileDiff { path: "a.rs".to_owned(), added: 1, removed: 1, hunks, omitted: 0 };
    let shown = ResultSummary::new("+1 −1", ResultState::Succeeded, Some(diff), None);
    let result = NewMessage::shown_result(&edit, "{}".to_owned(), true, "Replaced\none", shown);
    check(
        result,
        r#""kind":"tool_result","content":"Replaced one","data":{"tool_call_id":"c1","name":"file_edit","output":"{}","success":true,"shown":{"outcome":"+1 −1","state":"succeeded","diff":{"path":"a.rs","added":1,"removed":1,"hunks":[{"old":3,"new":3,"lines":["-b","+c"]}]}}}"#,
    );
}

#[test]
fn each_kind_that_only_the_user_sees_is_encoded_as_in_the_contract() {
    use ikigai_conversation::{Decision, ToolCallId};
    let label = || Some("here".to_owned());
    check(
        NewMessage::mark(label()),
        r#""kind":"mark","content":"Mark: here","data":{"label":"here"}"#,
    );
    check(NewMessage::mark(None), r#""kind":"mark","content":"Mark","data":{}"#);
    check(
        NewMessage::rewind(id(2), label()),
        r#""kind":"rewind","content":"Rewound: here","data":{"to":2,"label":"here"}"#,
    );
    check(NewMessage::clear(), r#""kind":"clear","content":"Context cleared","data":{}"#);
    check(
        NewMessage::trim(id(2)),
        r#""kind":"trim","content":"Earlier tool outputs shortened","data":{"up_to":2}"#,
    );
    check(
        NewMessage::kill(vec![agent("0/1/0/"), agent("0/1/")]),
        r#""kind":"kill","content":"Killed 0/1/0/, 0/1/","data":{"killed":["0/1/0/","0/1/"]}"#,
    );
    check(
        NewMessage::interrupted(Some(ResponseId::new("r1"))),
        r#""kind":"interrupted","content":"Interrupted","data":{"response":"r1"}"#,
    );
    check(
        NewMessage::command("/model x"),
        r#""kind":"command","content":"/model x","data":{"command":"/model x"}"#,
    );
    check(
        NewMessage::approval(ToolCallId::new("c1"), Decision::No, Some("not now".to_owned())),
        r#""kind":"approval","content":"Refused: not now","data":{"tool_call_id":"c1","decision":"no","reason":"not now"}"#,
    );
}

#[test]
fn a_result_is_a_success_unless_it_has_an_error_at_its_root() {
    for (output, expected) in [
        (r#"{"success":true,"data":{"error":"not at the root"}}"#, true),
        (r#"{"success":false,"error":"x"}"#, false),
        (r#"{"error":"x"}"#, false),
        (r#"{"error":null}"#, false),
        ("no JSON", true),
    ] {
        match result("x", "c", output).body {
            Body::ToolResult(result) => assert_eq!(result.success, expected, "{output}"),
            other => panic!("{other:?}"),
        }
    }
}

#[track_caller]
fn check_refused(line: &str, error: &str) {
    assert_eq!(Message::decode(line).unwrap_err().to_string(), error);
}

#[track_caller]
fn check_data_refused(kind: &str, data: &str, error: &str) {
    assert_eq!(Body::from_parts(kind, data).unwrap_err().to_string(), error);
}

#[test]
fn an_error_names_the_field_of_the_line() {
    let rest = r#""content":"","data":{},"created_at":"2024-01-15T10:30:00Z"}"#;
    check_refused("", "Invalid message: EOF while parsing a value at line 1 column 0");
    check_refused(
        &format!(r#"{{"id":1,"agent":"0/","kind":"telegram",{rest}"#),
        "Unknown message kind: telegram",
    );
    check_refused(
        &format!(r#"{{"id":1,"agent":"0/",{rest}"#),
        "Invalid message: missing field `kind` at line 1 column 80",
    );
    check_refused(
        &format!(r#"{{"id":0,"agent":"0/","kind":"user",{rest}"#),
        "Invalid message, field id: Invalid id: 0 is not positive at line 1 column 7",
    );
    check_refused(
        &format!(r#"{{"id":1,"agent":"0","kind":"user",{rest}"#),
        "Invalid message, field agent: Invalid agent id: 0 at line 1 column 19",
    );
    check_refused(
        &format!(r#"{{"id":1,"agent":"0/","kind":7,{rest}"#),
        "Invalid message, field kind: invalid type: integer `7`, expected a string at line 1 column 29",
    );
}

#[test]
fn an_error_names_the_field_of_the_data() {
    check_data_refused("", "{}", "Unknown message kind: ");
    check_data_refused("System", "{}", "Unknown message kind: System");
    check_data_refused(
        "assistant",
        "{}",
        "Invalid data of kind assistant: missing field `response` at line 1 column 2",
    );
    check_data_refused(
        "tool_result",
        r#"{"tool_call_id":"c","name":"x","output":"","success":"yes"}"#,
        "Invalid data of kind tool_result, field success: invalid type: string \"yes\", expected a boolean at line 1 column 58",
    );
    check_data_refused(
        "notification",
        r#"{"mail":[1,-1],"more":0}"#,
        "Invalid data of kind notification, field mail: Invalid id: -1 is not positive at line 1 column 14",
    );
    check_data_refused("mark", r#"["label"]"#, "Invalid data of kind mark: not a JSON object");
    check_data_refused("user", "null", "Invalid data of kind user: not a JSON object");
}

#[test]
fn fields_of_a_later_version_are_ignored() {
    assert_eq!(Body::from_parts("user", r#"{"mood":"good"}"#).unwrap(), Body::User);
}

#[test]
fn every_kind_has_its_own_name() {
    for kind in Kind::ALL {
        assert_eq!(Kind::parse(kind.name()), Some(kind));
        assert_eq!(kind.to_string(), kind.name());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn every_message_is_one_line_and_round_trips(message in any_message()) {
        let line = message.encode();
        prop_assert!(!line.contains(['\n', '\r']));
        let decoded = Message::decode(&line).unwrap();
        prop_assert_eq!(&decoded, &message);
        prop_assert_eq!(decoded.encode(), line);
    }

    #[test]
    fn every_body_round_trips_through_two_columns(body in any_body()) {
        let (kind, data) = (body.kind().name(), body.data_json());
        prop_assert_eq!(Body::from_parts(kind, &data).unwrap(), body);
    }

    #[test]
    fn no_text_makes_decoding_panic(text in "[\\[\\]{}\",:0-9a-z_ ]{0,40}") {
        let _ = Message::decode(&text);
        for kind in Kind::ALL {
            let _ = Body::from_parts(kind.name(), &text);
        }
    }
}
