//! What the decoders of all wire formats have in common.

use serde_json::Value;

use crate::fault::{Category, Fault};
use crate::json::parse;
use crate::provider::Delta;
use crate::response::Stop;

/// Receives the text and the thinking of a response as they arrive.
pub(crate) type OnDelta<'a> = dyn FnMut(Delta<'_>) + 'a;

/// How far the stream has come.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    #[default]
    Nothing,
    /// Events arrived, but none that this format has.
    Unknown,
    Started,
    Ended,
}

impl Progress {
    /// Notes an event, and whether this format has such events.
    pub(crate) fn advance(&mut self, is_known: bool) {
        *self = match self {
            Progress::Nothing | Progress::Unknown if !is_known => Progress::Unknown,
            Progress::Nothing | Progress::Unknown | Progress::Started => Progress::Started,
            Progress::Ended => Progress::Ended,
        };
    }

    /// Why a response stopped whose stream ended here.
    ///
    /// # Errors
    /// When the response is not complete.
    pub(crate) fn finish(self, stop: Option<Stop>, format: &str) -> Result<Stop, Fault> {
        match (self, stop) {
            (Progress::Nothing, _) => Err(Fault::no_answer()),
            (Progress::Unknown, _) => Err(wrong_format(format)),
            (Progress::Started, None) => Err(Fault::broke_off()),
            (Progress::Started, Some(stop)) => Ok(stop),
            (Progress::Ended, stop) => Ok(stop.unwrap_or(Stop::Complete)),
        }
    }
}

/// The error for a server that speaks another format.
pub(crate) fn wrong_format(format: &str) -> Fault {
    Fault::new(Category::Unreadable, format!("the server's response is not in {format}"))
}

/// The data of an event; `None` if there is none in it. Only Chat Completions end a stream with `[DONE]`, but gateways
/// that speak several formats end all their streams with it.
pub(crate) fn read_data(data: &str) -> Result<Option<Value>, Fault> {
    if data.trim() == "[DONE]" { Ok(None) } else { parse(data.as_bytes()).map(Some) }
}

/// The name and the data of an event that has a type.
///
/// # Errors
/// The fault that the event reports, if it does.
pub(crate) fn read_event(
    event: Option<&str>,
    data: &str,
) -> Result<Option<(String, Value)>, Fault> {
    let Some(data) = read_data(data)? else { return Ok(None) };
    let name = data["type"].as_str().or(event).unwrap_or_default().to_owned();
    if name == "error" || data["error"].is_object() {
        return Err(Fault::from_error(None, &data));
    }
    Ok(Some((name, data)))
}
