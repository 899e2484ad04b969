//! A key is in one header of a request, and nowhere else: whatever a server repeats of it, nothing of it is
//! printed, logged or stored, and no command gets to see it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use ikigai_testkit::{CapturedRequest, ModelServer, Reply};
use serde_json::{Value, json};

use crate::support::model::{Format, assert_strict};
use crate::support::story::{WELL_AGAIN, at_once, bash};
use crate::support::{Workspace, run, shorten};

/// The variables with keys: of the built-in providers, and one that the configuration names.
const VARIABLES: [&str; 4] =
    ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "KEY_OF_MY_OWN"];

fn key(variable: &str) -> String {
    format!("sk-Zq7{}Jx4Wv9Kt2", &variable[..1])
}

const CONFIG: &str =
    "[providers.mine]\nbase_url = \"http://localhost:1\"\napi_key_env = \"KEY_OF_MY_OWN\"";

/// A program with all keys in its environment, and everything that it lets others see.
struct Watched {
    workspace: Workspace,
    /// Over the keys.
    variables: Vec<(&'static str, String)>,
    seen: Vec<(String, Vec<u8>)>,
}

impl Watched {
    fn new(workspace: Workspace) -> Watched {
        workspace.write_config(CONFIG);
        let variables = VARIABLES.map(|variable| (variable, key(variable))).to_vec();
        Watched { workspace, variables, seen: Vec::new() }
    }

    fn with(mut self, variable: &'static str, value: impl Into<String>) -> Watched {
        self.variables.push((variable, value.into()));
        self
    }

    /// Runs a command and keeps what it prints.
    fn run(&mut self, mut command: Command) -> Option<i32> {
        let output = run(command.envs(self.variables.iter().cloned()));
        self.seen.push((format!("standard output of {command:?}"), output.stdout));
        self.seen.push((format!("standard error of {command:?}"), output.stderr));
        output.status.code()
    }

    /// Runs into what the server does, as events and as text, with traces. The log is looked at in the
    /// database's files.
    fn run_twice(&mut self, server: &ModelServer, format: Format) {
        let arguments = ["--log", "trace", "--json", "go"];
        self.run(self.workspace.run_command(server, format, arguments));
        self.run(self.workspace.run_command(server, format, ["--log", "trace", "-c", "go"]));
    }

    /// Looks at what is there; `doctor` asks the server as well.
    fn look(&mut self, server: &ModelServer, format: Format) {
        let model = self.workspace.run_command(server, format, []);
        for arguments in [&["log", "--json"][..], &["config"], &["doctor"]] {
            let mut command = self.workspace.ikigai();
            command.args(arguments);
            command.envs(model.get_envs().filter_map(|(name, value)| Some((name, value?))));
            self.run(command);
        }
    }

    /// Fails if a secret, or ten characters of it, is in what was printed, in a file, or in the body of a
    /// request.
    #[track_caller]
    fn assert_hidden(mut self, requests: &[Arc<CapturedRequest>], secrets: &[String]) {
        let mut folders = vec![self.workspace.home(), self.workspace.directory()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => self.seen.push(file(&entry.path())),
                }
            }
        }
        let bodies = requests.iter().map(|request| ("a request".to_owned(), request.body.clone()));
        for (place, bytes) in self.seen.into_iter().chain(bodies) {
            for part in secrets.iter().flat_map(|secret| secret.as_bytes().windows(10)) {
                let is_there = memchr::memmem::find(&bytes, part).is_some();
                let text = String::from_utf8_lossy(&bytes);
                assert!(
                    !is_there,
                    "{} is in {place}: {}",
                    String::from_utf8_lossy(part),
                    shorten(&text)
                );
            }
        }
    }
}

fn file(path: &Path) -> (String, Vec<u8>) {
    (path.display().to_string(), fs::read(path).unwrap())
}

/// All headers of a request, the one with the key among them.
fn headers(captured: &CapturedRequest) -> String {
    let lines = captured.headers.iter().map(|(name, value)| format!("{name}: {value}"));
    lines.collect::<Vec<_>>().join(", ")
}

