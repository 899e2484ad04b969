//! What a model sees, case by case. Expected views have one line per item.

use ikigai_conversation::{Body, Extras, Log, Message, NewMessage, ResponseId, Seen};

use super::generate::{answer, call, id, keeping, numbered, result, summary};

/// The view as text.
pub(super) fn show(view: &[Seen<'_>]) -> Vec<String> {
    let line = |seen: &Seen<'_>| match seen {
        Seen::System(text) => format!("system {text}"),
        Seen::Identity(identity) => identity.to_string(),
        Seen::User(text) => format!("user {text}"),
        Seen::Notification(text) => format!("notification {text}"),
        Seen::Summary(text) => format!("summary {text}"),
        Seen::Obligations(text) => format!("obligations {text}"),
        Seen::Assistant { text, .. } => format!("assistant {text}"),
        Seen::ToolCall(call) => format!("call {} {}", call.name, call.tool_call_id),
        Seen::ToolResult { call, output, .. } => format!("result {} {output}", call.tool_call_id),
    };
    view.iter().map(line).collect()
}

#[track_caller]
fn check_log(log: Log<'_>, expected: &[&str]) {
    assert_eq!(show(&log.view()), expected);
}

/// Checks a log of agent `0/`, whose messages are numbered from 1; the identity is omitted.
#[track_caller]
fn check(log: impl IntoIterator<Item = NewMessage>, expected: &[&str]) {
    let log = numbered("0/", 1, log);
    let mut seen = show(&Log::new(&log).view());
    seen.retain(|line| !line.starts_with("[You are agent"));
    assert_eq!(seen, expected);
}

fn system(text: &str) -> NewMessage {
    NewMessage::system(text)
}

fn user(text: &str) -> NewMessage {
    NewMessage::user(text)
}

fn mark() -> NewMessage {
    NewMessage::mark(None)
}

fn rewind(to: i64) -> NewMessage {
    NewMessage::rewind(id(to), None)
}

const CLOSING: &str =
    r#"result c {"success":false,"error":"Interrupted: the program ended before the call did"}"#;

#[test]
fn calls_of_a_response_are_adjacent_and_followed_by_their_results() {
    check(
        [
            system("p"),
            user("q"),
            answer("let me see", "r1"),
            call("glob", "a", "r1"),
            result("glob", "a", "1"),
            call("grep", "b", "r1"),
            result("grep", "b", "2"),
            user("typed meanwhile"),
            answer("done", "r2"),
            NewMessage::notification("mail", Vec::new()),
        ],
        &[
            "system p",
            "user q",
            "assistant let me see",
            "call glob a",
            "call grep b",
            "result a 1",
            "result b 2",
            "user typed meanwhile",
            "assistant done",
            "notification mail",
        ],
    );
}

#[test]
fn calls_of_two_responses_stay_apart() {
    check(
        [
            call("glob", "a", "r1"),
            result("glob", "a", "1"),
            call("glob", "a", "r2"),
            result("glob", "a", "2"),
        ],
        &["call glob a", "result a 1", "call glob a", "result a 2"],
    );
}

#[test]
fn calls_with_the_same_id_in_one_response_keep_their_own_results() {
    let expected = ["call glob a", "call glob a", "result a 1", "result a 2"];
    let (first, second) = (call("glob", "a", "r"), call("glob", "a", "r"));
    let (one, two) = (result("glob", "a", "1"), result("glob", "a", "2"));
    check([first.clone(), one.clone(), second.clone(), two.clone()], &expected);
    check([first, second, one, two], &expected);
}

#[test]
fn a_call_without_a_result_is_closed_in_place() {
    check([user("q"), call("glob", "c", "r")], &["user q", "call glob c", CLOSING]);
    check(
        [user("q"), call("glob", "c", "r"), user("and now?"), answer("a", "r2")],
        &["user q", "call glob c", CLOSING, "user and now?", "assistant a"],
    );
    // The late result of a repaired log is next to its call.
    check(
        [call("glob", "c", "r"), user("q"), result("glob", "c", "late")],
        &["call glob c", "result c late", "user q"],
    );
}

#[test]
fn a_result_belongs_to_the_latest_response_with_such_a_call() {
    check(
        [call("glob", "c", "r1"), user("q"), call("glob", "c", "r2"), result("glob", "c", "1")],
        &["call glob c", CLOSING, "user q", "call glob c", "result c 1"],
    );
}

