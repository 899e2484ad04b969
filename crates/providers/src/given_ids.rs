//! Ids for the calls of one response, where the server gave none or the same one twice.

use std::collections::HashSet;

use ikigai_conversation::ToolCallId;

/// Makes the ids of a response's calls unique.
#[derive(Debug, Default)]
pub(crate) struct GivenIds {
    taken: HashSet<String>,
}

impl GivenIds {
    /// The id of the next call: what the server said, if it can stand for this call alone.
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
    fn each_call_of_a_response_has_an_id_of_its_own() {
        let mut ids = GivenIds::default();
        let said = [Some("call_2"), None, Some("a"), Some("a"), Some(""), Some("b")];
        let given = said.map(|said| ids.next(said).to_string());
        assert_eq!(given, ["call_2", "call_3", "a", "call_4", "call_5", "b"]);
    }
}
