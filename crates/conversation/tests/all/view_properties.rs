//! Properties of the view of every log, even one that a crash cut off anywhere.

use std::collections::HashMap;

use ikigai_conversation::{
    Body, KeptRoom, Log, Message, MessageId, NewMessage, Reduction, Seen, Summary, SummaryPlan,
    ToolCall,
};
use proptest::prelude::*;
use proptest::sample::Index;

use super::generate::{answer, call, id, keeping, numbered, result, summary};

/// A step in writing a log. An `Index` picks a message before it.
#[derive(Debug, Clone)]
enum Step {
    User,
    Notification,
    Answer,
    /// Calls by tool and ID, each one of a few so that IDs repeat; then notes between call and
    /// result.
    Calls {
        text: bool,
        calls: Vec<(bool, u8, Option<Note>)>,
    },
    Note(Note),
}

#[derive(Debug, Clone)]
enum Note {
    Mark,
    Command,
    Interrupted,
    Rewind(Index),
    Clear,
    /// The end of what it replaces, and what it keeps.
    Summary(Index, Vec<Index>),
    Trim(Index),
}

fn any_note() -> impl Strategy<Value = Note> {
    prop_oneof![
        4 => Just(Note::Mark),
        4 => Just(Note::Command),
        1 => Just(Note::Interrupted),
        2 => any::<Index>().prop_map(Note::Rewind),
        1 => Just(Note::Clear),
        1 => (any::<Index>(), prop::collection::vec(any::<Index>(), 0..3))
            .prop_map(|(up_to, kept)| Note::Summary(up_to, kept)),
        1 => any::<Index>().prop_map(Note::Trim),
    ]
}

fn any_step() -> impl Strategy<Value = Step> {
    let one_call = (any::<bool>(), 0..3_u8, prop::option::weighted(0.2, any_note()));
    let calls = (any::<bool>(), prop::collection::vec(one_call, 1..4))
        .prop_map(|(text, calls)| Step::Calls { text, calls });
    prop_oneof![
        2 => Just(Step::User),
        1 => Just(Step::Notification),
        2 => Just(Step::Answer),
        4 => calls,
        3 => any_note().prop_map(Step::Note),
    ]
}

/// Writes a log. The text of every message is its number.
#[derive(Default)]
struct Pen {
    log: Vec<NewMessage>,
    responses: u32,
}

impl Pen {
    fn number(&self) -> String {
        format!("m{}", self.log.len() + 1)
    }

    fn earlier(&self, index: &Index) -> MessageId {
        id(index.index(self.log.len()) as i64 + 1)
    }

    fn note(&mut self, note: &Note) {
        self.log.push(match note {
            Note::Mark => NewMessage::mark(None),
            Note::Command => NewMessage::command("/x"),
            Note::Interrupted => NewMessage::interrupted(None),
            Note::Rewind(to) => NewMessage::rewind(self.earlier(to), None),
            Note::Clear => NewMessage::clear(),
            Note::Summary(up_to, kept) => {
                let mut kept: Vec<MessageId> = kept.iter().map(|kept| self.earlier(kept)).collect();
                kept.sort();
                kept.dedup();
                keeping(&self.number(), self.earlier(up_to), &kept)
            }
            Note::Trim(up_to) => NewMessage::trim(self.earlier(up_to)),
        });
    }

    fn step(&mut self, step: &Step) {
        self.responses += 1;
        let response = format!("r{}", self.responses);
        match step {
            Step::User => self.log.push(NewMessage::user(self.number())),
            Step::Notification => {
                self.log.push(NewMessage::notification(self.number(), Vec::new()));
            }
            Step::Answer => self.log.push(answer(&self.number(), &response)),
            Step::Calls { text, calls } => {
                if *text {
                    self.log.push(answer(&self.number(), &response));
                }
                for (bash, call_id, note) in calls {
                    let (name, call_id) =
                        (if *bash { "bash" } else { "glob" }, call_id.to_string());
                    self.log.push(call(name, &call_id, &response));
                    note.iter().for_each(|note| self.note(note));
                    let output =
                        format!(r#"{{"success":true,"data":{{"output":"{}"}}}}"#, self.number());
                    self.log.push(result(name, &call_id, &output));
                }
            }
            Step::Note(note) => self.note(note),
        }
    }
}

fn write(steps: &[Step]) -> Vec<NewMessage> {
    let mut pen = Pen { log: vec![NewMessage::system("m1")], responses: 0 };
    steps.iter().for_each(|step| pen.step(step));
    pen.log
}

fn any_log() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(any_step(), 0..20).prop_map(|steps| numbered("0/", 1, write(&steps)))
}