#[test]
fn a_result_without_its_call_is_not_seen() {
    check([user("q"), result("glob", "c", "1")], &["user q"]);
    check([call("glob", "c", "r"), NewMessage::clear(), result("glob", "c", "1")], &[]);
    check([mark(), call("glob", "c", "r"), rewind(1), result("glob", "c", "1")], &[]);
    check([call("glob", "c", "r"), result("grep", "c", "1")], &["call glob c", CLOSING]);
}

#[test]
fn clear_leaves_only_the_system_prompt() {
    check([system("p"), user("a"), NewMessage::clear(), user("b")], &["system p", "user b"]);
    check([user("a"), summary("s", id(1)), NewMessage::clear()], &[]);
}

#[test]
fn rewind_restores_the_view_at_the_mark() {
    check([user("a"), mark(), user("b"), rewind(2), user("c")], &["user a", "user c"]);
    // Past a clear, and past a summary.
    check([user("a"), mark(), NewMessage::clear(), user("b"), rewind(2)], &["user a"]);
    check([user("a"), mark(), summary("s", id(1)), user("b"), rewind(2)], &["user a"]);
    // Past another rewind, nested, and to a mark that a rewind had hidden.
    check([mark(), user("a"), mark(), user("b"), rewind(3), user("c"), rewind(1)], &[]);
    check([mark(), user("a"), mark(), user("b"), rewind(3), user("c"), rewind(3)], &["user a"]);
    check([mark(), user("a"), mark(), rewind(1), user("b"), rewind(3)], &["user a"]);
}

#[test]
fn a_rewind_without_a_target_has_no_effect() {
    check([user("a"), rewind(9), user("b")], &["user a", "user b"]);
    check([user("a"), rewind(2), user("b")], &["user a", "user b"]);
    check([user("a"), rewind(3), user("b")], &["user a", "user b"]);
}

#[test]
fn a_rewind_into_a_call_closes_it() {
    check(
        [call("glob", "c", "r"), mark(), result("glob", "c", "1"), rewind(2), user("q")],
        &["call glob c", CLOSING, "user q"],
    );
}

#[test]
fn a_summary_replaces_earlier_messages() {
    check(
        [system("p"), user("a"), answer("b", "r"), user("c"), summary("s", id(3)), user("d")],
        &["system p", "summary s", "user c", "user d"],
    );
    // A later summary replaces an earlier one, even if it was written after its own `up_to`.
    check(
        [user("a"), user("b"), summary("s", id(1)), summary("t", id(2)), user("c")],
        &["summary t", "user c"],
    );
    check([user("a"), user("b"), summary("s", id(2)), summary("t", id(1))], &["summary t"]);
    // Cut between a call and its result.
    check([call("glob", "c", "r"), result("glob", "c", "1"), summary("s", id(1))], &["summary s"]);
}

#[test]
fn a_summary_keeps_the_users_messages_and_adds_what_the_database_knew() {
    let mut sum_up = keeping("s", id(5), &[id(2), id(5)]);
    if let Body::Summary(summary) = &mut sum_up.body {
        (summary.cut, summary.obligations) = (Some(4), "owed".to_owned());
    }
    let log = [
        system("p"),
        user("one"),
        answer("a", "r1"),
        user("two"),
        user("three"),
        sum_up,
        answer("b", "r2"),
    ];
    check(
        log,
        &["system p", "user one", "user thre", "summary s", "obligations owed", "assistant b"],
    );
    // Only the user's messages that it replaces and that no rewind discarded.
    let log = [answer("a", "r"), user("b"), keeping("s", id(1), &[id(1), id(2), id(9)]), user("c")];
    check(log, &["summary s", "user b", "user c"]);
    let log = [mark(), user("a"), rewind(1), user("b"), keeping("s", id(4), &[id(2), id(4)])];
    check(log, &["user b", "summary s"]);
    // A cut inside of a character.
    let mut sum_up = keeping("s", id(1), &[id(1)]);
    if let Body::Summary(summary) = &mut sum_up.body {
        summary.cut = Some(1);
    }
    check([user("é"), sum_up], &["user ", "summary s"]);
}

