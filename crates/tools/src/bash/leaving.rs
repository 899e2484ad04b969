//! How long a call of `bash` waits for its command, and how it leaves the command in the background.

use std::time::Duration;

use super::{Bash, DEFAULT_TIMEOUT};
use crate::background::{Leaving, Shown};
use crate::commands::RunningCommand;
use crate::context::Context;
use crate::output::Capture;
use crate::result::{Execution, ToolResult};
use crate::watchdog::Status;

/// What stops a command whose call has waited for it long enough.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) time: Duration,
    pub(super) then: AtLimit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtLimit {
    /// It is ended.
    End,
    /// It continues in the background.
    Leave,
}

/// How long a command that is started in the background is watched for a sandbox that cannot be had.
const START: Duration = Duration::from_millis(50);

impl Bash {
    /// How long the call waits for its command.
    pub(super) fn patience(&self, context: &Context) -> Result<Patience, String> {
        let seconds = |seconds| Duration::from_secs(seconds);
        let refusal = || context.commands.background().refusal(&context.agent);
        let (time, then) = match (self.background, &self.timeout) {
            (Some(true), _) if context.leave.is_none() => {
                return Err("Background commands need a session".to_owned());
            }
            (Some(true), _) => (START, AtLimit::Leave),
            (_, Some(timeout)) => (seconds(timeout.0), AtLimit::End),
            (_, None) if context.leave.is_none() || refusal().is_some() => {
                (seconds(DEFAULT_TIMEOUT), AtLimit::End)
            }
            (_, None) => (seconds(DEFAULT_TIMEOUT), AtLimit::Leave),
        };
        match self.background {
            Some(true) => refusal().map_or(Ok(Patience { time, then }), Err),
            Some(false) | None => Ok(Patience { time, then }),
        }
    }

    /// Leaves the command in the background.
    pub(super) fn leave(
        &self,
        left: (RunningCommand, Option<Status>),
        printed: Capture,
    ) -> Execution {
        let (running, status) = left;
        let (shown, deadline) = match (self.background, &self.timeout) {
            (Some(true), Some(timeout)) => {
                (Shown::Nothing, Some(running.started + Duration::from_secs(timeout.0)))
            }
            (Some(true), None) => (Shown::Nothing, None),
            (Some(false) | None, _) => (Shown::SoFar, None),
        };
        let command = self.command.0.clone();
        let notify_on = None;
        let leaving = Leaving { command, running, status, printed, deadline, shown, notify_on };
        let result = ToolResult::output(String::new());
        Execution { leaving: Some(Box::new(leaving)), ..result.into() }
    }
}

/// Returns when the user moves the command to the background, if that can be.
pub(super) async fn leave_requested(context: &Context) {
    match &context.leave {
        Some(leave) if context.commands.background().refusal(&context.agent).is_none() => {
            leave.notified().await;
        }
        Some(_) | None => std::future::pending().await,
    }
}
