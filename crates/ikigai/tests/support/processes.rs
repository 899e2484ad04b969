//! Several processes on one session: who runs an agent, and processes that stop, go on or are killed.

use ikigai_testkit::ModelServer;
use rustix::process::{Signal, kill_process};

use super::model::{Format, Running};
use super::{Workspace, finish, pid, wait_for};

/// A headless run that goes on while the test looks.
pub(crate) fn start_run<const N: usize>(
    workspace: &Workspace,
    server: &ModelServer,
    arguments: [&str; N],
) -> Running {
    let mut command = workspace.run_command(server, Format::Chat, arguments);
    Running::start(command.arg("--json"))
}

/// `kill -9`, and its end.
pub(crate) fn kill(run: Running) {
    kill_process(pid(&run.child), Signal::KILL).unwrap();
    finish(run.child);
}

/// Stops a process, and makes its leases run out meanwhile.
pub(crate) fn suspend(workspace: &Workspace, process: rustix::process::Pid) {
    kill_process(process, Signal::STOP).unwrap();
    wait_for("the process to stop", || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
        stat.rsplit_once(") ").unwrap().1.starts_with('T').then_some(())
    });
    workspace.sql("UPDATE leases SET until = 1 WHERE until > 0");
}

/// What the leases say of a top-level agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRow {
    pub(crate) epoch: i64,
    pub(crate) pid: i64,
    pub(crate) is_given_back: bool,
}

impl Workspace {
    pub(crate) fn lease(&self, agent: &str) -> Option<LeaseRow> {
        let sql = format!(
            "SELECT l.epoch, l.holder, l.until = 0
            FROM leases l JOIN agents a ON a.key = l.agent WHERE a.id = '{agent}'"
        );
        let rows = self.raw().try_rows(&sql, |row| {
            let holder: serde_json::Value = serde_json::from_str(&row.text(1).unwrap()).unwrap();
            LeaseRow {
                epoch: row.integer(0).unwrap(),
                pid: holder["pid"].as_i64().unwrap(),
                is_given_back: row.integer(2) == Some(1),
            }
        });
        rows.ok()?.pop()
    }

    /// One number of the database.
    pub(crate) fn number(&self, sql: &str) -> i64 {
        self.raw().number(sql)
    }

    /// The states of all agents, by their ids.
    pub(crate) fn states(&self) -> Vec<(String, String)> {
        let agents = self.json(["agents", "--json"]);
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let state = |agent: &serde_json::Value| (text(&agent["id"]), text(&agent["state"]));
        agents.as_array().unwrap().iter().map(state).collect()
    }
}
