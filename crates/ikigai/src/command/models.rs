//! `ikigai models`: lists the models of every connected provider.

use ikigai_host::{Environment, ProviderModels, list_models};
use ikigai_protocol::{ModelSummary, dollars, render_models};
use serde_json::{Value, json};

use crate::cli::ModelsArguments;
use crate::exit::Exit;
use crate::print;

pub(crate) fn run(environment: &Environment, arguments: &ModelsArguments) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let lists = runtime.block_on(list_models(environment));
    runtime.shutdown_background();
    if lists.is_empty() {
        anyhow::bail!("no provider is connected: 'ikigai auth add PROVIDER' stores a key");
    }
    let mut models = Vec::new();
    let mut failed = 0;
    for ProviderModels { provider, models: listed } in lists {
        match listed {
            Ok(listed) => models.extend(listed),
            Err(fault) => {
                failed += 1;
                print::note(&format!("ikigai: {provider}: {fault}"));
            }
        }
    }
    if let Some(filter) = &arguments.filter {
        let filter = filter.to_lowercase();
        models.retain(|model| model.label.to_lowercase().contains(&filter));
    }
    print::out(match arguments.json {
        true => {
            let rows: Value = models.iter().map(to_json).collect();
            print::safe_json(format_args!("{rows}\n"))
        }
        false => print::safe(&format!("{}\n", render_models(&models))),
    })?;
    Ok(if models.is_empty() && failed > 0 { Exit::Failed } else { Exit::Done })
}

/// Prices are dollars per million tokens.
fn to_json(model: &ModelSummary) -> Value {
    let prices = model.prices;
    json!({
        "model": model.label,
        "context_window": model.context_tokens,
        "max_output": model.max_output,
        "input": prices.map(|prices| dollars(prices.input)),
        "cached": prices.map(|prices| dollars(prices.cached)),
        "cache_write": prices.map(|prices| dollars(prices.cache_write)),
        "output": prices.map(|prices| dollars(prices.output)),
        "images": model.images,
        "effort": model.effort,
        "tools": model.tools,
    })
}
