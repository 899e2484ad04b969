//! Syntax highlighting.

use std::sync::{Mutex, OnceLock, PoisonError};

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Span;
use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxReference, SyntaxSet};

use crate::style::PLAIN;

/// Longer code is not highlighted: a frame must not wait for it.
const LIMIT: usize = 48 * 1024;
/// Longer lines are generated: grammars are slow with them, and they are not worth reading.
const LINE_LIMIT: usize = 1_000;

/// Highlights safe code, line by line. Code in an unknown language stays plain.
pub(crate) fn highlight(language: &str, code: &str) -> Vec<Vec<Span<'static>>> {
    let code = code.strip_suffix('\n').unwrap_or(code);
    let is_worth_it = !language.is_empty() && code.len() <= LIMIT;
    let syntax = is_worth_it.then(|| syntaxes().find_syntax_by_token(language)).flatten();
    let Some(syntax) = syntax else { return code.split('\n').map(plain).collect() };
    let mut memo = MEMO.lock().unwrap_or_else(PoisonError::into_inner);
    let known =
        memo.take().filter(|known| known.language == language && code.starts_with(&known.code));
    let mut known = known.unwrap_or_else(|| Memo::new(language, syntax));
    let rest = &code[known.code.len()..];
    let (whole, last) = rest.rsplit_once('\n').map_or(("", rest), |(whole, last)| (whole, last));
    if rest.len() > last.len() {
        known.lines.extend(whole.split('\n').map(|line| known.painter.paint(line)));
        known.code.push_str(&rest[..rest.len() - last.len()]);
    }
    let mut lines = known.lines.clone();
    // It may grow, so neither it nor its parser state is kept.
    lines.push(known.painter.clone().paint(last));
    *memo = Some(known);
    lines
}

/// The code that was highlighted last. While an answer streams, the same code is highlighted again
/// with a little more at its end; starting over each time took several frames.
static MEMO: Mutex<Option<Memo>> = Mutex::new(None);

struct Memo {
    language: String,
    /// Whole lines only.
    code: String,
    lines: Vec<Vec<Span<'static>>>,
    /// Its state after `code`.
    painter: Painter,
}

impl Memo {
    fn new(language: &str, syntax: &SyntaxReference) -> Memo {
        let painter = Painter { state: ParseState::new(syntax), stack: ScopeStack::new() };
        Memo { language: language.to_owned(), code: String::new(), lines: Vec::new(), painter }
    }
}

fn plain(line: &str) -> Vec<Span<'static>> {
    vec![Span::raw(line.to_owned())]
}

/// Loads the grammars on a separate thread, which takes two frames. Earlier uses wait for it.
pub(crate) fn load_ahead() {
    // If no thread can be started, they are loaded on first use.
    let _ = std::thread::Builder::new().name("grammars".to_owned()).spawn(syntaxes);
}

fn syntaxes() -> &'static SyntaxSet {
    static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

#[derive(Clone)]
struct Painter {
    state: ParseState,
    stack: ScopeStack,
}

impl Painter {
    fn paint(&mut self, line: &str) -> Vec<Span<'static>> {
        if line.len() > LINE_LIMIT {
            return plain(line);
        }
        // The grammars expect the line break; it is not shown.
        let with_end = format!("{line}\n");
        let Ok(changes) = self.state.parse_line(&with_end, syntaxes()) else { return plain(line) };
        let mut spans = Vec::new();
        let mut from = 0;
        for (at, change) in changes {
            self.push(&mut spans, line, from, at);
            from = from.max(at);
            if self.stack.apply(&change).is_err() {
                return plain(line);
            }
        }
        self.push(&mut spans, line, from, line.len());
        spans
    }

    fn push(&self, spans: &mut Vec<Span<'static>>, line: &str, from: usize, to: usize) {
        let text = line.get(from..to.min(line.len())).unwrap_or_default();
        if !text.is_empty() {
            spans.push(Span::styled(text.to_owned(), style_of(&self.stack)));
        }
    }
}

/// The style of the innermost scope that has one.
fn style_of(stack: &ScopeStack) -> Style {
    let style = |scope: &Scope| {
        styles().iter().find(|(prefix, _)| prefix.is_prefix_of(*scope)).map(|(_, style)| *style)
    };
    stack.scopes.iter().rev().find_map(style).unwrap_or(PLAIN)
}

fn styles() -> &'static [(Scope, Style)] {
    static STYLES: OnceLock<Vec<(Scope, Style)>> = OnceLock::new();
    STYLES.get_or_init(|| {
        let colour = |colour| Style::new().fg(colour);
        [
            ("comment", Style::new().add_modifier(Modifier::DIM.union(Modifier::ITALIC))),
            ("string", colour(Color::Green)),
            ("constant", colour(Color::Cyan)),
            ("keyword.operator", PLAIN),
            ("keyword", colour(Color::Magenta)),
            ("storage", colour(Color::Magenta)),
            ("entity.name", colour(Color::Blue)),
            ("support", colour(Color::Blue)),
            ("markup.inserted", colour(Color::Green)),
            ("markup.deleted", colour(Color::Red)),
        ]
        .into_iter()
        .filter_map(|(name, style)| Scope::new(name).ok().map(|scope| (scope, style)))
        .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highlighting_keeps_every_character() {
        let code = "// why\nfn main() { let x = \"é\"; }\n";
        let lines = highlight("rust", code);
        let text: Vec<String> =
            lines.iter().map(|line| line.iter().map(|span| &*span.content).collect()).collect();
        assert_eq!(text.join("\n") + "\n", code);
        let is_string =
            |span: &Span<'_>| span.content.contains('é') && span.style.fg == Some(Color::Green);
        assert!(lines[1].iter().any(is_string), "{lines:?}");
    }

    #[test]
    fn growing_code_is_highlighted_like_complete_code() {
        let code = "/* a\nb */\nfn main() {\n    \"x\ny\";\n}";
        let whole = highlight("rust", code);
        highlight("python", "x");
        for end in (0..=code.len()).filter(|end| code.is_char_boundary(*end)) {
            highlight("rust", &code[..end]);
        }
        assert_eq!(highlight("rust", code), whole);
    }

    #[test]
    fn an_unknown_language_is_plain() {
        assert_eq!(highlight("nonesuch", "a\n\nb"), ["a", "", "b"].map(plain));
        assert_eq!(highlight("", ""), [plain("")]);
    }

    #[test]
    fn code_that_is_too_long_is_plain() {
        let code = "let x = 1;\n".repeat(LIMIT / 10);
        assert!(highlight("rust", &code).iter().all(|line| line.len() == 1));
    }
}
