//! Assembles calls from the pieces of a stream.
//!
//! According to the specification, all pieces of a call carry its index, and only the first has its
//! id and name. Servers omit any of these, repeat them in every piece, or use them twice. So three
//! things about a piece are checked: whether its index and its id are known, whether it names a
//! tool, and whether the call that it would continue has all its arguments already.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::chunk::{CallPart, Function, arguments_of, text_of};
use super::extras::WantedCall;
use super::object_end::ObjectEnd;
use crate::bounds::Bounds;
use crate::fault::Fault;
use crate::provider::Delta;
use crate::response::{Call, Stop};
use crate::stream::OnDelta;
use crate::unique_ids::UniqueIds;
use crate::wire_call::is_json;

/// The calls of a response so far, in the order in which they started.
#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<OpenCall>,
    /// A piece arrived in `tool_calls`; then `function_call` only repeats it.
    has_modern: bool,
}

#[derive(Debug, Default)]
struct OpenCall {
    index: Option<i64>,
    /// Not empty.
    id: Option<String>,
    name: String,
    arguments: String,
    arguments_end: ObjectEnd,
    extra_content: Option<Box<RawValue>>,
}

/// A piece with its values parsed. Empty values are `None` or `""`.
#[derive(Default)]
struct Piece<'a> {
    index: Option<i64>,
    id: Option<Cow<'a, str>>,
    name: Option<Cow<'a, str>>,
    arguments: Cow<'a, str>,
    extra_content: Option<&'a RawValue>,
}

impl Calls {
    /// Adds a piece of `tool_calls`.
    pub(super) fn add(
        &mut self,
        part: &CallPart<'_>,
        bounds: &mut Bounds,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        self.has_modern = true;
        self.take(&Piece::read(part), bounds, on_delta)
    }