/// A log with messages missing anywhere. No program writes one, but its view must be valid as well.
fn any_damaged_log() -> impl Strategy<Value = Vec<Message>> {
    (any_log(), prop::collection::vec(any::<bool>(), 128)).prop_map(|(log, kept)| {
        log.into_iter()
            .zip(kept.into_iter().cycle())
            .filter(|(_, kept)| *kept)
            .map(|(m, _)| m)
            .collect()
    })
}

/// Asserts that every run of calls is of one response and followed by exactly their results, in
/// order.
#[track_caller]
fn assert_valid(view: &[Seen<'_>]) {
    let mut calls: Vec<&ToolCall> = Vec::new();
    let mut answered = 0;
    for seen in view {
        match seen {
            Seen::ToolCall(call) => {
                if answered > 0 {
                    assert_eq!(answered, calls.len(), "a call before the results of the last ones");
                    (calls, answered) = (Vec::new(), 0);
                }
                assert!(calls.iter().all(|other| other.response == call.response));
                calls.push(call);
            }
            Seen::ToolResult { call, output, .. } => {
                assert!(answered < calls.len(), "a result without its call");
                assert!(std::ptr::eq(*call, calls[answered]), "a result out of order");
                assert!(!output.is_empty());
                answered += 1;
            }
            Seen::System(_)
            | Seen::Identity(_)
            | Seen::User(_)
            | Seen::Notification(_)
            | Seen::Summary(_)
            | Seen::Obligations(_)
            | Seen::Assistant { .. } => {
                assert_eq!(answered, calls.len(), "a call without its result");
                (calls, answered) = (Vec::new(), 0);
            }
        }
    }
    assert_eq!(answered, calls.len(), "a call without its result");
}

/// Whether a summary could keep these: messages of the user that no rewind discarded.
fn are_messages_of_the_user(kept: &[MessageId], log: &[Message]) -> bool {
    let gone = Log::new(log).rewound();
    let said = log.iter().filter(|message| message.body == Body::User);
    let said: Vec<MessageId> =
        said.filter(|message| !gone.contains(message)).map(|message| message.id).collect();
    kept.iter().all(|kept| said.contains(kept))
}

/// The rules of the view in the simplest form: everything that is visible after each message.
fn visible_by_the_rules(log: &[Message]) -> Vec<&Message> {
    #[derive(Clone, Default)]
    struct State<'a> {
        /// All of it but what the summary keeps.
        visible: Vec<&'a Message>,
        kept: Vec<&'a Message>,
        /// What the user has said.
        said: Vec<&'a Message>,
    }
    let mut after: HashMap<MessageId, State<'_>> = HashMap::new();
    let State { mut visible, mut kept, mut said } = State::default();
    for message in log {
        if message.body == Body::User {
            said.push(message);
        }
        match &message.body {
            Body::Clear => visible.retain(|message| message.body == Body::System),
            Body::Rewind(rewind) => State { visible, kept, said } = after[&rewind.to].clone(),
            Body::Summary(summary) => {
                let is_system = |message: &Message| message.body == Body::System;
                let replaced = |message: &Message| {
                    message.id <= summary.up_to || matches!(message.body, Body::Summary(_))
                };
                let systems = visible.iter().copied().filter(|message| is_system(message));
                let rest = visible.iter().copied();
                let rest = rest.filter(|message| !is_system(message) && !replaced(message));
                let is_kept = |said: &&Message| replaced(said) && summary.kept.contains(&said.id);
                kept = said.iter().copied().filter(is_kept).collect();
                visible = systems.chain([message]).chain(rest).collect();
            }
            Body::System | Body::User | Body::Notification(_) => visible.push(message),
            Body::Assistant(_) | Body::ToolCall(_) => visible.push(message),
            Body::ToolResult(_) | Body::Fork(_) | Body::Usage(_) | Body::Mark(_) => {}
            Body::Trim(_) | Body::Kill(_) | Body::Interrupted(_) | Body::Command(_) => {}
            Body::Approval(_) => {}
        }
        let (visible, kept, said) = (visible.clone(), kept.clone(), said.clone());
        after.insert(message.id, State { visible, kept, said });
    }
    let summary = visible.iter().position(|message| matches!(message.body, Body::Summary(_)));
    if let Some(summary) = summary {
        visible.splice(summary..summary, kept);
    }
    visible
}

/// What identifies a message in a view: its text, or the call.
fn said<'a>(seen: &Seen<'a>) -> Option<(&'a str, Option<&'a ToolCall>)> {
    match seen {
        Seen::System(text) | Seen::User(text) | Seen::Notification(text) => Some((text, None)),
        Seen::Summary(text) | Seen::Assistant { text, .. } => Some((text, None)),
        Seen::ToolCall(call) => Some(("", Some(call))),
        Seen::Identity(_) | Seen::Obligations(_) | Seen::ToolResult { .. } => None,
    }
}

