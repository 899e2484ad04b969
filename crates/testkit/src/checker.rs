//! Accounts for every message in a database that drivers wrote, after whatever happened to them.
//!
//! It opens the database read-only with its own connection, and does not use the store: it reads
//! the rows, trusts the logs, and compares them. It only misses what drivers never do: marking mail
//! unread by the user leaves no trace.

mod claims;
mod database;

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use ikigai_conversation::{Body, Kind, Log, Message, MessageId, Time};

use crate::raw::Raw;
use crate::view::fault_of_view;

use claims::{Claim, Claims, Said, claims_of};
use database::{AgentLog, CommandRow, Database, MailRow};

/// Prints the faults to the standard error, one per line. Arguments: the database, then files with
/// the lines that drivers printed. The exit code is 1 if there are faults.
pub fn main(arguments: &[String]) -> ExitCode {
    let (database, acknowledged) = arguments.split_first().expect("DATABASE [ACKNOWLEDGED]…");
    let acknowledged: Vec<PathBuf> = acknowledged.iter().map(PathBuf::from).collect();
    let faults = check(database, &acknowledged);
    let mut out = std::io::stderr().lock();
    for fault in &faults {
        writeln!(out, "{fault}").unwrap();
    }
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All faults of a database, and all broken promises about it.
pub fn check(database: &str, acknowledged: &[PathBuf]) -> Vec<String> {
    // Before the rows: drivers may continue meanwhile, and later promises are not checked.
    let promises: Vec<String> =
        acknowledged.iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
    let database = match Database::load(database) {
        Ok(database) => database,
        Err(fault) => return vec![fault],
    };
    let mut faults = database.damage.clone();
    database.logs.values().for_each(|log| check_log(log, &mut faults));
    let claims = database.logs.values().flat_map(claims_of).collect();
    let claims = Claims::new(claims);
    database.mail.values().for_each(|mail| check_mail(&database, &claims, mail, &mut faults));
    claims.all.iter().for_each(|claim| check_claim(&database, &claims, claim, &mut faults));
    check_order(&database, &mut faults);
    database.commands.iter().for_each(|command| check_command(&database, command, &mut faults));
    check_told_commands(&database, &mut faults);
    let promises = promises.iter().flat_map(|text| text.split_inclusive('\n'));
    // The last line may be cut by a kill. No reader has seen that promise.
    for line in promises.filter_map(|line| line.strip_suffix('\n')) {
        check_acknowledged(&database, line, &mut faults);
    }
    faults
}

/// What is left undone in a database whose processes have all ended without a kill: unannounced
/// mail that is not held, children without a report, agents at work, waits.
pub fn check_settled(database: &str) -> Vec<String> {
    let raw = Raw::open(database);
    let mut undone = Vec::new();
    for (what, sql) in UNDONE {
        match raw.try_rows(sql, |row| row.text(0).unwrap_or_default()) {
            Ok(found) => undone.extend(found.iter().map(|found| format!("{what}: {found}"))),
            Err(error) => undone.push(error),
        }
    }
    undone
}

/// With separate queries: those of the store are not used here.
const UNDONE: [(&str, &str); 6] = [
    (
        "untold end of a command",
        "SELECT c.number || ' of ' || a.id FROM commands c JOIN agents a ON a.key = c.agent
            JOIN sessions s ON s.key = a.session
            WHERE c.state = 'ended' AND c.told_by IS NULL AND a.state <> 'dead'
            AND a.mail_held = 0 AND s.wakes_left > 0 AND s.requests_left > 0",
    ),
    (
        "a command without a process",
        "SELECT c.number || ' of ' || a.id FROM commands c JOIN agents a ON a.key = c.agent
            WHERE c.state = 'running'",
    ),
    (
        "unannounced mail",
        "SELECT m.id || ' to ' || a.id FROM mail m JOIN agents a ON a.key = m.recipient
            JOIN sessions s ON s.key = a.session
            WHERE m.unread = 1 AND m.told_by IS NULL AND a.state <> 'dead' AND a.mail_held = 0
            AND a.state <> 'user' AND s.wakes_left > 0 AND s.requests_left > 0",
    ),
    (
        "still at work",
        "SELECT id || ' ' || state FROM agents WHERE state NOT IN ('idle', 'dead', 'user')",
    ),
    (
        "ended unheard",
        "SELECT c.id FROM agents c WHERE c.state = 'idle' AND c.owes_report = 1
            AND EXISTS (SELECT 1 FROM messages WHERE agent = c.key)",
    ),
    (
        "still waits",
        "SELECT a.id || ' for ' || b.id FROM waits w JOIN agents a ON a.key = w.waiter
            JOIN agents b ON b.key = w.awaited",
    ),
];

/// Calls and results are pairs in the repaired log, its view is valid, and no process wrote to the
/// log after another had taken over.
fn check_log(log: &AgentLog, faults: &mut Vec<String>) {
    let agent = &log.agent;
    let mut open: HashMap<(&str, &str), i64> = HashMap::new();
    let mut runs: Vec<&str> = Vec::new();
    for message in &log.own {
        match &message.body {
            Body::ToolCall(call) => {
                *open.entry((call.tool_call_id.as_str(), &call.name)).or_default() += 1;
                let run = call.tool_call_id.as_str().split(':').next().unwrap_or_default();
                if runs.last() != Some(&run) {
                    if runs.contains(&run) {
                        let id = message.id;
                        faults.push(format!("{agent}: {run} calls in {id} after another process"));
                    }
                    runs.push(run);
                }
            }
            Body::ToolResult(result) => {
                let left = open.entry((result.tool_call_id.as_str(), &result.name)).or_default();
                *left -= 1;
                if *left < 0 {
                    let id = message.id;
                    faults.push(format!("{agent}: result {id} closes no open call"));
                }
            }
            _ => {}
        }
    }
    let mut repaired = log.own.clone();
    let next = (log.own.last().map_or(1, |last| last.id.value() + 1)..).filter_map(MessageId::new);
    for (result, id) in Log::forked(&log.inherited, &log.own).open_calls().into_iter().zip(next) {
        repaired.push(result.into_message(id, agent.clone(), Time::from_millis(0)));
    }
    let repaired = Log::forked(&log.inherited, &repaired);
    if !repaired.open_calls().is_empty() {
        faults.push(format!("{agent}: calls stay open after the repair"));
    }
    if let Some(fault) = fault_of_view(&repaired.view()) {
        faults.push(format!("{agent}: the view is not valid: {fault}"));
    }
}

/// What a row says must be confirmed by the log message that it refers to.
fn check_mail(database: &Database, claims: &Claims, mail: &MailRow, faults: &mut Vec<String>) {
    let id = mail.id;
    let mut wrong = |what: &str| faults.push(format!("mail {id}: {what}"));
    match mail.sent_by.map(|message| (message, claims.of(message))) {
        Some((_, Some(claim))) => {
            let says_so = matches!(claim.said, Said::Sent { mail, .. } if mail == id);
            if !says_so || claim.agent != mail.sender {
                wrong("was sent by a message that does not say so");
            }
        }
        Some((message, None)) if is_report(database, mail, message) => {}
        Some((message, None)) => wrong(&format!("was sent by {message}, which is no such result")),
        None if database.is_user(mail.sender) || mail.body.starts_with("user") => {}
        None => wrong("exists, and no log says that it was sent"),
    }
    match (mail.unread, mail.read_by, mail.read_by_person) {
        (true, None, false) | (false, None, true) | (false, Some(_), _) => {}
        (true, ..) => wrong("is unread although the row says who read it"),
        (false, None, false) => wrong("is read, but no log or user read it"),
    }
    if database.is_user(mail.recipient) && (mail.told_by.is_some() || mail.read_by.is_some()) {
        wrong("is for the user, and a log announced or read it");
    }
    if let Some(message) = mail.read_by {
        let kind = database.message(mail.recipient, message).map(Message::kind);
        match claims.of(message) {
            Some(Claim { said: Said::Read(read), rewound: false, .. })
                if *read == id && kind == Some(Kind::ToolResult) => {}
            Some(Claim { said: Said::Announced { shown, .. }, rewound: false, .. })
                if shown.get(&id) == Some(&mail.body) && kind == Some(Kind::Notification) => {}
            _ => wrong(&format!("was read by {message}, which does not say so")),
        }
    }
    if let Some(message) = mail.told_by {
        let kind = database.message(mail.recipient, message).map(Message::kind);
        let tells = claims.of(message).is_some_and(|claim| {
            !claim.rewound
                && match &claim.said {
                    Said::Announced { mail, .. } => {
                        kind == Some(Kind::Notification) && mail.contains(&id)
                    }
                    Said::Listed(all) => kind == Some(Kind::ToolResult) && all.contains(&id),
                    Said::Read(read) => kind == Some(Kind::ToolResult) && *read == id,
                    Said::Counted(count) => kind == Some(Kind::ToolResult) && *count > 0,
                    Said::Sent { .. } => false,
                }
        });
        if !tells {
            wrong(&format!("was told by {message}, which does not say so"));
        }
    }
}

/// Whether a mail is the report of a child, sent at the end of a turn: to its parent, with the last
/// answer in the child's log, or an error, which is in no log.
fn is_report(database: &Database, mail: &MailRow, message: i64) -> bool {
    let agent = |key: i64| database.logs.get(&key).map(|log| log.agent.clone());
    let is_for_parent =
        agent(mail.sender).and_then(|child| child.parent()) == agent(mail.recipient);
    let said = database.message(mail.sender, message);
    let is_said = said.is_some_and(|said| {
        let is_of_program = ["Error: ", "(ended without an answer)"];
        is_of_program.iter().any(|text| mail.body.starts_with(text))
            || said.content.trim().starts_with(&mail.body)
    });
    is_for_parent && is_said
}

/// What a log says must be true.
fn check_claim(database: &Database, claims: &Claims, claim: &Claim, faults: &mut Vec<String>) {
    let message = claim.message;
    let agent = &database.logs[&claim.agent].agent;
    let mut wrong = |what: String| faults.push(format!("{agent} says in {message}: {what}"));
    match &claim.said {
        // Sent mail stays sent, even if a rewind hides the call.
        Said::Sent { mail, to } => match database.mail.get(mail) {
            Some(row) => {
                let to_is_right = database.owners.get(&row.recipient) == Some(to);
                if row.sent_by != Some(message) || row.sender != claim.agent || !to_is_right {
                    wrong(format!("sent mail {mail} to {to}, and its row says {row:?}"));
                }
            }
            None => wrong(format!("sent mail {mail}, which is not there")),
        },
        Said::Read(mail) => match database.mail.get(mail) {
            Some(row) if row.recipient != claim.agent => {
                wrong(format!("read mail {mail} of another agent"));
            }
            Some(row) if !claim.rewound_after && (row.unread || row.told_by.is_none()) => {
                wrong(format!("read mail {mail}, which is not marked"));
            }
            Some(_) => {}
            None => wrong(format!("read mail {mail}, which is not there")),
        },
        Said::Listed(listed) => {
            for mail in listed {
                let row = database.mail.get(mail).filter(|row| row.recipient == claim.agent);
                let told = row.is_some_and(|row| row.told_by.is_some());
                if row.is_none() || (!told && !claim.rewound_after) {
                    wrong(format!("listed mail {mail}, which is not told"));
                }
            }
        }
        Said::Counted(_) => {}
        Said::Announced { mail: announced, shown } => {
            for mail in announced {
                let row = database.mail.get(mail).filter(|row| row.recipient == claim.agent);
                let told_by = row.and_then(|row| row.told_by);
                let twice =
                    told_by.filter(|told| *told != message).and_then(|told| claims.of(told));
                if row.is_none() || (!claim.rewound_after && told_by != Some(message)) {
                    wrong(format!("announced mail {mail}, whose row says {told_by:?} {twice:?}"));
                }
                let is_whole = row.is_some_and(|row| shown.get(mail) == Some(&row.body));
                let is_read = row.is_some_and(|row| !row.unread && row.read_by == Some(message));
                if is_whole && !is_read && !claim.rewound_after {
                    wrong(format!("showed mail {mail} whole, which is not marked"));
                }
            }
        }
    }
}

/// The order of a mailbox is the order of its ids, which is the order in which the logs say sent.
fn check_order(database: &Database, faults: &mut Vec<String>) {
    let mut mail: Vec<&MailRow> = database.mail.values().collect();
    mail.sort_by_key(|mail| mail.id);
    // Different sessions are independent.
    let mut newest: HashMap<i64, i64> = HashMap::new();
    // A report may be sent later than the answer it contains.
    let by_calls = mail.iter().filter(|mail| {
        let sent_by = mail.sent_by.and_then(|message| database.message(mail.sender, message));
        sent_by.is_some_and(|message| message.kind() == Kind::ToolResult)
    });
    for (sent_by, mail) in by_calls.filter_map(|mail| Some((mail.sent_by?, mail))) {
        let older = newest.insert(mail.recipient, sent_by);
        if older.is_some_and(|older| sent_by <= older) {
            faults.push(format!("mail {}: was sent in {sent_by}, before an older one", mail.id));
        }
    }
}

/// A command was started by a message of its agent, and its end is told by one that names it.
fn check_command(database: &Database, command: &CommandRow, faults: &mut Vec<String>) {
    let CommandRow { agent, number, state, started_by, told_by } = command;
    let mut wrong = |what: &str| faults.push(format!("command {number}: {what}"));
    if database.message(*agent, *started_by).is_none() {
        wrong("was started by a message that is not in its agent's log");
    }
    if !["running", "ended", "lost"].contains(&state.as_str()) {
        wrong("is in no state");
    }
    let Some(told_by) = told_by else { return };
    if state == "running" {
        wrong("runs, and its end was told");
    }
    match database.message(*agent, *told_by) {
        Some(message) if claims::ended_in(message).contains(number) => {}
        // The drivers of the store's tests log results of their own.
        Some(message) if message.kind() == Kind::User => {}
        _ => wrong(&format!("was told by {told_by}, which does not say so")),
    }
}

/// Each end is told by one notification, and its row says by which.
fn check_told_commands(database: &Database, faults: &mut Vec<String>) {
    for log in database.logs.values() {
        let mut told: HashMap<i64, i64> = HashMap::new();
        for message in log.own.iter().filter(|message| message.kind() == Kind::Notification) {
            for number in claims::ended_in(message) {
                let id = message.id.value();
                let row = database
                    .commands
                    .iter()
                    .find(|row| row.number == number && row.agent == log.key);
                if told.insert(number, id).is_some() {
                    faults.push(format!("{}: command {number} is told again in {id}", log.agent));
                }
                if row.and_then(|row| row.told_by) != Some(id) {
                    faults.push(format!("{}: {id} tells command {number}, not its row", log.agent));
                }
            }
        }
    }
}

/// What was promised exists once.
fn check_acknowledged(database: &Database, line: &str, faults: &mut Vec<String>) {
    let Some(promise) = line.strip_prefix("ack ") else { return };
    let mut words = promise.splitn(4, ' ');
    let (what, id) = (words.next(), words.next().and_then(|id| id.parse::<i64>().ok()));
    let row = id.and_then(|id| database.mail.get(&id));
    match what {
        Some("sent") => {
            let (to, body) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            let copies = database.by_body.get(body).map_or(0, Vec::len);
            let in_its_mailbox =
                row.is_some_and(|row| row.body == body && database.owners[&row.recipient] == to);
            if !in_its_mailbox || copies != 1 {
                faults.push(format!("{line:?} was promised, and it is there {copies} times"));
            }
        }
        Some("read") if row.is_none() => faults.push(format!("{line:?} was promised")),
        _ => {}
    }
}
