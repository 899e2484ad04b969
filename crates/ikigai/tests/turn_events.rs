//! The events of `ikigai run --json` (cli.md, Events).

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use serde_json::{Value, json};

use crate::support::Workspace;
use crate::support::model::{Format, Running, assert_stable};

#[test]
fn an_event_is_readable_while_the_server_still_holds_the_rest_back() {
    for format in Format::BOTH {
        let gate = Gate::new();
        let server = ModelServer::start([Reply::text("one two").hold_at(Point::Text, &gate)]);
        let workspace = Workspace::new();
        let mut command = workspace.run_command(&server, format, ["--json", "say"]);
        let run = Running::start(&mut command);
        let first = run.until("text");
        let session = first[0]["session"].clone();
        let expected = [
            json!({"type": "session", "agent": "0/", "session": session, "model": format.model()}),
            json!({"type": "text", "agent": "0/", "delta": "one "}),
        ];
        assert_eq!(first, expected);
        gate.open();
        let (code, rest, stderr) = run.finish();
        assert_eq!((code, &*stderr), (0, ""));
        let last = rest.last().cloned().unwrap_or(Value::Null);
        let done = json!({"type": "done", "agent": "0/", "stop": "stop", "text": "one two"});
        assert_eq!(last, done);
        assert_stable(&server.requests());
    }
}
