//! Finds the end of a JSON object that arrives in pieces.

/// Follows a text byte by byte, so that checking whether it is a complete object costs nothing.
#[derive(Debug, Default)]
pub(super) struct ObjectEnd {
    place: Place,
    /// How many brackets of both kinds are open.
    depth: usize,
    escaped: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Before,
    Inside,
    InString,
    /// After the last bracket, with only white space since.
    Behind,
    /// Not an object, or something follows it.
    Lost,
}

impl ObjectEnd {
    /// Whether the text so far is one object, from its first bracket to its last.
    pub(super) fn is_reached(&self) -> bool {
        self.place == Place::Behind
    }

    pub(super) fn feed(&mut self, text: &str) {
        text.bytes().for_each(|byte| self.take(byte));
    }

    fn take(&mut self, byte: u8) {
        self.place = match (self.place, byte) {
            (Place::Before | Place::Behind, b' ' | b'\t' | b'\n' | b'\r') => self.place,
            (Place::Before, b'{') => {
                self.depth = 1;
                Place::Inside
            }
            (Place::Before | Place::Behind | Place::Lost, _) => Place::Lost,
            (Place::Inside, b'{' | b'[') => {
                self.depth += 1;
                Place::Inside
            }
            (Place::Inside, b'}' | b']') => {
                self.depth -= 1;
                if self.depth == 0 { Place::Behind } else { Place::Inside }
            }
            (Place::Inside, b'"') => Place::InString,
            (Place::Inside, _) => Place::Inside,
            (Place::InString, b'"') if !self.escaped => Place::Inside,
            (Place::InString, _) => {
                self.escaped = byte == b'\\' && !self.escaped;
                Place::InString
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, reached: bool) {
        let mut end = ObjectEnd::default();
        end.feed(text);
        assert_eq!(end.is_reached(), reached, "{text}");
    }

    #[test]
    fn an_object_ends_at_its_last_bracket() {
        for whole in ["{}", " {\n} ", r#"{"a":[{},"}"]}"#, r#"{"a":"\"}\\"}"#] {
            check(whole, true);
            (0..whole.trim_end().len()).for_each(|cut| check(&whole[..cut], false));
        }
    }

    #[test]
    fn other_json_never_ends() {
        for text in ["", " ", "[]", "null", "x{}", "{}{}", "{}x", "\"{}\""] {
            check(text, false);
        }
    }
}