    /// Adds a piece of the older `function_call`, unless it is only there for older clients.
    pub(super) fn add_legacy(
        &mut self,
        function: &Function<'_>,
        bounds: &mut Bounds,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        if self.has_modern {
            return Ok(());
        }
        self.take(&Piece::of_function(function), bounds, on_delta)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Whether the arguments of all calls can be parsed, so that no call is truncated.
    pub(super) fn are_readable(&self) -> bool {
        self.calls.iter().all(|call| is_json(&call.arguments))
    }

    /// The calls of a response that ended with `stop`, with unique ids, and
    /// what is sent back with them.
    pub(super) fn finish(self, stop: Stop) -> (Vec<Call>, BTreeMap<String, WantedCall>) {
        let mut ids = UniqueIds::default();
        let mut kept = BTreeMap::new();
        let calls = self.calls.into_iter().map(|call| {
            let id = ids.next(call.id.as_deref());
            if call.extra_content.is_some() {
                let extra_content = call.extra_content;
                kept.insert(id.to_string(), WantedCall { extra_content });
            }
            let is_bare = call.arguments.trim_ascii().is_empty();
            let arguments = if is_bare { stop.no_arguments() } else { call.arguments };
            Call { id, name: call.name, arguments }
        });
        (calls.collect(), kept)
    }

    fn take(
        &mut self,
        piece: &Piece<'_>,
        bounds: &mut Bounds,
        on_delta: &mut OnDelta<'_>,
    ) -> Result<(), Fault> {
        bounds.add_bytes(piece.bytes())?;
        let position = match self.place_of(piece) {
            Some(position) => position,
            None => {
                bounds.add_part()?;
                self.calls.push(OpenCall { index: piece.index, ..OpenCall::default() });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        call.grow(piece);
        on_delta(Delta::Call { number: position, name: &call.name, arguments: &piece.arguments });
        Ok(())
    }

    /// The position of the call that a piece continues; `None` if it starts a new one.
    fn place_of(&self, piece: &Piece<'_>) -> Option<usize> {
        let position = match (piece.index, &piece.id) {
            (Some(index), _) => self.calls.iter().rposition(|call| call.index == Some(index))?,
            (None, Some(id)) => self.place_of_id(id)?,
            (None, None) => self.calls.len().checked_sub(1)?,
        };
        (!self.calls[position].is_behind_me(piece)).then_some(position)
    }

    fn place_of_id(&self, id: &str) -> Option<usize> {
        let known = self.calls.iter().rposition(|call| call.id.as_deref() == Some(id));
        // The id may come late, when the name is already known.
        let last = || self.calls.len().checked_sub(1).filter(|last| self.calls[*last].id.is_none());
        known.or_else(last)
    }
}

impl OpenCall {
    /// Whether a piece that looks like one of this call starts another one.
    fn is_behind_me(&self, piece: &Piece<'_>) -> bool {
        if self.repeats(piece) {
            return false;
        }
        let is_whole = self.arguments_end.is_reached();
        let begins_object = piece.arguments.trim_ascii_start().starts_with('{');
        let has_other_id = matches!((&self.id, &piece.id), (Some(id), Some(other)) if id != other);
        let is_named = piece.name.is_some();
        let has_other_name = piece.name.as_ref().is_some_and(|name| *name != self.name);
        // Ollama and Google number all calls 0. But there are also servers whose ids change from
        // piece to piece: then only the first piece has a name.
        (has_other_id && is_named)
            || (is_whole && begins_object && (is_named || piece.id.is_some()))
            || (has_other_name && !self.name.is_empty() && !self.may_be_more_of_name(piece))
    }

    /// Some servers send the whole call again when it is complete.
    fn repeats(&self, piece: &Piece<'_>) -> bool {
        let same_place = piece.index.is_some() && piece.id.is_some();
        same_place
            && piece.id.as_deref() == self.id.as_deref()
            && self.arguments_end.is_reached()
            && piece.arguments == self.arguments
    }

    /// A name may come in pieces too, like all strings of the format, but then the index says so.
    fn may_be_more_of_name(&self, piece: &Piece<'_>) -> bool {
        piece.index.is_some() && self.arguments.is_empty()
    }

    fn grow(&mut self, piece: &Piece<'_>) {
        if let (None, Some(id)) = (&self.id, &piece.id) {
            self.id = Some(id.to_string());
        }
        if let Some(name) = &piece.name
            && *name != self.name
        {
            self.name.push_str(name);
        }
        if let Some(extra_content) = piece.extra_content {
            self.extra_content = Some(extra_content.to_owned());
        }
        if !self.repeats(piece) {
            self.add_arguments(&piece.arguments);
        }
    }

    fn add_arguments(&mut self, arguments: &str) {
        // Some gateways start with an empty object as a placeholder.
        if self.arguments == "{}" && arguments.trim_ascii_start().starts_with('{') {
            self.arguments.clear();
            self.arguments_end = ObjectEnd::default();
        }
        self.arguments.push_str(arguments);
        self.arguments_end.feed(arguments);
    }
}

impl<'a> Piece<'a> {
    fn read(part: &CallPart<'a>) -> Piece<'a> {
        let function = part.function.as_ref().map(Piece::of_function);
        Piece {
            index: part.index.and_then(|index| index.get().parse().ok()),
            id: part.id.and_then(text_of).filter(|id| !id.is_empty()),
            extra_content: part.extra_content,
            ..function.unwrap_or_default()
        }
    }

    fn of_function(function: &Function<'a>) -> Piece<'a> {
        Piece {
            name: function.name.and_then(text_of).filter(|name| !name.is_empty()),
            arguments: function.arguments.map(arguments_of).unwrap_or_default(),
            ..Piece::default()
        }
    }

    fn bytes(&self) -> usize {
        let id = self.id.as_deref().map_or(0, str::len);
        let name = self.name.as_deref().map_or(0, str::len);
        let extra_content = self.extra_content.map_or(0, |json| json.get().len());
        id + name + extra_content + self.arguments.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::chat::ChatCompletions;
    use crate::testing::received;

    /// Each list is the `tool_calls` of a chunk. The calls are expected as id, name and arguments.
    #[track_caller]
    fn check(chunks: &[Value], expected: &[(&str, &str, &str)]) {
        let chunk = |calls: &Value| {
            json!({"choices": [{"delta": {"tool_calls": calls}, "finish_reason": null}]})
                .to_string()
        };
        let mut events: Vec<String> = chunks.iter().map(chunk).collect();
        events.push("[DONE]".to_owned());
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let response = received(&ChatCompletions, &events).0.unwrap();
        let call = |call: &'_ crate::Call| {
            (call.id.to_string(), call.name.clone(), call.arguments.clone())
        };
        let calls: Vec<_> = response.calls.iter().map(call).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(id, name, arguments)| {
                ((*id).to_owned(), (*name).to_owned(), (*arguments).to_owned())
            })
            .collect();
        assert_eq!(calls, expected);
    }

    fn whole(id: &str, name: &str, arguments: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
    }

    fn at(index: i64, mut call: Value) -> Value {
        call["index"] = json!(index);
        call
    }

    fn piece(arguments: &str) -> Value {
        json!({"function": {"arguments": arguments}})
    }

    #[test]
    fn by_the_book() {
        check(
            &[
                json!([at(0, whole("a", "f", ""))]),
                json!([at(0, piece("{\"x\":"))]),
                json!([at(0, piece("1}"))]),
                json!([at(1, whole("b", "g", "{"))]),
                json!([at(1, piece("}")), at(0, piece(" "))]),
            ],
            &[("a", "f", "{\"x\":1} "), ("b", "g", "{}")],
        );
    }

    #[test]
    fn all_calls_whole_in_one_chunk() {
        let calls = [whole("a", "f", "{}"), whole("b", "f", "{}"), whole("c", "g", "{}")];
        let expected = [("a", "f", "{}"), ("b", "f", "{}"), ("c", "g", "{}")];
        check(&[json!(calls)], &expected);
        // Ollama and Google number them all 0.
        check(&[json!(calls.clone().map(|call| at(0, call)))], &expected);
        check(&calls.clone().map(|call| json!([at(0, call)])), &expected);
        check(&calls.map(|call| json!([call])), &expected);
    }

    #[test]
    fn an_index_may_start_at_any_number() {
        check(
            &[
                json!([at(3, whole("a", "f", "{"))]),
                json!([at(7, whole("b", "g", "{}"))]),
                json!([at(3, piece("}"))]),
            ],
            &[("a", "f", "{}"), ("b", "g", "{}")],
        );
    }

    #[test]
    fn without_an_index_a_new_id_starts_a_call() {
        check(
            &[
                json!([whole("a", "f", "")]),
                json!([piece("{")]),
                json!([piece("}")]),
                json!([whole("b", "f", "{")]),
                json!([piece("}")]),
            ],
            &[("a", "f", "{}"), ("b", "f", "{}")],
        );
        // The id tells which call a piece belongs to.
        check(
            &[
                json!([whole("a", "f", "{"), whole("b", "g", "{")]),
                json!([{"id": "a", "function": {"arguments": "}"}}]),
                json!([{"id": "b", "function": {"arguments": " }"}}]),
            ],
            &[("a", "f", "{}"), ("b", "g", "{ }")],
        );
    }

    #[test]
    fn id_and_name_in_every_piece() {
        let pieces = ["{", "\"x\": \"}", "{\"", "}"].map(|text| whole("a", "f", text));
        let expected = [("a", "f", "{\"x\": \"}{\"}")];
        check(&pieces.clone().map(|piece| json!([at(0, piece)])), &expected);
        check(&pieces.map(|piece| json!([piece])), &expected);
    }

    #[test]
    fn an_id_that_changes_from_piece_to_piece() {
        let pieces = [
            json!([at(0, whole("a", "f", ""))]),
            json!([{"index": 0, "id": "b", "function": {"arguments": "{}"}}]),
            json!([{"index": 0, "id": "c", "function": {"arguments": ""}}]),
        ];
        check(&pieces, &[("a", "f", "{}")]);
    }

    #[test]
    fn missing_and_repeated_ids_become_unique() {
        let same = [whole("a", "f", "{\"x\":1}"), whole("a", "f", "{\"x\":2}")];
        let expected = [("a", "f", "{\"x\":1}"), ("call_2", "f", "{\"x\":2}")];
        check(&[json!(same)], &expected);
        check(&same.clone().map(|call| json!([call])), &expected);
        check(&[json!([at(0, same[0].clone()), at(1, same[1].clone())])], &expected);
        check(&[json!([at(0, same[0].clone()), at(0, same[1].clone())])], &expected);
        let twice = [whole("a", "f", "{}"), whole("a", "f", "{}")];
        check(&[json!(twice)], &[("a", "f", "{}"), ("call_2", "f", "{}")]);

        let nameless = [whole("", "f", "{}"), whole("", "g", "{}"), whole("", "g", "{}")];
        let expected = [("call_1", "f", "{}"), ("call_2", "g", "{}"), ("call_3", "g", "{}")];
        check(&[json!(nameless)], &expected);
        check(&nameless.map(|call| json!([at(0, call)])), &expected);
        check(
            &[json!([{"id": null, "function": {"name": "f", "arguments": "{}"}}])],
            &expected[..1],
        );
        check(
            &[json!([{"id": 7, "function": {"name": "f", "arguments": "{}"}}])],
            &[("7", "f", "{}")],
        );
    }

    #[test]
    fn an_id_that_comes_late() {
        check(
            &[json!([{"function": {"name": "f"}}]), json!([{"id": "a"}]), json!([piece("{}")])],
            &[("a", "f", "{}")],
        );
    }

    #[test]
    fn arguments_may_be_an_object_or_nothing() {
        let call = |arguments: Value| json!([{"id": "a", "function": {"name": "f", "arguments": arguments}}]);
        check(&[call(json!({"x": [1]}))], &[("a", "f", "{\"x\":[1]}")]);
        check(&[call(Value::Null)], &[("a", "f", "{}")]);
        check(&[call(json!(""))], &[("a", "f", "{}")]);
        check(&[call(json!("not JSON"))], &[("a", "f", "not JSON")]);
        check(&[json!([{"id": "a", "function": {"name": "f"}}])], &[("a", "f", "{}")]);
        check(&[json!([{"id": "a"}])], &[("a", "", "{}")]);
        check(&[json!([{}])], &[("call_1", "", "{}")]);
    }

    #[test]
    fn a_call_that_is_sent_again_is_one_call() {
        let call = at(0, whole("a", "f", "{\"x\":1}"));
        check(&[json!([call]), json!([call])], &[("a", "f", "{\"x\":1}")]);
    }

    #[test]
    fn an_empty_placeholder_object_is_replaced() {
        check(
            &[
                json!([at(0, whole("a", "f", "{}"))]),
                json!([at(0, piece("{\"x\":"))]),
                json!([at(0, piece("1}"))]),
            ],
            &[("a", "f", "{\"x\":1}")],
        );
    }

    #[test]
    fn a_name_in_pieces() {
        check(
            &[
                json!([at(0, whole("a", "file_", ""))]),
                json!([{"index": 0, "function": {"name": "read"}}]),
                json!([at(0, piece("{}"))]),
            ],
            &[("a", "file_read", "{}")],
        );
    }

    #[test]
    fn the_older_form_is_used_only_without_the_newer_one() {
        let part = |part: Value| json!({"choices": [{"delta": part}]}).to_string();
        let old = |arguments: &str| json!({"name": "f", "arguments": arguments});
        let events = [
            part(json!({"function_call": old("{")})),
            part(json!({"function_call": {"arguments": "}"}})),
        ];
        let both = [
            part(json!({"function_call": old("{"), "tool_calls": [at(0, whole("a", "f", "{"))]})),
            part(json!({"function_call": old("}"), "tool_calls": [at(0, whole("a", "f", "}"))]})),
            part(json!({"function_call": null, "tool_calls": null})),
        ];
        for (events, id) in [(&events[..], "call_1"), (&both[..], "a")] {
            let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
            events.push("[DONE]");
            let calls = received(&ChatCompletions, &events).0.unwrap().calls;
            assert_eq!(calls.len(), 1);
            assert_eq!((calls[0].id.as_str(), calls[0].arguments.as_str()), (id, "{}"));
        }
    }
}
