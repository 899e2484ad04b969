//! What sessions, agents and mail do, once more on a PostgreSQL server: a database for each test.
//!
//! Which database a test is about is told by its name; see `kind` in `support.rs`.

#[path = "agents_command.rs"]
mod agents_command;
#[path = "agents_forks.rs"]
mod agents_forks;
#[path = "agents_kills.rs"]
mod agents_kills;
#[path = "agents_line.rs"]
mod agents_line;
#[path = "agents_scenarios.rs"]
mod agents_scenarios;
#[path = "agents_tools.rs"]
mod agents_tools;
#[path = "agents_waits.rs"]
mod agents_waits;
#[path = "background.rs"]
mod background;
#[path = "background_once.rs"]
mod background_once;
#[path = "concurrency.rs"]
mod concurrency;
#[path = "log_command.rs"]
mod log_command;
#[path = "mail_command.rs"]
mod mail_command;
#[path = "mail_tool.rs"]
mod mail_tool;
#[path = "money.rs"]
mod money;
#[path = "procs_beside.rs"]
mod procs_beside;
#[path = "procs_crashes.rs"]
mod procs_crashes;
#[path = "procs_fence.rs"]
mod procs_fence;
#[path = "procs_kills.rs"]
mod procs_kills;
#[path = "procs_openings.rs"]
mod procs_openings;
#[path = "procs_take_up.rs"]
mod procs_take_up;
#[path = "run_sessions.rs"]
mod run_sessions;
#[path = "session_roots.rs"]
mod session_roots;
#[path = "sessions_command.rs"]
mod sessions_command;
#[path = "turn_mail.rs"]
mod turn_mail;
#[path = "turn_reads.rs"]
mod turn_reads;

use ikigai_testkit::Kind;

/// Tests that run without threads of their own would all use a file, and nobody would notice.
#[test]
fn a_test_of_this_module_is_about_a_server() {
    assert_eq!(crate::support::kind(), Kind::Postgres, "do not use --test-threads=1");
}
