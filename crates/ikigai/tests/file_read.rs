//! `file_read`: the text of a file, or some of its lines.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::support::{Workspace, failure, skip, success};

#[track_caller]
fn check(content: impl AsRef<[u8]>, arguments: Value, output: &str) {
    let workspace = Workspace::new();
    workspace.write("file", content);
    let mut arguments = arguments;
    arguments["path"] = json!("file");
    workspace.check("file_read", arguments, success(json!({ "output": output })));
}

#[test]
fn a_file_is_shown_as_it_is() {
    check("", json!({}), "");
    check("one\ntwo\n", json!({}), "one\ntwo\n");
    check("no break at the end", json!({}), "no break at the end");
    check("dos\r\n\ttab \u{1b}[0m ä 😀\r\n", json!({}), "dos\r\n\ttab \u{1b}[0m ä 😀\r\n");
    check("\u{feff}mark", json!({}), "\u{feff}mark");
}

#[test]
fn an_offset_is_the_first_line_counted_from_one() {
    let content = "one\ntwo\nthree";
    check(content, json!({"offset": 1}), content);
    check(content, json!({"offset": 2}), "two\nthree");
    check(content, json!({"offset": 3}), "three");
}

#[test]
fn an_offset_past_the_end_is_a_success_with_nothing() {
    check("one\ntwo\n", json!({"offset": 3}), "");
    check("one\ntwo\n", json!({"offset": 1_000_000}), "");
    check("", json!({"offset": 2}), "");
}

#[test]
fn a_limit_is_a_number_of_lines() {
    let content = "one\ntwo\nthree";
    check(content, json!({"limit": 1}), "one\n");
    check(content, json!({"limit": 2}), "one\ntwo\n");
    check(content, json!({"limit": 3}), content);
    check(content, json!({"limit": 4}), content);
    check(content, json!({"offset": 2, "limit": 1}), "two\n");
    check("\n\n\n", json!({"offset": 2, "limit": 1}), "\n");
}

/// Files are read 64 KiB at a time: lines that lie across must come out whole.
#[test]
fn lines_across_the_pieces_that_are_read_come_out_whole() {
    let lines: Vec<String> =
        (0..2_000).map(|number| format!("{number} {}\n", "x".repeat(97))).collect();
    let content = lines.concat();
    for first in [1, 600, 640, 641, 642, 643, 1_000, 1_290, 1_999] {
        let arguments = json!({"offset": first, "limit": 30});
        let last = (first + 29).min(lines.len());
        check(&content, arguments, &lines[first - 1..last].concat());
    }
}

#[test]
fn bytes_that_are_no_utf8_are_replaced_and_told() {
    let workspace = Workspace::new();
    workspace.write("latin", b"caf\xe9\nplain\n\xff\xfe");
    let all = json!({"output": "caf\u{fffd}\nplain\n\u{fffd}\u{fffd}", "lossy": true});
    workspace.check("file_read", json!({"path": "latin"}), success(all)).check(
        "file_read",
        json!({"path": "latin", "offset": 2, "limit": 1}),
        success(json!({"output": "plain\n"})),
    );
}

#[test]
fn a_nul_in_the_first_8_kib_means_no_text() {
    #[track_caller]
    fn check(position: usize, expected: Value) {
        let workspace = Workspace::new();
        let mut content = vec![b'x'; 10_000];
        content[position] = 0;
        workspace.write("file", content).check("file_read", json!({"path": "file"}), expected);
    }
    let refused = failure("Not a text file: file");
    check(0, refused.clone());
    check(8 * 1024 - 1, refused);
    let position = 8 * 1024;
    let shown = format!("{}\0{}", "x".repeat(position), "x".repeat(10_000 - position - 1));
    check(position, success(json!({"output": shown})));
}

#[test]
fn a_nul_is_noticed_although_only_later_lines_are_asked_for() {
    let workspace = Workspace::new();
    workspace.write("file", "\0\ntext\n");
    let arguments = json!({"path": "file", "offset": 2});
    workspace.check("file_read", arguments, failure("Not a text file: file"));
}

