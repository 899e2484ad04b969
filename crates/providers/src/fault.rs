//! What can go wrong between us and a model, classified by what to do about it.

mod classify;
mod sanitize;
mod server_error;
mod window;

use std::fmt;
use std::time::Duration;

pub(crate) use sanitize::scrub;

/// A request without a response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{category}: {message}")]
pub struct Fault {
    /// The kind of fault.
    pub category: Category,
    /// What happened, if possible in the server's own words. Bounded, on one
    /// line, and without a key.
    pub message: String,
    /// How long the server wants the client to wait before a retry.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// A fault without a delay.
    pub fn new(category: Category, message: impl Into<String>) -> Fault {
        Fault { category, message: message.into(), retry_after: None }
    }

    /// A response that ended before it was complete.
    pub(crate) fn broke_off() -> Fault {
        Fault::new(Category::Network, "the stream was interrupted")
    }

    /// A response without content.
    pub(crate) fn no_answer() -> Fault {
        Fault::new(Category::Server, "the server ended its stream without an answer")
    }
}

/// The kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Category {
    /// The key is missing, wrong or not allowed to do this.
    KeyRefused,
    /// Too many requests for now.
    RateLimit,
    /// No credit is left.
    Quota,
    /// There is no such model.
    ModelUnknown,
    /// The conversation is too long for the model.
    ContextTooLong,
    /// The provider refuses to answer this.
    Blocked,
    /// Any other request that the server refuses.
    Refused,
    /// The server failed or is overloaded.
    Server,
    /// The server could not be reached, or the connection was lost.
    Network,
    /// The server's certificate is not trusted.
    NotTrusted,
    /// The response is not in the format of the provider.
    Unreadable,
}

impl Category {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(self) -> bool {
        match self {
            Category::RateLimit | Category::Server | Category::Network => true,
            Category::KeyRefused | Category::Quota | Category::ModelUnknown => false,
            Category::ContextTooLong | Category::Blocked | Category::Refused => false,
            Category::NotTrusted | Category::Unreadable => false,
        }
    }

    /// What the user can do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Category::KeyRefused => {
                "check the key, and that its variable is the one the provider uses"
            }
            Category::RateLimit => "wait a moment, or use another model",
            Category::Quota => "add credit at the provider, or use another model",
            Category::ModelUnknown => "check the model's name, given by --model or `model`",
            Category::ContextTooLong => {
                "make room with /compact or /clear, or use a model with a larger context"
            }
            Category::Blocked => "rephrase the message, or use another model",
            Category::Refused => "check the model and its provider's settings",
            Category::Server => "try again later, or use another model",
            Category::Network => "check the connection and the provider's base_url",
            Category::NotTrusted => {
                "check the base_url and the clock, or name the issuer's certificates with SSL_CERT_FILE"
            }
            Category::Unreadable => "check the provider's base_url and kind",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Category::KeyRefused => "the key was refused",
            Category::RateLimit => "too many requests",
            Category::Quota => "the quota is used up",
            Category::ModelUnknown => "the model is not known",
            Category::ContextTooLong => "the conversation is too long for the model",
            Category::Blocked => "the provider blocked the request",
            Category::Refused => "the server refused the request",
            Category::Server => "the server failed",
            Category::Network => "the connection failed",
            Category::NotTrusted => "the server is not trusted",
            Category::Unreadable => "the answer cannot be read",
        })
    }
}
