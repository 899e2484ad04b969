//! What requests cost: to the micro-dollar, by the message that caused them, whatever happens on the way.

use ikigai_testkit::{AgentScripts, ModelServer, Point, Reply};
use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};

use crate::support::model::{Format, Running};
use crate::support::screen::{Screen, command};
use crate::support::story::of_type;
use crate::support::{Workspace, ended, finish, pid, wait_for};

/// Dollars per million tokens, with fractions that a float cannot hold.
const PRICES: &str = r#"
[models."openai/scripted"]
input = 1.25
cached = 0.13
output = 10

[models."anthropic/scripted"]
input = 0.075
output = 0.3

[models."openai/other"]
input = 0.000007
output = 33.333333
"#;

/// What the server bills in micro-dollars for tokens sent (and cached) and received.
#[derive(Debug, Clone, Copy)]
struct Bill {
    input: u64,
    cached: u64,
    output: u64,
}

impl Bill {
    fn reply(self, reply: Reply) -> Reply {
        reply.usage(self.input, self.output).cached(self.cached)
    }

    /// By rates in micro-dollars per million tokens: (input, cached, output).
    fn micro_dollars(self, rates: (u128, u128, u128)) -> u128 {
        let Bill { input, cached, output } = self;
        let exact = u128::from(input - cached) * rates.0
            + u128::from(cached) * rates.1
            + u128::from(output) * rates.2;
        (exact + 500_000) / 1_000_000
    }
}

const SCRIPTED: (u128, u128, u128) = (1_250_000, 130_000, 10_000_000);
const OTHER: (u128, u128, u128) = (7, 7, 33_333_333);

fn bill(input: u64, cached: u64, output: u64) -> Bill {
    Bill { input, cached, output }
}

/// Key, requests, tokens sent, cached and received, cost in micro-dollars, unreported requests.
type Row = (String, [u64; 4], Option<u128>, u64);

/// The rows of `ikigai usage`.
#[track_caller]
fn usage(workspace: &Workspace, by: &str) -> Vec<Row> {
    let table = workspace.json(["usage", "--by", by, "--json"]);
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let row = |row: &Value| {
        let cost = row["cost_usd"].as_f64().map(|dollars| (dollars * 1e6).round() as u128);
        let counts = ["requests", "input_tokens", "cached_tokens", "output_tokens"];
        let key = row["key"].as_str().unwrap().to_owned();
        (key, counts.map(|name| number(row, name)), cost, number(row, "unreported"))
    };
    table.as_array().unwrap().iter().map(row).collect()
}

fn row(key: &str, bills: &[Bill], rates: (u128, u128, u128), unreported: u64) -> Row {
    let sum = |part: fn(&Bill) -> u64| bills.iter().map(part).sum();
    let counts = [
        bills.len() as u64,
        sum(|bill| bill.input),
        sum(|bill| bill.cached),
        sum(|bill| bill.output),
    ];
    let cost = bills.iter().map(|bill| bill.micro_dollars(rates)).sum();
    (key.to_owned(), counts, Some(cost), unreported)
}

/// A run with events, in the session that there is.
fn start(workspace: &Workspace, server: &ModelServer, prompt: &str) -> Running {
    let mut command = workspace.run_command(server, Format::Chat, ["--json"]);
    if workspace.json(["sessions", "--json"]) != json!([]) {
        command.arg("-c");
    }
    Running::start(command.arg(prompt))
}

