//! A command that came as a list of words.

/// The words as one command line; `None` if a shell would read it otherwise than a program would be
/// started with these words.
pub(super) fn joined(words: &[&str]) -> Option<String> {
    let program = words.first()?;
    // `["make test"]` and `["A=1", "make"]` may as well be lines of a shell.
    let is_program = !program.is_empty() && program.chars().all(|c| is_plain(c) && c != '=');
    (is_program && !words.iter().any(|word| is_operator(word)))
        .then(|| words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "))
}

/// Whether a word alone is syntax for a shell: `&&`, `|`, `2>&1`. To a program it would be a word.
fn is_operator(word: &str) -> bool {
    word.contains(['|', '&', ';', '<', '>'])
        && word.chars().all(|c| matches!(c, '|' | '&' | ';' | '<' | '>' | '-' | '0'..='9'))
}

fn quoted(word: &str) -> String {
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Whether a shell takes a character as it is, wherever it stands.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c)
}

#[cfg(test)]
mod tests {
    use super::joined;

    #[track_caller]
    fn check(words: &[&str], expected: Option<&str>) {
        assert_eq!(joined(words).as_deref(), expected, "{words:?}");
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_something_else() {
        check(&["ls"], Some("ls"));
        check(&["ls", "-la", "my file"], Some("ls -la 'my file'"));
        check(&["bash", "-lc", "cd x && make"], Some("bash -lc 'cd x && make'"));
        check(&["echo", "it's", "", "$HOME", "*"], Some(r"echo 'it'\''s' '' '$HOME' '*'"));
        check(&["printf", "a\nb", "ä"], Some("printf 'a\nb' 'ä'"));
    }

    #[test]
    fn a_list_that_may_be_lines_of_a_shell_is_refused() {
        check(&[], None);
        check(&[""], None);
        check(&["ls -la"], None);
        check(&["cargo build", "cargo test"], None);
        check(&["A=1", "make"], None);
        check(&["$SHELL"], None);
        check(&["ls", "|", "wc"], None);
        check(&["make", "&&", "make", "test"], None);
        check(&["make", "2>&1"], None);
        check(&["echo", "a", ">", "file"], None);
    }
}
