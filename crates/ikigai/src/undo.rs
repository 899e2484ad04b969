//! Undo and redo as a person reads them, on the command line and on a terminal alike.

use std::path::{Path, PathBuf};

use ikigai_agents::{Fate, LeftFor, Report};
use ikigai_conversation::Time;
use ikigai_mail::relative_time;
use ikigai_store::{Direction, UndoEntry};

use crate::print::safe;

/// What no undo does.
pub(crate) const NOT_UNDONE: &str = "Commands are not undone.";

/// What there is to say when nothing is left to do.
pub(crate) fn nothing(direction: Direction) -> &'static str {
    match direction {
        Direction::Undo => "There is nothing to take back.",
        Direction::Redo => "There is nothing to make again.",
    }
}

/// What happened, a line per file. Paths are told from `directory`.
pub(crate) fn render(report: &Report, direction: Direction, directory: &Path, now: Time) -> String {
    let changed = |(_, fate): &(PathBuf, Fate)| {
        matches!(fate, Fate::Restored | Fate::Removed | Fate::InPart(_))
    };
    let (done, restored) = match (direction, report.files.iter().any(changed)) {
        (Direction::Undo, true) => ("Taken back", "restored"),
        (Direction::Undo, false) => ("Nothing could be taken back of", "restored"),
        (Direction::Redo, true) => ("Made again", "written"),
        (Direction::Redo, false) => ("Nothing could be made again of", "written"),
    };
    let here = Here::new(directory);
    let file = |(path, fate): &(PathBuf, Fate)| {
        let path = here.show(path);
        match fate {
            Fate::Restored => format!("  {restored:<10} {path}\n"),
            Fate::Removed => format!("  {:<10} {path}\n", "removed"),
            Fate::InPart(reason) => {
                format!("  in part    {path}: {}\n", why_no_further(*reason, direction))
            }
            Fate::Left(reason) => format!("  left alone {path}: {}\n", why(*reason, direction)),
            Fate::Failed(error) => format!("  {:<10} {error}\n", "failed"),
        }
    };
    let files: String = report.files.iter().map(file).collect();
    let cause = cause(&report.title, report.said_at, now);
    let limit = match direction {
        Direction::Undo => NOT_UNDONE,
        Direction::Redo => "Commands are not run again.",
    };
    safe(&format!("{done}: {cause}\n{files}{limit}\n"))
}

/// Whether there is something left that may be tried again.
pub(crate) fn has_failed(report: &Report) -> bool {
    report.files.iter().any(|(_, fate)| matches!(fate, Fate::Failed(_)))
}

/// What can be taken back, the newest first.
pub(crate) fn render_list(undoable: &[UndoEntry], directory: &Path, now: Time) -> String {
    if undoable.is_empty() {
        return format!("{}\n", nothing(Direction::Undo));
    }
    let here = Here::new(directory);
    let entry = |entry: &UndoEntry| {
        let files = entry.files.iter().map(|path| format!("  {}\n", here.show(path)));
        format!("{}\n{}", cause(&entry.title, entry.said_at, now), files.collect::<String>())
    };
    let entries: String = undoable.iter().map(entry).collect();
    safe(&format!("{entries}{NOT_UNDONE}\n"))
}

fn cause(title: &str, said_at: Time, now: Time) -> String {
    format!("\"{title}\" ({})", relative_time(said_at, now))
}

fn why(reason: LeftFor, direction: Direction) -> &'static str {
    match (reason, direction) {
        (LeftFor::ChangedSince, _) => "somebody has changed it since",
        (LeftFor::Gone, _) => "somebody has removed it since",
        (LeftFor::Setting, _) => "it has become one of git's settings",
        (LeftFor::NotKept, Direction::Undo) => {
            "what was there before was not kept, it had more than 10 MB"
        }
        (LeftFor::NotKept, Direction::Redo) => {
            "what was taken back was not kept, it had more than 10 MB"
        }
    }
}

fn why_no_further(reason: LeftFor, direction: Direction) -> &'static str {
    match reason {
        LeftFor::ChangedSince | LeftFor::Gone => {
            "what a command or somebody else changed in between stays"
        }
        LeftFor::NotKept | LeftFor::Setting => why(reason, direction),
    }
}

/// The working directory, as it was named and without links.
struct Here<'a> {
    named: &'a Path,
    real: Option<PathBuf>,
}

impl Here<'_> {
    fn new(named: &Path) -> Here<'_> {
        Here { named, real: named.canonicalize().ok() }
    }

    fn show(&self, path: &Path) -> String {
        let roots = [self.real.as_deref(), Some(self.named)].into_iter().flatten();
        let inside = roots.filter_map(|root| path.strip_prefix(root).ok()).next();
        inside.unwrap_or(path).display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_named_with_what_became_of_it() {
        let file = |name: &str, fate: Fate| (PathBuf::from(name), fate);
        let report = Report {
            title: "fix \u{1b}it".to_owned(),
            said_at: Time::from_millis(0),
            files: vec![
                file("/nowhere/work/a", Fate::Restored),
                file("/nowhere/work/new/b", Fate::Removed),
                file("/elsewhere/c", Fate::Left(LeftFor::ChangedSince)),
                file("/nowhere/work/e", Fate::InPart(LeftFor::ChangedSince)),
                file("/nowhere/work/d", Fate::Failed("Permission denied: d".to_owned())),
            ],
        };
        let text = |direction| {
            render(&report, direction, Path::new("/nowhere/work"), Time::from_millis(120_000))
        };
        let expected = "Taken back: \"fix \u{fffd}it\" (2 minutes ago)\n  restored   a\n  \
            removed    new/b\n  left alone /elsewhere/c: somebody has changed it since\n  \
            in part    e: what a command or somebody else changed in between stays\n  \
            failed     Permission denied: d\nCommands are not undone.\n";
        assert_eq!(text(Direction::Undo), expected);
        let expected = expected.replace("Taken back", "Made again").replace("undone", "run again");
        assert_eq!(text(Direction::Redo), expected.replace("restored  ", "written   "));
    }

    #[test]
    fn an_undo_that_left_every_file_alone_does_not_say_that_it_took_something_back() {
        let left = (PathBuf::from("/nowhere/a"), Fate::Left(LeftFor::ChangedSince));
        let title = "fix it".to_owned();
        let report = Report { title, said_at: Time::from_millis(0), files: vec![left] };
        let here = Path::new("/nowhere");
        let text = render(&report, Direction::Undo, here, Time::from_millis(0));
        assert!(text.starts_with("Nothing could be taken back of: \"fix it\""), "{text}");
        let text = render(&report, Direction::Redo, here, Time::from_millis(0));
        assert!(text.starts_with("Nothing could be made again of: "), "{text}");
    }
}
