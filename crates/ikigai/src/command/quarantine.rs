//! `ikigai quarantine`: lists quarantined files, and puts them back.

use ikigai_host::{Environment, quarantine_folder};
use ikigai_tools::protected::{put_back, quarantined, replaced};

use crate::cli::QuarantineArguments;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(
    environment: &Environment,
    arguments: &QuarantineArguments,
) -> anyhow::Result<Exit> {
    let folder = quarantine_folder(environment)?;
    if let Some(id) = &arguments.put_back {
        let path = put_back(&folder, id)?;
        // An agent's command chose the name.
        let path = print::safe(&path.to_string_lossy());
        print::out(match replaced(&folder, id) {
            Some(kept) => format!(
                "Put back {path}. The file it replaced is kept under {id}: {}\n",
                kept.display()
            ),
            None => format!("Put back {path}\n"),
        })?;
        return Ok(Exit::Done);
    }
    let records = quarantined(&folder)?;
    if records.is_empty() {
        print::out("The quarantine is empty.\n")?;
        return Ok(Exit::Done);
    }
    let lines: Vec<String> =
        records.iter().map(|record| format!("{}  {record}\n", record.id)).collect();
    print::out(lines.concat())?;
    print::note(&format!(
        "To put one back: ikigai quarantine --put-back ID. They are in {}",
        folder.display()
    ));
    Ok(Exit::Done)
}