/// Forks, a retry, an interrupt, a kill and a change of the model.
#[test]
fn usage_is_what_the_server_billed_by_message_agent_model_and_session() {
    let bills = [
        bill(1_001, 0, 17),
        bill(333, 100, 1),
        bill(2_047, 1_999, 101),
        bill(5, 0, 3),
        bill(99_999, 3, 7),
    ];
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                // The first attempt breaks off, the second is refused.
                Reply::text("Half a text").close_at(Point::Text),
                Reply::status(429),
                bills[0].reply(Reply::calls([
                    ("c1", "fork", json!({"prompt": "help"})),
                    ("c2", "wait", json!({})),
                ])),
                bills[2].reply(Reply::text("Done.")),
                Reply::text("never whole").stall_at(Point::Text),
                bills[3].reply(Reply::call("c3", "agents", json!({}))),
                Reply::text("never whole").stall_at(Point::Text),
                bills[4].reply(Reply::text("Other.")),
            ],
        )
        .role("0/0/", [bills[1].reply(Reply::text("Helped."))])
        .start();
    let workspace = Workspace::unconfined();
    workspace.write_config(PRICES);
    let first = start(&workspace, &server, "first");
    let (code, events, stderr) = first.finish();
    assert_eq!(code, 0, "{events:?} {stderr}");

    let second = start(&workspace, &server, "second");
    server.wait_for_stalls(1);
    kill_process(pid(&second.child), Signal::INT).unwrap();
    assert_eq!(second.finish().0, 130);

    let third = start(&workspace, &server, "third");
    server.wait_for_stalls(2);
    kill_process(pid(&third.child), Signal::KILL).unwrap();
    finish(third.child);

    let by_message = [
        row("first", &bills[..3], SCRIPTED, 1),
        row("second", &[], SCRIPTED, 1),
        row("third", &bills[3..4], SCRIPTED, 1),
        row("fourth", &bills[4..], OTHER, 0),
    ];
    // Nothing has settled the dead process's request yet.
    assert_eq!(usage(&workspace, "message"), by_message[..3]);

    let mut fourth = workspace.run_command(&server, Format::Chat, ["-c", "fourth"]);
    fourth.args(["--model", "openai/other"]);
    assert_eq!(ended(&mut fourth).0, 0);
    assert_eq!(usage(&workspace, "message"), by_message);

    let own = [bills[0], bills[2], bills[3]];
    let total = |rows: &[Row]| rows.iter().filter_map(|row| row.2).sum::<u128>();
    let by_model = [
        row("openai/scripted", &bills[..4], SCRIPTED, 3),
        row("openai/other", &bills[4..], OTHER, 0),
    ];
    assert_eq!(usage(&workspace, "model"), by_model);
    let by_agent = usage(&workspace, "agent");
    assert_eq!(by_agent[1], row("0/0/", &bills[1..2], SCRIPTED, 0));
    let cost = own.iter().map(|bill| bill.micro_dollars(SCRIPTED)).sum::<u128>()
        + bills[4].micro_dollars(OTHER);
    assert_eq!((by_agent[0].2, by_agent[0].3), (Some(cost), 3));
    let session = &workspace.json(["sessions", "--json"])[0]["id"];
    for by in ["session", "day"] {
        let rows = usage(&workspace, by);
        assert_eq!(total(&rows), total(&by_message), "{by}");
        assert_eq!(rows.iter().map(|row| row.3).sum::<u64>(), 3);
        assert!(by == "day" || [session.as_str()] == [Some(rows[0].0.as_str())], "{rows:?}");
    }
    // Each request that the server accepted is either reported or counted as lost.
    let accepted = server.requests().len() as u64 - 1;
    let known: u64 = by_message.iter().map(|row| row.1[0] + row.3).sum();
    assert_eq!(known, accepted);
}

#[test]
fn the_event_and_the_log_have_the_cost_of_each_request() {
    for format in Format::BOTH {
        let server = ModelServer::start([bill(1_000, 200, 50).reply(Reply::text("hi"))]);
        let workspace = Workspace::new();
        workspace.write_config(PRICES);
        let (code, events) = workspace.run_json(&server, format, ["go"]);
        assert_eq!(code, 0);
        let cost = match format {
            // 800 × 1.25 + 200 × 0.13 + 50 × 10
            Format::Chat => 1_526,
            // 1,000 × 0.075 + 50 × 0.3
            Format::Anthropic => 90,
        };
        let event = of_type(&events, "usage")[0];
        assert_eq!(
            (&event["cached_tokens"], event["cost_usd"].as_f64()),
            (&json!(200), Some(f64::from(cost) / 1e6))
        );
        let log = workspace.log("0/");
        let usage = log.iter().find(|message| message["kind"] == "usage").unwrap();
        assert_eq!(
            (&usage["data"]["cost"], &usage["data"]["cache_read_tokens"]),
            (&json!(cost), &json!(200))
        );
    }
}