/// Every way in which a server can repeat what it was sent.
fn echoes(captured: &CapturedRequest) -> Vec<Reply> {
    let said = headers(captured);
    let secret = ["x-api-key", "x-goog-api-key", "authorization"];
    let secret = secret.iter().find_map(|name| captured.header(name)).unwrap();
    let secret = secret.split(' ').next_back().unwrap();
    let error = json!({"error": {"type": "x", "message": said}});
    // The cut of a long message goes through the key, at each of these places.
    let cuts = (0..4).map(|n| {
        Reply::error(400, &format!("{} {secret} {}", "x".repeat(388 - 2 * n), "y".repeat(100)))
    });
    [
        Reply::json(401, &error),
        Reply::json(429, &error).header("retry-after-ms", "1"),
        Reply::json(500, &error).header("retry-after-ms", "1"),
        Reply::raw(400, &[("Content-Type", "text/plain")], said.clone()),
        Reply::raw(502, &[("Content-Type", "text/html")], format!("<title>{said}</title>"))
            .header("retry-after-ms", "1"),
        Reply::raw(307, &[("Location", &format!("http://127.0.0.1:1/{secret}?key={secret}"))], ""),
        Reply::raw(307, &[("Location", secret)], ""),
        Reply::sse(format!("data: {error}\n\n")),
        Reply::sse(format!("event: error\ndata: {said}\n\n")),
        Reply::sse(format!("data: {said}\n\n")),
        Reply::json(200, &error),
        Reply::json(200, &Value::from(said.clone())),
        Reply::json(400, &json!([[{"detail": {said.clone(): said}}]])),
        Reply::json(200, &json!({"data": [{"id": secret}]})),
    ]
    .into_iter()
    .chain(cuts)
    .collect()
}

/// How many echoes there are.
const ECHOES: usize = 18;

/// A server whose n-th session gets the n-th echo, twice: then it says that all is well.
fn echoing(number: usize) -> ModelServer {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    ModelServer::choosing(move |captured| {
        let mut echoes = echoes(captured);
        assert_eq!(echoes.len(), ECHOES);
        match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 | 1 => echoes.swap_remove(number),
            _ => Reply::text(WELL_AGAIN),
        }
    })
}

#[test]
fn a_key_that_a_server_repeats_is_nowhere_to_be_seen() {
    at_once(Format::BOTH, |format| {
        for number in 0..ECHOES {
            let server = echoing(number);
            let mut watched = Watched::new(Workspace::new());
            watched.run_twice(&server, format);
            let requests = server.requests();
            assert_strict(&requests);
            watched.assert_hidden(&requests, &VARIABLES.map(key));
        }
    });
}

#[test]
fn what_doctor_and_traces_tell_has_no_key_in_it() {
    at_once(Format::BOTH, |format| {
        for number in [0, 1, 3, 6, 10, 12, 13] {
            let server =
                ModelServer::choosing(move |captured| echoes(captured).swap_remove(number));
            let mut watched = Watched::new(Workspace::new());
            watched.look(&server, format);
            watched.run(watched.workspace.run_command(&server, format, ["--log", "trace", "go"]));
            let doctor = String::from_utf8_lossy(&watched.seen[4].1).into_owned();
            assert!(doctor.contains(" model  "), "{doctor}");
            let trace = watched.workspace.home().join("state/ikigai/trace.log");
            assert!(fs::metadata(trace).unwrap().len() > 0);
            watched.assert_hidden(&server.requests(), &VARIABLES.map(key));
        }
    });
}

#[test]
fn a_key_is_in_one_header_of_a_request_and_no_other_provider_gets_it() {
    for (format, header, expected) in [
        (Format::Chat, "authorization", format!("Bearer {}", key("OPENAI_API_KEY"))),
        (Format::Anthropic, "x-api-key", key("ANTHROPIC_API_KEY")),
    ] {
        let server = ModelServer::start([bash("c1", "echo one"), Reply::text("done")]);
        let mut watched = Watched::new(Workspace::new());
        let code = watched.run(watched.workspace.run_command(&server, format, ["go"]));
        assert_eq!(code, Some(0));
        watched.look(&server, format);
        for request in server.requests() {
            let with_key: Vec<_> =
                request.headers.iter().filter(|(_, value)| value.contains("sk-Zq7")).collect();
            assert_eq!(with_key, [&(header.to_owned(), expected.clone())]);
            assert!(!request.path.contains("sk-Zq7"), "{}", request.path);
        }
        watched.assert_hidden(&server.requests(), &VARIABLES.map(key));
    }
}

