//! M8, end to end: whole programs with several agents that write to each other are killed at any moment, and the
//! checker accounts for every mail afterwards.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ikigai_testkit::{CapturedRequest, ModelServer, Random, Reply, checker};
use serde_json::{Value, json};

use crate::support::model::Format;
use crate::support::{PATIENCE, Workspace, ended};

/// Programs at the same time, and top-level agents that they run; more are made when none is free.
const PROCESSES: usize = 2;
const AGENTS: usize = 4;
/// Kills between two databases: the logs grow, and every request has the whole of one.
const PER_DATABASE: u32 = 60;

#[test]
fn m8_kill_9_of_whole_programs_loses_doubles_and_overlooks_nothing() {
    let kills = std::env::var("IKIGAI_CRASH_CYCLES").map_or(150, |kills| kills.parse().unwrap());
    let mut random = Random::new(88);
    let mut left: u32 = kills;
    while left > 0 {
        let kills = left.min(PER_DATABASE);
        Village::new(random.below(u64::MAX)).crash(kills);
        left -= kills;
    }
}

/// Agents that write to each other, and what was heard of them.
struct Village {
    workspace: Workspace,
    server: ModelServer,
    /// The model answers and calls nothing any more.
    is_calm: Arc<AtomicBool>,
    random: Random,
    /// What the programs have promised, in the words of the checker.
    promises: PathBuf,
    started: u32,
}

impl Village {
    fn new(seed: u64) -> Village {
        let workspace = Workspace::with_agents(AGENTS);
        let is_calm = Arc::new(AtomicBool::new(false));
        let model = Model {
            is_calm: Arc::clone(&is_calm),
            calls: AtomicU64::new(0),
            random: Mutex::new(Random::new(seed)),
        };
        let server = ModelServer::choosing(move |request| model.reply(request));
        let promises = workspace.home().join("promises");
        let random = Random::new(!seed);
        Village { workspace, server, is_calm, random, promises, started: 0 }
    }

    fn crash(mut self, kills: u32) {
        let mut villagers: Vec<Villager> = (0..PROCESSES).map(|_| self.start("go")).collect();
        let mut killed = 0;
        while killed < kills {
            let place = usize::try_from(self.random.below(PROCESSES as u64)).unwrap();
            let mut villager = villagers.swap_remove(place);
            self.wait_for_progress(&mut villager);
            killed += u32::from(villager.kill() == Some(9));
            self.note_promises(&villager.events);
            if killed % 10 == 3 {
                self.write_by_hand();
            }
            villagers.push(self.start("go"));
        }
        for mut villager in villagers {
            villager.kill();
            self.note_promises(&villager.events);
        }
        self.check_books();
        self.settle();
        assert_eq!(checker::check_settled(&self.workspace.address()), Vec::<String>::new());
        self.check_books();
        let mail = self.workspace.number("SELECT count(*) FROM mail");
        assert!(mail > i64::from(kills) / 2, "only {mail} mails were sent");
    }

    /// Lets everybody come to an end, in one program.
    fn settle(&mut self) {
        self.is_calm.store(true, Ordering::Relaxed);
        let mut command = self.command("settle");
        let (code, stdout, stderr) = ended(command.stdin(std::process::Stdio::null()));
        assert_eq!(code, 0, "{stdout}{stderr}");
    }

    #[track_caller]
    fn check_books(&self) {
        let promises = std::slice::from_ref(&self.promises);
        let faults = checker::check(&self.workspace.address(), promises);
        assert_eq!(faults, Vec::<String>::new());
    }

    fn command(&self, prompt: &str) -> Command {
        let arguments = ["-c", "--json", prompt];
        let mut command = self.workspace.run_command(&self.server, Format::Chat, arguments);
        for (name, value) in [
            ("IKIGAI_MAX_AGENTS", "1000"),
            ("IKIGAI_MAIL__MAX_WAKES", "1000"),
            ("IKIGAI_MAX_REQUESTS", "10000"),
        ] {
            command.env(name, value);
        }
        command
    }

    fn start(&mut self, prompt: &str) -> Villager {
        self.started += 1;
        let file = |kind: &str| self.workspace.home().join(format!("{kind}-{}", self.started));
        let (events, errors) = (file("events"), file("errors"));
        let mut command = self.command(prompt);
        command.stdout(File::create(&events).unwrap()).stderr(File::create(&errors).unwrap());
        Villager { child: command.spawn().unwrap(), events, errors }
    }

