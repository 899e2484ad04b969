//! The dispatcher: which calls are refused, with which words, and what is checked first.

use std::fmt::Display;

use serde_json::{Value, json};

use crate::support::{Workspace, failure, success};

#[track_caller]
fn check(name: &str, arguments: &str, error: &str) {
    Workspace::new().check(name, arguments, json!({ "error": error }));
}

fn workspace() -> Workspace {
    let workspace = Workspace::unconfined();
    workspace.write("lines.txt", "one\ntwo\nthree\n");
    workspace
}

#[test]
fn an_empty_name_is_refused_before_the_arguments_are_looked_at() {
    check("", "{}", "Unknown tool: ");
    check("", "not json", "Unknown tool: ");
}

#[test]
fn arguments_that_are_no_object_are_refused_before_the_name_is_looked_up() {
    for arguments in
        ["not json", "[]", "\"text\"", "7", "null", "{", "{}{}", "{'a':1}", "\u{feff}{}"]
    {
        check("glob", arguments, "Invalid JSON arguments");
        check("no_such_tool", arguments, "Invalid JSON arguments");
    }
}

#[test]
fn an_unknown_name_is_told_as_it_came() {
    check("no_such_tool", "{}", "Unknown tool: no_such_tool");
    check("find", "{}", "Unknown tool: find");
    check("FileRead", "{}", "Unknown tool: FileRead");
    check("Mail", r#"{"action":"inbox"}"#, "Unknown tool: Mail");
    check(" glob", "{}", "Unknown tool:  glob");
    check("gl\nob\"\\", "{}", "Unknown tool: gl\nob\"\\");
}

#[test]
fn a_long_name_is_cut_at_64_characters() {
    let name = |length: usize| "ä".repeat(length);
    check(&name(64), "{}", &format!("Unknown tool: {}", name(64)));
    check(&name(65), "{}", &format!("Unknown tool: {}", name(64)));
    check(&"n".repeat(100 * 1024), "{}", &format!("Unknown tool: {}", "n".repeat(64)));
}

#[test]
fn no_arguments_count_as_an_empty_object() {
    for arguments in ["", " ", "\n", "{}"] {
        check("glob", arguments, "Missing required parameter: pattern");
    }
}

#[test]
fn required_parameters_are_missed_in_the_order_of_the_schema() {
    check("glob", r#"{"path":"."}"#, "Missing required parameter: pattern");
    check("file_read", "{}", "Missing required parameter: path");
    check("grep", "{}", "Missing required parameter: pattern");
    check("file_write", "{}", "Missing required parameter: path");
    check("file_write", r#"{"content":"x"}"#, "Missing required parameter: path");
    check("file_write", r#"{"path":"x"}"#, "Missing required parameter: content");
    check("bash", "{}", "Missing required parameter: command");
    check("file_edit", "{}", "Missing required parameter: path");
    check("file_edit", r#"{"path":"x"}"#, "Missing required parameter: old_string");
    check(
        "file_edit",
        r#"{"path":"x","old_string":"a"}"#,
        "Missing required parameter: new_string",
    );
}

#[test]
fn a_required_parameter_of_the_wrong_type_counts_as_missing() {
    for value in ["null", "true", "[]", "{}", r#"["x"]"#] {
        let arguments = format!(r#"{{"path":{value},"content":"x"}}"#);
        check("file_write", &arguments, "Missing required parameter: path");
    }
}

#[test]
fn what_is_missing_is_told_before_what_is_invalid() {
    check("bash", r#"{"timeout":"soon"}"#, "Missing required parameter: command");
    check("file_read", r#"{"offset":0,"limit":0}"#, "Missing required parameter: path");
    check("grep", r#"{"glob":1,"path":1}"#, "Missing required parameter: pattern");
    check("file_edit", r#"{"path":"x","replace_all":1}"#, "Missing required parameter: old_string");
}

#[test]
fn invalid_optional_parameters_are_told_in_the_order_of_the_schema() {
    check("file_read", r#"{"path":"x","limit":0,"offset":0}"#, "Invalid parameter: offset");
    check("file_read", r#"{"path":"x","limit":0,"offset":1}"#, "Invalid parameter: limit");
    check("grep", r#"{"pattern":"x","path":[],"glob":[]}"#, "Invalid parameter: glob");
    check("bash", r#"{"command":"x","sandbox":1,"timeout":0}"#, "Invalid parameter: timeout");
}

#[test]
fn an_optional_text_is_nothing_but_text() {
    for value in ["true", "[]", "{}"] {
        let of = |name| format!(r#"{{"pattern":"x","{name}":{value}}}"#);
        check("glob", &of("path"), "Invalid parameter: path");
        check("grep", &of("path"), "Invalid parameter: path");
        check("grep", &of("glob"), "Invalid parameter: glob");
    }
}

#[test]
fn a_boolean_is_true_or_false() {
    for value in ["7", "0", r#""yes""#, r#""1""#, "[]", "{}"] {
        let of = |name| {
            format!(
                r#"{{"command":"true","path":"x","old_string":"a","new_string":"b","{name}":{value}}}"#
            )
        };
        check("bash", &of("sandbox"), "Invalid parameter: sandbox");
        check("file_edit", &of("replace_all"), "Invalid parameter: replace_all");
    }
    let arguments = json!({"command": "echo ran", "sandbox": false});
    workspace().check("bash", arguments, success(json!({"output": "ran\n", "exit_code": 0})));
}

#[test]
fn a_whole_number_out_of_range_is_invalid() {
    let beyond = "18446744073709551616";
    for value in
        ["0", "-1", "-0", "1.5", "1e30", "-18446744073709551617", beyond, "true", "[]", "{}"]
    {
        for name in ["offset", "limit"] {
            let arguments = format!(r#"{{"path":"x","{name}":{value}}}"#);
            check("file_read", &arguments, &format!("Invalid parameter: {name}"));
        }
    }
    for value in ["0", "3601", "-5", "0.5", beyond, "true"] {
        let arguments = format!(r#"{{"command":"true","timeout":{value}}}"#);
        check("bash", &arguments, "Invalid parameter: timeout");
    }
}

#[test]
fn a_numeric_text_out_of_range_is_invalid() {
    for value in ["", "0", "-1", "1.5", "two", "0x2", "2 2", "18446744073709551616"] {
        check(
            "file_read",
            &json!({"path": "x", "offset": value}).to_string(),
            "Invalid parameter: offset",
        );
    }
    for value in ["0", "3601", "5s"] {
        check(
            "bash",
            &json!({"command": "true", "timeout": value}).to_string(),
            "Invalid parameter: timeout",
        );
    }
}

#[test]
fn a_whole_number_comes_in_the_forms_that_models_send() {
    for value in [json!(2), json!("2"), json!(" 2 "), json!(2.0), json!("+2"), json!("02")] {
        let arguments = json!({"path": "lines.txt", "offset": value, "limit": 1});
        workspace().check("file_read", arguments, success(json!({"output": "two\n"})));
    }
    for value in ["1e0", "1E+0", "10e-1"] {
        let arguments = format!(r#"{{"path":"lines.txt","limit":{value}}}"#);
        workspace().check("file_read", arguments, success(json!({"output": "one\n"})));
    }
}

#[test]
fn the_largest_numbers_are_in_range() {
    for largest in [json!(u64::MAX), json!(u64::MAX.to_string())] {
        let beyond_the_end = json!({"path": "lines.txt", "offset": largest});
        workspace().check("file_read", beyond_the_end, success(json!({"output": ""})));
        let all = json!({"path": "lines.txt", "limit": largest});
        workspace().check("file_read", all, success(json!({"output": "one\ntwo\nthree\n"})));
    }
    for seconds in [json!(1), json!(3600), json!("5"), json!("3600")] {
        let arguments = json!({"command": "echo ran", "timeout": seconds});
        workspace().check("bash", arguments, success(json!({"output": "ran\n", "exit_code": 0})));
    }
}

#[test]
fn null_counts_as_absent() {
    let arguments = json!({"path": "lines.txt", "offset": null, "limit": null});
    workspace().check("file_read", arguments, success(json!({"output": "one\ntwo\nthree\n"})));
    let arguments = json!({"pattern": "*.txt", "path": null});
    workspace().check("glob", arguments, success(json!({"output": "lines.txt", "count": 1})));
    let arguments = json!({"command": "echo ran", "timeout": null, "sandbox": null});
    workspace().check("bash", arguments, success(json!({"output": "ran\n", "exit_code": 0})));
}

#[test]
fn unknown_parameters_are_ignored() {
    let nested = (0..100).fold(json!(null), |inner, _| json!([inner]));
    let arguments =
        json!({"why": {"deep": [1, {"x": null}]}, "pattern": "*.txt", "nested": nested, "": 0});
    workspace().check("glob", arguments, success(json!({"output": "lines.txt", "count": 1})));
}

#[test]
fn the_last_of_several_equal_keys_counts() {
    let found = success(json!({"output": "lines.txt", "count": 1}));
    workspace().check("glob", r#"{"pattern":"*.c","pattern":"*.txt"}"#, found);
    check("glob", r#"{"pattern":"*.c","pattern":null}"#, "Missing required parameter: pattern");
}

#[test]
fn arguments_nested_beyond_reason_are_refused() {
    let nested = format!("{}{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000));
    check("glob", &nested, "Invalid JSON arguments");
    let list = format!(r#"{{"pattern":"x","y":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    check("glob", &list, "Invalid JSON arguments");
}

#[test]
fn a_lone_surrogate_is_no_text() {
    check("glob", r#"{"pattern":"\ud800"}"#, "Invalid JSON arguments");
    check("glob", r#"{"pattern":"\udc00\ud800"}"#, "Invalid JSON arguments");
    let pair = r#"{"path":"\ud83d\ude00"}"#;
    Workspace::new().check("file_read", pair, failure("File not found: 😀"));
}

#[test]
fn numbers_that_no_float_holds_are_no_json_for_us() {
    check("file_read", r#"{"path":"x","offset":1e400}"#, "Invalid JSON arguments");
}

#[test]
fn control_characters_are_escaped_or_refused() {
    check("mail", "{\"action\":\"in\nbox\"}", "Invalid JSON arguments");
    Workspace::new().check("file_read", r#"{"path":"a\nb"}"#, failure("File not found: a\nb"));
}

/// It is one path through the program for each: none may crash, none may name a file that is cut at it.
#[test]
fn a_nul_character_is_survived_everywhere() {
    let workspace = workspace();
    let path = "lines.txt\0.c";
    let missing = failure(format!("File not found: {path}"));
    workspace
        .check("file_read", json!({"path": path}), &missing)
        .check("file_write", json!({"path": path, "content": "x"}), &missing)
        .check(
            "file_write",
            json!({"path": "new\0/a", "content": "x"}),
            failure("File not found: new\0/a"),
        )
        .check("file_edit", json!({"path": path, "old_string": "one", "new_string": "1"}), &missing)
        .check("glob", json!({"pattern": "*", "path": path}), &missing)
        .check("grep", json!({"pattern": "one", "path": path}), &missing)
        .check("glob", json!({"pattern": path}), success(json!({"output": "", "count": 0})))
        .check("grep", json!({"pattern": "one\0"}), success(json!({"output": "", "count": 0})))
        .check(
            "grep",
            json!({"pattern": "one", "glob": path}),
            success(json!({"output": "", "count": 0})),
        )
        .check(
            "bash",
            json!({"command": "echo a\0b"}),
            failure("Cannot start bash: the command holds a NUL character"),
        );
    assert_eq!(workspace.names(), ["lines.txt"]);
    let wrote = success(json!({"output": "Wrote 3 bytes to nul", "bytes": 3}));
    workspace.check("file_write", json!({"path": "nul", "content": "a\0b"}), wrote);
    assert_eq!(workspace.read("nul"), b"a\0b");
}

/// A call that is refused before it has anything to do with a mailbox makes none.
#[test]
fn mail_is_dispatched_and_a_refused_call_opens_no_database() {
    check("mail", "[]", "Invalid JSON arguments");
    let workspace = Workspace::new();
    workspace.check("mail", "{}", json!({"error": "Missing required parameter: action"}));
    assert!(!workspace.database().exists());
    let empty = json!({"messages": [], "unread_count": 0});
    workspace.check("mail", json!({"action": "inbox"}), empty);
    assert!(workspace.database().exists());
}

#[test]
fn a_refusal_has_the_single_field_error() {
    let refusal = Workspace::new().tool("glob", "{}");
    let Value::Object(fields) = serde_json::from_str(&refusal).unwrap() else {
        panic!("no object: {refusal}");
    };
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["error"]);
}

/// The result of a call that is repaired, without the notes, and the notes.
#[track_caller]
fn check_repaired(name: &str, arguments: impl Display, expected: Value, notes: &[&str]) {
    let workspace = workspace();
    let mut result: Value = serde_json::from_str(&workspace.tool(name, arguments)).unwrap();
    let repaired = result["data"].as_object_mut().and_then(|data| data.remove("repaired"));
    assert_eq!(result, expected);
    assert_eq!(repaired, Some(json!(notes)));
}

#[test]
fn a_name_in_another_case_or_with_dashes_is_repaired() {
    let two = success(json!({"output": "two\n"}));
    let arguments = json!({"path": "lines.txt", "offset": 2, "limit": 1});
    for name in ["File_Read", "file-read", "FILE-READ"] {
        check_repaired(name, &arguments, two.clone(), &[&format!("tool {name} read as file_read")]);
    }
    check("Glob", "{}", "Missing required parameter: pattern");
}

#[test]
fn text_around_an_object_is_repaired_if_there_is_one_object() {
    let found = success(json!({"output": "lines.txt", "count": 1}));
    let check = |arguments: &str, note| check_repaired("glob", arguments, found.clone(), &[note]);
    check("```json\n{\"pattern\":\"*.txt\"}\n```", "removed the code fence around the arguments");
    check(r#"{"pattern":"*.txt",}"#, "removed trailing commas");
    check(r#"{"pattern":"*.txt"}}"#, "removed an extra closing brace");
    check(r#""{\"pattern\":\"*.txt\"}""#, "the arguments were encoded twice");
    check(r#"[{"pattern":"*.txt"}]"#, "took the arguments out of a list");
    let wrote = success(json!({"output": "Wrote 3 bytes to new", "bytes": 3}));
    let raw = "{\"path\":\"new\",\"content\":\"a\n\t\"}";
    check_repaired("file_write", raw, wrote, &["escaped control characters in strings"]);
}

#[test]
fn a_value_of_another_type_is_repaired() {
    let wrote = |path: &str, bytes: usize| {
        success(json!({"output": format!("Wrote {bytes} bytes to {path}"), "bytes": bytes}))
    };
    let number = r#"{"path":7,"content":1.25}"#;
    let notes = ["path: a number read as a string", "content: a number read as a string"];
    check_repaired("file_write", number, wrote("7", 4), &notes);
    for content in ["1.10", "1.0", "1e3", "12345678901234567890123"] {
        let arguments = format!(r#"{{"path":"a","content":{content}}}"#);
        check("file_write", &arguments, "Missing required parameter: content");
    }
    let object = r#"{"path":"a/b.json","content":{"a":[1.10]}}"#;
    let note = ["content: an object written as JSON"];
    check_repaired("file_write", object, wrote("a/b.json", 26), &note);
    check("file_write", r#"{"path":"b.txt","content":{}}"#, "Missing required parameter: content");
    check("file_write", r#"{"path":"b.json","content":[]}"#, "Missing required parameter: content");
    let words = json!({"command": ["echo", "a  b", "$HOME"], "sandbox": "false"});
    let printed = success(json!({"output": "a  b $HOME\n", "exit_code": 0}));
    let notes = ["command: a list joined as shell words", "sandbox: a string read as a boolean"];
    check_repaired("bash", words, printed, &notes);
    check("bash", r#"{"command":["echo","a","|","wc"]}"#, "Missing required parameter: command");
}

#[test]
fn a_parameter_under_another_name_is_repaired_if_it_is_the_only_one() {
    let all = success(json!({"output": "one\ntwo\nthree\n"}));
    let call = r#"{"file_path":"lines.txt"}"#;
    check_repaired("file_read", call, all.clone(), &["file_path read as path"]);
    let twice = r#"{"file_path":"lines.txt","filename":"lines.txt"}"#;
    check_repaired("file_read", twice, all, &["file_path read as path"]);
    let found = success(json!({"output": "lines.txt:2: two", "count": 1}));
    let notes = ["file_path read as path", "query read as pattern"];
    check_repaired("grep", r#"{"query":"two","file_path":"lines.txt"}"#, found, &notes);
    let path = "Missing required parameter: path";
    check("file_read", r#"{"file_path":"lines.txt","filename":"other"}"#, path);
    check("file_read", r#"{"path":[],"file_path":"lines.txt"}"#, path);
    check("file_read", r#"{"path":7,"file_path":"lines.txt"}"#, path);
    check("file_read", r#"{"file_path":"a","file_path":"lines.txt"}"#, path);
    let text = r#"{"path":"lines.txt","old_string":"one","text":"1"}"#;
    check("file_edit", text, "Missing required parameter: new_string");
}

#[test]
fn what_is_left_after_repairs_is_refused_as_it_is() {
    check("Bash", r#"{"cmd":"true","timeout":"soon",}"#, "Invalid parameter: timeout");
    check("Find", r#"{"pattern":"x",}"#, "Invalid JSON arguments");
    check("wait", r#"{"agents":"[\"0/1/\"]"}"#, "Invalid parameter: agents");
}

#[test]
fn a_call_on_the_database_says_what_was_repaired_too_and_mail_never_is() {
    let workspace = Workspace::new();
    let result: Value = serde_json::from_str(&workspace.tool("Agents", "")).unwrap();
    assert_eq!(result["data"]["repaired"], json!(["tool Agents read as agents"]));
    workspace
        .check("mail", "[{\"action\":\"inbox\"}]", json!({"error": "Invalid JSON arguments"}))
        .check("MAIL", r#"{"action":"inbox"}"#, json!({"error": "Unknown tool: MAIL"}));
}
