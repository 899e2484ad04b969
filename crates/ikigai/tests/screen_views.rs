//! The main views as a person sees them, at several sizes, with and without colours.

use std::fs;
use std::path::Path;

use ikigai_testkit::{AgentScripts, ModelServer, Reply};
use serde_json::json;

use crate::support::Workspace;
use crate::support::picture::{Theme, picture};
use crate::support::screen::{
    ALT_DOWN, CONTROL_UP, Screen, assert_intact, command, still, without_folder,
};

#[test]
fn the_main_views() {
    for (width, height) in [(80, 24), (40, 10), (200, 60)] {
        let server = AgentScripts::new()
            .role(
                "0/",
                [
                    Reply::text_and_calls(
                        "I look first.",
                        [("c1", "bash", json!({"command": "seq 12"}))],
                    ),
                    Reply::call("c2", "fork", json!({"prompt": "count the lines"})),
                    Reply::text(
                        "# Found\n\nIt is **wrong**:\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\n\
                         | a | b |\n|---|---|\n| 1 | 2 |\n",
                    )
                    .usage(30_000, 500),
                ],
            )
            .role(
                "0/0/",
                [
                    Reply::call("c3", "bash", json!({"command": "wc -l *", "sandbox": false})),
                    Reply::text("Counted."),
                ],
            )
            .start();
        let workspace = Workspace::new();
        let mut screen = Screen::start(&mut command(&workspace, &server), width, height);
        snapshot(&screen, &format!("beginning_{width}x{height}"));
        screen.asks("what is wrong?", "? 0/0/ needs you");
        screen.wait_until_idle();
        screen.wait_until("tokens", |shown| width < 80 || shown.contains("30.5k"));
        snapshot(&screen, &format!("conversation_{width}x{height}"));
        screen.types("\x14");
        screen.wait_for("enter opens");
        let has_cost = |row: &&str| row.ends_with(" tok");
        screen
            .wait_until("costs", |shown| width < 80 || shown.lines().filter(has_cost).count() == 2);
        snapshot(&screen, &format!("team_{width}x{height}"));
        screen.types("\x1b");
        screen.wait_until_gone("enter opens");
        screen.types(ALT_DOWN);
        screen.wait_for("esc decide later");
        // Its log is read meanwhile; on a small screen there is no room for it.
        if height >= 24 {
            screen.wait_for("❯ count the lines");
        }
        snapshot(&screen, &format!("question_{width}x{height}"));
        screen.answers("y");
        screen.wait_for("● Counted.");
        screen.types(CONTROL_UP);
        screen.wait_for("── 0/ ──");
        assert_eq!(screen.leave().code, Some(0));
    }
}

/// Compares a view, without what differs from run to run and from machine to machine.
#[track_caller]
fn snapshot(screen: &Screen, name: &str) {
    let text = screen.settled(name, |shown| {
        let mut rows: Vec<String> = shown.lines().map(|row| without_folder(&still(row))).collect();
        // What else fits there hangs on the length of names.
        let below = rows.len().saturating_sub(2);
        let status = rows[below..].iter_mut().rfind(|row| row.contains("work"));
        *status.expect(shown) = "openai/scripted · work (…".to_owned();
        rows.join("\n")
    });
    draw(screen, name);
    insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
        insta::assert_snapshot!(name, text);
    });
}

/// Draws the view for `docs/picture`, which wants it.
fn draw(screen: &Screen, name: &str) {
    let Some(folder) = std::env::var_os("IKIGAI_PICTURES") else { return };
    // One size is enough to look at; the others differ in what fits.
    if name.contains("40x10") || name.contains("200x60") {
        return;
    }
    for theme in Theme::BOTH {
        let svg = picture(screen.terminal().screen(), theme);
        let file = format!("{name}_{}.svg", theme.name());
        fs::write(Path::new(&folder).join(file), svg).unwrap();
    }
}

#[test]
fn every_size_works_with_colours_and_without() {
    let sizes = [(40, 10), (80, 24), (200, 60), (400, 100)];
    for ((width, height), no_color) in sizes.into_iter().flat_map(|size| [(size, ""), (size, "1")])
    {
        let diff = json!({"path": "new", "content": "a line\n"});
        let server = ModelServer::start([
            Reply::call("c1", "file_write", diff),
            Reply::text("# Found\n\n**It** is `so`."),
        ]);
        let workspace = Workspace::new();
        let mut command = command(&workspace, &server);
        let mut screen = Screen::start(command.env("NO_COLOR", no_color), width, height);
        screen.asks("go on", "It is so.");
        screen.wait_until_idle();
        assert_intact(&screen, usize::from(width), usize::from(height));
        assert_eq!(screen.has_colours(), no_color.is_empty(), "{}", screen.text());
        assert_eq!(screen.leave().code, Some(0));
    }
}

