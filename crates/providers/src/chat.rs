//! OpenAI's Chat Completions, the format that most servers speak.

mod calls;
mod chunk;
mod decode;
mod encode;
mod extras;
mod object_end;
mod reasoning;

pub(crate) use extras::rename_calls;

use crate::provider::{Decode, Provider};
use crate::request::Request;

/// The format of OpenAI's Chat Completions, and of the many servers that speak it more or less.
///
/// ```
/// use ikigai_conversation::Seen;
/// use ikigai_providers::{ChatCompletions, Provider, Request, ToolUse};
///
/// let view = [Seen::System("Be brief."), Seen::User("Hello")];
/// let request = Request { model: "m", origin: "", view: &view, tools: &[], tool_use: ToolUse::Auto };
/// let body = String::from_utf8(ChatCompletions.encode(&request)).unwrap();
/// let messages = r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello"}]"#;
/// assert!(body.ends_with(&format!(r#""messages":{messages}}}"#)));
///
/// let mut decode = ChatCompletions.decode();
/// let chunk = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
/// decode.event(None, chunk, &mut |_| {})?;
/// assert_eq!(decode.finish()?.text, "Hi");
/// # Ok::<(), ikigai_providers::Fault>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct ChatCompletions;

impl Provider for ChatCompletions {
    fn encode(&self, request: &Request<'_>) -> Vec<u8> {
        encode::encode(request)
    }

    fn decode(&self) -> Box<dyn Decode> {
        Box::new(decode::Decoder::default())
    }

    fn path(&self, _: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        // Servers on one's own machine have no key, and some refuse an empty one.
        key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_that_is_there_is_sent() {
        assert_eq!(ChatCompletions.headers(None), []);
        let key = ("authorization", "Bearer secret".to_owned());
        assert_eq!(ChatCompletions.headers(Some("secret")), [key]);
        assert_eq!(ChatCompletions.path("any"), "/chat/completions");
    }
}
