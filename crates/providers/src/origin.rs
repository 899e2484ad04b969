//! The origin of extras. Several providers speak the same format, and one
//! may refuse the extras of another.

use ikigai_conversation::Extras;

use crate::response::Response;

impl Response {
    /// Marks the extras with their origin, so that they are not sent elsewhere.
    pub fn of_origin(mut self, origin: &str) -> Response {
        self.extras = self.extras.map(|extras| mark(&extras, origin));
        self
    }
}

/// The mark is the first field.
fn mark(extras: &Extras, origin: &str) -> Extras {
    let fields = extras.as_json().trim_start_matches('{');
    let marked = format!("{{{}{fields}", beginning(origin));
    Extras::parse(&marked).unwrap_or_else(|_| extras.clone())
}

/// Whether these belong to another provider. Without a mark the origin is
/// unknown, and the format decides.
pub(crate) fn is_foreign(extras: &Extras, origin: &str) -> bool {
    let Some(fields) = extras.as_json().strip_prefix('{') else { return false };
    fields.starts_with("\"origin\":") && !fields.starts_with(&beginning(origin))
}

fn beginning(origin: &str) -> String {
    format!("\"origin\":{},", serde_json::Value::from(origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::response::Stop;

    #[test]
    fn extras_are_only_sent_back_to_their_origin() {
        let extras = Extras::parse(r#"{"chat_completions":{"reasoning_content":"x"}}"#).ok();
        let response = Response {
            text: String::new(),
            calls: Vec::new(),
            extras,
            stop: Stop::Complete,
            tokens: None,
        };
        let extras = response.of_origin("deep\"seek").extras.unwrap();
        assert_eq!(
            extras.as_json(),
            r#"{"origin":"deep\"seek","chat_completions":{"reasoning_content":"x"}}"#
        );
        assert!(!is_foreign(&extras, "deep\"seek"));
        assert!(is_foreign(&extras, "openai"));
        assert!(!is_foreign(&Extras::parse(r#"{"chat_completions":{}}"#).unwrap(), "openai"));
    }
}
