//! Reads the rows of a database.

use std::collections::{HashMap, HashSet};

use ikigai_conversation::{AgentId, Body, Correspondent, Kind, Log, Message, MessageId, Time};

use crate::raw::{Raw, RawRow};

/// The rows.
pub(super) struct Database {
    pub(super) damage: Vec<String>,
    /// By the key of the agent.
    pub(super) logs: HashMap<i64, AgentLog>,
    /// Whose mailbox has which key: the id of an agent, or `user`.
    pub(super) owners: HashMap<i64, String>,
    pub(super) mail: HashMap<i64, MailRow>,
    pub(super) by_body: HashMap<String, Vec<i64>>,
    pub(super) commands: Vec<CommandRow>,
}

#[derive(Debug)]
pub(super) struct CommandRow {
    pub(super) agent: i64,
    pub(super) number: i64,
    pub(super) state: String,
    pub(super) started_by: i64,
    pub(super) told_by: Option<i64>,
}

pub(super) struct AgentLog {
    pub(super) key: i64,
    pub(super) agent: AgentId,
    pub(super) inherited: Vec<Message>,
    pub(super) own: Vec<Message>,
    /// The own messages that a rewind hides.
    pub(super) rewound: HashSet<MessageId>,
    /// The last rewind, if any.
    pub(super) last_rewind: i64,
}

#[derive(Debug)]
pub(super) struct MailRow {
    pub(super) id: i64,
    pub(super) recipient: i64,
    pub(super) sender: i64,
    pub(super) body: String,
    pub(super) unread: bool,
    pub(super) sent_by: Option<i64>,
    pub(super) told_by: Option<i64>,
    pub(super) read_by: Option<i64>,
    pub(super) read_by_person: bool,
}

