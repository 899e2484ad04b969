//! Unique ids for the calls of a response, if the server sends none or repeats them.

use std::collections::{BTreeMap, HashSet};

use ikigai_conversation::ToolCallId;

use crate::chat::rename_calls;
use crate::response::Response;

impl Response {
    /// Replaces the ids of calls that are in `taken` by unique ones. Servers count from 1 in every
    /// response, and so do we if there is no id, but an id must be unique in the whole
    /// conversation.
    #[must_use]
    pub fn with_call_ids_not_in(mut self, taken: &HashSet<&str>) -> Response {
        let own = self.calls.iter().map(|call| call.id.as_str());
        let mut ids =
            UniqueIds { taken: taken.iter().copied().chain(own).map(str::to_owned).collect() };
        let mut renamed = BTreeMap::new();
        for call in &mut self.calls {
            if taken.contains(call.id.as_str()) {
                let id = ids.next(None);
                renamed.insert(call.id.to_string(), id.to_string());
                call.id = id;
            }
        }
        if !renamed.is_empty() {
            self.extras = self.extras.map(|extras| rename_calls(extras, &renamed));
        }
        self
    }
}

/// Makes the ids of a response's calls unique.
#[derive(Debug, Default)]
pub(crate) struct UniqueIds {
    taken: HashSet<String>,
}

impl UniqueIds {
    /// The id of the next call: the server's, if it is unique.
    pub(crate) fn next(&mut self, said: Option<&str>) -> ToolCallId {
        let said = said.filter(|id| !id.is_empty() && !self.taken.contains(*id));
        let id = said.map_or_else(|| self.made_up(), str::to_owned);
        self.taken.insert(id.clone());
        ToolCallId::new(id)
    }

    fn made_up(&self) -> String {
        let mut number = self.taken.len() + 1;
        loop {
            let id = format!("call_{number}");
            if !self.taken.contains(&id) {
                return id;
            }
            number += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_id_is_replaced_in_the_extras_too() {
        use crate::response::{Call, Stop};
        use crate::testing::extras;

        let call = |id: &str| Call {
            id: ToolCallId::new(id),
            name: "glob".to_owned(),
            arguments: "{}".to_owned(),
        };
        let kept = |id: &str| {
            let calls = format!(r#"{{"{id}":{{"extra_content":"b"}}}}"#);
            Some(extras(&format!(r#"{{"chat_completions":{{"calls":{calls}}}}}"#)))
        };
        let response = |ids: [&str; 3], extras| Response {
            text: String::new(),
            calls: ids.map(call).to_vec(),
            extras,
            stop: Stop::Complete,
            tokens: None,
        };
        let came = response(["call_1", "a", "call_5"], kept("call_1"));
        let taken = HashSet::from(["call_1", "call_2", "call_5"]);
        // The first number to try is higher than all that are taken.
        let expected = response(["call_6", "a", "call_7"], kept("call_6"));
        assert_eq!(came.clone().with_call_ids_not_in(&taken), expected);
        assert_eq!(came.clone().with_call_ids_not_in(&HashSet::from(["b"])), came);
    }

    #[test]
    fn each_call_of_a_response_has_a_unique_id() {
        let mut ids = UniqueIds::default();
        let said = [Some("call_2"), None, Some("a"), Some("a"), Some(""), Some("b")];
        let given = said.map(|said| ids.next(said).to_string());
        assert_eq!(given, ["call_2", "call_3", "a", "call_4", "call_5", "b"]);
    }
}
