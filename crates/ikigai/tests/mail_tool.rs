//! The `mail` tool through the program, on a real database.

use serde_json::{Value, json};

use crate::support::{Workspace, ended, input, result};

/// The command that calls the tool as an agent.
fn command(workspace: &Workspace, agent: &str, arguments: &Value) -> std::process::Command {
    let mut command = workspace.ikigai();
    command.args(["tool", "--agent", agent, "mail", "-"]).stdin(input(arguments.to_string()));
    command
}

/// The result of a call by an agent.
#[track_caller]
fn call(workspace: &Workspace, agent: &str, arguments: Value) -> Value {
    serde_json::from_str(&result(&mut command(workspace, agent, &arguments))).unwrap()
}

#[track_caller]
fn check(workspace: &Workspace, agent: &str, arguments: Value, expected: Value) {
    // Compared as text: the order of the fields is part of the contract.
    let result = call(workspace, agent, arguments.clone());
    assert_eq!(result.to_string(), expected.to_string(), "{agent} {arguments}");
}

#[track_caller]
fn check_error(workspace: &Workspace, agent: &str, arguments: Value, error: &str) {
    check(workspace, agent, arguments, json!({ "error": error }));
}

/// Sends and returns the id of the message.
#[track_caller]
fn send(workspace: &Workspace, from: &str, to: &str, body: &str) -> i64 {
    let sent = call(workspace, from, json!({"action": "send", "to": to, "body": body}));
    let id = sent["id"].as_i64().unwrap_or_else(|| panic!("not sent: {sent}"));
    assert_eq!(sent, json!({"sent": true, "to": to, "id": id}));
    id
}

fn inbox() -> Value {
    json!({"action": "inbox"})
}

fn read(id: i64) -> Value {
    json!({"action": "read", "id": id})
}

/// The ids of a list, in its order.
fn ids(inbox: &Value) -> Vec<i64> {
    inbox["messages"].as_array().unwrap().iter().map(|mail| mail["id"].as_i64().unwrap()).collect()
}

#[track_caller]
fn is_pending(workspace: &Workspace, agent: usize) -> bool {
    workspace.json(["agents", "--json"])[agent]["notification_pending"].as_bool().unwrap()
}

/// Rows of mail for agent 0/, from itself, without a process for each.
fn fill(workspace: &Workspace, count: u32, unread: bool) {
    workspace.sql(&format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
            INSERT INTO mail (recipient, sender, body, sent_at, unread)
            SELECT key, key, 'body ' || i, 0, {} FROM n, agents WHERE agents.id = '0/'",
        u8::from(unread)
    ));
}