#[test]
fn a_table_for_people_has_the_same_numbers_and_looking_makes_no_session() {
    let workspace = Workspace::new();
    assert_eq!(workspace.print(["usage"]), "No tokens used yet\n");
    assert_eq!(workspace.print(["usage", "--json", "--by", "day"]), "[]\n");
    assert_eq!(workspace.print(["sessions"]), "No sessions yet\n");
    workspace.write_config(PRICES);
    let server = ModelServer::start([bill(20_000, 19_000, 50).reply(Reply::text("hi"))]);
    workspace.run_model(&server, Format::Chat, ["what is this?"]);
    let expected = "\
requests  input  cached  output     cost  time  agents  message
       1  20.0k     95%      50  $0.0042   0 s       1  what is this?
";
    let shown = workspace.print(["usage"]);
    // A slow machine may take a second.
    assert_eq!(shown.replace(" 1 s ", " 0 s "), expected);
    let (code, _, stderr) = workspace.run(["usage", "--by", "moon"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn requests_from_before_messages_were_noted_are_earlier() {
    let workspace = Workspace::new();
    let server =
        ModelServer::start([Reply::text("one").usage(7, 5), Reply::text("two").usage(1, 2)]);
    workspace.run_model(&server, Format::Chat, ["old"]);
    workspace.sql("UPDATE spending SET cause = NULL");
    workspace.run_model(&server, Format::Chat, ["-c", "new"]);
    let rows = usage(&workspace, "message");
    assert_eq!(rows[0], ("earlier".to_owned(), [1, 7, 0, 5], None, 0));
    assert_eq!(rows[1], ("new".to_owned(), [1, 1, 0, 2], None, 0));
}

#[test]
fn a_server_that_reports_no_usage_leaves_unreported_requests() {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]});
    let server = ModelServer::start([Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"))]);
    let workspace = Workspace::new();
    workspace.run_model(&server, Format::Chat, ["go"]);
    assert_eq!(usage(&workspace, "message"), [("go".to_owned(), [0; 4], Some(0), 1)]);
}

#[test]
fn a_request_on_its_way_is_not_lost() {
    let workspace = Workspace::new();
    let server = ModelServer::start([Reply::silence()]);
    let run = Running::start(&mut workspace.run_command(&server, Format::Chat, ["--json", "go"]));
    server.wait_for_stalls(1);
    wait_for("the session", || (workspace.json(["sessions", "--json"]) != json!([])).then_some(()));
    assert_eq!(usage(&workspace, "message"), []);
    kill_process(pid(&run.child), Signal::INT).unwrap();
    run.finish();
    assert_eq!(usage(&workspace, "message"), [("go".to_owned(), [0; 4], Some(0), 1)]);
}

/// Each request costs 0.01 dollars.
const CENT: Bill = Bill { input: 0, cached: 0, output: 1_000 };

fn call(id: &str) -> Reply {
    CENT.reply(Reply::call(id, "agents", json!({})))
}

#[test]
fn max_cost_stops_every_agent_at_its_next_request() {
    let server = AgentScripts::new()
        .role(
            "0/",
            [CENT.reply(Reply::calls([
                ("c1", "fork", json!({"prompt": "help"})),
                ("c2", "wait", json!({})),
            ]))],
        )
        .role("0/0/", [call("c1"), call("c2")])
        .start();
    let workspace = Workspace::unconfined();
    workspace.write_config(&format!("max_cost = 0.03\n{PRICES}"));
    let (code, events) = workspace.run_json(&server, Format::Chat, ["go"]);
    assert_eq!(code, 1);
    let ends: Vec<_> = of_type(&events, "done")
        .into_iter()
        .map(|end| (&end["agent"], &end["stop"], &end["error"]))
        .collect();
    let reached = json!("Cost limit reached ($0.03)");
    let stop = json!("error");
    assert_eq!(ends, [(&json!("0/0/"), &stop, &reached), (&json!("0/"), &stop, &reached)]);
    assert_eq!(server.requests().len(), 3);
    // The next message may cost as much again.
    let again = ModelServer::start([CENT.reply(Reply::text("Fine."))]);
    let (code, stdout, stderr) = workspace.run_model(&again, Format::Chat, ["-c", "and now?"]);
    assert_eq!((code, &*stdout), (0, "Fine.\n"), "{stderr}");
}

#[test]
fn max_session_cost_counts_all_messages() {
    let server =
        ModelServer::start([CENT.reply(Reply::text("One.")), CENT.reply(Reply::text("Two."))]);
    let workspace = Workspace::new();
    workspace.write_config(&format!("max_session_cost = 0.02\n{PRICES}"));
    workspace.run_model(&server, Format::Chat, ["one"]);
    let (code, stdout, _) = workspace.run_model(&server, Format::Chat, ["-c", "two"]);
    assert_eq!((code, &*stdout), (0, "Two.\n"));
    let (code, stdout, stderr) = workspace.run_model(&server, Format::Chat, ["-c", "three"]);
    assert_eq!((code, &*stdout, &*stderr), (1, "", "ikigai: Session cost limit reached ($0.02)\n"));
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn on_a_terminal_enter_grants_the_same_amount_once_more() {
    let replies = [call("c1"), call("c2"), call("c3"), CENT.reply(Reply::text("All done."))];
    let server = ModelServer::start(replies);
    let workspace = Workspace::unconfined();
    workspace.write_config(&format!("max_cost = 0.01\n{PRICES}"));
    let mut screen = Screen::start(&mut command(&workspace, &server), 100, 40);
    screen.asks("go", "Cost limit reached ($0.01)");
    for granted in ["$0.02", "$0.03"] {
        screen.wait_until_idle();
        screen.types("\r");
        screen.wait_for(&format!("Cost limit reached ({granted})"));
    }
    screen.wait_until_idle();
    screen.types("\r");
    screen.wait_for("All done.");
    assert_eq!(server.requests().len(), 4);
}

#[test]
fn a_model_without_a_price_is_not_stopped_and_the_user_is_warned_once() {
    let server = ModelServer::start([
        Reply::call("c1", "agents", json!({})),
        Reply::call("c2", "agents", json!({})),
        Reply::text("Done."),
    ]);
    let workspace = Workspace::unconfined();
    workspace.write_config("max_cost = 0.000001");
    let mut run = workspace.run_command(&server, Format::Chat, ["--json", "go"]);
    let (code, _, stderr) = ended(&mut run);
    assert_eq!(code, 0, "{stderr}");
    let warning = "The cost limit cannot be kept: the price of openai/scripted is not known. Set it in your configuration: [models.\"openai/scripted\"]";
    assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
}
