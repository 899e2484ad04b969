//! The tour on the full screen: the user acts, and the guide says what comes next and fills in the
//! input.

use std::sync::{Arc, Mutex, PoisonError};

use ikigai_conversation::AgentId;
use ikigai_protocol::{Event, EventKind};
use ikigai_tui::{Feed, Update};

use super::script::{FIX, FORK, GIVEN_UP, GUARD, final_answers};
use crate::screen::{Purpose, Watcher};

/// A part of the tour.
struct Chapter {
    text: &'static str,
    /// The draft in the input.
    draft: Option<&'static str>,
}

const CHAPTERS: &[Chapter] = &[
    Chapter {
        text: "Welcome to ikigai. In this tour the model is scripted; agents, tools, mail and database are real. \
            They live in a scratch folder, which is removed at the end. Nothing of yours is touched.\n\n\
            A program in that folder has a bug, and a test fails. A message is already typed below: \
            press Enter to send it.",
        draft: Some(FIX),
    },
    Chapter {
        text: "The agent (●) called tools (→) and saw their results (←). Ctrl+O unfolds them, PgUp scrolls back. \
            Esc interrupts the agent, and /undo undoes its file changes.\n\n\
            Agents are like processes: they fork and run in parallel. Press Enter.",
        draft: Some(FORK),
    },
    Chapter {
        text: "The child worked in parallel, and its mail woke the parent. Agents in two terminals of one \
            folder talk the same way.\n\
            Ctrl+T shows the team. Alt+Down goes to the child, Alt+Up comes back. /mail is the mailbox.\n\n\
            Inside its folder an agent is free, but some things need your approval. Press Enter, then answer y or n.",
        draft: Some(GUARD),
    },
    Chapter {
        text: "That was the tour. To connect your own model, leave with Ctrl+D and set a key \
            (ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY), or the address of a local server \
            (OPENAI_BASE_URL=http://127.0.0.1:11434/v1, with --model openai/NAME). Then start ikigai in your \
            project. /help lists all commands.",
        draft: None,
    },
];

const CUT_SHORT: &str =
    "A step of the tour failed on this system, so the tour ends. It needs bash. Ctrl+D leaves.";

/// The purpose of the screen.
pub(super) fn purpose(cleanup: impl Fn() + Send + Sync + 'static) -> Purpose {
    let at = Mutex::new(0);
    let guide: Watcher = Arc::new(move |event: &Event, feed: &Feed| {
        let Some(text) = answer_of_first(event) else { return };
        let mut at = at.lock().unwrap_or_else(PoisonError::into_inner);
        match CHAPTERS.get(*at).and_then(|chapter| chapter.draft) {
            Some(typed) if final_answers(typed).contains(&text) => {
                *at += 1;
                chapter_updates(*at).into_iter().for_each(|update| feed.send(update));
            }
            _ if text == GIVEN_UP => feed.send(notice(CUT_SHORT)),
            _ => {}
        }
    });
    Purpose::Tour { welcome: chapter_updates(0), guide, cleanup: Arc::new(cleanup) }
}

/// The final answer of a turn of the first agent.
fn answer_of_first(event: &Event) -> Option<&str> {
    match &event.kind {
        EventKind::TurnEnded(done) if event.agent == AgentId::top_level(0) => Some(&done.text),
        _ => None,
    }
}

fn chapter_updates(number: usize) -> Vec<Update> {
    let Some(chapter) = CHAPTERS.get(number) else { return Vec::new() };
    let agent = AgentId::top_level(0);
    let view = Update::View(agent.clone());
    let typed = chapter.draft.map(|typed| Update::Suggestion { agent, text: typed.to_owned() });
    [view, notice(chapter.text)].into_iter().chain(typed).collect()
}

fn notice(text: &str) -> Update {
    Update::Note { agent: AgentId::top_level(0), text: text.to_owned() }
}
