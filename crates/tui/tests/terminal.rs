//! Taking over the terminal and restoring it.

use rustix::process::Signal;

use crate::support::Terminal;

const ENTER_ALTERNATE: &str = "\x1b[?1049h";
const LEAVE_ALTERNATE: &str = "\x1b[?1049l";
/// The sequences that restore the terminal, in any order.
const RESTORING: [&str; 5] = ["\x1b[?2004l", "\x1b[?1004l", "\x1b[?1007r", "\x1b[<1u", "\x1b[?25h"];

fn started() -> Terminal {
    let terminal = Terminal::start();
    terminal.wait_for("? for keys");
    assert!(terminal.is_raw());
    terminal
}

#[track_caller]
fn check_restored(shown: &str) {
    let at = shown.rfind(LEAVE_ALTERNATE).expect("the normal screen is back");
    assert!(shown.rfind(ENTER_ALTERNATE) < Some(at));
    for sequence in RESTORING {
        assert!(shown.contains(sequence), "{sequence:?} in {shown:?}");
    }
}

#[test]
fn a_message_is_answered_and_the_answer_is_in_the_summary() {
    let mut terminal = started();
    terminal.types("hello\r");
    terminal.wait_for("answered");
    terminal.types("\x04");
    let shown = terminal.finish();
    check_restored(&shown);
    assert!(
        shown.contains(
            r#"summary: ExitSummary { last_answer: Some("You said: **hello**"), has_spoken: true }"#
        ),
        "{shown:?}"
    );
}

#[test]
fn a_paste_is_one_event_and_is_not_sent() {
    let mut terminal = started();
    terminal.types(&format!("\x1b[200~{}\x1b[201~", "line\r".repeat(12)));
    // Spaces that are on the screen already are not written again.
    terminal.wait_for("[Pasted");
    terminal.wait_for("lines]");
    terminal.types("\x03\x04");
    let shown = terminal.finish();
    assert!(shown.contains("last_answer: None, has_spoken: false"), "{shown:?}");
}

#[test]
fn a_signal_quits_and_restores_the_terminal() {
    let terminal = started();
    terminal.signal(Signal::TERM);
    check_restored(&terminal.finish());
}

#[test]
fn a_panic_message_is_on_the_normal_screen() {
    let mut terminal = started();
    terminal.types("panic\r");
    terminal.wait_for("scripted panic");
    let shown = terminal.text();
    let (before, _) = shown.split_once("scripted panic").expect("the message of the panic");
    check_restored(before);
    // Regression: the screen kept drawing over the lines of the shell.
    terminal.wait_for_times(ENTER_ALTERNATE, 2);
    terminal.signal(Signal::TERM);
    check_restored(&terminal.finish());
}

/// Regression: each of these left a layer of modes behind.
#[test]
fn every_takeover_is_restored() {
    let terminal = started();
    for times in 2..5 {
        terminal.signal(Signal::CONT);
        terminal.wait_for_times(ENTER_ALTERNATE, times);
    }
    terminal.signal(Signal::TERM);
    let shown = terminal.finish();
    for (taken, given_back) in [
        (ENTER_ALTERNATE, LEAVE_ALTERNATE),
        ("\x1b[>1u", "\x1b[<1u"),
        ("\x1b[?1007s", "\x1b[?1007r"),
    ] {
        let times = [taken, given_back].map(|sequence| shown.matches(sequence).count());
        assert_eq!(times, [4, 4], "{taken:?} in {shown:?}");
    }
}

#[test]
fn the_editor_owns_the_terminal() {
    let mut terminal = started();
    terminal.types("draft\x07");
    terminal.wait_for("edited");
    let shown = terminal.text();
    let (before, after) =
        shown.split_once(LEAVE_ALTERNATE).expect("the editor had the normal screen");
    assert!(before.contains(ENTER_ALTERNATE) && after.contains(ENTER_ALTERNATE), "{shown:?}");
    terminal.types("\x03\x04");
    terminal.finish();
}

/// Regression: buffered output arrived after the screen was closed, and cleared the normal one.
#[test]
fn late_output_does_not_clear_the_normal_screen() {
    let mut terminal = started();
    terminal.types("\x0c\x04");
    let shown = terminal.finish();
    let (_, after) = shown.rsplit_once(LEAVE_ALTERNATE).expect("the normal screen is back");
    assert!(!after.contains("\x1b[2J"), "{after:?}");
}

#[test]
fn a_resize_redraws() {
    let terminal = started();
    terminal.forget();
    terminal.resizes(50, 12);
    // The status line is in the last row now.
    terminal.wait_for("\x1b[12;1H");
    terminal.signal(Signal::TERM);
    terminal.finish();
}

#[test]
fn a_suspended_screen_resumes() {
    let mut terminal = started();
    terminal.types("\x1a");
    terminal.wait_for_stop();
    check_restored(&terminal.text());
    assert!(!terminal.is_raw());
    terminal.forget();
    terminal.signal(Signal::CONT);
    terminal.wait_for(ENTER_ALTERNATE);
    terminal.wait_for("? for keys");
    terminal.types("\x04");
    check_restored(&terminal.finish());
}
