//! Offering ways to connect a model when none is configured.

use anyhow::Context;
use ikigai_agents::Model;
use ikigai_config::{ModelError, ModelSettings, SecretUrl, WireFormat, save_values};
use ikigai_host::{Environment, TriedKey, connect_with, try_key};

use crate::command::auth;
use crate::print::safe;
use crate::prompt::{confirm, put, read_line, read_secret};

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
    put("  k  paste a key of Anthropic, OpenAI or Gemini\n")?;
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
                if let Some(model) = paste_key(environment).await? {
                    return Ok(Choice::Talk(model));
                }
            }
            typed => match typed.parse::<usize>().ok().and_then(|n| found.get(n.wrapping_sub(1))) {
                Some(local) => {
                    keep_server(environment, local)?;
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
            chosen.name = client.models().await.ok()?.into_iter().next()?.name;
            Some(chosen)
        }
    };
    let [ollama, lmstudio, llamacpp] = [0, 1, 2].map(|index| check(&LOCAL_SERVERS[index]));
    let (ollama, lmstudio, llamacpp) = tokio::join!(ollama, lmstudio, llamacpp);
    [ollama, lmstudio, llamacpp].into_iter().flatten().collect()
}

/// Reads a key without echo, tries it, and offers to store it. Its prefix shows which provider it is
/// for.
async fn paste_key(environment: &Environment) -> anyhow::Result<Option<Model>> {
    let Some(key) = read_secret("The key (it is not shown): ")? else { return Ok(None) };
    let Some(provider) = provider_of(&key).map_or_else(ask_provider, |known| Ok(Some(known)))?
    else {
        return Ok(None);
    };
    put(&format!("Trying the key with {provider}…\n"))?;
    let TriedKey { model, settings, .. } = match try_key(environment, provider, &key).await {
        Ok(tried) => tried,
        Err(error) => {
            put(&safe(&format!("{error:#}\n")))?;
            return Ok(None);
        }
    };
    let file = environment.settings.credentials().path().map(|path| path.display().to_string());
    match file {
        Some(file) if confirm(&safe(&format!("Store it in {file}?")))? => {
            auth::store(environment, provider, Some(&key))?;
            keep_model(environment, &settings, &[])?;
        }
        Some(_) | None => put("The key is kept in memory only.\n")?,
    }
    put(&safe(&format!("Talking to {}.\n", model.label)))?;
    Ok(Some(model))
}

/// Sets the model in the user's configuration file, unless it is the one that is used anyway.
fn keep_model(
    environment: &Environment,
    chosen: &ModelSettings,
    more: &[(&str, &str)],
) -> anyhow::Result<()> {
    let label = chosen.label();
    let set = environment.settings.optional_text("model");
    let mut values = more.to_vec();
    if !more.is_empty() || set.is_some_and(|set| set != label) {
        values.insert(0, ("model", &label));
    }
    match environment.settings.user_file() {
        Some(file) if !values.is_empty() => {
            save_values(file, &values).with_context(|| format!("cannot change {}", file.display()))
        }
        Some(_) | None => Ok(()),
    }
}

/// Offers to set a server of this machine as the user's model.
fn keep_server(environment: &Environment, chosen: &ModelSettings) -> anyhow::Result<()> {
    let Some(file) = environment.settings.user_file() else { return Ok(()) };
    if confirm(&safe(&format!("Use it from now on (saved to {})?", file.display())))? {
        let key = format!("providers.{}.base_url", chosen.provider);
        keep_model(environment, chosen, &[(&key, &chosen.base_url.to_string())])?;
    }
    Ok(())
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
