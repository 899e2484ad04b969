//! `ikigai usage`: what requests to models used and cost.

use ikigai_host::{Environment, usage_table};
use ikigai_protocol::{UsageBy, UsageRow, dollars, render_usage};
use ikigai_store::Process;
use serde_json::{Value, json};

use crate::cli::UsageArguments;
use crate::exit::Exit;
use crate::print;
use crate::session::{Database, StoredSession};

pub(crate) fn run(environment: &Environment, arguments: &UsageArguments) -> anyhow::Result<Exit> {
    let by = arguments.by.into();
    let selection = &environment.selection;
    let is_named = selection.session.is_some() || selection.continues;
    let spending = match by {
        // A list of days or sessions is about all of them, unless one was named.
        UsageBy::Session | UsageBy::Day if !is_named => {
            let database = Database::open(environment)?;
            database.wait(database.store.spending(None, Process::current()))?
        }
        UsageBy::Message | UsageBy::Agent | UsageBy::Model | UsageBy::Session | UsageBy::Day => {
            match StoredSession::open_existing(environment)? {
                Some(session) => {
                    let spending = session.store().spending(Some(session.id), Process::current());
                    session.wait(spending)?
                }
                None => Vec::new(),
            }
        }
    };
    let table = usage_table(&spending, by);
    print::out(match arguments.json {
        true => {
            let rows: Value = table.rows.iter().map(to_json).collect();
            print::safe_json(format_args!("{rows}\n"))
        }
        false => print::safe(&format!("{}\n", render_usage(&table))),
    })?;
    Ok(Exit::Done)
}

fn to_json(row: &UsageRow) -> Value {
    json!({
        "key": row.key,
        "requests": row.requests,
        "input_tokens": row.input_tokens,
        "cached_tokens": row.cached_tokens,
        "output_tokens": row.output_tokens,
        "cost_usd": row.known_cost().map(dollars),
        "unreported": row.unreported,
    })
}