/// The scene of the picture in the README.
#[test]
fn two_terminals_whose_agents_exchange_mail() {
    let fix = json!({"path": "sum.sh", "old_string": "i < $1", "new_string": "i <= $1"});
    let thanks = "Right, thank you: the loop ended one too early. Fixed.";
    let done = "Done: the loop in `sum.sh` is **fixed**.";
    let server = AgentScripts::new()
        .role(
            "0/",
            [
                Reply::text("`sum.sh` adds up the numbers from 1 to *n*. Ready when you are."),
                Reply::call("c1", "mail", json!({"action": "read", "id": 1})),
                Reply::call("c2", "file_edit", fix),
                Reply::call("c3", "mail", json!({"action": "send", "to": "1/", "body": thanks})),
                Reply::text(done),
            ],
        )
        .role("1/", [Reply::text(done)])
        .start();
    let workspace = Workspace::new();
    workspace.write("sum.sh", "for ((i = 1; i < $1; i++)); do ((sum += i)); done\necho \"$sum\"\n");
    let mut one = Screen::start(&mut command(&workspace, &server), 76, 24);
    one.asks("what is here?", "Ready when you are.");
    one.wait_until_idle();
    let mut two = Screen::start(&mut command(&workspace, &server), 76, 17);
    two.wait_for("Also open in another terminal");
    two.says("/mail send 0/ sum.sh 4 says 6, but it should be 10");
    for screen in [&one, &two] {
        screen.wait_for("● Done: the loop in sum.sh is fixed.");
        screen.wait_until_idle();
    }
    // The mailboxes are counted in their own time.
    one.wait_until_gone("[mail:1]");
    two.wait_until_gone("[mail:1]");
    for screen in [&one, &two] {
        screen.wait_for("✓ 0/  ✓ 1/");
    }
    snapshot(&one, "two_terminals_one");
    snapshot(&two, "two_terminals_two");
    assert_eq!((one.leave().code, two.leave().code), (Some(0), Some(0)));
}

/// Every kind of block, with what it looks like without colours too.
#[test]
fn the_blocks_of_a_conversation() {
    const PARSER: &str = "class Parser:\n    def expr(self):\n        value = self.term()\n        \
        while self.peek() in \"+-\":\n            rhs = self.term()\n            value = value + rhs\n        \
        return value\n";
    const ANSWER: &str = "# Fixed\n\nThe loop ignored the **sign**.\n\n## What changed\n\n\
        1. `expr` looks at the operator\n2. one test for it\n\n### Code\n\n```python\n\
        value = value + rhs if operator == \"+\" else value - rhs\n```\n\n> A quote of the [docs](https://example.org).\n\n\
        | case | before | after |\n|---|---:|---:|\n| 1+2-3 | 6 | 0 |\n";
    for (width, height, no_color) in [(80, 24, ""), (40, 10, ""), (200, 60, ""), (80, 24, "1")] {
        let test = "echo 'ok 1'; echo 'ok 2'; seq 3; echo 'FAIL 1+2-3 = 6, want 0'; exit 1";
        let edit = json!({
            "path": "src/parser.py",
            "old_string": "            value = value + rhs\n",
            "new_string": "            if operator == \"+\":\n                value = value + rhs\n",
        });
        let server = ModelServer::start([
            Reply::text_and_calls(
                "I'll run the tests first.",
                [("c1", "bash", json!({"command": test}))],
            ),
            Reply::call("c2", "grep", json!({"pattern": "def (expr|term)"})),
            Reply::call("c3", "file_read", json!({"path": "src/parser.py"})),
            Reply::call("c4", "file_edit", edit),
            Reply::text("Done."),
            Reply::text(ANSWER),
        ]);
        let workspace = Workspace::new();
        workspace.write("src/parser.py", PARSER);
        let mut command = command(&workspace, &server);
        let mut screen = Screen::start(command.env("NO_COLOR", no_color), width, height);
        let suffix = if no_color.is_empty() { "" } else { "_no_color" };
        screen.says("fix the failing test");
        screen.wait_for("● Done.");
        screen.wait_until_idle();
        snapshot(&screen, &format!("calls_{width}x{height}{suffix}"));
        screen.asks("what was it?", " │ before");
        screen.wait_until_idle();
        snapshot(&screen, &format!("answer_{width}x{height}{suffix}"));
        assert_eq!(screen.leave().code, Some(0));
    }
}
