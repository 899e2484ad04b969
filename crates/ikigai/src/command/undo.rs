//! `ikigai undo`: undoes the file changes of the user's latest message.

use ikigai_host::{Environment, now, place, relative_path, undo_report};
use ikigai_mail::relative_time;
use ikigai_protocol::{FileOutcome, Nothing, UndoReport, render_redo, render_undo};
use std::path::Path;

use ikigai_agents::{Undone, undo};
use ikigai_store::{Direction, UndoEntry};

use crate::cli::UndoArguments;
use crate::exit::Exit;
use crate::print;
use crate::session::StoredSession;

pub(crate) fn run(environment: &Environment, arguments: &UndoArguments) -> anyhow::Result<Exit> {
    let Some(session) = StoredSession::open_existing(environment)? else {
        if arguments.list {
            print::out(format!("{}\n", nothing(Direction::Undo)))?;
            return Ok(Exit::Done);
        }
        anyhow::bail!("there is no session in {} yet", environment.directory.display());
    };
    let directory = &environment.directory;
    if arguments.list {
        let undoable = session.wait(session.store().undoable(session.id))?;
        print::out(render_list(&undoable, directory))?;
        if undoable.is_empty() {
            mention_older_session(environment, &session)?;
        }
        return Ok(Exit::Done);
    }
    session.check_folders()?;
    let (direction, again) = match arguments.redo {
        true => (Direction::Redo, "ikigai undo --redo"),
        false => (Direction::Undo, "ikigai undo"),
    };
    match session.wait(undo(session.store(), session.id, direction))? {
        Undone::Nothing => {
            print::out(format!("{}\n", nothing(direction)))?;
            if direction == Direction::Undo {
                mention_older_session(environment, &session)?;
            }
        }
        Undone::AtWork(agent) => {
            anyhow::bail!("agent {agent} is working. Interrupt it first, or wait until it is idle")
        }
        Undone::Report(report) => {
            let report = undo_report(report, directory, now());
            let text = match direction {
                Direction::Undo => render_undo(&report, directory),
                Direction::Redo => render_redo(&report, directory),
            };
            print::out(print::safe(&format!("{text}\n")))?;
            if has_failed(&report) {
                print::note(&format!(
                    "ikigai: some files could not be changed. '{again}' tries again"
                ));
                return Ok(Exit::Failed);
            }
        }
    }
    Ok(Exit::Done)
}

/// Mentions an older session with changes to undo, unless the user named a session: every `ikigai
/// run` starts a new one, so the changes may be in an earlier one.
fn mention_older_session(
    environment: &Environment,
    session: &StoredSession<'_>,
) -> anyhow::Result<()> {
    /// A directory may have thousands of sessions.
    const LIMIT: usize = 20;
    if environment.selection.session.is_some() {
        return Ok(());
    }
    let (here, store) = (place(environment), session.store());
    let sessions = session.wait(store.sessions())?.into_iter();
    let older = sessions.filter(|other| other.location == here && other.id != session.id);
    for older in older.take(LIMIT) {
        if !session.wait(store.undoable(older.id))?.is_empty() {
            let found = "An older session of this directory has changes to undo";
            print::note(&format!("{found}: ikigai undo --session {}", older.id));
            break;
        }
    }
    Ok(())
}

fn nothing(direction: Direction) -> Nothing {
    match direction {
        Direction::Undo => Nothing::Undo,
        Direction::Redo => Nothing::Redo,
    }
}

/// Whether it is worth repeating the command.
fn has_failed(report: &UndoReport) -> bool {
    report.files.iter().any(|(_, outcome)| matches!(outcome, FileOutcome::Failed(_)))
}

/// Lists what can be undone, the latest first.
fn render_list(undoable: &[UndoEntry], directory: &Path) -> String {
    if undoable.is_empty() {
        return format!("{}\n", Nothing::Undo);
    }
    let entries: String = undoable.iter().map(|entry| render_entry(entry, directory)).collect();
    print::safe(&format!("{entries}Commands are not undone.\n"))
}

fn render_entry(entry: &UndoEntry, directory: &Path) -> String {
    let files = entry.files.iter().map(|path| {
        let path = relative_path(path, directory);
        format!("  {}\n", path.display())
    });
    let age = relative_time(entry.said_at, now());
    format!("\"{}\" ({age})\n{}", entry.title, files.collect::<String>())
}
