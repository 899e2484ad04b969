//! What an agent must not forget, as text for its model. The facts are the store's.

use std::path::Path;

use ikigai_store::Obligations;

/// How much of a mail's text is shown, in characters.
const PREVIEW: usize = 80;

/// The text, at most `limit` bytes; empty if there is nothing.
pub(super) fn render(obligations: &Obligations, directory: &Path, limit: usize) -> String {
    let Obligations { mail: (mail, all_mail), children, commands, files: (files, all_files) } =
        obligations;
    let children = children.iter().map(|child| {
        let name = child.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("{}{name}, {}: {}", child.id, child.state.name(), one_line(&child.task))
    });
    let mail = mail
        .iter()
        .map(|mail| format!("#{} from {}: {}", mail.id.value(), mail.from, one_line(&mail.body)));
    let files =
        files.iter().map(|file| file.strip_prefix(directory).unwrap_or(file).display().to_string());
    let children: Vec<String> = children.collect();
    let all_children = children.len();
    let mut text = Text { text: HEADING.to_owned(), limit };
    text.section("Your children that are alive", children.into_iter(), all_children);
    let running = commands.iter().map(|(id, line)| format!("#{id}: {}", one_line(line)));
    text.section("Your commands that run in the background", running, commands.len());
    text.section("Announced mail that you have not read", mail, *all_mail as usize);
    text.section("Files that you changed", files, *all_files as usize);
    if text.text.len() == HEADING.len() { String::new() } else { text.text }
}

const HEADING: &str = "[From ikigai's records, exact when the summary was written:]";

/// A text that stays below a limit.
struct Text {
    text: String,
    limit: usize,
}

impl Text {
    /// Adds a list as far as there is room, and says how many of `all` are missing.
    fn section(&mut self, title: &str, lines: impl Iterator<Item = String>, all: usize) {
        /// Enough for the line about the missing ones, and for the next titles.
        const SPARE: usize = 160;
        if all == 0 {
            return;
        }
        self.text.push_str(&format!("\n{title}:"));
        let mut shown = 0;
        for line in lines {
            if self.text.len() + line.len() + SPARE > self.limit {
                break;
            }
            self.text.push_str(&format!("\n- {line}"));
            shown += 1;
        }
        if shown < all {
            self.text.push_str(&format!("\n- {} more", all - shown));
        }
    }
}

/// The start of a text on one line.
fn one_line(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(PREVIEW) {
        words.truncate(end);
        words.push('…');
    }
    words
}

#[cfg(test)]
mod tests {
    use ikigai_conversation::{AgentId, CommandId, MailId, Time};
    use ikigai_store::{Agent, Announcement, State};

    use super::*;

    fn obligations(mails: i64) -> Obligations {
        let agent = |id: &str| AgentId::parse(id).unwrap();
        let mail = (1..=mails).map(|id| Announcement {
            id: MailId::new(id).unwrap(),
            from: agent("1/").into(),
            body: format!("please look\nat {id}"),
        });
        let child = Agent {
            id: agent("0/0/"),
            name: Some("tests".to_owned()),
            state: State::Tool,
            unread: 0,
            notification_pending: false,
            model: None,
            task: "run them".to_owned(),
            created_at: Time::from_millis(0),
        };
        Obligations {
            mail: (mail.collect(), u32::try_from(mails).unwrap()),
            children: vec![child],
            commands: vec![(CommandId::new(3).unwrap(), "make serve".to_owned())],
            files: (vec!["/w/src/a.rs".into(), "/etc/hosts".into()], 2),
        }
    }

    #[test]
    fn every_obligation_is_listed() {
        let text = render(&obligations(1), Path::new("/w"), 4_000);
        let expected = "[From ikigai's records, exact when the summary was written:]
Your children that are alive:
- 0/0/ tests, tool: run them
Your commands that run in the background:
- #3: make serve
Announced mail that you have not read:
- #1 from 1/: please look at 1
Files that you changed:
- src/a.rs
- /etc/hosts";
        assert_eq!(text, expected);
        assert_eq!(render(&Obligations::default(), Path::new("/w"), 4_000), "");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let text = render(&obligations(100), Path::new("/w"), 1_000);
        assert!(text.len() <= 1_000, "{}", text.len());
        let shown = text.matches(" from 1/: ").count();
        assert!(shown > 5, "{text}");
        assert!(text.contains(&format!("\n- {} more\nFiles", 100 - shown)), "{text}");
    }
}
