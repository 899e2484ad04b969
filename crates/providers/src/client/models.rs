//! Lists a server's models, which also shows whether it is reachable.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;
use tokio::time::timeout;

use crate::fault::{Category, Fault, scrub};

use super::body::read_document;
use super::connector::SendError;
use super::{Client, transport_fault};

/// The user is waiting at the screen, so a timeout is an answer too.
const CONNECT: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(5);

const BODY_LIMIT: usize = 1 << 20;
const MOST_NAMES: usize = 1000;
const NAME_LIMIT: usize = 200;

impl Client {
    /// The names of the server's models, in its order. The request is not
    /// retried, and has a short timeout.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, or does not send a list.
    pub async fn models(&self) -> Result<Vec<String>, Fault> {
        let names = timeout(TIME, self.ask_for_models()).await;
        let names = names.unwrap_or_else(|_| Err(transport_fault::stalled(self.shown(), TIME)));
        match names {
            Ok(names) => Ok(names.into_iter().map(|name| self.cut_secrets(name)).collect()),
            Err(fault) => Err(self.without_secrets(fault)),
        }
    }

    async fn ask_for_models(&self) -> Result<Vec<String>, Fault> {
        let connector = self.connector.with_patience(CONNECT);
        let path = self.provider.models_path();
        let request = self.request(&connector, Method::GET, path)?.build();
        let request =
            request.map_err(|error| transport_fault::unreachable(self.shown(), &error))?;
        let answer = connector.send(self.shown(), &request).await.map_err(SendError::into_fault)?;
        if !answer.status().is_success() {
            return Err(self.refusal(answer).await);
        }
        let body = read_document(answer, self.shown(), self.limits, BODY_LIMIT).await?;
        names(&body).ok_or_else(|| {
            let message = format!("{} did not answer with a list of models", self.shown());
            Fault::new(Category::Unreadable, message)
        })
    }
}

/// The names in a list of models: `data` with `id` in most formats, `models` with `name` in
/// Google's.
fn names(body: &[u8]) -> Option<Vec<String>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let list = body.get("data").or_else(|| body.get("models"))?.as_array()?;
    let name = |model: &Value| {
        let name = model["id"].as_str().or_else(|| model["name"].as_str())?;
        Some(scrub(name.strip_prefix("models/").unwrap_or(name), NAME_LIMIT))
    };
    Some(list.iter().filter_map(name).take(MOST_NAMES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(body: &str, expected: Option<&[&str]>) {
        let expected = expected.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(names(body.as_bytes()), expected);
    }

    #[test]
    fn names_are_found_in_every_format() {
        check(r#"{"object":"list","data":[{"id":"a"},{"id":"b"}]}"#, Some(&["a", "b"]));
        check(r#"{"data":[{"type":"model","id":"c","display_name":"C"}]}"#, Some(&["c"]));
        check(r#"{"models":[{"name":"models/g"}]}"#, Some(&["g"]));
        check(r#"{"data":[]}"#, Some(&[]));
        check(r#"{"data":[1,{"id":2},{"id":"a\u001bb"}]}"#, Some(&["ab"]));
    }

    #[test]
    fn other_json_has_no_names() {
        for body in ["", "<html>", "[]", "{}", r#"{"data":{}}"#, "null"] {
            check(body, None);
        }
    }

    #[test]
    fn the_length_of_a_list_is_limited() {
        let body =
            serde_json::json!({"data": vec![serde_json::json!({"id": "x".repeat(999)}); 2000]});
        let names = names(body.to_string().as_bytes()).unwrap();
        assert_eq!((names.len(), names[0].chars().count()), (1000, 200));
    }
}