fn said_by(message: &Message) -> (&str, Option<&ToolCall>) {
    match &message.body {
        Body::ToolCall(call) => ("", Some(call)),
        _ => (&message.content, None),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_log_cut_anywhere_gives_a_valid_view(log in any_log()) {
        for end in 0..=log.len() {
            assert_valid(&Log::new(&log[..end]).view());
        }
    }

    #[test]
    fn a_log_with_messages_missing_gives_a_valid_view(log in any_damaged_log()) {
        assert_valid(&Log::new(&log).view());
    }

    #[test]
    fn a_log_continued_after_a_crash_gives_a_valid_view(
        crashed in any_log(), end in any::<Index>(), more in any_log(),
    ) {
        let crashed = &crashed[..end.index(crashed.len() + 1)];
        let mut log = crashed.to_vec();
        log.extend(numbered("0/", 1001, more.into_iter().map(|m| NewMessage { content: m.content, body: m.body })));
        assert_valid(&Log::new(&log).view());
    }

    #[test]
    fn the_view_follows_the_rules(log in any_log(), end in any::<Index>()) {
        let log = &log[..end.index(log.len() + 1)];
        let view = Log::new(log).view();
        let seen: Vec<_> = view.iter().filter_map(said).collect();
        let expected: Vec<_> = visible_by_the_rules(log).into_iter().map(said_by).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn closing_open_calls_does_not_change_the_view(
        log in prop_oneof![any_log(), any_damaged_log()], end in any::<Index>(),
    ) {
        let mut log = log[..end.index(log.len() + 1)].to_vec();
        let before: Vec<String> = super::view::show(&Log::new(&log).view());
        let needs_turn = Log::new(&log).needs_turn();
        let closing = Log::new(&log).open_calls();
        log.extend(numbered("0/", 1001, closing));
        let log = Log::new(&log);
        prop_assert_eq!(super::view::show(&log.view()), before);
        prop_assert_eq!(log.open_calls(), []);
        prop_assert_eq!(log.needs_turn(), needs_turn);
    }

    #[test]
    fn each_request_is_a_prefix_of_the_next(
        steps in prop::collection::vec(any_step(), 0..12), more in prop::collection::vec(any_step(), 0..12),
    ) {
        let sent = write(&steps);
        let exceptional = |new: &NewMessage| {
            matches!(new.body, Body::Rewind(_) | Body::Clear | Body::Summary(_) | Body::Trim(_))
        };
        let whole = write(&[steps, more].concat());
        let kept: Vec<NewMessage> = whole.iter().enumerate()
            .filter(|(at, new)| *at < sent.len() || !exceptional(new))
            .map(|(_, new)| new.clone()).collect();
        let (sent, kept) = (numbered("0/", 1, sent), numbered("0/", 1, kept));
        let (before, after) = (Log::new(&sent).view(), Log::new(&kept).view());
        prop_assert_eq!(&after[..before.len()], &before[..]);
    }

    /// Forgetting what a summary or a clear hides changes nothing, now or later.
    #[test]
    fn a_reduced_log_is_as_good_as_the_whole_one(
        before in any_log(), more in prop::collection::vec(any_step(), 0..12), fork in any::<bool>(),
    ) {
        let own = if fork { numbered("0/0/", 1001, write(&more)) } else { Vec::new() };
        let whole = Log::forked(&before, &own);
        let Some(reduction) = whole.reduction() else { return Ok(()) };
        prop_assume!(are_messages_of_the_user(&reduction.kept, &[before.clone(), own.clone()].concat()));
        let kept = whole.reduced(&reduction);
        let inherited = kept.partition_point(|message| fork && message.agent.to_string() == "0/");
        let (inherited, rest) = kept.split_at(inherited);
        let reduced = if fork { Log::forked(inherited, rest) } else { Log::new(&kept) };
        prop_assert_eq!(super::view::show(&reduced.view()), super::view::show(&whole.view()));
        prop_assert_eq!(reduced.needs_turn(), whole.needs_turn());
        prop_assert_eq!(reduced.used_tokens(7), whole.used_tokens(7));
    }

    /// The same for the end of a log, wherever it starts.
    #[test]
    fn the_end_of_a_log_is_only_reduced_if_nothing_before_it_matters(
        log in any_log(), start in any::<Index>(),
    ) {
        let end = &log[start.index(log.len())..];
        let Some(Reduction { start, kept }) = Log::new(end).reduction() else { return Ok(()) };
        prop_assume!(are_messages_of_the_user(&kept, &log));
        let first = end[start].id;
        let is_needed = |message: &&Message| {
            message.id >= first || message.body == Body::System || kept.contains(&message.id)
        };
        let reduced: Vec<Message> = log.iter().filter(is_needed).cloned().collect();
        let (reduced, whole) = (Log::new(&reduced), Log::new(&log));
        prop_assert_eq!(super::view::show(&reduced.view()), super::view::show(&whole.view()));
        prop_assert_eq!(reduced.needs_turn(), whole.needs_turn());
    }

    /// Whatever a log is like, what is planned for it gives a valid view that keeps its promises.
    #[test]
    fn a_planned_summary_gives_a_valid_view(
        log in any_log(), said in 0..60_u64, tail in 0..200_u64,
    ) {
        let Some(plan) = Log::new(&log).plan_summary(KeptRoom { said, tail }, None) else { return Ok(()) };
        let last = log[log.len() - 1].id.value();
        let (obligations, before) = ("owed".to_owned(), 0);
        let SummaryPlan { up_to, kept, cut, tokens } = plan;
        let data = Summary { up_to, kept, cut, obligations, before, after: 0, elapsed_ms: 0 };
        let mut after = log.clone();
        after.extend(numbered("0/", last + 1, [NewMessage::summary("s", data)]));
        let view = Log::new(&after).view();
        assert_valid(&view);
        let is_last_said = |seen: &&Seen<'_>| matches!(seen, Seen::User(_));
        let old = Log::new(&log).view();
        if let (Some(Seen::User(was)), Some(Seen::User(is))) =
            (old.iter().rfind(is_last_said), view.iter().rfind(is_last_said)) {
            prop_assert!(was.starts_with(is), "{was} became {is}");
        }
        let beside = |seen: &&Seen<'_>| {
            matches!(seen, Seen::System(_) | Seen::Identity(_) | Seen::Summary(_) | Seen::Obligations(_))
        };
        let kept: Vec<Seen<'_>> = view.iter().filter(|seen| !beside(seen)).copied().collect();
        prop_assert!(tokens <= said + tail, "{tokens}");
        prop_assert!(ikigai_conversation::tokens_of(&kept) <= tokens + 16 * kept.len() as u64);
    }

    #[test]
    fn a_planned_trim_saves_what_it_says(log in any_log(), keep in 0..40_u64) {
        let Some(plan) = Log::new(&log).plan_trim(keep) else { return Ok(()) };
        let last = log[log.len() - 1].id.value();
        let mut after = log.clone();
        after.extend(numbered("0/", last + 1, [NewMessage::trim(plan.up_to)]));
        let (before, after) = (Log::new(&log).view(), Log::new(&after).view());
        assert_valid(&after);
        prop_assert!(ikigai_conversation::tokens_of(&after) < ikigai_conversation::tokens_of(&before));
        prop_assert_eq!(Log::new(&log[..0]).plan_trim(keep), None);
    }

    #[test]
    fn a_full_fork_sees_its_parents_view_first(
        parent in any_log(), end in any::<Index>(), task in any_log(),
    ) {
        let inherited = &parent[..end.index(parent.len() + 1)];
        let ordinary = |new: &NewMessage| matches!(new.body, Body::User | Body::Assistant(_) | Body::Mark(_));
        let news = task.into_iter().map(|m| NewMessage { content: m.content, body: m.body });
        let own = numbered("0/0/", 1001, news.filter(ordinary));
        let (fork, alone) = (Log::forked(inherited, &own).view(), Log::new(inherited).view());
        assert_valid(&fork);
        prop_assert_eq!(&fork[..alone.len()], &alone[..]);
    }
}

/// A hundred thousand messages of the worst kinds; anything but linear work would take minutes.
#[test]
fn the_view_of_a_long_log_takes_linear_time() {
    let sorts: [fn(i64) -> NewMessage; 6] = [
        |n| {
            if n % 2 == 1 {
                call("glob", &n.to_string(), &n.to_string())
            } else {
                result("glob", &(n - 1).to_string(), "{}")
            }
        },
        |n| call("glob", "same", &n.to_string()),
        |_| call("glob", "same", "same"),
        |n| if n % 2 == 1 { NewMessage::user("u") } else { summary("s", id(1)) },
        |n| if n % 2 == 1 { NewMessage::system("p") } else { NewMessage::clear() },
        |n| if n % 3 == 0 { NewMessage::rewind(id(n - 1), None) } else { NewMessage::user("u") },
    ];
    for (sort, make) in sorts.into_iter().enumerate() {
        let log = numbered("0/", 1, (1..=100_000).map(make));
        let start = std::time::Instant::now();
        let seen = Log::new(&log).view().len();
        let view = start.elapsed();
        let open = Log::new(&log).open_calls().len();
        println!(
            "sort {sort}: {seen} seen in {view:?}, {open} open in {:?}",
            start.elapsed() - view
        );
        assert!(start.elapsed() < std::time::Duration::from_secs(10));
    }
}
