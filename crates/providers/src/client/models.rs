//! Lists a server's models, which also shows whether it is reachable.

use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Url};
use serde_json::Value;
use tokio::time::timeout;

use crate::fault::{Category, Fault};
use crate::model_list::{self, ListedModel};

use super::body::read_document;
use super::connector::{Connector, SendError};
use super::local_server;
use super::{Client, transport_fault};

/// The user is waiting at the screen, so a timeout is an answer too.
const CONNECT: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(5);

/// The longest lists have descriptions of some hundred models.
const BODY_LIMIT: usize = 8 << 20;

impl Client {
    /// The server's models, in its order, with what it says about them. The request is not retried,
    /// and has a short timeout.
    ///
    /// # Errors
    /// If the server cannot be reached, refuses, or does not send a list.
    pub async fn models(&self) -> Result<Vec<ListedModel>, Fault> {
        let lists = Lists { client: self, connector: self.connector.with_patience(CONNECT) };
        let models = timeout(TIME, lists.models()).await;
        let models = models.unwrap_or_else(|_| Err(transport_fault::stalled(self.shown(), TIME)));
        let mut models = models.map_err(|fault| self.without_secrets(fault))?;
        // What is missing then is not known.
        let _ = timeout(TIME, local_server::complete(&lists, &mut models)).await;
        for model in &mut models {
            model.name = self.cut_secrets(std::mem::take(&mut model.name));
        }
        Ok(models)
    }
}

/// Requests for lists, on connections of their own.
pub(super) struct Lists<'a> {
    client: &'a Client,
    connector: Connector,
}

impl Lists<'_> {
    async fn models(&self) -> Result<Vec<ListedModel>, Fault> {
        let path = self.client.provider.models_path();
        let url = self.client.base()?.join(path);
        let body = self.ask(Method::GET, url, None).await?;
        model_list::parse(&body).ok_or_else(|| {
            let shown = self.client.shown();
            let message = format!("{shown} did not answer with a list of models");
            Fault::new(Category::Unreadable, message)
        })
    }

    /// Whether the server is on this machine.
    pub(super) fn is_local(&self) -> bool {
        self.client.base().is_ok_and(super::Address::is_loopback)
    }

    /// What a server of local models says beside its list; `None` if it does not know the path.
    pub(super) async fn beside(&self, path: &str, question: Option<Value>) -> Option<Value> {
        let url = self.client.base().ok()?.join_root(path);
        let method = if question.is_some() { Method::POST } else { Method::GET };
        self.ask(method, url, question).await.ok()
    }

    async fn ask(&self, method: Method, url: Url, question: Option<Value>) -> Result<Value, Fault> {
        let (client, shown) = (self.client, self.client.shown());
        let mut request = client.request(&self.connector, method, url)?;
        if let Some(question) = question {
            let json = HeaderValue::from_static("application/json");
            request = request.header(CONTENT_TYPE, json).body(question.to_string());
        }
        let request =
            request.build().map_err(|error| transport_fault::unreachable(shown, &error))?;
        let answer = self.connector.send(shown, &request).await.map_err(SendError::into_fault)?;
        if !answer.status().is_success() {
            return Err(client.refusal(answer).await);
        }
        let body = read_document(answer, shown, client.limits, BODY_LIMIT).await?;
        Ok(serde_json::from_slice(&body).unwrap_or_default())
    }
}
