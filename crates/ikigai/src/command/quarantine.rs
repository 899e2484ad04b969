//! `ikigai quarantine`: lists what commands put into protected paths, and puts it back.

use ikigai_tools::protected::{put_back, quarantined};

use crate::cli::QuarantineArguments;
use crate::environment::Environment;
use crate::exit::Exit;
use crate::{print, quarantine};

pub(crate) fn run(
    environment: &Environment,
    arguments: &QuarantineArguments,
) -> anyhow::Result<Exit> {
    let folder = quarantine::folder(environment)?;
    if let Some(id) = &arguments.put_back {
        let path = put_back(&folder, id)?;
        print::out(format!("Put back {}\n", path.display()))?;
        return Ok(Exit::Done);
    }
    let records = quarantined(&folder)?;
    if records.is_empty() {
        print::out("Nothing is in quarantine.\n")?;
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
