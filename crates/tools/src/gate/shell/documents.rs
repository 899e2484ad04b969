//! Here-documents: what they mean for a command, and where they end.

use super::Reader;
use crate::gate::script::Input;

/// A text that starts on the next line and ends at a delimiter.
#[derive(Debug)]
pub(super) struct Document {
    number: usize,
    end: String,
    /// Whether it is not expanded.
    is_literal: bool,
    /// Whether leading tabs are stripped.
    is_indented: bool,
}

impl Reader<'_> {
    pub(super) fn begin_document(&mut self, is_input: bool) {
        self.doubt();
        let number = self.texts.len();
        self.texts.push(None);
        self.part.input = if is_input { Input::Document(number) } else { Input::Unwritten };
        self.has_part = true;
        let is_indented = self.next_if(|c| c == '-').is_some();
        while self.next_if(|c| [' ', '\t'].contains(&c)).is_some() {}
        let mut end = String::new();
        while let Some(c) = self.next_if(|c| !" \t\n;&|<>()".contains(c)) {
            end.push(c);
        }
        let is_literal = end.contains(['\'', '"', '\\']);
        let is_cut = ['\'', '"'].iter().any(|quote| end.matches(*quote).count() % 2 == 1);
        if end.is_empty() || end.contains(['$', '`']) || is_cut {
            self.hidden("it has a here-document");
        }
        end.retain(|c| !"'\"\\".contains(c));
        self.documents.push(Document { number, end, is_literal, is_indented });
    }

    /// The lines are not commands, unless the text is expanded and contains some.
    pub(super) fn read_documents(&mut self) {
        for document in std::mem::take(&mut self.documents) {
            let (mut text, mut is_known) = (String::new(), true);
            loop {
                let line = self.document_line(document.is_literal);
                let has_more = self.rest.next().is_some();
                let line = line.trim_start_matches(if document.is_indented { "\t" } else { "" });
                if line == document.end {
                    break;
                }
                text.extend([line, "\n"]);
                if !document.is_literal {
                    is_known &= !line.contains(['$', '`', '\\']);
                    if ["$(", "${", "$[", "`"].iter().any(|sign| line.contains(sign)) {
                        self.hidden("it has a here-document with a command in it");
                    }
                }
                if !has_more {
                    break;
                }
            }
            self.texts[document.number] = is_known.then(|| text.into());
        }
    }

    /// A document comes after the part that reads it.
    pub(super) fn insert_documents(&mut self) {
        for part in &mut self.script.parts {
            if let Input::Document(number) = part.input {
                let text = self.texts.get(number).cloned().flatten();
                part.input = text.map_or(Input::Unwritten, Input::Written);
            }
        }
    }

    /// A line up to its end. In an expanded document, lines can be continued.
    fn document_line(&mut self, is_literal: bool) -> String {
        let mut line = String::new();
        loop {
            if !is_literal {
                self.skip_continuations();
            }
            match self.rest.next_if(|c| *c != '\n') {
                Some('\\') if !is_literal => {
                    line.push('\\');
                    line.extend(self.rest.next());
                }
                Some(c) => line.push(c),
                None => return line,
            }
        }
    }
}
