//! Blocks: a conversation as front ends show it.

use std::time::Duration;

use ikigai_conversation::{
    Approval, CallSummary, EffectKind, FileDiff, MessageId, ResultState, ResultSummary, ToolCall,
    ToolCallId, ToolResult,
};

use crate::mail_card::MailCard;

/// The ID of a block. It never changes, and later blocks of a conversation have higher ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub(crate) i64);

/// A part of a conversation that is shown as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its ID.
    pub id: BlockId,
    /// The first message of the log that it shows, if any.
    pub message: Option<MessageId>,
    /// Whether a model still sees it.
    pub visibility: Visibility,
    /// What it shows. Texts of models, tools and files are not safe for a terminal yet.
    pub content: BlockContent,
}

/// Whether a block is still part of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// It is.
    Visible,
    /// A rewind hides it from the model, or it was streamed and never reached the log.
    Hidden,
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockContent {
    /// A message of the user.
    Said(String),
    /// Text of the model, as Markdown.
    Answer(String),
    /// What the model thought before it answered.
    Thought {
        /// As much of it as is kept.
        text: String,
        /// For how long; `None` while it is thinking.
        duration: Option<Duration>,
    },
    /// A call with its result.
    Call(Box<CallBlock>),
    /// Mail that the agent is notified of.
    Mail(Vec<MailCard>),
    /// Any other notification.
    Notification(String),
    /// An event or a remark.
    Notice {
        /// How important it is.
        tone: NoticeTone,
        /// One line or several.
        text: String,
    },
    /// A summary that replaces the conversation for the model.
    Summary {
        /// What was done, on one line.
        title: String,
        /// The summary.
        text: String,
    },
    /// A point from which the conversation is a different one for the model.
    Divider(String),
    /// A command as the user typed it.
    Typed(String),
    /// The reply to a command.
    Reply(String),
    /// Why a command was refused.
    Refusal(String),
}

impl BlockContent {
    /// A notice.
    pub fn notice(tone: NoticeTone, text: impl Into<String>) -> BlockContent {
        BlockContent::Notice { tone, text: text.into() }
    }
}

/// The importance of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoticeTone {
    /// Good to know.
    Info,
    /// Something that the user may have to act on.
    Warning,
    /// Something failed.
    Fault,
}

/// A call, from its arguments to its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallBlock {
    /// The model's ID for it.
    pub call: ToolCallId,
    /// What it does.
    pub summary: CallSummary,
    /// The kinds of its effects; empty if they are unknown.
    pub effects: Vec<EffectKind>,
    /// The user's decision, if it needed one.
    pub approval: Option<Approval>,
    /// How far it is.
    pub state: CallState,
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallState {
    /// It runs.
    Running,
    /// It waits for the user's approval.
    Asking,
    /// Its turn ended without a result for it.
    Unfinished,
    /// It has a result.
    Ended(CallEnd),
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallEnd {
    /// The outcome on one line.
    pub outcome: String,
    /// Whether it worked.
    pub state: ResultState,
    /// What it changed in a file.
    pub diff: Option<FileDiff>,
    /// For a refused call: the rule that would allow it, as TOML.
    pub rule: Option<String>,
    /// Its output, if that is more than the outcome.
    pub output: String,
    /// How much of the output is shown unasked.
    pub preview: OutputPreview,
    /// How long it ran.
    pub duration: Option<Duration>,
}

/// How much of the output of a call is shown before the user unfolds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPreview {
    /// Its end: a command's failures are there.
    End,
    /// Nothing: what a call looked at is of interest to the model.
    Nothing,
}

impl OutputPreview {
    /// For a call with these effects; none are known of a call of an earlier version.
    pub(crate) fn of(effects: &[EffectKind]) -> OutputPreview {
        match effects.first() {
            None | Some(EffectKind::Command | EffectKind::Unknown | EffectKind::Host) => {
                OutputPreview::End
            }
            Some(EffectKind::Read | EffectKind::Write | EffectKind::Database) => {
                OutputPreview::Nothing
            }
        }
    }
}

impl CallBlock {
    pub(crate) fn new(call: &ToolCall) -> CallBlock {
        CallBlock {
            call: call.tool_call_id.clone(),
            summary: CallSummary::of(call),
            effects: call.effects.clone().unwrap_or_default(),
            approval: None,
            state: CallState::Running,
        }
    }

