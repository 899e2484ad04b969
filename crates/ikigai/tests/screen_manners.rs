//! The terminal is treated well: given back by every way out, and proof against whatever is printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use ikigai_testkit::{Gate, ModelServer, Point, Reply};
use rustix::process::{Pid, Signal};
use serde_json::json;

use crate::support::screen::{
    CONTROL_HOME, Screen, assert_intact, command, on_terminal, with_model,
};
use crate::support::story::bash;
use crate::support::{Numbers, Workspace, finish, is_running, wait_for};

/// Text that would take a terminal over: every control character, sequences, marks that take no room or turn the order.
fn hostile() -> String {
    let controls: String = (0..32).chain(127..160).filter_map(char::from_u32).collect();
    let sequences =
        "\x1b[2J\x1b[H\x1b]0;owned\x07\x1b]52;c;QQ==\x07\x1bc\x1b[?1049l\x1b(0lqqk\x1b(B";
    let invisible = "a\u{200b}\u{200d}\u{feff}b \u{202e}desrever\u{202c} \u{2066}x\u{2069}";
    let wide = "漢字 👩‍👩‍👧‍👦 e\u{301}\u{302}\u{303} \u{fdfd} שלום مرحبا \u{1f1e9}\u{1f1ea}";
    format!("{controls}{sequences}{invisible}{wide}\nafter it")
}