    /// Waits for some requests, and then for some moment more. One that has ended waits for nobody.
    fn wait_for_progress(&mut self, villager: &mut Villager) {
        let wanted = self.server.requests().len() + usize::try_from(self.random.below(8)).unwrap();
        let started = Instant::now();
        while self.server.requests().len() < wanted && villager.is_running() {
            assert!(started.elapsed() < PATIENCE, "nobody asks the model");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(self.random.below(5_000)));
    }

    /// What a program has printed, it has promised. The last line may be cut.
    fn note_promises(&self, events: &Path) {
        let text = fs::read_to_string(events).unwrap();
        let mut bodies: HashMap<String, String> = HashMap::new();
        let mut promises = String::new();
        let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        for event in whole.map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let id = event["id"].as_str().unwrap_or_default().to_owned();
            let arguments = event["arguments"].as_str().unwrap_or_default();
            if let Ok(arguments) = serde_json::from_str::<Value>(arguments)
                && let Some(body) = arguments["body"].as_str()
            {
                bodies.insert(id.clone(), body.to_owned());
            }
            let result = &event["result"];
            if let (true, Some(body)) = (result["sent"] == true, bodies.get(&id)) {
                let to = result["to"].as_str().unwrap();
                promises.push_str(&format!("ack sent {} {to} {body}\n", result["id"]));
            } else if result["body"].is_string() {
                promises.push_str(&format!("ack read {}\n", result["id"]));
            }
        }
        self.promise(&promises);
    }

    fn promise(&self, text: &str) {
        let mut file = File::options().append(true).create(true).open(&self.promises).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// The person writes, too.
    fn write_by_hand(&mut self) {
        let (to, body) = (format!("{}/", self.random.below(AGENTS as u64)), self.started);
        let body = format!("user {body}");
        let sent = self.workspace.json(["mail", "send", "--json", &to, &body]);
        assert_eq!(sent["sent"], true);
        self.promise(&format!("ack sent {} {to} {body}\n", sent["id"]));
    }
}

/// One program, and where its output goes.
struct Villager {
    child: Child,
    events: PathBuf,
    errors: PathBuf,
}

impl Villager {
    fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Kills it, and gives the signal that ended it; one that ended by itself did so well.
    fn kill(&mut self) -> Option<i32> {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        let told = fs::read_to_string(&self.errors).unwrap();
        assert!(status.signal() == Some(9) || status.code() == Some(0), "{status}: {told}");
        status.signal()
    }
}

/// Plays all agents: who it is does not matter to it.
struct Model {
    is_calm: Arc<AtomicBool>,
    calls: AtomicU64,
    random: Mutex<Random>,
}

impl Model {
    fn reply(&self, request: &CapturedRequest) -> Reply {
        let mut random = self.random.lock().unwrap();
        let done = request.results_since_user() as u64;
        // Up to five calls; the longer the turn, the sooner it ends.
        if self.is_calm.load(Ordering::Relaxed) || random.below(6) < done {
            return Reply::text("Enough for now.");
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let id = format!("c{number}");
        let top = format!("{}/", random.below(AGENTS as u64));
        let child = format!("{top}{}/", random.below(3));
        match random.below(20) {
            0 => Reply::call(&id, "fork", json!({"prompt": format!("errand {number}")})),
            1 => Reply::call(&id, "kill", json!({ "agent": child })),
            2 => Reply::call(&id, "wait", json!({"timeout": random.below(2)})),
            3 | 4 => Reply::call(&id, "mail", json!({"action": "inbox"})),
            5..=8 => {
                let mail = named_mail(request).unwrap_or(1);
                Reply::call(&id, "mail", json!({"action": "read", "id": mail}))
            }
            9..=11 => Reply::call(&id, "mail", letter(&child, number)),
            _ => Reply::call(&id, "mail", letter(&top, number)),
        }
    }
}

fn letter(to: &str, number: u64) -> Value {
    json!({"action": "send", "to": to, "body": format!("letter {number}")})
}

/// The newest mail that a notification names.
fn named_mail(request: &CapturedRequest) -> Option<u64> {
    let said = request.last_user_text()?;
    let (_, rest) = said.split_once('#')?;
    rest.split(' ').next()?.parse().ok()
}