#[test]
fn failures_name_the_path_as_it_was_given() {
    let workspace = Workspace::unconfined();
    workspace
        .write("file", "")
        .folder("folder")
        .fifo("fifo")
        .link("loop", "loop")
        .link("away", "nowhere");
    for (path, reason) in [
        ("nowhere", "File not found"),
        ("./nowhere//x", "File not found"),
        ("", "File not found"),
        ("file/below", "File not found"),
        ("away", "File not found"),
        ("folder", "Is a directory"),
        ("folder/", "Is a directory"),
        (".", "Is a directory"),
        ("/", "Is a directory"),
        ("fifo", "Not a regular file"),
        ("/dev/null", "Not a regular file"),
        ("loop", "Too many levels of symbolic links"),
    ] {
        workspace.check("file_read", json!({ "path": path }), failure(format!("{reason}: {path}")));
    }
    let long = "n".repeat(300);
    let too_long = failure(format!("File name too long: {long}"));
    workspace.check("file_read", json!({ "path": long }), too_long);
}

#[test]
fn a_link_is_followed_and_paths_may_be_absolute() {
    let workspace = Workspace::new();
    workspace.write("folder/file", "text").link("link", "folder/file").link("way", "folder");
    for path in ["link", "way/file", "folder/../link", &workspace.text("link")] {
        workspace.check("file_read", json!({ "path": path }), success(json!({"output": "text"})));
    }
}

/// Files of /proc claim to be empty.
#[test]
fn files_that_claim_to_be_empty_are_read() {
    let workspace = Workspace::unconfined();
    let kernel = fs::read_to_string("/proc/sys/kernel/ostype").unwrap();
    let arguments = json!({"path": "/proc/sys/kernel/ostype"});
    workspace.check("file_read", arguments, success(json!({ "output": kernel })));
}

/// The size of the first piece was once told as the size of the whole.
#[test]
fn a_file_that_claims_to_be_empty_is_counted_whole() {
    let path = "/proc/kallsyms";
    let Ok(content) = fs::read_to_string(path) else {
        skip(&format!("there is no {path} here"));
        return;
    };
    let marker = format!("[Output truncated: showing first 51200 of {} bytes]", content.len());
    let output = format!("{}\n{marker}", &content[..51_200]);
    let expected = success(json!({"output": output, "truncated": true}));
    Workspace::unconfined().check("file_read", json!({ "path": path }), expected);
}

/// Somebody appends all the time: the call ends all the same, with whole lines in the right order.
#[test]
fn a_file_that_grows_meanwhile_is_read_to_an_end() {
    let workspace = Workspace::new();
    let line = "a line that is appended\n";
    workspace.write("log", line);
    let mut log = OpenOptions::new().append(true).open(workspace.path("log")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                log.write_all(line.repeat(100).as_bytes()).unwrap();
                std::thread::yield_now();
            }
        });
        for _ in 0..5 {
            let result: Value =
                serde_json::from_str(&workspace.tool("file_read", json!({"path": "log"}))).unwrap();
            let output = result["data"]["output"].as_str().unwrap();
            assert!(output.starts_with(line) && result["success"] == true, "{output}");
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Somebody removes, empties and writes it all the time: every call has one of the possible results.
#[test]
fn a_file_that_vanishes_or_shrinks_meanwhile_is_no_crash() {
    let workspace = Workspace::new();
    let content = "text\n".repeat(20_000);
    let done = AtomicBool::new(false);
    let path = workspace.path("file");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                fs::write(&path, &content).unwrap();
                OpenOptions::new().write(true).open(&path).unwrap().set_len(7).unwrap();
                fs::remove_file(&path).unwrap();
            }
        });
        for _ in 0..20 {
            let result = workspace.tool("file_read", json!({"path": "file"}));
            let read = result.starts_with(r#"{"success":true,"data":{"output":"#);
            let missing = failure("File not found: file").to_string();
            assert!(read || result == missing, "{result}");
        }
        done.store(true, Ordering::Relaxed);
    });
}