#[test]
fn an_exit_leaves_the_last_answer_and_the_way_back_on_the_normal_screen() {
    let server = ModelServer::start([Reply::text("The answer is **42**.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    assert!(!screen.is_as_before(), "{}", screen.settings());
    screen.asks("tell", "● The answer is 42.");
    screen.wait_until_idle();
    let left = screen.leave();
    let session = workspace.open().session();
    let expected =
        format!("● The answer is **42**.\nResume with: ikigai -c, or ikigai --session {session}");
    assert_eq!((left.code, left.shown.trim_end()), (Some(0), expected.as_str()));
}

/// The terminal broke it, in the middle of words.
#[test]
fn what_is_left_on_the_normal_screen_is_broken_between_words() {
    let answer = "It ends too early, so that nothing behind it is read at all.\n\n```\ncode that is wider than the whole screen\n```";
    let server = ModelServer::start([Reply::text(answer)]);
    let workspace = Workspace::new();
    let mut screen = Screen::start(&mut command(&workspace, &server), 38, 20);
    screen.asks("tell", "read at all.");
    screen.wait_until_idle();
    let left = screen.leave();
    let expected = "\
● It ends too early, so that nothing
behind it is read at all.

```
code that is wider than the whole scre
en
```
Resume with: ikigai -c,
or ikigai --session ";
    assert!(left.shown.starts_with(expected), "{}", left.shown);
}

#[test]
fn signals_give_the_terminal_back_in_the_middle_of_work() {
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let server = ModelServer::start([Reply::text("A long story").stall_at(Point::Text)]);
        let mut screen = Screen::alone(&server);
        screen.says("tell");
        server.wait_for_stalls(1);
        screen.wait_for("● A long");
        screen.signal(signal);
        let left = screen.ended();
        assert_eq!(left.code, Some(130), "{signal:?}: {}", left.shown);
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_program() {
    let server = ModelServer::start([bash("c1", "sleep 31415.7")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("wait", " Bash  ");
    let process = screen.process();
    let status = finish(screen.hang_up()).status;
    assert!(!is_running(process), "{status}");
}

#[test]
fn a_database_that_is_gone_ends_it_with_a_word_on_the_normal_screen() {
    let server = ModelServer::start([Reply::text("never")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    fs::remove_dir_all(workspace.path("../home/data/ikigai")).unwrap();
    screen.says("hello");
    let left = screen.ended();
    assert_eq!(left.code, Some(1));
    let shown = left.shown.replace('\n', "");
    assert!(shown.contains("was moved or deleted while it was in use"), "{shown}");
}

/// A shell that has jobs. It waits for a line before it continues one that was stopped.
const SHELL: &str = r#"
set -m
"$@"; code=$?
while [ $code -gt 128 ]; do read -r line; fg; code=$?; done
exit $code"#;

#[test]
fn control_z_gives_the_terminal_back_until_the_program_goes_on() {
    let server = ModelServer::start([Reply::text("Hi."), Reply::text("Again.")]);
    let workspace = Workspace::new();
    let mut shell = workspace.under("setsid", &["--ctty", "bash", "-c", SHELL, "shell"]);
    let mut screen = Screen::start(with_model(&mut shell, &server), 80, 24);
    screen.asks("hello", "● Hi.");
    screen.wait_until_idle();
    let program = only_child(screen.process());
    for _ in 0..2 {
        screen.types("\x1a");
        wait_for("the stop", || is_stopped(program).then_some(()));
        // What it wrote last may still be on its way.
        wait_for("the terminal as it was", || screen.is_as_before().then_some(()));
        screen.types("\n");
        wait_for("the screen", || screen.terminal().screen().alternate_screen().then_some(()));
        screen.wait_for("● Hi.");
    }
    screen.asks("still there?", "● Again.");
    screen.wait_until_idle();
    assert_eq!(screen.leave().code, Some(0));
}

/// It stopped for ever: nobody could continue it.
#[test]
fn control_z_does_not_stop_what_no_shell_could_continue() {
    let server = ModelServer::start([Reply::text("Again.")]);
    let workspace = Workspace::new();
    let mut wrapped = workspace.under("setsid", &["--ctty", "sh", "-c", "\"$@\"; exit $?", "sh"]);
    // The session of its parent began outside, where no number of this process space reaches.
    let inside = ["-Ur", "--pid", "--fork", "sh", "-c", "setsid --ctty \"$@\"; exit $?", "sh"];
    let mut contained = workspace.under("unshare", &inside);
    for command in [
        &mut command(&workspace, &server),
        with_model(&mut wrapped, &server),
        with_model(&mut contained, &server),
    ] {
        let mut screen = Screen::start(command.arg("--new"), 80, 24);
        screen.types("\x1a");
        screen.wait_for("Not stopped: there is no shell that could continue ikigai");
        assert_eq!(screen.leave().code, Some(0));
    }
}

fn only_child(process: Pid) -> Pid {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = fs::read_to_string(path).unwrap();
    Pid::from_raw(children.trim().parse().unwrap()).unwrap()
}

fn is_stopped(process: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap();
    stat.rsplit(") ").next().unwrap().starts_with('T')
}

#[test]
fn hostile_text_of_a_model_a_command_and_a_mail_leaves_the_screen_intact() {
    let text = hostile();
    let line = "x".repeat(100_000);
    let server = ModelServer::start([
        bash("c1", "cat hostile bytes; printf '\\xff\\xfe\\x1b[2J\\n'"),
        Reply::text(&text),
        Reply::text(&line),
        Reply::text("I have mail."),
    ]);
    let workspace = Workspace::new();
    let mut numbers = Numbers(7);
    let bytes: Vec<u8> = (0..3_000).map(|_| u8::try_from(numbers.below(256)).unwrap()).collect();
    workspace.write("hostile", &text).write("bytes", bytes);
    let mut screen = Screen::open(&workspace, &server);
    screen.asks("go", "after it");
    screen.wait_until_idle();
    assert_intact(&screen, 80, 24);
    screen.types("\x0f");
    screen.types(CONTROL_HOME);
    screen.wait_for("ikigai 0.1");
    assert_intact(&screen, 80, 24);
    screen.asks("long", &"x".repeat(78));
    screen.wait_until_idle();
    assert_intact(&screen, 80, 24);
    workspace.print(["mail", "send", "0/", text.replace('\0', "").as_str()]);
    screen.wait_for("● I have mail.");
    screen.wait_until_idle();
    screen.asks("/mail read 1", "after it");
    assert_intact(&screen, 80, 24);
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn a_resize_in_the_middle_of_a_stream_is_followed() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text(&"word ".repeat(60)).hold_at(Point::Text, &gate)]);
    let mut screen = Screen::alone(&server);
    screen.asks("tell", "● word");
    for (width, height) in [(40, 10), (200, 60), (20, 5), (80, 24)] {
        screen.resize(width, height);
        let rows = usize::from(height);
        screen.wait_until("the new size", |shown| {
            let last = shown.lines().nth(rows - 1).unwrap_or_default();
            last.contains("work") && shown.contains("────────")
        });
    }
    gate.open();
    screen.wait_until_idle();
    assert_intact(&screen, 80, 24);
}

#[test]
fn no_color_means_none() {
    let server = ModelServer::start([
        Reply::call("c1", "file_write", json!({"path": "a.txt", "content": "x\n"})),
        Reply::text("# Done\n\n```rust\nfn main() {}\n```"),
    ]);
    let workspace = Workspace::new();
    let mut screen = Screen::start(command(&workspace, &server).env("NO_COLOR", "1"), 80, 24);
    screen.asks("write", "fn main() {}");
    screen.wait_until_idle();
    assert!(!screen.has_colours());
    screen.asks("/mode full", "Switched to mode full");
    assert!(!screen.has_colours());
}

#[test]
fn a_dumb_terminal_and_plain_have_lines() {
    let server = ModelServer::start([]);
    let workspace = Workspace::new();
    let mut dumb = command(&workspace, &server);
    let mut plain = command(&workspace, &server);
    for command in [dumb.env("TERM", "dumb"), plain.arg("--plain")] {
        let screen = Screen::start(command, 80, 24);
        assert!(!screen.terminal().screen().alternate_screen());
        assert_eq!(screen.leave().code, Some(0));
    }
}

#[test]
fn without_a_terminal_it_points_to_run() {
    let workspace = Workspace::new();
    let ended = crate::support::ended(workspace.ikigai().env("TERM", "xterm"));
    let told = "ikigai: not a terminal: use 'ikigai run PROMPT', or see 'ikigai --help'\n";
    assert_eq!(ended, (2, String::new(), told.to_owned()));
}

#[test]
fn an_agent_that_finishes_while_nobody_looks_rings() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("Done.").after(&gate)]);
    let workspace = Workspace::new();
    let mut command = command(&workspace, &server);
    let mut screen = Screen::start(command.env("TERM_PROGRAM", "WezTerm"), 80, 24);
    screen.says("work");
    server.wait_for_requests(1);
    // The terminal says that it lost the focus.
    screen.types("\x1b[O");
    screen.types("x");
    screen.wait_for("❯ x");
    gate.open();
    screen.wait_for("● Done.");
    let is_told =
        || screen.terminal().callbacks().commands.contains(&"9;Agent 0/ has finished".to_owned());
    wait_for("a notification", || is_told().then_some(()));
}

#[test]
fn the_title_of_the_window_is_that_of_the_session_with_a_mark_for_its_state() {
    let gate = Gate::new();
    let server = ModelServer::start([Reply::text("Done.").after(&gate)]);
    let mut screen = Screen::alone(&server);
    screen.says("fix the parser");
    let has = |screen: &Screen, title: &str| {
        let terminal = screen.terminal();
        terminal.callbacks().titles.last().is_some_and(|last| last == title).then_some(())
    };
    wait_for("the mark", || has(&screen, "✳ fix the parser"));
    gate.open();
    screen.wait_for("● Done.");
    wait_for("the title", || has(&screen, "fix the parser"));
}

#[test]
fn kitty_and_foot_get_their_own_notifications_and_other_terminals_the_bell() {
    for (term, expected) in [
        ("xterm-kitty", "99;;Agent 0/ has finished"),
        ("foot", "777;notify;ikigai;Agent 0/ has finished"),
        ("xterm-256color", ""),
    ] {
        let server = ModelServer::start([Reply::text("Done.")]);
        let workspace = Workspace::new();
        let mut command = command(&workspace, &server);
        let mut screen = Screen::start(command.env("TERM", term), 80, 24);
        // The terminal says that it lost the focus.
        screen.types("\x1b[O");
        screen.asks("work", "● Done.");
        wait_for("a notification", || {
            let terminal = screen.terminal();
            let heard = terminal.callbacks();
            let is_told = heard.commands.iter().any(|command| command == expected);
            (is_told || expected.is_empty() && heard.bells > 0).then_some(())
        });
    }
}

/// The answer was typed into the input.
#[test]
fn the_answer_about_the_background_is_no_input_and_changes_the_tints() {
    let edit = json!({"path": "a.txt", "content": "new\n"});
    let server =
        ModelServer::start([Reply::call("c1", "file_write", edit), Reply::text("Written.")]);
    let workspace = Workspace::new();
    let mut screen = Screen::open(&workspace, &server);
    wait_for("the question", || {
        screen.terminal().callbacks().commands.contains(&"11;?".to_owned()).then_some(())
    });
    screen.asks("write", "● Written.");
    screen.wait_until_idle();
    let dark = screen.cell_of("+ new").bgcolor();
    screen.types("\x1b]11;rgb:ffff/ffff/f0f0\x1b\\");
    screen.wait_until("a light tint", |_| screen.cell_of("+ new").bgcolor() != dark);
    assert_intact(&screen, 80, 24);
    screen.types("x");
    screen.wait_for("❯ x\n");
}

/// Old text showed through: the screen of the killed program was still there.
#[test]
fn after_kill_9_the_next_program_starts_on_an_empty_screen() {
    let server = ModelServer::start([Reply::text("An answer in the old program.")]);
    let workspace = Workspace::new();
    let script = "\"$@\"; exec \"$@\" -c";
    let mut shell = workspace.under("setsid", &["--ctty", "bash", "-c", script, "shell"]);
    let mut screen = Screen::start(with_model(&mut shell, &server), 80, 24);
    screen.asks("hello", "● An answer in the old program.");
    screen.wait_until_idle();
    screen.asks("/mark old text that no log has", "old text that no log has");
    screen.asks("/help", "/new       Start");
    rustix::process::kill_process(only_child(screen.process()), Signal::KILL).unwrap();
    screen.wait_until_gone("/new       Start");
    screen.wait_for("● An answer in the old program.");
    assert_intact(&screen, 80, 24);
}

/// The second one ended the tour.
#[test]
fn control_c_in_the_editor_is_none_to_the_tour() {
    let workspace = Workspace::new();
    workspace.write("vi", "#!/bin/sh\nn=0\ntrap 'n=$((n+1)); echo caught $n' INT\necho editing\nwhile [ $n -lt 3 ]; do sleep 1; done\n");
    fs::set_permissions(workspace.path("vi"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", workspace.directory().display());
    let mut screen = Screen::spawn(on_terminal(&workspace).env("PATH", path).arg("tour"), 100, 40);
    screen.wait_for("❯ the test fails, please fix it");
    screen.types("\x07");
    screen.wait_for("editing");
    for times in 1..=3 {
        screen.types("\x03");
        if times < 3 {
            screen.wait_for(&format!("caught {times}"));
        }
    }
    screen.wait_for("❯ the test fails, please fix it");
    screen.types("\x03");
    assert_eq!(screen.leave().code, Some(0));
}

#[test]
fn the_tour_leads_through_tools_a_fork_mail_and_a_question() {
    let workspace = Workspace::new();
    let mut screen = Screen::spawn(on_terminal(&workspace).arg("tour"), 100, 40);
    screen.wait_for("❯ the test fails, please fix it");
    screen.wait_for("tour (scripted)");
    screen.types("\r");
    screen.wait_for("❯ fork a child that tries it with other numbers");
    screen.types("\r");
    screen.wait_for("   Right also for 1 and for 100");
    screen.wait_for("❯ let git run the test before every commit");
    screen.types("\r");
    screen.answers("y");
    screen.wait_for("That was the tour.");
    screen.asks("write me a poem", "I'm the tour's script");
    let left = screen.leave();
    assert_eq!(left.code, Some(0));
    assert!(left.shown.contains("export ANTHROPIC_API_KEY"), "{}", left.shown);
    let left_behind = fs::read_dir(workspace.path("../tmp"));
    assert!(left_behind.is_err() || left_behind.unwrap().next().is_none());
}
