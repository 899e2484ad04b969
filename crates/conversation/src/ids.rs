//! The IDs of messages, mail, sessions, responses and calls.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::IdError;

/// A number assigned by the database: positive, unique, never reused, and increasing.
macro_rules! numbered {
    ($(#[$doc:meta])* $Id:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "i64", into = "i64")]
        pub struct $Id(i64);

        impl $Id {
            /// `None` unless `value` is positive.
            pub fn new(value: i64) -> Option<$Id> {
                (value > 0).then_some($Id(value))
            }

            /// The number itself.
            pub fn value(self) -> i64 {
                self.0
            }
        }

        impl TryFrom<i64> for $Id {
            type Error = IdError;

            fn try_from(value: i64) -> Result<$Id, IdError> {
                $Id::new(value).ok_or(IdError::NotPositive(value))
            }
        }

        impl From<$Id> for i64 {
            fn from(id: $Id) -> i64 {
                id.value()
            }
        }

        impl fmt::Display for $Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

numbered! {
    /// The ID of a message. IDs increase within a log.
    MessageId
}

numbered! {
    /// The ID of a mail.
    MailId
}

numbered! {
    /// The number of a background command, by which agents and the user know it. Unlike other IDs
    /// it is unique in its session only.
    CommandId
}

/// An opaque name from elsewhere, stored unchanged and only compared.
macro_rules! named {
    ($(#[$doc:meta])* $Id:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $Id(String);

        impl $Id {
            /// Accepts any text.
            pub fn new(text: impl Into<String>) -> $Id {
                $Id(text.into())
            }

            /// The text, unchanged.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $Id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

named! {
    /// The response of a model that a message came from.
    ///
    /// Adjacent responses in a log must have different IDs, or they would be sent back as one.
    ResponseId
}

named! {
    /// A model's ID for a call. Servers repeat these, even within one response.
    ToolCallId
}

/// The ID of a session. The caller creates the UUID (version 7, so that IDs sort by age), because
/// that needs a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Uuid);

impl SessionId {
    /// The session with this UUID.
    pub fn new(uuid: Uuid) -> SessionId {
        SessionId(uuid)
    }

    /// Parses a UUID in any of its usual forms. It is displayed in the hyphenated one.
    pub fn parse(text: &str) -> Result<SessionId, IdError> {
        Uuid::parse_str(text).map(SessionId).map_err(|_| IdError::session(text))
    }

    /// The UUID itself.
    pub fn uuid(self) -> Uuid {
        self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl TryFrom<String> for SessionId {
    type Error = IdError;

    fn try_from(text: String) -> Result<SessionId, IdError> {
        SessionId::parse(&text)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> String {
        id.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_positive() {
        assert_eq!(MessageId::new(1).map(MessageId::value), Some(1));
        assert_eq!(MailId::new(i64::MAX).map(MailId::value), Some(i64::MAX));
        for value in [0, -1, i64::MIN] {
            assert_eq!(MessageId::new(value), None);
            let error = serde_json::from_str::<MailId>(&value.to_string()).unwrap_err();
            assert_eq!(error.to_string(), format!("Invalid id: {value} is not positive"));
        }
        assert_eq!(serde_json::to_string(&MailId::new(5)).unwrap(), "5");
    }

    #[test]
    fn a_session_id_is_a_uuid() {
        let text = "0193a1b2-7c3d-7e4f-8a5b-6c7d8e9f0a1b";
        let id = SessionId::parse(text).unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(SessionId::parse(&text.to_uppercase()).unwrap(), id);
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&format!("\"{text}\"")).unwrap(), id);
        let error = SessionId::parse("last").unwrap_err();
        assert_eq!(error.to_string(), "Invalid session id: last");
    }
}
