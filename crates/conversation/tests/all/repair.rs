//! Repair of a log after a crash: closing results, and whether a turn has to continue.

use ikigai_conversation::{Fork, Log, NewMessage, ResponseId, ToolCallId, Usage};

use super::generate::{agent, answer, call, id, numbered, result, summary};

const CLOSING: &str =
    r#"{"success":false,"error":"Interrupted: the program ended before the call did"}"#;
const CLOSING_BASH: &str = r#"{"success":false,"error":"Interrupted: the program ended before the call did; the command may have had effects"}"#;

fn user() -> NewMessage {
    NewMessage::user("u")
}

fn notification() -> NewMessage {
    NewMessage::notification("n", Vec::new())
}

fn usage() -> NewMessage {
    NewMessage::usage(Usage {
        input_tokens: 1,
        output_tokens: 1,
        cache_read_tokens: None,
        cache_write_tokens: None,
        reasoning_tokens: None,
        cost: None,
        unreported: None,
        model: "m".to_owned(),
        response: ResponseId::new("r"),
    })
}

#[track_caller]
fn check_open(log: impl IntoIterator<Item = NewMessage>, closing: &[NewMessage]) {
    let mut log = numbered("0/", 1, log);
    assert_eq!(Log::new(&log).open_calls(), closing);
    log.extend(numbered("0/", 100, closing.to_vec()));
    assert_eq!(Log::new(&log).open_calls(), [], "nothing is open once they are appended");
}

#[test]
fn an_open_call_is_closed_and_bash_warns_of_effects() {
    check_open([user(), call("glob", "c", "r")], &[result("glob", "c", CLOSING)]);
    check_open([user(), call("bash", "c", "r")], &[result("bash", "c", CLOSING_BASH)]);
    check_open([user(), call("glob", "c", "r"), result("glob", "c", "{}")], &[]);
}

#[test]
fn only_open_calls_are_closed_even_with_repeated_ids() {
    check_open(
        [call("glob", "c", "r1"), result("glob", "c", "{}"), call("bash", "c", "r1")],
        &[result("bash", "c", CLOSING_BASH)],
    );
    check_open(
        [call("glob", "c", "r1"), user(), call("glob", "c", "r2"), result("glob", "c", "{}")],
        &[result("glob", "c", CLOSING)],
    );
    check_open(
        [call("glob", "c", "r1"), call("bash", "c", "r2"), call("glob", "c", "r2")],
        &[
            result("glob", "c", CLOSING),
            result("bash", "c", CLOSING_BASH),
            result("glob", "c", CLOSING),
        ],
    );
}

#[test]
fn a_call_that_the_model_no_longer_sees_is_closed() {
    check_open([call("glob", "c", "r"), NewMessage::clear()], &[result("glob", "c", CLOSING)]);
}

#[test]
fn a_fork_does_not_close_calls_of_its_parent() {
    let inherited = numbered("0/", 1, [user(), call("glob", "c", "r")]);
    let own = numbered("0/0/", 10, [user()]);
    assert_eq!(Log::forked(&inherited, &own).open_calls(), []);
}

#[track_caller]
fn check_turn(log: impl IntoIterator<Item = NewMessage>, expected: bool) {
    let mut log = numbered("0/", 1, log);
    assert_eq!(Log::new(&log).needs_turn(), expected);
    let closing = Log::new(&log).open_calls();
    log.extend(numbered("0/", 100, closing));
    assert_eq!(Log::new(&log).needs_turn(), expected, "also once its calls are closed");
}

#[test]
fn an_agent_continues_if_a_message_needs_an_answer() {
    check_turn([], false);
    check_turn([NewMessage::system("p")], false);
    check_turn([user()], true);
    check_turn([user(), answer("a", "r")], false);
    check_turn([user(), answer("a", "r"), notification()], true);
    check_turn([user(), call("glob", "c", "r"), result("glob", "c", "{}")], true);
    check_turn([user(), call("glob", "c", "r")], true);
}

#[test]
fn a_result_that_ended_the_turn_needs_no_answer() {
    let ended = || [user(), call("mail", "c", "r"), result("mail", "c", "{}").ending_turn()];
    check_turn(ended(), false);
    check_turn(ended().into_iter().chain([usage()]), false);
    check_turn(ended().into_iter().chain([notification()]), true);
    check_turn(ended().into_iter().chain([call("mail", "d", "s")]), true);
}

#[test]
fn messages_that_only_the_user_sees_change_nothing() {
    let notes = || {
        [
            usage(),
            NewMessage::command("/usage"),
            NewMessage::mark(None),
            NewMessage::kill(vec![agent("0/0/")]),
            NewMessage::trim(id(1)),
            summary("s", id(1)),
        ]
    };
    check_turn([user()].into_iter().chain(notes()), true);
    check_turn([user(), answer("a", "r")].into_iter().chain(notes()), false);
    let approval =
        || NewMessage::approval(ToolCallId::new("c"), ikigai_conversation::Decision::Once, None);
    check_turn([user(), call("bash", "c", "r"), approval()], true);
}

#[test]
fn after_an_interrupt_an_agent_waits_for_the_user() {
    let interrupted = || NewMessage::interrupted(None);
    check_turn([user(), interrupted()], false);
    check_turn([user(), answer("half", "r"), interrupted()], false);
    // The call is closed after the interrupt, and its result is still no reason to continue.
    check_turn([user(), call("bash", "c", "r"), interrupted()], false);
    check_turn([user(), interrupted(), usage()], false);
    check_turn([user(), interrupted(), user()], true);
}

#[test]
fn a_late_result_starts_no_turn() {
    check_turn([call("glob", "c", "r1"), user(), answer("a", "r2")], false);
    check_turn([user(), call("glob", "c", "r1"), NewMessage::clear()], false);
}

#[test]
fn after_a_clear_or_a_rewind_an_agent_waits_for_the_user() {
    check_turn([user(), NewMessage::clear()], false);
    check_turn(
        [user(), NewMessage::mark(None), answer("a", "r"), NewMessage::rewind(id(2), None)],
        false,
    );
    check_turn([user(), answer("a", "r"), user(), NewMessage::rewind(id(2), None), user()], true);
}

#[test]
fn a_fork_does_not_answer_what_it_inherited() {
    let inherited = numbered("0/", 1, [user()]);
    let fork = || NewMessage::fork(Fork { parent: agent("0/"), up_to: Some(id(1)) });
    let idle = numbered("0/0/", 10, [fork()]);
    assert!(!Log::forked(&inherited, &idle).needs_turn());
    let with_a_task = numbered("0/0/", 10, [fork(), user()]);
    assert!(Log::forked(&inherited, &with_a_task).needs_turn());
}

#[test]
fn messages_that_a_rewind_discarded_are_listed() {
    let log = numbered(
        "0/",
        1,
        [
            user(),
            NewMessage::mark(None),
            user(),
            notification(),
            NewMessage::rewind(id(2), None),
            user(),
        ],
    );
    let rewound: Vec<i64> =
        Log::new(&log).rewound().iter().map(|message| message.id.value()).collect();
    assert_eq!(rewound, [3, 4]);
}