impl Database {
    pub(super) fn load(database: &str) -> Result<Database, String> {
        let raw = Raw::open(database);
        // One view of everything, even while others write.
        raw.script_of("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
        let damage = load_damage(&raw)?;
        let logs = load_logs(&raw)?;
        let owners = load_owners(&raw)?;
        let mail = load_mail(&raw)?;
        let mut by_body: HashMap<String, Vec<i64>> = HashMap::new();
        for mail in mail.values() {
            by_body.entry(mail.body.clone()).or_default().push(mail.id);
        }
        let commands = load_commands(&raw)?;
        Ok(Database { damage, logs, owners, mail, by_body, commands })
    }

    /// Whether this is the key of the user's mailbox.
    pub(super) fn is_user(&self, key: i64) -> bool {
        self.owners.get(&key).is_some_and(|owner| owner == Correspondent::USER)
    }

    /// The log message `id`, if it is in the own log of the agent `key`.
    pub(super) fn message(&self, key: i64, id: i64) -> Option<&Message> {
        let own = &self.logs.get(&key)?.own;
        let at = own.binary_search_by_key(&id, |message| message.id.value()).ok()?;
        own.get(at)
    }
}

fn load_commands(raw: &Raw) -> Result<Vec<CommandRow>, String> {
    let sql = "SELECT agent, number, state, started_by, told_by FROM commands";
    raw.try_rows(sql, |row| CommandRow {
        agent: row.integer(0).unwrap(),
        number: row.integer(1).unwrap(),
        state: row.text(2).unwrap(),
        started_by: row.integer(3).unwrap(),
        told_by: row.integer(4),
    })
}

pub(super) fn load_damage(raw: &Raw) -> Result<Vec<String>, String> {
    let mut damage = Vec::new();
    if raw.is_sqlite() {
        // A server always checks its pages and references itself.
        for pragma in ["quick_check", "foreign_key_check"] {
            let found = raw.try_rows(&format!("PRAGMA {pragma}"), |row| row.text(0))?;
            let found = found.into_iter().flatten().filter(|found| found != "ok");
            damage.extend(found.map(|found| format!("{pragma}: {found}")));
        }
    }
    // The counts in the registry must match the mailboxes.
    let sql = "SELECT id FROM agents a WHERE
        unread <> (SELECT count(*) FROM mail WHERE recipient = a.key AND unread = 1)
        OR untold <> (SELECT count(*) FROM mail
            WHERE recipient = a.key AND unread = 1 AND told_by IS NULL)";
    for agent in raw.try_rows(sql, |row| row.text(0).unwrap_or_default())? {
        damage.push(format!("the mailbox of {agent} is not as its agent counts it"));
    }
    Ok(damage)
}

pub(super) fn load_logs(raw: &Raw) -> Result<HashMap<i64, AgentLog>, String> {
    let sql = "SELECT key, id, inherits, inherits_up_to FROM agents WHERE state <> 'user'";
    let agents: Vec<(i64, String, Option<i64>, Option<i64>)> = raw.try_rows(sql, |row| {
        (row.integer(0).unwrap(), row.text(1).unwrap(), row.integer(2), row.integer(3))
    })?;
    let mut own = HashMap::new();
    for (key, id, ..) in &agents {
        let id = AgentId::parse(id).map_err(|error| error.to_string())?;
        own.insert(*key, (id.clone(), load_messages(raw, *key, &id)?));
    }
    let parents: HashMap<i64, (i64, i64)> = agents
        .iter()
        .filter_map(|(key, _, parent, up_to)| Some((*key, ((*parent)?, up_to.unwrap_or(0)))))
        .collect();
    let inherited_of = |key: i64| {
        let (mut inherited, mut key, mut up_to) = (Vec::new(), key, i64::MAX);
        while let Some((parent, last)) = parents.get(&key) {
            up_to = up_to.min(*last);
            let messages = own[parent].1.iter();
            let part: Vec<_> = messages.filter(|message| message.id.value() <= up_to).collect();
            inherited.splice(0..0, part.into_iter().cloned());
            key = *parent;
        }
        inherited
    };
    let logs = own.iter().map(|(key, (agent, own))| {
        let inherited = inherited_of(*key);
        let log = Log::forked(&inherited, own);
        let rewound = log.rewound().iter().map(|message| message.id).collect();
        let rewinds = own.iter().filter(|message| message.kind() == Kind::Rewind);
        let last_rewind = rewinds.map(|message| message.id.value()).max().unwrap_or(0);
        let (agent, own) = (agent.clone(), own.clone());
        (*key, AgentLog { key: *key, agent, inherited, own, rewound, last_rewind })
    });
    Ok(logs.collect())
}

pub(super) fn load_owners(raw: &Raw) -> Result<HashMap<i64, String>, String> {
    let owner = |row: &RawRow<'_>| (row.integer(0).unwrap(), row.text(1).unwrap());
    Ok(raw.try_rows("SELECT key, id FROM agents", owner)?.into_iter().collect())
}

pub(super) fn load_messages(raw: &Raw, key: i64, agent: &AgentId) -> Result<Vec<Message>, String> {
    let sql = format!(
        "SELECT id, kind, content, data, created_at FROM messages WHERE agent = {key} ORDER BY id"
    );
    let rows: Vec<(i64, String, String, String, i64)> = raw.try_rows(&sql, |row| {
        let (id, created_at) = (row.integer(0).unwrap(), row.integer(4).unwrap());
        (id, row.text(1).unwrap(), row.text(2).unwrap(), row.text(3).unwrap(), created_at)
    })?;
    let decode = |(id, kind, content, data, created_at): (i64, String, String, String, i64)| {
        let body = Body::from_parts(&kind, &data)
            .map_err(|error| format!("message {id} of {agent} does not decode: {error}"))?;
        let id = MessageId::new(id).ok_or("a message's id is not positive")?;
        let created_at = Time::from_millis(created_at);
        Ok(Message { id, agent: agent.clone(), content, body, created_at })
    };
    rows.into_iter().map(decode).collect()
}

pub(super) fn load_mail(raw: &Raw) -> Result<HashMap<i64, MailRow>, String> {
    let sql =
        "SELECT id, recipient, sender, body, unread, sent_by, told_by, read_by, read_by_person
        FROM mail";
    let rows = raw.try_rows(sql, |row| MailRow {
        id: row.integer(0).unwrap(),
        recipient: row.integer(1).unwrap(),
        sender: row.integer(2).unwrap(),
        body: row.text(3).unwrap(),
        unread: row.integer(4) == Some(1),
        sent_by: row.integer(5),
        told_by: row.integer(6),
        read_by: row.integer(7),
        read_by_person: row.integer(8) == Some(1),
    })?;
    Ok(rows.into_iter().map(|mail| (mail.id, mail)).collect())
}
