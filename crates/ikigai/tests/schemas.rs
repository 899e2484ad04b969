//! What a model is told of the tools.

use serde_json::{Value, json};

use crate::support::{Workspace, result};

fn schemas<const N: usize>(options: [&str; N]) -> (String, Vec<Value>) {
    let mut command = Workspace::new().ikigai();
    // The working directory is gone by the time the command runs, and the listing does not need one
    // that exists.
    command.current_dir("/").args(["tools", "--json"]).args(options);
    let text = result(&mut command);
    let Value::Array(schemas) = serde_json::from_str(&text).unwrap() else {
        panic!("no array: {text}");
    };
    (text, schemas)
}

fn names(schemas: &[Value]) -> Vec<&str> {
    schemas.iter().map(|schema| schema["function"]["name"].as_str().unwrap()).collect()
}

const CORE: [&str; 6] = ["glob", "file_read", "grep", "file_write", "bash", "mail"];

#[test]
fn the_core_set_is_six_tools_and_mail_is_the_last() {
    assert_eq!(names(&schemas(["--set", "core"]).1), CORE);
}

#[test]
fn other_tools_come_after_the_core_set() {
    let (_, schemas) = schemas([]);
    assert_eq!(
        names(&schemas),
        [&CORE[..], &["file_edit", "command", "fork", "wait", "kill", "agents"]].concat()
    );
}

/// One parameter: its name, its type, whether it is required.
type Shape = (&'static str, &'static str, bool);

#[track_caller]
fn check(tool: &str, expected: &[Shape]) {
    let (_, schemas) = schemas([]);
    let schema = schemas.iter().find(|schema| schema["function"]["name"] == tool).unwrap();
    let parameters = &schema["function"]["parameters"];
    let required = parameters["required"].as_array().unwrap();
    let properties = parameters["properties"].as_object().unwrap();
    let actual: Vec<(&str, &str, bool)> = properties
        .iter()
        .map(|(name, property)| {
            let kind = property["type"].as_str().unwrap();
            (name.as_str(), kind, required.contains(&json!(name)))
        })
        .collect();
    assert_eq!(actual, expected);
    let in_order = expected.iter().filter(|shape| shape.2).map(|shape| json!(shape.0));
    assert_eq!(*required, in_order.collect::<Vec<_>>());
}

#[test]
fn parameters_have_their_order_type_and_necessity() {
    check("glob", &[("pattern", "string", true), ("path", "string", false)]);
    check(
        "file_read",
        &[("path", "string", true), ("offset", "integer", false), ("limit", "integer", false)],
    );
    check(
        "grep",
        &[("pattern", "string", true), ("glob", "string", false), ("path", "string", false)],
    );
    check("file_write", &[("path", "string", true), ("content", "string", true)]);
    check(
        "bash",
        &[
            ("command", "string", true),
            ("timeout", "integer", false),
            ("sandbox", "boolean", false),
            ("network", "boolean", false),
            ("background", "boolean", false),
            ("notify_on", "string", false),
        ],
    );
    check(
        "file_edit",
        &[
            ("path", "string", true),
            ("old_string", "string", true),
            ("new_string", "string", true),
            ("replace_all", "boolean", false),
        ],
    );
    check(
        "command",
        &[
            ("action", "string", true),
            ("id", "integer", false),
            ("offset", "integer", false),
            ("pattern", "string", false),
            ("wait", "integer", false),
        ],
    );
    check(
        "fork",
        &[("prompt", "string", true), ("name", "string", false), ("context", "string", false)],
    );
    check(
        "wait",
        &[("agents", "array", false), ("timeout", "integer", false), ("commands", "array", false)],
    );
    check("kill", &[("agent", "string", true)]);
    check("agents", &[]);
    check(
        "mail",
        &[
            ("action", "string", true),
            ("to", "string", false),
            ("body", "string", false),
            ("id", "integer", false),
            ("unread", "boolean", false),
            ("from", "string", false),
            ("limit", "integer", false),
            ("offset", "integer", false),
            ("end_turn", "boolean", false),
        ],
    );
}

#[test]
fn every_schema_is_an_openai_function() {
    for schema in schemas([]).1 {
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&schema), ["type", "function"]);
        assert_eq!(schema["type"], "function");
        let function = &schema["function"];
        assert_eq!(keys(function), ["name", "description", "parameters"]);
        assert_eq!(keys(&function["parameters"]), ["type", "properties", "required"]);
        assert_eq!(function["parameters"]["type"], "object");
        let descriptions = function["parameters"]["properties"].as_object().unwrap().values();
        for described in descriptions.chain([function]) {
            let description = described["description"].as_str().unwrap();
            assert!(
                !description.is_empty() && description.trim() == description,
                "{description:?}"
            );
        }
    }
}

/// A whole schema once, letter by letter.
#[test]
fn the_schema_of_glob_is_this() {
    let expected = concat!(
        r#"{"type":"function","function":{"name":"glob","#,
        r#""description":"Find files; skips ignored and hidden ones","parameters":{"type":"object","#,
        r#""properties":{"pattern":{"type":"string","description":"Shell pattern: *.c (top folder only), src/**/*.c"},"#,
        r#""path":{"type":"string","description":"Folder to start from"}},"required":["pattern"]}}}"#
    );
    assert_eq!(schemas([]).1[0].to_string(), expected);
}

#[test]
fn the_schema_of_mail_begins_as_agreed() {
    let mut mail = schemas([]).1.remove(5);
    let properties = mail["function"]["parameters"]["properties"].as_object_mut().unwrap();
    let filters: Vec<String> = properties.keys().skip(4).cloned().collect();
    filters.iter().for_each(|filter| drop(properties.shift_remove(filter)));
    let agreed = json!({
        "type": "function",
        "function": {
            "name": "mail",
            "description": "Send and receive messages to/from other agents",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        "type": "string",
                        "enum": ["inbox", "read", "send"],
                        "description": "Operation to perform"
                    },
                    "to": {
                        "type": "string",
                        "description": "Recipient agent ID (required for send)"
                    },
                    "body": {
                        "type": "string",
                        "description": "Message body (required for send)"
                    },
                    "id": {
                        "type": "integer",
                        "description": "Message ID (required for read)"
                    }
                },
                "required": ["action"]
            }
        }
    });
    assert_eq!(mail.to_string(), agreed.to_string());
}

#[test]
fn schemas_cost_little() {
    let (core, all) = (schemas(["--set", "core"]).0.len(), schemas([]).0.len());
    assert!(core < 2_800, "the core set has {core} bytes");
    assert!(all < 6_300, "all tools have {all} bytes");
}
