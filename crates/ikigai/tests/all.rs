//! The program from outside, as one test binary: every file beside this one is a module of it.
#![expect(clippy::duplicate_mod, reason = "what holds for both databases is tested on both")]
#![expect(clippy::disallowed_methods, reason = "tests start the program and look at its processes")]
#![expect(clippy::needless_pass_by_value, reason = "a case reads better without borrowing")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents_command;
mod agents_files;
mod agents_forks;
mod agents_hostile;
mod agents_kills;
mod agents_line;
mod agents_scenarios;
mod agents_tools;
mod agents_waits;
mod architecture;
mod auth;
mod background;
mod background_once;
mod bad_ground;
mod bash;
mod command_line;
mod concurrency;
mod configuration;
mod context_room;
mod context_sessions;
mod context_summaries;
mod dispatcher;
mod doctor;
mod durability;
mod file_edit;
mod file_read;
mod file_write;
mod full_disk;
mod glob;
mod grep;
mod huge_files;
mod ignore_files;
mod inside_agent;
mod interrupts;
mod limits;
mod line;
mod line_asking;
mod live_output;
mod log_command;
mod mail_command;
mod mail_tool;
mod models;
mod money;
mod older_database;
mod ownership;
mod permissions;
mod postgres;
mod procs_beside;
mod procs_crashes;
mod procs_fence;
mod procs_kills;
mod procs_openings;
mod procs_take_up;
mod quarantine;
mod real_model;
mod reasoning;
mod run_command;
mod run_sessions;
mod sandbox_builds;
mod sandbox_commands;
mod sandbox_covers;
mod sandbox_doors;
mod sandbox_everyday;
mod sandbox_guarded;
mod sandbox_hints;
mod sandbox_home;
mod sandbox_isolation;
mod sandbox_landlock;
mod sandbox_lost;
mod sandbox_protected;
mod sandbox_roots;
mod schemas;
mod screen_agents;
mod screen_background;
mod screen_commands;
mod screen_conversation;
mod screen_input;
mod screen_keys;
mod screen_manners;
mod screen_pickers;
mod screen_rewind;
mod screen_sessions;
mod screen_views;
mod secrets;
mod server_command;
mod server_machines;
mod server_outages;
mod session_roots;
mod sessions_command;
mod signals;
mod slips;
mod special_files;
mod support;
mod tour;
mod turn_calls;
mod turn_crashes;
mod turn_events;
mod turn_extras;
mod turn_faults;
mod turn_ground;
mod turn_hostile;
mod turn_interrupts;
mod turn_limits;
mod turn_mail;
mod turn_mail_cost;
mod turn_output;
mod turn_permissions;
mod turn_prompt;
mod turn_quirks;
mod turn_reads;
mod turn_secrets;
mod undo;

use std::fs;
use std::path::Path;

/// A file that nobody lists is a file of tests that never run.
#[test]
fn every_file_beside_this_one_is_listed_as_a_module() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = fs::read_to_string(here.join("all.rs")).unwrap();
    let unlisted: Vec<String> = fs::read_dir(here)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| module != "all" && !listed.contains(&format!("\nmod {module};\n")))
        .collect();
    assert_eq!(unlisted, Vec::<String>::new());
}