#[test]
fn a_key_of_ones_own_provider_is_kept_as_well_in_every_format() {
    let expected = key("KEY_OF_MY_OWN");
    for (kind, header, value) in [
        ("openai", "authorization", format!("Bearer {expected}")),
        ("openai-responses", "authorization", format!("Bearer {expected}")),
        ("anthropic", "x-api-key", expected.clone()),
        ("google", "x-goog-api-key", expected.clone()),
    ] {
        let server = echoing(0);
        let mut watched = Watched::new(Workspace::new()).with("IKIGAI_MODEL", "mine/scripted");
        let config = CONFIG.replace("http://localhost:1", &server.url());
        watched.workspace.write_config(&format!("{config}\nkind = \"{kind}\""));
        watched.run_twice(&server, Format::Chat);
        watched.look(&server, Format::Chat);
        let requests = server.requests();
        assert_eq!(requests[0].header(header), Some(&*value), "{kind}");
        assert!(!requests[0].path.contains(&expected), "{}", requests[0].path);
        watched.assert_hidden(&requests, &VARIABLES.map(key));
    }
}

/// Without a key a name and password in the address are sent, which look quite different in the header.
#[test]
fn a_password_in_an_address_is_nowhere_to_be_seen() {
    at_once(["me:pw-Zq7Jx4Wv9Kt2", "me:pw%40Zq7%2FJx4Wv9Kt2", "token-Zq7Jx4Wv9Kt2"], |userinfo| {
        for number in [0, 1, 3, 6, 9, 13] {
            let server = echoing(number);
            let address = server.base_url().replace("http://", &format!("http://{userinfo}@"));
            let watched = Watched::new(Workspace::new());
            let mut watched = watched.with("OPENAI_BASE_URL", address).with("OPENAI_API_KEY", "");
            watched.run_twice(&server, Format::Chat);
            if number == 0 {
                watched.look(&server, Format::Chat);
            }
            let requests = server.requests();
            let sent = requests[0].header("authorization").unwrap().to_owned();
            let encoded = sent.strip_prefix("Basic ").unwrap().trim_end_matches('=').to_owned();
            // The beginning of the name is no secret.
            let encoded = encoded[4..].to_owned();
            let secrets = [encoded, "q7Jx4Wv9Kt2".to_owned(), "@Zq7/Jx4Wv9Kt2".to_owned()];
            watched.assert_hidden(&requests, &secrets);
        }
    });
}

/// What a command can see goes into the log, and to the model: there it would be found.
#[test]
fn no_command_gets_to_see_a_secret() {
    let look = "env; cat /proc/self/environ; \
        ikigai=$(sed -n 's/^PPid:\t//p' /proc/$PPID/status); \
        for pid in $PPID $ikigai; do \
            cat /proc/$pid/environ /proc/$pid/cmdline /proc/$pid/mem; ls -l /proc/$pid/fd; \
        done; grep -ra Zq7 ~ /proc/[0-9]*/environ /proc/[0-9]*/cmdline";
    at_once(Format::BOTH, |format| {
        let server = ModelServer::start([bash("c1", look), Reply::text("done")]);
        let address = |url: String| url.replace("http://", "http://me:pw-Zq7Jx4Wv9Kt2@");
        let workspace = Workspace::of_plain_user();
        let database = format!("sqlite://{}", workspace.database().display());
        let mut watched = Watched::new(workspace)
            .with("OPENAI_BASE_URL", address(server.base_url()))
            .with("ANTHROPIC_BASE_URL", address(server.url()))
            .with("IKIGAI_DATABASE_URL", database);
        let command = watched.workspace.run_command(&server, format, ["--json", "go"]);
        assert_eq!(watched.run(command), Some(0));
        let output = server.requests()[1].tool_output("c1")["data"]["output"].to_string();
        assert!(output.contains("IKIGAI_AGENT=0/"), "{output}");
        assert!(!output.contains("IKIGAI_DATABASE_URL"), "{output}");
        let secrets = [&VARIABLES.map(key)[..], &["pw-Zq7Jx4Wv9Kt2".to_owned()]].concat();
        watched.assert_hidden(&server.requests(), &secrets);
    });
}