#[test]
fn an_empty_inbox_has_no_messages() {
    let workspace = Workspace::new();
    workspace.check("mail", inbox(), r#"{"messages":[],"unread_count":0}"#);
}

#[test]
fn an_inbox_lists_unread_first_then_newest_first() {
    let workspace = Workspace::with_agents(3);
    send(&workspace, "1/", "0/", "one");
    send(&workspace, "2/", "0/", "two");
    send(&workspace, "1/", "0/", "three");
    call(&workspace, "0/", read(3));
    let expected = concat!(
        r#"{"messages":[{"id":2,"from":"2/","unread":true,"preview":"two"},"#,
        r#"{"id":1,"from":"1/","unread":true,"preview":"one"},"#,
        r#"{"id":3,"from":"1/","unread":false,"preview":"three"}],"unread_count":2}"#
    );
    workspace.check("mail", inbox(), expected);
}

#[test]
fn a_preview_is_the_first_50_characters_on_one_line() {
    let workspace = Workspace::new();
    send(&workspace, "0/", "0/", &"x".repeat(50));
    send(&workspace, "0/", "0/", &format!("one\r\n\ntwo {}", "ü".repeat(100)));
    let inbox = call(&workspace, "0/", inbox());
    let previews: Vec<&str> = inbox["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mail| mail["preview"].as_str().unwrap())
        .collect();
    assert_eq!(previews, [format!("one two {}...", "ü".repeat(42)), "x".repeat(50)]);
}

#[test]
fn reading_returns_the_whole_message_and_marks_it_read() {
    let workspace = Workspace::with_agents(2);
    let body = format!("{}\n\nend", "long ".repeat(100));
    let id = send(&workspace, "1/", "0/", &body);
    workspace.sql("UPDATE mail SET sent_at = 1705314600999");
    let expected =
        json!({"id": id, "from": "1/", "timestamp": "2024-01-15T10:30:00Z", "body": body});
    for arguments in [read(id), read(id), json!({"action": "read", "id": id.to_string()})] {
        check(&workspace, "0/", arguments, expected.clone());
    }
    let inbox = call(&workspace, "0/", inbox());
    assert_eq!(
        (&inbox["unread_count"], &inbox["messages"][0]["unread"]),
        (&json!(0), &json!(false))
    );
}

#[test]
fn a_message_that_is_not_in_the_mailbox_is_not_found() {
    let workspace = Workspace::with_agents(2);
    let of_another = send(&workspace, "0/", "1/", "for 1/");
    let before = workspace.rows();
    for id in [of_another, 99, 0, -5, i64::MAX, i64::MIN] {
        check_error(&workspace, "0/", read(id), &format!("Message #{id} not found"));
    }
    check_error(&workspace, "0/", json!({"action": "read", "id": "99"}), "Message #99 not found");
    for id in [json!("0"), json!("-5"), json!("five"), json!("")] {
        check_error(&workspace, "0/", json!({"action": "read", "id": id}), "Invalid message ID");
    }
    for id in [json!(null), json!(1.5), json!([1]), json!(true)] {
        check_error(&workspace, "0/", json!({"action": "read", "id": id}), "Invalid id type");
    }
    check_error(&workspace, "0/", json!({"action": "read"}), "Missing required parameter: id");
    assert_eq!(workspace.rows(), before);
}

#[test]
fn sending_puts_one_message_into_the_recipients_mailbox() {
    let workspace = Workspace::with_agents(2);
    workspace.check(
        "mail",
        json!({"action": "send", "to": "1/", "body": "  Hello\n"}),
        r#"{"sent":true,"to":"1/","id":1}"#,
    );
    let listed = json!({"id": 1, "from": "0/", "unread": true, "preview": "Hello"});
    check(&workspace, "1/", inbox(), json!({"messages": [listed], "unread_count": 1}));
    check(&workspace, "0/", inbox(), json!({"messages": [], "unread_count": 0}));
    let mail = call(&workspace, "1/", read(1));
    assert_eq!((&mail["from"], &mail["body"]), (&json!("0/"), &json!("Hello")));
}

#[test]
fn mail_to_oneself_is_allowed() {
    let workspace = Workspace::new();
    send(&workspace, "0/", "0/", "a note");
    let listed = json!({"id": 1, "from": "0/", "unread": true, "preview": "a note"});
    check(&workspace, "0/", inbox(), json!({"messages": [listed], "unread_count": 1}));
}

#[test]
fn ids_are_never_used_again() {
    let workspace = Workspace::new();
    send(&workspace, "0/", "0/", "one");
    workspace.sql("DELETE FROM mail");
    assert_eq!(send(&workspace, "0/", "0/", "two"), 2);
}

#[test]
fn sender_and_time_cannot_be_forged() {
    let workspace = Workspace::with_agents(2);
    let forged = json!({
        "action": "send", "to": "1/", "body": "x", "from": "1/", "sender": "1/", "agent": "1/",
        "from_agent_id": "1/", "timestamp": "1970-01-01T00:00:00Z", "sent_at": 0, "time": 0,
        "id": 77, "unread": false, "limit": "wrong"
    });
    check(&workspace, "0/", forged, json!({"sent": true, "to": "1/", "id": 1}));
    let mail = call(&workspace, "1/", read(1));
    assert_eq!(mail["from"], "0/");
    assert!(mail["timestamp"].as_str().unwrap() > "2024", "{mail}");
}

#[test]
fn a_recipient_is_understood_as_a_model_means_it() {
    let workspace = Workspace::new();
    workspace.print(["agents", "add", "reviewer"]);
    workspace.print(["agents", "add", "twin"]);
    let database = workspace.open();
    assert_eq!(database.fork("0/", Some("builder")), "0/0/");
    assert_eq!(database.fork("0/", None), "0/1/");
    let reaches = |from: &str, to: &str, id: &str| {
        let sent = call(&workspace, from, json!({"action": "send", "to": to, "body": "x"}));
        assert_eq!((&sent["sent"], &sent["to"]), (&json!(true), &json!(id)), "{to}");
    };
    reaches("0/", "1", "1/");
    reaches("0/", "0/1", "0/1/");
    reaches("0/", " 0/1/ ", "0/1/");
    reaches("0/", "reviewer", "1/");
    reaches("0/1/", "builder", "0/0/");
    reaches("0/1/", "parent", "0/");
    let unknown = |from: &str, to: &str, named: &str| {
        let arguments = json!({"action": "send", "to": to, "body": "x"});
        check_error(&workspace, from, arguments, &format!("Agent {named} not found"));
    };
    unknown("0/", "99/", "99/");
    unknown("0/", "99", "99/");
    unknown("0/", "0/7", "0/7/");
    unknown("0/", "parent", "parent");
    unknown("0/", "nobody", "nobody");
    unknown("0/", "Reviewer", "Reviewer");
    unknown("0/", &"n".repeat(65), &"n".repeat(64));
    // Of two with the same name only the one that lives is meant.
    reaches("0/", "twin", "2/");
    database.kill("2/");
    unknown("0/", "twin", "twin");
    workspace.print(["agents", "add", "twin"]);
    reaches("0/", "twin", "3/");
}

#[test]
fn m9_mail_to_a_dead_agent_is_refused_and_a_dead_senders_mail_stays_readable() {
    let workspace = Workspace::with_agents(2);
    let id = send(&workspace, "1/", "0/", "last words");
    workspace.open().kill("1/");
    let before = workspace.rows();
    let arguments = json!({"action": "send", "to": "1/", "body": "x"});
    check_error(&workspace, "0/", arguments, "Agent 1/ is dead");
    // What it left running writes no more in its name.
    let arguments = json!({"action": "send", "to": "0/", "body": "x"});
    check_error(&workspace, "1/", arguments, "Agent 1/ is dead");
    assert_eq!(workspace.rows(), before);
    let mail = call(&workspace, "0/", read(id));
    assert_eq!((&mail["from"], &mail["body"]), (&json!("1/"), &json!("last words")));
}

#[test]
fn a_body_is_required_not_empty_and_not_too_large() {
    let workspace = Workspace::new();
    let send = |body: Value| json!({"action": "send", "to": "0/", "body": body});
    let missing = json!({"action": "send", "to": "0/"});
    check_error(&workspace, "0/", missing, "Missing required parameter: body");
    check_error(&workspace, "0/", send(json!(7)), "Missing required parameter: body");
    for body in ["", " \n\t "] {
        check_error(&workspace, "0/", send(json!(body)), "Message body cannot be empty");
    }
    let large = format!(" \n{} ", "x".repeat(16_385));
    let error =
        "Message body too large (16385 bytes, at most 16384): put it in a file and send its path";
    check_error(&workspace, "0/", send(json!(large)), error);
    check(&workspace, "0/", inbox(), json!({"messages": [], "unread_count": 0}));
    let largest = "ü".repeat(8_192);
    let sent = json!({"sent": true, "to": "0/", "id": 1});
    check(&workspace, "0/", send(json!(format!("\n{largest}  "))), sent);
    assert_eq!(call(&workspace, "0/", read(1))["body"], json!(largest));
}

#[test]
fn checks_come_in_their_order() {
    let workspace = Workspace::new();
    let to_missing = json!({"action": "send", "body": ""});
    check_error(&workspace, "0/", to_missing, "Missing required parameter: to");
    let empty = json!({"action": "send", "to": "99/", "body": " "});
    check_error(&workspace, "0/", empty, "Message body cannot be empty");
    let unknown = json!({"action": "send", "to": "99/", "body": "x"});
    check_error(&workspace, "0/", unknown, "Agent 99/ not found");
    check_error(&workspace, "0/", json!({"action": 123}), "Invalid action type");
    check_error(&workspace, "0/", json!({"action": "delete"}), "Unknown action: delete");
    check_error(&workspace, "0/", json!({}), "Missing required parameter: action");
    // A dead agent's full mailbox: it is dead first.
    workspace.print(["agents", "add"]);
    workspace.open().kill("1/");
    workspace.sql(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO mail (recipient, sender, body, sent_at)
            SELECT key, key, 'x', 0 FROM n, agents WHERE agents.id = '1/'",
    );
    let dead = json!({"action": "send", "to": "1/", "body": "x"});
    check_error(&workspace, "0/", dead, "Agent 1/ is dead");
}

#[test]
fn a_mailbox_takes_1000_unread_messages_and_no_more() {
    let workspace = Workspace::with_agents(1);
    fill(&workspace, 500, false);
    fill(&workspace, 999, true);
    let arguments = json!({"action": "send", "to": "0/", "body": "the thousandth"});
    check(&workspace, "0/", arguments.clone(), json!({"sent": true, "to": "0/", "id": 1500}));
    let before = workspace.rows();
    let full = "Mailbox of agent 0/ is full (1000 unread)";
    check_error(&workspace, "0/", arguments.clone(), full);
    let unread = workspace.run(["mail", "unread", "1", "--json"]);
    assert_eq!(unread.1, format!("{}\n", json!({"error": full})));
    assert_eq!(workspace.rows(), before);
    call(&workspace, "0/", read(1500));
    check(&workspace, "0/", arguments, json!({"sent": true, "to": "0/", "id": 1501}));
}

#[test]
fn filters_work_alone_and_together() {
    let workspace = Workspace::with_agents(3);
    for (from, body) in [("1/", "a"), ("2/", "b"), ("1/", "c"), ("2/", "d"), ("1/", "e")] {
        send(&workspace, from, "0/", body);
    }
    call(&workspace, "0/", read(1));
    call(&workspace, "0/", read(4));
    // Unread are 5, 3, 2; read are 4, 1; from 1/ are 5, 3, 1.
    let check = |filter: Value, expected: &[i64], more: Option<i64>| {
        let mut arguments = json!({"action": "inbox"});
        arguments.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        let found = call(&workspace, "0/", arguments);
        let told = (ids(&found), found["unread_count"].as_i64(), found.get("more").cloned());
        assert_eq!(told, (expected.to_vec(), Some(3), more.map(Value::from)), "{filter}");
    };
    check(json!({}), &[5, 3, 2, 4, 1], None);
    check(json!({"unread": true}), &[5, 3, 2], None);
    check(json!({"unread": false}), &[4, 1], None);
    check(json!({"from": "1/"}), &[5, 3, 1], None);
    check(json!({"from": "2"}), &[2, 4], None);
    check(json!({"from": "77/"}), &[], None);
    check(json!({"limit": 2}), &[5, 3], Some(3));
    check(json!({"limit": 5}), &[5, 3, 2, 4, 1], None);
    check(json!({"offset": 3}), &[4, 1], None);
    check(json!({"offset": 5}), &[], None);
    check(json!({"offset": u64::MAX}), &[], None);
    check(json!({"limit": "2", "offset": "1"}), &[3, 2], Some(2));
    check(json!({"unread": true, "from": "1/"}), &[5, 3], None);
    check(json!({"unread": true, "from": "1/", "limit": 1}), &[5], Some(1));
    check(json!({"unread": true, "from": "1/", "limit": 1, "offset": 1}), &[3], None);
    check(json!({"unread": false, "from": "1/", "limit": 200, "offset": 0}), &[1], None);
    check(json!({"unread": null, "from": null, "limit": null}), &[5, 3, 2, 4, 1], None);
}

#[test]
fn a_wrong_filter_is_named() {
    let workspace = Workspace::new();
    let wrong = [
        (json!({"unread": "yes", "from": 1, "limit": 0, "offset": -1}), "unread"),
        (json!({"from": 1, "limit": 0, "offset": -1}), "from"),
        (json!({"limit": 0, "offset": -1}), "limit"),
        (json!({"limit": 201}), "limit"),
        (json!({"offset": -1}), "offset"),
    ];
    for (filter, name) in wrong {
        let mut arguments = json!({"action": "inbox"});
        arguments.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        check_error(&workspace, "0/", arguments, &format!("Invalid parameter: {name}"));
    }
}

#[test]
fn a_list_is_cut_at_its_limit_and_more_is_counted_up_to_1000() {
    let workspace = Workspace::with_agents(1);
    fill(&workspace, 1_100, false);
    let page = call(&workspace, "0/", inbox());
    assert_eq!(ids(&page), (1_051..=1_100).rev().collect::<Vec<_>>());
    assert_eq!((&page["more"], &page["unread_count"]), (&json!(1_000), &json!(0)));
    assert_eq!(
        page.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["messages", "unread_count", "more"]
    );
    let page = call(&workspace, "0/", json!({"action": "inbox", "limit": 200, "offset": 100}));
    assert_eq!((ids(&page).len(), &page["more"]), (200, &json!(800)));
}

/// Only looking into the mailbox counts as looking.
#[test]
fn notification_pending_is_cleared_by_inbox_and_read_only() {
    let workspace = Workspace::with_agents(2);
    let long = "x".repeat(1_001);
    send(&workspace, "1/", "0/", &long);
    let for_another = send(&workspace, "0/", "1/", "two");
    let database = workspace.open();
    database.announce("0/");
    assert!(is_pending(&workspace, 0));
    call(&workspace, "0/", json!({"action": "send", "to": "1/", "body": "x"}));
    for arguments in [
        json!({"action": "send", "to": "99/", "body": "x"}),
        read(99),
        read(for_another),
        json!({"action": "read", "id": "x"}),
        json!({"action": "inbox", "limit": 0}),
        json!({"action": "delete"}),
    ] {
        let result = call(&workspace, "0/", arguments);
        assert!(result.get("error").is_some(), "{result}");
    }
    call(&workspace, "1/", inbox());
    assert!(is_pending(&workspace, 0));
    call(&workspace, "0/", inbox());
    assert!(!is_pending(&workspace, 0));
    let id = send(&workspace, "1/", "0/", &long);
    database.announce("0/");
    assert!(is_pending(&workspace, 0));
    call(&workspace, "0/", read(id));
    assert!(!is_pending(&workspace, 0));
}

#[test]
fn a_database_that_refuses_a_step_is_told_and_nothing_has_changed() {
    let workspace = Workspace::with_agents(2);
    send(&workspace, "1/", "0/", "one");
    let check_refused = |event: &str, table: &str, arguments: Value| {
        workspace.raw().refuse(&format!("{event} ON {table}"), "1 = 1");
        let before = workspace.rows();
        let ended = ended(&mut command(&workspace, "0/", &arguments));
        let told = "ikigai: Database error: refused\n".to_owned();
        assert_eq!(ended, (0, "{\"error\":\"Database error\"}\n".to_owned(), told), "{arguments}");
        assert_eq!(workspace.rows(), before);
        workspace.raw().allow(table);
    };
    let send = json!({"action": "send", "to": "1/", "body": "x"});
    check_refused("INSERT", "mail", send.clone());
    // Here the message was already in the table.
    check_refused("UPDATE", "sessions", send);
    check_refused("UPDATE", "mail", read(1));
    workspace.sql("UPDATE agents SET notification_pending = 1");
    check_refused("UPDATE", "agents", read(1));
    check_refused("UPDATE", "agents", inbox());
}

#[test]
fn an_agent_or_session_that_does_not_exist_is_no_result() {
    let workspace = Workspace::new();
    let unknown = "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b";
    let inbox = r#"{"action":"inbox"}"#;
    let failed = |text: &str| (1, String::new(), format!("ikigai: {text}\n"));
    assert_eq!(
        workspace.run(["tool", "mail", inbox, "--agent", "9"]),
        failed("Agent 9/ not found in this session: 'ikigai agents' lists them")
    );
    assert_eq!(
        workspace.run(["tool", "mail", inbox, "--session", unknown]),
        failed(&format!("Session {unknown} not found: 'ikigai sessions' lists them"))
    );
}

/// The results of many calls at once: each message is there, once, and ids are in the order of the mailbox.
#[test]
fn m7_mail_of_many_processes_arrives_once_each_in_the_order_of_ids() {
    let workspace = Workspace::with_agents(4);
    let senders: Vec<_> = (0..24)
        .map(|number| {
            let from = format!("{}/", number % 4);
            let arguments = json!({"action": "send", "to": "0/", "body": format!("mail {number}")});
            command(&workspace, &from, &arguments).spawn().unwrap()
        })
        .collect();
    let mut sent: Vec<i64> = senders
        .into_iter()
        .map(|sender| {
            let line = crate::support::line_of(crate::support::finish(sender));
            serde_json::from_str::<Value>(&line).unwrap()["id"].as_i64().unwrap()
        })
        .collect();
    sent.sort_unstable();
    assert_eq!(sent, (1..=24).collect::<Vec<_>>());
    let inbox = call(&workspace, "0/", inbox());
    assert_eq!(ids(&inbox), (1..=24).rev().collect::<Vec<_>>());
    let mut previews: Vec<&str> = inbox["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|mail| mail["preview"].as_str().unwrap())
        .collect();
    previews.sort_unstable();
    previews.dedup();
    assert_eq!(previews.len(), 24);
}

/// Five lines at most, the newest first, told once. What they show whole is read.
#[test]
fn m4_a_notification_announces_what_is_new_and_only_once() {
    let workspace = Workspace::with_agents(2);
    for number in 1..=6 {
        send(&workspace, "1/", "0/", &format!("mail {number}"));
    }
    let database = workspace.open();
    let lines = |first: &str, ids: &[i64]| {
        let lines = ids.iter().map(|id| format!("\n#{id} from 1/: \"mail {id}\""));
        format!("[Notification: You have {first} in your inbox]{}", lines.collect::<String>())
    };
    let told = database.announce("0/").content;
    assert_eq!(told, lines("6 unread messages", &[6, 5, 4, 3, 2]));
    send(&workspace, "1/", "0/", "mail 7");
    assert_eq!(database.announce("0/").content, lines("2 unread messages", &[7]));
}
