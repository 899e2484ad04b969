//! Logs to test requests with: crashes, repeated ids, clears, summaries, forks, and all kinds of
//! names and arguments.

use ikigai_conversation::{
    AgentId, Body, Extras, Fork, Log, Message, MessageId, NewMessage, ResponseId, Seen, Summary,
    Time, ToolCallId,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// A step in writing a log. An `Index` picks an earlier message.
#[derive(Debug, Clone)]
enum Step {
    User(&'static str),
    Notification,
    Answer(&'static str, Option<&'static str>),
    Calls(Option<&'static str>, Vec<OneCall>, Option<&'static str>),
    Note(Note),
}

#[derive(Debug, Clone)]
struct OneCall {
    name: &'static str,
    id: &'static str,
    arguments: &'static str,
    output: &'static str,
    /// Between the call and its result.
    note: Option<Note>,
}

#[derive(Debug, Clone)]
enum Note {
    Mark,
    Interrupted,
    Rewind(Index),
    Clear,
    Summary(Index),
    Trim(Index),
}

const TEXTS: &[&str] = &["text", "two\nlines", "", " \n", "\0\u{1b}\u{2028}\"\\é👩‍👧\u{202e}"];
const NAMES: &[&str] = &[
    "bash",
    "glob",
    "",
    "a b.c/d",
    "é",
    "a_name_that_is_longer_than_any_server_takes_it_for_it_has_72_letters_xxx",
];
const IDS: &[&str] =
    &["0", "1", "", "call 1", "é", "call__0_mail_cmpl-2df92285-6286-4c93-af23-7178d28ea41e"];
const ARGUMENTS: &[&str] =
    &["{}", r#"{"a":1}"#, "", "{", "[1]", "null", r#"{"a":"\ud800"}"#, "{}{}", "no JSON \0\u{1b}"];
const OUTPUTS: &[&str] =
    &[r#"{"success":true,"data":{"output":"x"}}"#, r#"{"error":"y"}"#, "", "no JSON"];
const EXTRAS: &[&str] = &[
    r#"{"chat_completions":{"reasoning_content":"hm","calls":{"0":{"extra_content":{"n":1.0}}}}}"#,
    r#"{"anthropic":{"model":"claude-opus-5-5","blocks":[{"text":0,"calls":0,"block":{"type":"thinking","thinking":"hm","signature":"s"}},{"text":0,"calls":1,"block":{"type":"redacted_thinking","data":"d"}}]}}"#,
    r#"{"anthropic":{"blocks":[{"text":4,"calls":0,"block":{"type":"thinking","thinking":"","signature":"s"}}]}}"#,
    r#"{"responses":{"model":"gpt-5-2025-08-07","blocks":[{"text":0,"calls":0,"block":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}},{"text":0,"calls":0,"block":{"type":"message","phase":"commentary"}},{"text":4,"calls":0,"block":{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"e"}}]}}"#,
    r#"{"google":{"blocks":[{"text":1,"calls":0,"block":{"on":"text","signature":"s"}},{"text":4,"calls":0,"block":{"on":"end"}},{"text":4,"calls":0,"block":{"on":"call","signature":"s"}}]}}"#,
    r#"{"google":{"blocks":[{"text":0,"calls":1,"block":{"on":"text","signature":"s"}},{"text":0,"calls":1,"block":{"on":"end"}}]}}"#,
    "null",
];

/// Any note: one that changes what precedes it, or one that does not.
fn any_note() -> impl Strategy<Value = Note> {
    prop_oneof![
        4 => any_quiet_note(),
        2 => any::<Index>().prop_map(Note::Rewind),
        1 => Just(Note::Clear),
        1 => any::<Index>().prop_map(Note::Summary),
        1 => any::<Index>().prop_map(Note::Trim),
    ]
}

fn any_quiet_note() -> impl Strategy<Value = Note> {
    prop_oneof![Just(Note::Mark), Just(Note::Interrupted)]
}

fn any_step(note: impl Strategy<Value = Note> + Clone + 'static) -> impl Strategy<Value = Step> {
    let extras = || prop::option::weighted(0.3, select(EXTRAS));
    let between = prop::option::weighted(0.2, note.clone());
    let one_call =
        (select(NAMES), select(IDS), select(ARGUMENTS), select(OUTPUTS), between).prop_map(
            |(name, id, arguments, output, note)| OneCall { name, id, arguments, output, note },
        );
    let calls = (prop::option::of(select(TEXTS)), prop::collection::vec(one_call, 1..4), extras());
    prop_oneof![
        2 => select(TEXTS).prop_map(Step::User),
        1 => Just(Step::Notification),
        2 => (select(TEXTS), extras()).prop_map(|(text, extras)| Step::Answer(text, extras)),
        4 => calls.prop_map(|(text, calls, extras)| Step::Calls(text, calls, extras)),
        2 => note.prop_map(Step::Note),
    ]
}

/// Writes a log.
#[derive(Default)]
struct Pen {
    log: Vec<NewMessage>,
    responses: u32,
}

impl Pen {
    fn step(&mut self, step: &Step) {
        self.responses += 1;
        match step {
            Step::User(text) => self.log.push(NewMessage::user(*text)),
            Step::Notification => self.log.push(NewMessage::notification("mail", Vec::new())),
            Step::Answer(text, extras) => self.respond(Some(text), &[], *extras),
            Step::Calls(text, calls, extras) => self.respond(*text, calls, *extras),
            Step::Note(note) => self.note(note),
        }
    }

    fn respond(&mut self, text: Option<&str>, calls: &[OneCall], extras: Option<&str>) {
        let response = ResponseId::new(format!("r{}", self.responses));
        let first = self.log.len();
        if let Some(text) = text {
            self.log.push(NewMessage::assistant(text, response.clone()));
        }
        for call in calls {
            let id = ToolCallId::new(call.id);
            let new = NewMessage::tool_call(id, call.name, call.arguments, response.clone());
            let Body::ToolCall(opened) = new.body.clone() else { unreachable!() };
            self.log.push(new);
            call.note.iter().for_each(|note| self.note(note));
            self.log.push(NewMessage::tool_result(&opened, call.output));
        }
        if let (Some(extras), Some(new)) = (extras, self.log.get_mut(first)) {
            *new = new.clone().with_extras(Extras::parse(extras).unwrap());
        }
    }

    fn note(&mut self, note: &Note) {
        let earlier =
            |index: &Index| MessageId::new(index.index(self.log.len().max(1)) as i64 + 1).unwrap();
        let new = match note {
            Note::Mark => NewMessage::mark(None),
            Note::Interrupted => NewMessage::interrupted(None),
            Note::Rewind(to) => NewMessage::rewind(earlier(to), None),
            Note::Clear => NewMessage::clear(),
            Note::Summary(up_to) => {
                let (up_to, kept, obligations) = (earlier(up_to), Vec::new(), "owed".to_owned());
                let data = Summary {
                    up_to,
                    kept,
                    cut: None,
                    obligations,
                    before: 0,
                    after: 0,
                    elapsed_ms: 0,
                };
                NewMessage::summary("summary", data)
            }
            Note::Trim(up_to) => NewMessage::trim(earlier(up_to)),
        };
        self.log.push(new);
    }
}

fn numbered(agent: &str, first: usize, news: &[NewMessage]) -> Vec<Message> {
    let agent = AgentId::parse(agent).unwrap();
    let number = |(new, id): (&NewMessage, usize)| {
        let id = MessageId::new(id as i64).unwrap();
        new.clone().into_message(id, agent.clone(), Time::from_millis(0))
    };
    news.iter().zip(first..).map(number).collect()
}

/// A log that ends anywhere, as after a crash.
pub(crate) fn any_log() -> impl Strategy<Value = Vec<Message>> {
    let steps = |length| prop::collection::vec(any_step(any_note().boxed()), length);
    // Many things happen only at the start of a log.
    let steps = prop_oneof![steps(0..3), steps(0..20)];
    (steps, any::<Index>(), any::<bool>()).prop_map(|(steps, end, is_cut)| {
        let mut pen = Pen { log: vec![NewMessage::system("prompt")], responses: 0 };
        steps.iter().for_each(|step| pen.step(step));
        if is_cut {
            pen.log.truncate(end.index(pen.log.len() + 1));
        }
        numbered("0/", 1, &pen.log)
    })
}

/// A log with any messages missing, which no program writes.
pub(crate) fn any_damaged_log() -> impl Strategy<Value = Vec<Message>> {
    (any_log(), prop::collection::vec(any::<bool>(), 64)).prop_map(|(log, kept)| {
        let kept = kept.into_iter().cycle();
        log.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(message, _)| message).collect()
    })
}

/// A log and its continuation.
#[derive(Debug)]
pub(crate) struct Growth {
    before: Vec<Message>,
    more: Vec<Message>,
    /// Whether a fork continues it.
    is_fork: bool,
}

impl Growth {
    pub(crate) fn before(&self) -> Vec<Seen<'_>> {
        Log::new(&self.before).view()
    }

    pub(crate) fn with_after<R>(&self, look: impl FnOnce(&[Seen<'_>]) -> R) -> R {
        if self.is_fork {
            return look(&Log::forked(&self.before, &self.more).view());
        }
        let whole = [&self.before[..], &self.more].concat();
        look(&Log::new(&whole).view())
    }
}

/// A continuation without messages that change what precedes them.
pub(crate) fn any_growth() -> impl Strategy<Value = Growth> {
    let more = prop::collection::vec(any_step(any_quiet_note().boxed()), 0..12);
    (any_log(), more, any::<bool>()).prop_map(|(mut before, steps, is_fork)| {
        // Calls that a crash has left open are closed first.
        let closing = Log::new(&before).open_calls();
        before.extend(numbered("0/", before.len() + 1, &closing));
        let mut pen = Pen { log: Vec::new(), responses: 1_000 };
        if is_fork {
            let parent = AgentId::top_level(0);
            pen.log.push(NewMessage::fork(Fork { parent, up_to: before.last().map(|m| m.id) }));
        }
        steps.iter().for_each(|step| pen.step(step));
        let more = numbered(if is_fork { "0/0/" } else { "0/" }, before.len() + 1, &pen.log);
        Growth { before, more, is_fork }
    })
}
