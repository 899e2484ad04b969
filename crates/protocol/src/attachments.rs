//! What goes with a message of the user: files that it names, and the output of the user's own
//! commands. It is part of the message's text, behind what was typed.

use std::fmt::Write as _;

/// The start of every attachment.
const START: &str = "<attachment ";
const END: &str = "</attachment>";

/// Something that goes with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attachment {
    /// A text file with its content.
    File {
        /// Its path as typed.
        path: String,
        /// Its content.
        text: String,
    },
    /// A file that is too large, or no text.
    Reference {
        /// Its path as typed.
        path: String,
        /// Its size.
        bytes: u64,
        /// What the model can do about it.
        advice: &'static str,
    },
    /// A folder with the names in it.
    Folder {
        /// Its path as typed.
        path: String,
        /// One name per line.
        names: String,
    },
    /// A command that the user ran.
    Command {
        /// The command.
        line: String,
        /// Its exit code.
        exit_code: i64,
        /// What it printed.
        output: String,
    },
}

/// The text of a message with its attachments.
pub fn attach(text: &str, attachments: &[Attachment]) -> String {
    let mut whole = text.to_owned();
    for (number, attachment) in attachments.iter().enumerate() {
        let (head, body) = match attachment {
            Attachment::File { path, text } => (format!("file={path:?}"), text.as_str()),
            Attachment::Reference { path, bytes, advice } => {
                (format!("file={path:?} bytes=\"{bytes}\""), *advice)
            }
            Attachment::Folder { path, names } => (format!("folder={path:?}"), names.as_str()),
            Attachment::Command { line, exit_code, output } => {
                (format!("command={line:?} exit_code=\"{exit_code}\""), output.as_str())
            }
        };
        let before = if number == 0 { "\n\n" } else { "\n" };
        let body = body.trim_end_matches('\n');
        // Writing to a string cannot fail.
        let _ = write!(whole, "{before}{START}{head}>\n{body}\n{END}");
    }
    whole
}

/// The part of a message that the user typed.
pub fn typed_text(content: &str) -> &str {
    let is_attached = content.ends_with(END);
    let start = content.find(&format!("\n\n{START}")).filter(|_| is_attached);
    start.map_or(content, |start| &content[..start])
}

/// A message as front ends show it: what the user typed, and a line per attachment.
pub fn shown_message(content: &str) -> String {
    let typed = typed_text(content);
    let heads = content[typed.len()..].lines().filter_map(|line| line.strip_prefix(START));
    let lines =
        heads.filter_map(|head| head.strip_suffix('>')).map(|head| match head.split_once('=') {
            Some(("command", rest)) => format!("\n[Output of {}]", unquoted(rest)),
            Some((_, rest)) => format!("\n[Attached {}]", unquoted(rest)),
            None => String::new(),
        });
    std::iter::once(typed.to_owned()).chain(lines).collect()
}

/// The first value of a head, which is quoted.
fn unquoted(rest: &str) -> &str {
    let value = rest.strip_prefix('"').unwrap_or(rest);
    value.split_once("\" ").map_or(value.trim_end_matches('"'), |(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attachments_follow_the_text_and_are_shown_as_a_line_each() {
        let file = Attachment::File { path: "src/a.rs".to_owned(), text: "fn a() {}\n".to_owned() };
        let (line, output) = ("ls | wc".to_owned(), "3".to_owned());
        let command = Attachment::Command { line, exit_code: 0, output };
        let (path, advice) = ("big.log".to_owned(), "Read what you need.");
        let large = Attachment::Reference { path, bytes: 48_211, advice };
        let whole = attach("look at @src/a.rs", &[file, command, large]);
        let expected = "look at @src/a.rs

<attachment file=\"src/a.rs\">
fn a() {}
</attachment>
<attachment command=\"ls | wc\" exit_code=\"0\">
3
</attachment>
<attachment file=\"big.log\" bytes=\"48211\">
Read what you need.
</attachment>";
        assert_eq!(whole, expected);
        assert_eq!(typed_text(&whole), "look at @src/a.rs");
        let shown =
            "look at @src/a.rs\n[Attached src/a.rs]\n[Output of ls | wc]\n[Attached big.log]";
        assert_eq!(shown_message(&whole), shown);
    }

    #[test]
    fn a_message_without_attachments_stays_as_it_is() {
        for text in ["hello", "", "a\n\n<attachment is a word\nthat I use"] {
            assert_eq!((attach(text, &[]).as_str(), typed_text(text)), (text, text));
            assert_eq!(shown_message(text), text);
        }
    }
}
