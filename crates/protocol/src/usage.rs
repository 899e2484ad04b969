//! What requests to models used and cost: a table for the user, for scripts and for `/usage`.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::money::render_dollars;

/// What the rows of a [`UsageTable`] are about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageBy {
    /// A message of the user, with all agents that worked for it.
    #[default]
    Message,
    /// An agent.
    Agent,
    /// A model.
    Model,
    /// A session.
    Session,
    /// A day, in UTC.
    Day,
}

impl UsageBy {
    /// All of them, in the order in which a help text lists them.
    pub const ALL: [UsageBy; 5] =
        [UsageBy::Message, UsageBy::Agent, UsageBy::Model, UsageBy::Session, UsageBy::Day];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            UsageBy::Message => "message",
            UsageBy::Agent => "agent",
            UsageBy::Model => "model",
            UsageBy::Session => "session",
            UsageBy::Day => "day",
        }
    }

    /// Parses a name.
    pub fn parse(name: &str) -> Option<UsageBy> {
        UsageBy::ALL.into_iter().find(|by| by.name() == name)
    }
}

/// What requests used and cost, in groups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UsageTable {
    /// What a row is about.
    pub by: UsageBy,
    /// The rows, in the order of their first request.
    pub rows: Vec<UsageRow>,
}

/// A group of requests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct UsageRow {
    /// The message's first line, the agent, the model, the session or the day; `earlier` for
    /// requests from before messages were noted with them.
    pub key: String,
    /// Requests whose usage is known.
    pub requests: u64,
    /// How many of these have no known cost.
    pub unpriced: u64,
    /// Tokens sent, including those from a cache.
    pub input_tokens: u64,
    /// How many of those came from a cache.
    pub cached_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// What the requests with a known cost did cost, in micro-dollars.
    pub cost: u64,
    /// Requests that were lost before their usage was stored. They may have been billed.
    pub unreported: u64,
    /// How many agents made the requests.
    pub agents: usize,
    /// From the user's message to the end of the last request; only in rows about messages.
    #[serde(skip)]
    pub time: Option<Duration>,
}

impl UsageRow {
    /// What all its requests cost; `None` if that is not known of some.
    pub fn known_cost(&self) -> Option<u64> {
        (self.unpriced == 0).then_some(self.cost)
    }

    fn add(&mut self, other: &UsageRow) {
        self.requests += other.requests;
        self.unpriced += other.unpriced;
        self.input_tokens += other.input_tokens;
        self.cached_tokens += other.cached_tokens;
        self.output_tokens += other.output_tokens;
        self.cost += other.cost;
        self.unreported += other.unreported;
    }

    fn cells(&self, by: UsageBy) -> Vec<String> {
        let cached = (self.cached_tokens * 100).checked_div(self.input_tokens);
        let mut cells = vec![
            self.requests.to_string(),
            render_count(self.input_tokens),
            cached.map_or_else(|| "-".to_owned(), |share| format!("{share}%")),
            render_count(self.output_tokens),
            self.render_cost(),
        ];
        match by {
            UsageBy::Message => {
                cells.push(self.time.map(render_time).unwrap_or_default());
                cells.push(render_agents(self.agents));
            }
            UsageBy::Model | UsageBy::Session | UsageBy::Day => {
                cells.push(render_agents(self.agents));
            }
            UsageBy::Agent => {}
        }
        cells
    }

    /// A plus means that the cost of some requests is not known.
    fn render_cost(&self) -> String {
        match (self.unpriced == 0, self.cost) {
            (true, cost) => render_dollars(cost),
            (false, 0) => "-".to_owned(),
            (false, cost) => format!("{}+", render_dollars(cost)),
        }
    }

    fn note(&self) -> String {
        match self.unreported {
            0 => String::new(),
            1 => " (1 request unreported)".to_owned(),
            many => format!(" ({many} requests unreported)"),
        }
    }
}

/// A table with aligned columns, and the sum of all rows.
pub fn render_usage(table: &UsageTable) -> String {
    let UsageTable { by, rows } = table;
    if rows.is_empty() {
        return "No tokens used yet".to_owned();
    }
    let mut all = UsageRow { key: "all".to_owned(), ..UsageRow::default() };
    rows.iter().for_each(|row| all.add(row));
    let mut lines: Vec<(Vec<String>, String)> = vec![(heading(*by), by.name().to_owned())];
    let sum = Some(&all).filter(|_| rows.len() > 1);
    for row in rows.iter().chain(sum) {
        lines.push((row.cells(*by), format!("{}{}", row.key, row.note())));
    }
    let columns = lines[0].0.len();
    let width = |column: usize| {
        lines.iter().map(|(cells, _)| cells[column].chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |(cells, key): &(Vec<String>, String)| {
        let cells = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}  "));
        format!("{}{key}", cells.collect::<String>())
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn heading(by: UsageBy) -> Vec<String> {
    let common = ["requests", "input", "cached", "output", "cost"];
    let more: &[&str] = match by {
        UsageBy::Message => &["time", "agents"],
        UsageBy::Model | UsageBy::Session | UsageBy::Day => &["agents"],
        UsageBy::Agent => &[],
    };
    common.iter().chain(more).map(|name| (*name).to_owned()).collect()
}

fn render_agents(agents: usize) -> String {
    match agents {
        0 => String::new(),
        agents => agents.to_string(),
    }
}

/// A number of tokens: `950`, `12.3k`, `4.5M`.
pub fn render_count(count: u64) -> String {
    let tenths = |unit: u64| {
        let tenths = count / (unit / 10);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}

fn render_time(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3_600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, requests: u64, cost: u64) -> UsageRow {
        UsageRow {
            key: key.to_owned(),
            requests,
            input_tokens: 12_345,
            cached_tokens: 6_789,
            output_tokens: 950,
            cost,
            agents: 2,
            time: Some(Duration::from_secs(75)),
            ..UsageRow::default()
        }
    }

    #[test]
    fn a_table_has_aligned_columns_and_a_sum() {
        let rows = vec![
            row("fix the failing test", 3, 42_100),
            UsageRow { unpriced: 1, unreported: 2, ..row("and this", 11, 2_000_000) },
        ];
        let expected = "\
requests  input  cached  output     cost        time  agents  message
       3  12.3k     54%     950  $0.0421  1 min 15 s       2  fix the failing test
      11  12.3k     54%     950   $2.00+  1 min 15 s       2  and this (2 requests unreported)
      14  24.6k     54%    1.9k   $2.04+                      all (2 requests unreported)";
        assert_eq!(render_usage(&UsageTable { by: UsageBy::Message, rows }), expected);
    }

    #[test]
    fn without_a_price_there_is_no_cost() {
        let rows = vec![UsageRow { unpriced: 1, ..row("0/", 1, 0) }];
        let expected = "\
requests  input  cached  output  cost  agent
       1  12.3k     54%     950     -  0/";
        assert_eq!(render_usage(&UsageTable { by: UsageBy::Agent, rows }), expected);
        assert_eq!(render_usage(&UsageTable::default()), "No tokens used yet");
    }
}
