//! `ikigai auth`: stores, lists and removes keys of providers.

use std::io::{IsTerminal, stdin};

use anyhow::Context;
use ikigai_host::{Environment, try_key};

use crate::cli::{AuthAction, AuthArguments};
use crate::exit::Exit;
use crate::print;
use crate::prompt::read_secret;

pub(crate) fn run(environment: &Environment, arguments: &AuthArguments) -> anyhow::Result<Exit> {
    if environment.selection.inside_agent {
        anyhow::bail!("auth cannot be used inside an agent's command");
    }
    match &arguments.action {
        AuthAction::Add { provider } => add(environment, provider),
        AuthAction::List => list(environment),
        AuthAction::Rm { provider } => remove(environment, provider),
    }
}

fn add(environment: &Environment, provider: &str) -> anyhow::Result<Exit> {
    let known = environment.settings.providers();
    if !known.iter().any(|known| known == provider) {
        anyhow::bail!("'{provider}' is not a provider (known: {})", known.join(", "));
    }
    let question = match stdin().is_terminal() {
        true => format!("The key of {provider} (it is not shown): "),
        false => String::new(),
    };
    let key = read_secret(&question)?.context("no key was given, so nothing is stored")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tried = runtime.block_on(try_key(environment, provider, &key));
    runtime.shutdown_background();
    let tried = tried.context("the key is not stored")?;
    let path = store(environment, provider, Some(&key))?;
    let unchecked = match tried.is_accepted {
        true => "",
        false => ". It could not be checked: the server lists no models",
    };
    print::out(print::safe(&format!("Stored the key of {provider} in {path}{unchecked}\n")))?;
    Ok(Exit::Done)
}

fn list(environment: &Environment) -> anyhow::Result<Exit> {
    let settings = &environment.settings;
    let credentials = settings.credentials();
    let mut text = String::new();
    for provider in settings.providers() {
        let variable = settings.key_variable(&provider).filter(|(_, is_set)| *is_set);
        let is_stored = credentials.key(&provider).is_some();
        let source = match (variable, is_stored) {
            (Some((name, _)), true) => format!("{name} (wins over the stored key)"),
            (Some((name, _)), false) => name,
            (None, true) => "stored".to_owned(),
            (None, false) => continue,
        };
        text.push_str(&format!("{provider:<12} {source}\n"));
    }
    let known = settings.providers();
    for provider in credentials.providers().filter(|name| !known.iter().any(|known| known == name))
    {
        text.push_str(&format!("{provider:<12} stored, but there is no such provider\n"));
    }
    if text.is_empty() {
        text.push_str("No keys. 'ikigai auth add PROVIDER' stores one\n");
    }
    print::out(print::safe(&text))?;
    Ok(Exit::Done)
}

fn remove(environment: &Environment, provider: &str) -> anyhow::Result<Exit> {
    if environment.settings.credentials().key(provider).is_none() {
        anyhow::bail!("no key of {provider} is stored: 'ikigai auth list' shows the keys");
    }
    let path = store(environment, provider, None)?;
    print::out(print::safe(&format!("Removed the key of {provider} from {path}\n")))?;
    Ok(Exit::Done)
}

/// Stores or removes a key, and returns the file.
pub(crate) fn store(
    environment: &Environment,
    provider: &str,
    key: Option<&str>,
) -> anyhow::Result<String> {
    let credentials = environment.settings.credentials();
    let path = credentials.path().map(|path| path.display().to_string()).unwrap_or_default();
    let stored = credentials.store(provider, key);
    stored.with_context(|| format!("cannot write the file of keys {path}"))?;
    Ok(path)
}
