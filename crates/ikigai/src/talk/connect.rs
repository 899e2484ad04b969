//! Offering ways to connect a model when none is configured.

use std::io::{self, BufRead, Write};

use ikigai_agents::Model;
use ikigai_config::{ModelError, ModelSettings, SecretUrl, WireFormat};
use ikigai_host::{Environment, connect_with};
use ikigai_providers::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::print::safe;

/// What the user chose.
pub(super) enum Choice {
    Talk(Model),
    Tour,
    Leave,
}

/// The default addresses of local servers.
const LOCAL_SERVERS: &[(&str, &str)] = &[
    ("ollama", "http://127.0.0.1:11434/v1"),
    ("lmstudio", "http://127.0.0.1:1234/v1"),
    ("llamacpp", "http://127.0.0.1:8080/v1"),
];

/// Offers the available choices until the user picks one.
pub(super) async fn offer(environment: &Environment, why: &ModelError) -> anyhow::Result<Choice> {
    let found = find_local_servers(environment).await;
    put(&format!("ikigai: {why}. What would you like to do?\n"))?;
    put("  k  paste a key of Anthropic, OpenAI or Gemini; it is kept in memory only\n")?;
    for (number, local) in (1..).zip(&found) {
        let ModelSettings { base_url, name, provider, .. } = local;
        put(&format!("  {number}  use {} of the {provider} server at {base_url}\n", safe(name)))?;
    }
    if found.is_empty() {
        put("     a local server (Ollama, LM Studio, llama.cpp) is offered while it runs\n")?;
    }
    put("  t  take the tour: a scripted walk, no key needed\n")?;
    loop {
        put("Your choice (Enter leaves): ")?;
        let Some(line) = read_line()? else { return Ok(Choice::Leave) };
        match line.trim() {
            "" | "q" => return Ok(Choice::Leave),
            "t" => return Ok(Choice::Tour),
            "k" => {
                if let Some(model) = paste_key(environment)? {
                    return Ok(Choice::Talk(model));
                }
            }
            typed => match typed.parse::<usize>().ok().and_then(|n| found.get(n.wrapping_sub(1))) {
                Some(local) => {
                    print_how_to_keep(local)?;
                    return Ok(Choice::Talk(connect_with(environment, local, None)));
                }
                None => put("Not one of the choices.\n")?,
            },
        }
    }
}

/// Checks all default addresses concurrently.
async fn find_local_servers(environment: &Environment) -> Vec<ModelSettings> {
    let check = |(provider, base_url): &(&str, &str)| {
        let mut chosen = ModelSettings {
            provider: (*provider).to_owned(),
            name: String::new(),
            format: WireFormat::ChatCompletions,
            base_url: SecretUrl::new(*base_url),
            key_variable: None,
        };
        let client = connect_with(environment, &chosen, None).client;
        async move {
            chosen.name = client.models().await.ok()?.into_iter().next()?;
            Some(chosen)
        }
    };
    let [ollama, lmstudio, llamacpp] = [0, 1, 2].map(|index| check(&LOCAL_SERVERS[index]));
    let (ollama, lmstudio, llamacpp) = tokio::join!(ollama, lmstudio, llamacpp);
    [ollama, lmstudio, llamacpp].into_iter().flatten().collect()
}

/// Reads a key without echo. Its prefix shows which provider it is for.
fn paste_key(environment: &Environment) -> anyhow::Result<Option<Model>> {
    put("The key (it is not shown): ")?;
    let hidden = HiddenInput::start();
    let line = read_line();
    drop(hidden);
    put("\n")?;
    let Some(key) = line?.map(|line| line.trim().to_owned()).filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    let Some(provider) = provider_of(&key).map_or_else(ask_provider, |known| Ok(Some(known)))?
    else {
        return Ok(None);
    };
    let chosen = match environment.settings.model_for_provider(provider) {
        Ok(chosen) => chosen,
        Err(error) => {
            put(&format!("{}\n", safe(&error.to_string())))?;
            return Ok(None);
        }
    };
    put(&format!(
        "Talking to {}. To keep it: export {}=… in your shell's start-up file.\n",
        chosen.label(),
        chosen.key_variable.as_deref().unwrap_or_default()
    ))?;
    Ok(Some(connect_with(environment, &chosen, Some(Secret::new(key)))))
}

/// The provider whose keys have this prefix. A key must never go to another provider, so an unknown
/// prefix is not guessed.
fn provider_of(key: &str) -> Option<&'static str> {
    let prefixes = [("sk-ant-", "anthropic"), ("AIza", "google"), ("sk-", "openai")];
    prefixes.into_iter().find(|(prefix, _)| key.starts_with(prefix)).map(|(_, provider)| provider)
}

fn ask_provider() -> anyhow::Result<Option<&'static str>> {
    loop {
        put("Whose key is it: anthropic, openai or google? ")?;
        let Some(line) = read_line()? else { return Ok(None) };
        match line.trim() {
            "" => return Ok(None),
            typed => {
                let known = ["anthropic", "openai", "google"];
                if let Some(provider) = known.into_iter().find(|known| *known == typed) {
                    return Ok(Some(provider));
                }
            }
        }
    }
}

fn print_how_to_keep(chosen: &ModelSettings) -> anyhow::Result<()> {
    let ModelSettings { provider, base_url, .. } = chosen;
    put(&format!(
        "To keep it, put this into the configuration file ('ikigai config' names it):\n  \
         model = \"{}\"\n  providers.{provider}.base_url = \"{base_url}\"\n",
        safe(&chosen.label())
    ))
}

/// Turns off the terminal's echo until dropped.
struct HiddenInput(Option<Termios>);

impl HiddenInput {
    fn start() -> HiddenInput {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut hidden) = before.clone() {
            // Ctrl-C must not end the program here, or the echo would stay off.
            hidden.local_modes -= LocalModes::ECHO | LocalModes::ISIG;
            let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &hidden);
        }
        HiddenInput(before)
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// `None` at the end of input.
fn read_line() -> anyhow::Result<Option<String>> {
    let mut line = String::new();
    let count = io::stdin().lock().read_line(&mut line)?;
    // Ctrl-C arrives as a character while signals are off.
    let is_cancelled = line.contains('\u{3}');
    Ok((count > 0).then(|| if is_cancelled { String::new() } else { line }))
}

fn put(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    Ok(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_of_a_key_names_its_provider() {
        for (key, provider) in
            [("sk-ant-api03-x", "anthropic"), ("AIzaSyX", "google"), ("sk-proj-x", "openai")]
        {
            assert_eq!(provider_of(key), Some(provider));
        }
        assert_eq!(provider_of("gsk_x"), None, "it must go to nobody by a guess");
    }
}
