//! What requests used and cost, in groups.

use std::collections::BTreeSet;
use std::time::Duration;

use ikigai_conversation::Time;
use ikigai_protocol::{CommandError, Reply, UsageBy, UsageRow, UsageTable};
use ikigai_store::{Process, Spending, StoreError};

use super::refusal;
use crate::open::OpenSession;

/// The key of requests from before they were noted with the user's messages.
const EARLIER: &str = "earlier";

impl OpenSession {
    /// What the requests of the session used and cost.
    pub(super) async fn usage(&self, by: UsageBy) -> Result<Reply, CommandError> {
        let session = self.slot.session();
        let spending = match self.slot.store().spending(Some(session), Process::current()).await {
            Err(StoreError::SessionNotFound(_)) => Vec::new(),
            spending => spending.map_err(refusal)?,
        };
        Ok(Reply::Usage(usage_table(&spending, by)))
    }
}

/// Groups what was spent.
pub fn usage_table(spending: &[Spending], by: UsageBy) -> UsageTable {
    let mut groups: Vec<Group> = Vec::new();
    for spent in spending {
        let id = identity(spent, by);
        let group = match groups.iter().position(|group| group.id == id) {
            Some(position) => &mut groups[position],
            None => {
                groups.push(Group { id, ..Group::default() });
                let last = groups.len() - 1;
                &mut groups[last]
            }
        };
        group.add(spent);
    }
    UsageTable { by, rows: groups.into_iter().map(|group| group.finish(by)).collect() }
}

/// A row in the making.
#[derive(Default)]
struct Group {
    /// The row's key, and what tells messages with the same first line apart.
    id: (String, Option<i64>),
    row: UsageRow,
    agents: BTreeSet<String>,
    said_at: Option<Time>,
    last_at: Option<Time>,
}

impl Group {
    fn add(&mut self, spent: &Spending) {
        let row = &mut self.row;
        row.requests += spent.requests;
        row.unpriced += spent.unpriced;
        row.unreported += spent.unreported;
        row.input_tokens += spent.input_tokens;
        row.cached_tokens += spent.cached_tokens;
        row.output_tokens += spent.output_tokens;
        row.cost += spent.cost;
        self.agents.insert(format!("{} {}", spent.session, spent.agent));
        self.said_at = spent.cause.as_ref().map(|cause| cause.said_at);
        // A lost request has no end.
        if spent.requests > 0 {
            self.last_at = self.last_at.max(Some(spent.last_at));
        }
    }

    fn finish(self, by: UsageBy) -> UsageRow {
        let time = match (by, self.said_at, self.last_at) {
            (UsageBy::Message, Some(said_at), Some(last_at)) => {
                let millis = last_at.as_millis() - said_at.as_millis();
                u64::try_from(millis).ok().map(Duration::from_millis)
            }
            _ => None,
        };
        UsageRow { key: self.id.0, agents: self.agents.len(), time, ..self.row }
    }
}

fn identity(spent: &Spending, by: UsageBy) -> (String, Option<i64>) {
    let key = match by {
        UsageBy::Message => {
            let cause = spent.cause.as_ref();
            return (
                cause.map_or_else(|| EARLIER.to_owned(), |cause| cause.title.clone()),
                cause.map(|cause| cause.key),
            );
        }
        UsageBy::Agent => spent.agent.to_string(),
        UsageBy::Model => spent.model.clone(),
        UsageBy::Session => spent.session.to_string(),
        UsageBy::Day => spent.last_at.to_string().chars().take_while(|c| *c != 'T').collect(),
    };
    (key, None)
}