    /// For a result whose call is not known.
    pub(crate) fn of_result(result: &ToolResult, end: CallEnd) -> CallBlock {
        CallBlock {
            call: result.tool_call_id.clone(),
            summary: CallSummary::new(&result.name, ""),
            effects: Vec::new(),
            approval: None,
            state: CallState::Ended(end),
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, change: CallChange) {
        match change {
            CallChange::Asked => self.state = CallState::Asking,
            CallChange::Answered(approval) => {
                self.approval = Some(approval);
                self.state = CallState::Running;
            }
            CallChange::Unfinished => self.state = CallState::Unfinished,
            CallChange::Ended(end) => self.state = CallState::Ended(end),
        }
    }
}

impl CallEnd {
    pub(crate) fn new(
        result: &ToolResult,
        content: &str,
        preview: OutputPreview,
        duration: Option<Duration>,
    ) -> CallEnd {
        let ResultSummary { outcome, state, diff, rule } = ResultSummary::of(result, content);
        let output = Some(result.output_text()).filter(|output| *output != outcome);
        let output = output.unwrap_or_default();
        CallEnd { outcome, state, diff, rule, output, preview, duration }
    }
}

/// A change of the blocks of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockChange {
    /// A new block at the end. An answer without a message is still streaming.
    Added(Block),
    /// More text of an answer that is streaming.
    Extended {
        /// The answer.
        block: BlockId,
        /// What follows.
        text: String,
    },
    /// An answer has been streamed to its end.
    Logged {
        /// The answer.
        block: BlockId,
        /// Its message in the log.
        message: MessageId,
    },
    /// The thought in a block has changed.
    Thought {
        /// The block.
        block: BlockId,
        /// What changed.
        change: ThoughtChange,
    },
    /// The call in a block has changed.
    Call {
        /// The block.
        block: BlockId,
        /// What changed.
        change: CallChange,
    },
    /// A block is gone.
    Removed(BlockId),
    /// A block is no longer part of the conversation.
    Hidden(BlockId),
    /// Nor are the blocks after this message.
    HiddenAfter(MessageId),
    /// The user cleared the conversation: the blocks so far are not shown any more.
    Cleared,
}

/// A change of a thought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThoughtChange {
    /// More of it.
    More(String),
    /// It is in the log.
    Ended {
        /// The message of the log that has it.
        message: MessageId,
        /// How long the model thought.
        duration: Duration,
    },
}

impl ThoughtChange {
    /// Applies the change to a thought.
    pub fn apply(self, text: &mut String, duration: &mut Option<Duration>) {
        match self {
            ThoughtChange::More(more) => text.push_str(&more),
            ThoughtChange::Ended { duration: took, .. } => *duration = Some(took),
        }
    }
}

/// A change of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallChange {
    /// It waits for approval.
    Asked,
    /// The user has decided.
    Answered(Approval),
    /// Its turn has ended without a result for it.
    Unfinished,
    /// It has a result.
    Ended(CallEnd),
}

/// Applies a change to blocks in order.
pub(crate) fn apply(blocks: &mut Vec<Block>, change: BlockChange) {
    let find = |blocks: &[Block], id| blocks.binary_search_by_key(&id, |block| block.id).ok();
    match change {
        BlockChange::Added(block) => blocks.push(block),
        BlockChange::Extended { block, text } => {
            if let Some(at) = find(blocks, block)
                && let BlockContent::Answer(answer) = &mut blocks[at].content
            {
                answer.push_str(&text);
            }
        }
        BlockChange::Logged { block, message } => {
            if let Some(at) = find(blocks, block) {
                blocks[at].message = Some(message);
            }
        }
        BlockChange::Thought { block, change } => {
            let Some(at) = find(blocks, block) else { return };
            if let ThoughtChange::Ended { message, .. } = change {
                blocks[at].message = Some(message);
            }
            if let BlockContent::Thought { text, duration } = &mut blocks[at].content {
                change.apply(text, duration);
            }
        }
        BlockChange::Call { block, change } => {
            if let Some(at) = find(blocks, block)
                && let BlockContent::Call(call) = &mut blocks[at].content
            {
                call.apply(change);
            }
        }
        BlockChange::Removed(block) => {
            if let Some(at) = find(blocks, block) {
                blocks.remove(at);
            }
        }
        BlockChange::Hidden(block) => {
            if let Some(at) = find(blocks, block) {
                blocks[at].visibility = Visibility::Hidden;
            }
        }
        BlockChange::Cleared => blocks.clear(),
        BlockChange::HiddenAfter(message) => {
            let after = |block: &&mut Block| block.message.is_none_or(|id| id > message);
            let hidden = blocks.iter_mut().rev().take_while(after);
            hidden.for_each(|block| block.visibility = Visibility::Hidden);
        }
    }
}
