//! Whose extras they are. Several providers speak one format, and what one of them wants back another may refuse.

use ikigai_conversation::Extras;

use crate::response::Response;

impl Response {
    /// Notes who wants the extras back, so that nobody else gets them.
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

/// Whether somebody else wants these back. Without a mark nobody knows, and the format decides.
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
    fn only_their_origin_gets_extras_back() {
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
