//! What the agents of a session have cost.

use std::collections::BTreeMap;

use ikigai_conversation::{AgentId, SessionId};

use crate::error::StoreError;
use crate::sessions;
use crate::store::Store;

/// The tokens of all responses in an agent's own log, those of turns that were rewound too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// What was sent.
    pub input_tokens: u64,
    /// What came back.
    pub output_tokens: u64,
}

impl Store {
    /// The cost of every agent that has asked a model.
    pub async fn costs(&self, session: SessionId) -> Result<BTreeMap<AgentId, Cost>, StoreError> {
        self.read(move |unit| {
            // What a server claims is added up as a number that cannot overflow.
            let sql = "SELECT a.id, total(json_extract(m.data, '$.input_tokens')),
                    total(json_extract(m.data, '$.output_tokens'))
                FROM agents a JOIN messages m ON m.agent = a.key
                WHERE a.session = ?1 AND m.kind = 'usage' GROUP BY a.id";
            let rows = unit.rows(sql, [sessions::key_of(unit, &session)?], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, f64>(1)?, row.get::<_, f64>(2)?))
            })?;
            let read = |(id, input, output): (String, f64, f64)| {
                let cost = Cost { input_tokens: whole(input), output_tokens: whole(output) };
                Ok((sessions::parse_agent(&id)?, cost))
            };
            rows.into_iter().map(read).collect()
        })
        .await
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn whole(sum: f64) -> u64 {
    sum as u64
}