#[test]
fn a_system_prompt_is_never_hidden_by_clear_or_summary() {
    check(
        [user("a"), system("p"), user("b"), summary("s", id(3)), user("c")],
        &["system p", "summary s", "user c"],
    );
    check([user("a"), system("p"), user("b")], &["user a", "system p", "user b"]);
}

#[test]
fn trim_reduces_earlier_outputs_to_one_line() {
    let found = r#"{"success":true,"data":{"output":"a\nb\nc","count":3}}"#;
    check(
        [
            call("glob", "a", "r1"),
            result("glob", "a", found),
            NewMessage::trim(id(2)),
            NewMessage::trim(id(1)),
            call("glob", "b", "r2"),
            result("glob", "b", found),
        ],
        &["call glob a", "result a a", "call glob b", &format!("result b {found}")],
    );
}

#[test]
fn extras_are_seen_with_the_first_message_of_a_response() {
    let extras = Extras::parse(r#"{"signature":"x"}"#).unwrap();
    let log = numbered("0/", 1, [answer("a", "r").with_extras(extras.clone())]);
    let response = ResponseId::new("r");
    let expected = Seen::Assistant { text: "a", response: &response, extras: Some(&extras) };
    assert_eq!(Log::new(&log).view()[1], expected);

    let log = numbered("0/", 1, [call("glob", "c", "r").with_extras(extras.clone())]);
    assert!(
        matches!(Log::new(&log).view()[1], Seen::ToolCall(call) if call.extras == Some(extras))
    );
}

fn parent() -> Vec<Message> {
    numbered("0/", 1, [system("p"), user("task"), mark(), answer("a", "r")])
}

#[test]
fn an_agents_identity_comes_before_its_first_message() {
    let log = parent();
    let expected = ["system p", "[You are agent 0/]", "user task", "assistant a"];
    check_log(Log::new(&log), &expected);
    let fresh = numbered("0/0/", 10, [system("p"), user("find out")]);
    let expected = ["system p", "[You are agent 0/0/, forked by 0/.]", "user find out"];
    check_log(Log::new(&fresh), &expected);
}

const INHERITING: &str =
    "[You are agent 0/0/, forked by 0/. What stands above is its conversation, not your task.]";

#[test]
fn the_view_of_a_full_fork_starts_with_its_parents() {
    let inherited = parent();
    let own = numbered("0/0/", 10, [user("find out")]);
    let view = Log::forked(&inherited, &own).view();
    let parents = Log::new(&inherited).view();
    assert_eq!(view[..parents.len()], parents);
    assert_eq!(show(&view[parents.len()..]), [INHERITING, "user find out"]);
}

#[test]
fn a_fork_that_hides_what_it_inherited_gets_a_plain_identity() {
    let inherited = parent();
    let own = numbered("0/0/", 10, [user("x"), NewMessage::clear(), user("y")]);
    let expected = ["system p", "[You are agent 0/0/, forked by 0/.]", "user y"];
    check_log(Log::forked(&inherited, &own), &expected);
    let own = numbered("0/0/", 10, [user("x"), summary("s", id(4))]);
    let expected = ["system p", "[You are agent 0/0/, forked by 0/.]", "summary s", "user x"];
    check_log(Log::forked(&inherited, &own), &expected);
    // Half of it remains: the summary replaces the parent's other half.
    let own = numbered("0/0/", 10, [user("x"), summary("s", id(2))]);
    let expected =
        ["system p", "[You are agent 0/]", "summary s", "assistant a", INHERITING, "user x"];
    check_log(Log::forked(&inherited, &own), &expected);
}

#[test]
fn a_fork_cannot_rewind_past_its_start() {
    let inherited = parent();
    let own = numbered("0/0/", 10, [user("x"), rewind(3), user("y")]);
    let view = Log::forked(&inherited, &own).view();
    assert_eq!(show(&view[4..]), [INHERITING, "user x", "user y"]);
}

#[test]
fn messages_that_only_the_user_sees_are_hidden() {
    let notes = [
        NewMessage::fork(ikigai_conversation::Fork {
            parent: super::generate::agent("0/"),
            up_to: None,
        }),
        NewMessage::interrupted(None),
        NewMessage::command("/x"),
        NewMessage::kill(Vec::new()),
        mark(),
        rewind(1),
        NewMessage::trim(id(1)),
    ];
    assert!(notes.iter().all(|note| note.body != Body::User));
    check(notes, &[]);
}
