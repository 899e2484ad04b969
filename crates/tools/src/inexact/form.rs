//! Ways of reading a text in which some differences vanish.

use std::ops::Range;

use memchr::memmem::Finder;

/// What is the same in both texts. A line ends with LF or CRLF in each form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// All but line ends.
    LineEnds,
    /// All but blanks at the ends of lines.
    TrailingBlanks,
    /// All but typographic quotes, dashes and spaces.
    Typography,
    /// All but blanks at the beginnings of lines.
    Indentation,
    /// All but blanks and line ends.
    Words,
    /// All but upper and lower case.
    Case,
}

/// Where a match may begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bounds {
    Anywhere,
    /// It ends with a line.
    LineEnd,
    /// It begins and ends with a line.
    WholeLines,
}

impl Form {
    /// The text without what does not count.
    pub(super) fn normal(self, text: &[u8]) -> Vec<u8> {
        let mut normal = Vec::with_capacity(text.len());
        self.read(text, |byte, _| normal.push(byte));
        normal
    }

    /// Up to `most` places of `old` in `content`, which may overlap.
    pub(super) fn places(
        self,
        bounds: Bounds,
        content: &[u8],
        old: &[u8],
        most: usize,
    ) -> Vec<Range<usize>> {
        let mut needle = self.normal(old);
        if needle.trim_ascii().is_empty() {
            return Vec::new();
        }
        let mut text = self.normal(content);
        // A line begins behind a line end, and ends with one: so does the first, and the last.
        let begins = usize::from(bounds == Bounds::WholeLines);
        let ends = usize::from(bounds != Bounds::Anywhere && !needle.ends_with(b"\n"));
        if begins == 1 {
            needle.insert(0, b'\n');
            text.insert(0, b'\n');
        }
        if ends == 1 {
            needle.push(b'\n');
        }
        if bounds != Bounds::Anywhere {
            text.push(b'\n');
        }
        let finder = Finder::new(&needle);
        let (mut found, mut from) = (Vec::new(), 0);
        while found.len() < most
            && let Some(at) = finder.find(&text[from..])
        {
            // Without the line end in front of both.
            let start = from + at;
            found.push(start..start + needle.len() - begins - ends);
            from = start + 1;
        }
        self.in_source(content, &found)
    }

    /// Where ranges of the normal text are in the text itself. They are in order, all of one length.
    fn in_source(self, text: &[u8], ranges: &[Range<usize>]) -> Vec<Range<usize>> {
        let mut source = vec![text.len()..text.len(); ranges.len()];
        let (mut at, mut begun, mut ended) = (0, 0, 0);
        self.read(text, |_, place| {
            if ranges.get(begun).is_some_and(|range| range.start == at) {
                source[begun].start = place.start;
                begun += 1;
            }
            at += 1;
            if ranges.get(ended).is_some_and(|range| range.end == at) {
                source[ended].end = place.end;
                ended += 1;
            }
        });
        source
    }

    /// Passes on each byte that counts, and the place in the text that it stands for.
    fn read(self, text: &[u8], mut emit: impl FnMut(u8, Range<usize>)) {
        let mut at = 0;
        let mut begins_line = true;
        while at < text.len() {
            let rest = &text[at..];
            let line_end = line_end(rest);
            // Counted where they are skipped: in a long run, counting at each byte takes forever.
            let blanks = match self {
                Form::TrailingBlanks | Form::Words => count_blanks(rest),
                Form::Indentation if begins_line => count_blanks(rest),
                Form::LineEnds | Form::Typography | Form::Indentation | Form::Case => 0,
            };
            let (byte, length) = match self {
                Form::Words if line_end > 0 || blanks > 0 => (None, line_end.max(blanks)),
                _ if line_end > 0 => (Some(b'\n'), line_end),
                Form::Indentation if blanks > 0 => (None, blanks),
                Form::TrailingBlanks if blanks > 0 => {
                    let behind = &rest[blanks..];
                    let is_trailing = behind.is_empty() || self::line_end(behind) > 0;
                    if !is_trailing {
                        (at..at + blanks).for_each(|at| emit(text[at], at..at + 1));
                    }
                    (None, blanks)
                }
                Form::Typography => {
                    let (byte, length) = plain(rest);
                    (Some(byte), length)
                }
                Form::Case => (Some(rest[0].to_ascii_lowercase()), 1),
                Form::LineEnds | Form::TrailingBlanks | Form::Indentation | Form::Words => {
                    (Some(rest[0]), 1)
                }
            };
            if let Some(byte) = byte {
                emit(byte, at..at + length);
                begins_line = byte == b'\n';
            }
            at += length;
        }
    }
}

fn count_blanks(text: &[u8]) -> usize {
    text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count()
}

/// The length of the line end that a text begins with.
fn line_end(text: &[u8]) -> usize {
    match text {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] => 1,
        _ => 0,
    }
}

/// The first character of a text in plain ASCII, if it has a plain form, and its length.
fn plain(text: &[u8]) -> (u8, usize) {
    match *text {
        // U+00A0
        [0xc2, 0xa0, ..] => (b' ', 2),
        // U+2010 to U+2015, U+2212
        [0xe2, 0x80, 0x90..=0x95, ..] | [0xe2, 0x88, 0x92, ..] => (b'-', 3),
        // U+2018 to U+201B
        [0xe2, 0x80, 0x98..=0x9b, ..] => (b'\'', 3),
        // U+201C to U+201F
        [0xe2, 0x80, 0x9c..=0x9f, ..] => (b'"', 3),
        // U+2007, U+202F
        [0xe2, 0x80, 0x87 | 0xaf, ..] => (b' ', 3),
        _ => (text[0], 1),
    }
}
