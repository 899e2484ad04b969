//! The answer on standard output, everything else on standard error.

use ikigai_agents::{Done, Event, Happening, Seat, Stop};
use ikigai_conversation::{AgentId, Body, Message};

use super::printer::Output;
use crate::print::{self, Reader};
use crate::transcript;

/// Prints answers when they are complete.
#[derive(Default)]
pub(super) struct PlainText {
    /// Text of which it is not yet known whether it is an answer or comes with calls.
    text: Option<String>,
}

impl Output for PlainText {
    fn begin(&mut self, _seat: &Seat, _model: &str) -> anyhow::Result<Reader> {
        Ok(Reader::Listening)
    }

    fn event(&mut self, event: &Event) -> anyhow::Result<Reader> {
        match &event.happening {
            Happening::Logged(message) => self.logged(message),
            Happening::Retry { attempt, reason, delay } => {
                print::note(&transcript::retry(*attempt, reason, *delay));
            }
            Happening::StoreWaits(reason) => print::note(&transcript::store_waits(reason)),
            Happening::MailHeld => print::note(transcript::MAIL_HELD),
            Happening::Started(_) | Happening::Text(_) | Happening::Asks(_) => {}
            Happening::Done(_) | Happening::Lost(_) => {}
        }
        Ok(Reader::Listening)
    }

    fn done(&mut self, _agent: &AgentId, done: &Done) -> anyhow::Result<Reader> {
        self.text = None;
        let mut reader = Reader::Listening;
        if !done.text.trim().is_empty() {
            let end = if done.text.ends_with('\n') { "" } else { "\n" };
            reader = print::words_to_reader(&format!("{}{end}", done.text))?;
        }
        match &done.error {
            // As every command says why it failed.
            Some(error) if done.stop == Stop::Error => print::note(&format!("ikigai: {error}")),
            Some(_) | None => transcript::ending(done).iter().for_each(|note| print::note(note)),
        }
        Ok(reader)
    }
}

impl PlainText {
    fn logged(&mut self, message: &Message) {
        match &message.body {
            Body::Assistant(_) => self.text = Some(message.content.clone()),
            Body::ToolCall(_) | Body::ToolResult(_) | Body::Notification(_) => {
                if let Some(text) = self.text.take().filter(|text| !text.trim().is_empty()) {
                    print::note(&text);
                }
                print::note(&transcript::line(message));
            }
            Body::System | Body::User | Body::Summary(_) | Body::Fork(_) | Body::Usage(_) => {}
            Body::Mark(_) | Body::Rewind(_) | Body::Clear | Body::Trim(_) | Body::Kill(_) => {}
            Body::Interrupted(_) | Body::Command(_) | Body::Approval(_) => {}
        }
    }
}
