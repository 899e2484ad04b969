//! A log that ends anywhere can be loaded, and its view is valid for a model.

use ikigai_conversation::{
    Body, Log, Message, NewMessage, ResponseId, Summary, ToolCall, ToolCallId, Usage,
};
use ikigai_store::Next;
use ikigai_testkit::{Random, TestAgent, TestStore, fault_of_view};

/// A conversation with all kinds of messages, calls that share a response, and repeated ids.
async fn write_log(store: &TestStore, agent: &TestAgent, random: &mut Random) -> Vec<Message> {
    let mut log: Vec<Message> = Vec::new();
    let mut open: Vec<ToolCall> = Vec::new();
    let mut response = 0;
    for _ in 0..40 {
        let any = |log: &[Message], random: &mut Random| random.one_of(log).id;
        let name = |response: u64| ResponseId::new(format!("r{response}"));
        let message = match random.below(14) {
            0 => NewMessage::user("go on"),
            1 => NewMessage::assistant("text", name(response)),
            2..5 => {
                let id = ToolCallId::new(format!("call_{}", random.below(3)));
                NewMessage::tool_call(id, *random.one_of(&["mail", "bash"]), "{}", name(response))
            }
            5..8 if !open.is_empty() => {
                NewMessage::tool_result(&open.remove(0), r#"{"success":true}"#)
            }
            8 => NewMessage::mark(None),
            9 if !log.is_empty() => NewMessage::rewind(any(&log, random), None),
            10 if !log.is_empty() => {
                let said = log.iter().filter(|message| message.body == Body::User);
                let kept = said.map(|message| message.id).take(2).collect();
                let (up_to, obligations) = (any(&log, random), "owed".to_owned());
                let (cut, before, after, elapsed_ms) = (None, 0, 0, 0);
                let data = Summary { up_to, kept, cut, obligations, before, after, elapsed_ms };
                NewMessage::summary("so far", data)
            }
            11 if !log.is_empty() => NewMessage::trim(any(&log, random)),
            12 => NewMessage::clear(),
            _ => NewMessage::usage(Usage {
                input_tokens: 1,
                output_tokens: 1,
                cache_read_tokens: None,
                cache_write_tokens: None,
                reasoning_tokens: None,
                cost: None,
                unreported: None,
                model: "m".to_owned(),
                response: name(response),
            }),
        };
        response += random.below(2);
        if let Body::ToolCall(call) = &message.body {
            open.push(call.clone());
        }
        log.push(agent.append(store, message, Next::Request).await.unwrap());
    }
    log
}

#[tokio::test]
async fn a_log_cut_at_any_message_loads_and_its_view_is_valid() {
    let store = super::fast_store();
    let raw = store.raw();
    for seed in 0..30 {
        let (session, agents) = store.session_of(1).await;
        let mut written = write_log(&store, &agents[0], &mut Random::new(seed)).await;
        // From the end, so that each cut is what a crash would have left.
        loop {
            let own = store.own_log(session, agents[0].id.clone(), None).await.unwrap();
            assert_eq!(own, written, "seed {seed}");
            // What is not needed any more makes no difference, unless a summary keeps what a rewind
            // had discarded, which none does.
            let needed = store.needed_log(session, agents[0].id.clone()).await.unwrap();
            let discarded = Log::new(&own).rewound();
            if !discarded.iter().any(|message| message.body == Body::User) {
                assert_eq!(Log::new(&needed).view(), Log::new(&own).view(), "seed {seed}");
            }
            let mut repaired = own.clone();
            for (result, id) in Log::new(&own).open_calls().into_iter().zip(10_000_000..) {
                let time = ikigai_conversation::Time::from_millis(0);
                let id = ikigai_conversation::MessageId::new(id).unwrap();
                repaired.push(result.into_message(id, agents[0].id.clone(), time));
            }
            assert_eq!(Log::new(&repaired).open_calls(), [], "seed {seed}");
            for log in [&own, &repaired] {
                let fault = fault_of_view(&Log::new(log).view());
                assert_eq!(fault, None, "seed {seed}, cut at {:?}", written.last());
            }
            let Some(last) = written.pop() else { break };
            raw.script(&format!("DELETE FROM messages WHERE id = {}", last.id));
        }
    }
}
