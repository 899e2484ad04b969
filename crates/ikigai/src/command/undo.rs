//! `ikigai undo`: takes back what the newest message of the person set going.

use ikigai_agents::{Undone, undo};
use ikigai_store::Direction;

use crate::cli::UndoArguments;
use crate::command::now;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::print;
use crate::session::{OpenSession, place};
use crate::undo::{has_failed, nothing, render, render_list};

pub(crate) fn run(environment: &Environment, arguments: &UndoArguments) -> anyhow::Result<Exit> {
    let Some(session) = OpenSession::open_existing(environment)? else {
        if arguments.list {
            print::out(format!("{}\n", nothing(Direction::Undo)))?;
            return Ok(Exit::Done);
        }
        anyhow::bail!("there is no session in {} yet", environment.directory.display());
    };
    let directory = &environment.directory;
    if arguments.list {
        let undoable = session.wait(session.store().undoable(session.id))?;
        print::out(render_list(&undoable, directory, now()))?;
        if undoable.is_empty() {
            tell_of_older(environment, &session)?;
        }
        return Ok(Exit::Done);
    }
    session.require_its_folders()?;
    let (direction, again) = match arguments.redo {
        true => (Direction::Redo, "ikigai undo --redo"),
        false => (Direction::Undo, "ikigai undo"),
    };
    match session.wait(undo(session.store(), session.id, direction))? {
        Undone::Nothing => {
            print::out(format!("{}\n", nothing(direction)))?;
            if direction == Direction::Undo {
                tell_of_older(environment, &session)?;
            }
        }
        Undone::AtWork(agent) => {
            anyhow::bail!("agent {agent} is at work: interrupt it first, or wait for its end")
        }
        Undone::Report(report) => {
            print::out(render(&report, direction, directory, now()))?;
            if has_failed(&report) {
                let told = format!("not all files could be changed; '{again}' tries it again");
                print::note(&format!("ikigai: {told}"));
                return Ok(Exit::Failed);
            }
        }
    }
    Ok(Exit::Done)
}

/// Every `ikigai run` begins a session: what is to be taken back may be in the one before. A session that was named is
/// the one that was meant.
fn tell_of_older(environment: &Environment, session: &OpenSession<'_>) -> anyhow::Result<()> {
    /// A directory may have thousands.
    const LOOKED_AT: usize = 20;
    if environment.chosen.session.is_some() {
        return Ok(());
    }
    let (here, store) = (place(environment), session.store());
    let sessions = session.wait(store.sessions())?.into_iter();
    let older = sessions.filter(|other| other.location == here && other.id != session.id);
    for older in older.take(LOOKED_AT) {
        if !session.wait(store.undoable(older.id))?.is_empty() {
            let told = "An older session of this directory has something to take back";
            print::note(&format!("{told}: ikigai undo --session {}", older.id));
            break;
        }
    }
    Ok(())
}
