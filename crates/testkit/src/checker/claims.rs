//! What log messages say about mail.

use std::collections::HashMap;

use ikigai_conversation::{Body, Message};
use serde_json::Value;

use super::database::AgentLog;
use crate::test_agent::output_of;

/// What a log message says about mail.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) agent: i64,
    pub(super) message: i64,
    pub(super) said: Said,
    /// A rewind hides it.
    pub(super) rewound: bool,
    /// A later rewind may have led into the hidden part.
    pub(super) rewound_after: bool,
}

#[derive(Debug)]
pub(super) enum Said {
    Sent {
        mail: i64,
        to: String,
    },
    Read(i64),
    Listed(Vec<i64>),
    Announced {
        mail: Vec<i64>,
        /// The text shown for some of it: a body or a preview.
        shown: HashMap<i64, String>,
    },
    /// A wait only reports the number of unread messages.
    Counted(u64),
}

pub(super) fn claims_of(log: &AgentLog) -> Vec<Claim> {
    let claim = |message: &Message| {
        let output = output_of(message);
        let said = match &message.body {
            Body::Notification(notification) => {
                let mail = notification.mail.iter().map(|mail| mail.value()).collect();
                Said::Announced { mail, shown: message.content.lines().filter_map(shown).collect() }
            }
            _ if output["sent"] == true => {
                Said::Sent { mail: output["id"].as_i64()?, to: output["to"].as_str()?.to_owned() }
            }
            _ if output["body"].is_string() => Said::Read(output["id"].as_i64()?),
            _ if output["data"]["unread"].is_u64() => {
                Said::Counted(output["data"]["unread"].as_u64()?)
            }
            _ => {
                let listed = output["messages"].as_array()?;
                Said::Listed(listed.iter().filter_map(|mail| mail["id"].as_i64()).collect())
            }
        };
        let (agent, id) = (log.key, message.id.value());
        let (rewound, rewound_after) = (log.rewound.contains(&message.id), log.last_rewind > id);
        Some(Claim { agent, message: id, said, rewound, rewound_after })
    };
    log.own.iter().filter_map(claim).collect()
}

/// The background commands whose end a message tells.
pub(super) fn ended_in(message: &Message) -> Vec<i64> {
    if let Body::Notification(notification) = &message.body {
        return notification.commands.iter().map(|id| id.value()).collect();
    }
    let data = &output_of(message)["data"];
    let listed = data["commands"].as_array().into_iter().flatten();
    let own = Some(data).filter(|data| data["running"] == false);
    let number = |value: &Value| value["command_id"].as_i64().or(value["id"].as_i64());
    listed.chain(own).filter(|it| it["running"] != true).filter_map(number).collect()
}

/// The mail and the text in a line of a notification: `#5 from 1/: "text"`.
fn shown(line: &str) -> Option<(i64, String)> {
    let (id, rest) = line.strip_prefix('#')?.split_once(' ')?;
    let text = serde_json::from_str(&rest[rest.find('"')?..]).ok()?;
    Some((id.parse().ok()?, text))
}

pub(super) struct Claims {
    pub(super) all: Vec<Claim>,
    pub(super) by_message: HashMap<i64, usize>,
}

impl Claims {
    pub(super) fn new(all: Vec<Claim>) -> Claims {
        let by_message = all.iter().enumerate().map(|(at, claim)| (claim.message, at)).collect();
        Claims { all, by_message }
    }

    pub(super) fn of(&self, message: i64) -> Option<&Claim> {
        self.by_message.get(&message).map(|at| &self.all[*at])
    }
}
