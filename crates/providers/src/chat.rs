//! OpenAI's Chat Completions, the format that most servers speak.

mod calls;
mod chunk;
mod decode;
mod encode;
mod extras;
mod object_end;
mod reasoning;

pub(crate) use encode::openai_effort;
pub(crate) use extras::rename_calls;

use crate::provider::{Decode, Provider};
use crate::request::Request;

/// The format of OpenAI's Chat Completions, and of the many servers that are more or less
/// compatible.
///
/// ```
/// use ikigai_conversation::Seen;
/// use ikigai_providers::{ChatCompletions, Provider, Request};
///
/// let view = [Seen::System("Be brief."), Seen::User("Hello")];
/// let request = Request::without_tools("m", "", &view);
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::Responses;

    #[test]
    fn a_key_is_sent_only_if_there_is_one() {
        for (provider, path) in
            [(&ChatCompletions as &dyn Provider, "/chat/completions"), (&Responses, "/responses")]
        {
            assert_eq!(provider.headers(None), []);
            let key = ("authorization", "Bearer secret".to_owned());
            assert_eq!(provider.headers(Some("secret")), [key]);
            assert_eq!(provider.path("any"), path);
        }
    }
}
