//! Parses git's settings the way git does: sections, quoting, continuation lines and comments. What
//! git would refuse, and slightly more, is refused.

use std::collections::BTreeMap;

/// The values of each key, in order; `None` for a key without `=`. A key is
/// `section.subsection.name` as git spells it: section and name in lower case, the subsection
/// unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings(pub(super) BTreeMap<Vec<u8>, Vec<Option<Vec<u8>>>>);

/// The number of a line that cannot be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadLine(pub(super) usize);

impl Settings {
    pub(super) fn parse(text: &[u8]) -> Result<Settings, BadLine> {
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let mut parser = Parser { text, at: 0 };
        let mut settings = Settings::default();
        match parser.read_into(&mut settings) {
            Some(()) => Ok(settings),
            None => Err(BadLine(parser.line())),
        }
    }

    pub(super) fn values(&self, key: &[u8]) -> &[Option<Vec<u8>>] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Section, subsection and name of a key.
pub(super) fn split(key: &[u8]) -> (&[u8], Option<&[u8]>, &[u8]) {
    let first = key.iter().position(|byte| *byte == b'.').unwrap_or(key.len());
    let last = key.iter().rposition(|byte| *byte == b'.').unwrap_or(0);
    let name = key.get(last + 1..).unwrap_or_default();
    (&key[..first], key.get(first + 1..last), name)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

/// All methods return `None` for malformed input.
impl Parser<'_> {
    fn read_into(&mut self, settings: &mut Settings) -> Option<()> {
        let mut section: Option<Vec<u8>> = None;
        while let Some(byte) = self.next()? {
            match byte {
                b'#' | b';' => self.skip_line()?,
                b'[' => section = Some(self.section()?),
                byte if is_space(byte) => {}
                byte if byte.is_ascii_alphabetic() => {
                    let mut key = section.clone()?;
                    key.push(b'.');
                    key.push(byte.to_ascii_lowercase());
                    let value = self.variable(&mut key)?;
                    settings.0.entry(key).or_default().push(value);
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// The next byte; `Some(None)` at the end. A carriage return before a line feed is part of it.
    fn next(&mut self) -> Option<Option<u8>> {
        let rest = &self.text[self.at..];
        let (byte, length) = match rest {
            [] => return Some(None),
            [b'\r', b'\n', ..] => (b'\n', 2),
            [byte, ..] => (*byte, 1),
        };
        self.at += length;
        // For git, a NUL byte ends the file.
        let is_text = byte >= b' ' && byte != 0x7f || is_space(byte);
        is_text.then_some(Some(byte))
    }

    fn line(&self) -> usize {
        let read = &self.text[..self.at.saturating_sub(1)];
        1 + read.iter().filter(|byte| **byte == b'\n').count()
    }

    fn skip_line(&mut self) -> Option<()> {
        while self.next()?.is_some_and(|byte| byte != b'\n') {}
        Some(())
    }

    /// After `[`.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next()?? {
                b']' => break,
                byte if is_space(byte) => {
                    self.subsection(byte, &mut name)?;
                    break;
                }
                byte if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                _ => return None,
            }
        }
        (!name.is_empty() && !name.starts_with(b".")).then_some(name)
    }

    /// After the name of a section and a space.
    fn subsection(&mut self, space: u8, name: &mut Vec<u8>) -> Option<()> {
        let mut byte = space;
        while is_space(byte) {
            if byte == b'\n' {
                return None;
            }
            byte = self.next()??;
        }
        if byte != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            match self.next()?? {
                b'\n' => return None,
                b'"' => break,
                b'\\' => match self.next()?? {
                    b'\n' => return None,
                    byte => name.push(byte),
                },
                byte => name.push(byte),
            }
        }
        (self.next()?? == b']').then_some(())
    }

    /// After the first letter of a key.
    fn variable(&mut self, key: &mut Vec<u8>) -> Option<Option<Vec<u8>>> {
        let mut byte = self.next()?;
        while let Some(letter) = byte.filter(|byte| is_key(*byte)) {
            key.push(letter.to_ascii_lowercase());
            byte = self.next()?;
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next()?;
        }
        match byte {
            None | Some(b'\n') => Some(None),
            Some(b'=') => Some(Some(self.value()?)),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // The length without trailing spaces.
        let mut trimmed = 0;
        let mut is_quoted = false;
        loop {
            match self.next()? {
                None | Some(b'\n') if is_quoted => return None,
                None | Some(b'\n') => break,
                Some(b'#' | b';') if !is_quoted => {
                    self.skip_line()?;
                    break;
                }
                Some(byte) if is_space(byte) && !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(b'"') => is_quoted = !is_quoted,
                Some(b'\\') => match self.next()?? {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(b'\x08'),
                    b'n' => value.push(b'\n'),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return None,
                },
                Some(byte) => value.push(byte),
            }
            trimmed = value.len();
        }
        value.truncate(trimmed);
        Some(value)
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the real git is asked what it reads")]
mod tests {
    use std::process::Command;

    use super::{BadLine, Settings, split};

    /// The settings that git reads from a file, as printed by `git config --list -z`.
    fn git_reads(text: &[u8]) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(&file, text).unwrap();
        let mut git = Command::new("git");
        git.args(["config", "--list", "-z", "-f"]).arg(file);
        let output = git.env("HOME", folder.path()).output().unwrap();
        output.status.success().then_some(output.stdout)
    }

    /// The same from our parser, except that values of one key are consecutive.
    fn lines(settings: Settings) -> Vec<Vec<u8>> {
        let values = settings.0.into_iter().flat_map(|(key, values)| {
            let line = move |value: Option<Vec<u8>>| match value {
                Some(value) => [&key[..], b"\n", &value].concat(),
                None => key.clone(),
            };
            values.into_iter().map(line)
        });
        let mut lines: Vec<_> = values.collect();
        lines.sort();
        lines
    }

    #[track_caller]
    fn check_like_git(text: &[u8]) {
        let Ok(settings) = Settings::parse(text) else { return };
        let shown = String::from_utf8_lossy(text);
        let read = git_reads(text).unwrap_or_else(|| panic!("git refuses: {shown}"));
        let mut expected: Vec<Vec<u8>> =
            read.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        expected.pop();
        expected.sort();
        assert_eq!(lines(settings), expected, "{shown}");
    }

    #[test]
    fn whatever_is_read_is_read_as_git_reads_it() {
        const PARTS: [&str; 24] = [
            "\n",
            " ",
            "\t",
            "[core]",
            "[a \"b.C\"]",
            "[x.Y]",
            "[q \"\\\"\\n\"]",
            "key",
            "Bare",
            "=",
            "\"",
            "\\\n",
            "\\\\",
            "\\n",
            "\\t",
            ";",
            "#",
            "value",
            "\r\n",
            "\r",
            "a=b",
            "k = v",
            "]",
            "[",
        ];
        // Knuth's generator, so that every run tries the same input.
        let mut state = 42_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let mut read = 0;
        for _ in 0..3_000 {
            let mut text = String::from("[s]\n");
            for _ in 0..next() % 8 {
                text.push_str(PARTS[next() % PARTS.len()]);
            }
            if Settings::parse(text.as_bytes()).is_ok() {
                read += 1;
                check_like_git(text.as_bytes());
            }
        }
        assert!(read > 300, "only {read} texts could be read");
    }

    #[test]
    fn common_settings_are_read() {
        for text in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tbare\n",
            "[remote \"origin\"]\n\turl = https://a/b\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            "\u{feff}[a]b=c",
            "[a]\n\tb = x  y  ; c\n c = \"x ; y\" z\\\n w\nd=\"a\"\"b\"\n e=  \" q \"  \n",
            "[A.B \"x\"]f\n[s \"q\\\"w\\x\"] k=1\n",
            "[a]\nb = \"x\"  \\\n",
            "[a] b = c [d]",
        ] {
            assert!(Settings::parse(text.as_bytes()).is_ok(), "{text}");
            check_like_git(text.as_bytes());
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_by_its_line() {
        for (text, line) in [
            (&b"[a]\nb = \"x"[..], 2),
            (b"b = c", 1),
            (b"[a]\n\n-b = c", 3),
            (b"[a\n]", 1),
            (b"[a \"x\" ]", 1),
            (b"[a]\nb = \\x", 2),
            (b"[a]\nb = c\0d", 2),
            (b"[a]\nb c", 2),
        ] {
            assert_eq!(Settings::parse(text), Err(BadLine(line)), "{text:?}");
        }
    }

    #[test]
    fn a_key_has_two_or_three_parts() {
        assert_eq!(split(b"a.b"), (&b"a"[..], None, &b"b"[..]));
        assert_eq!(split(b"a.b.c.d"), (&b"a"[..], Some(&b"b.c"[..]), &b"d"[..]));
        assert_eq!(split(b"a..d"), (&b"a"[..], Some(&b""[..]), &b"d"[..]));
    }
}
