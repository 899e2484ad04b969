//! The suite on the embedded database.

#[path = "suite/agents.rs"]
mod agents;
#[path = "suite/commands.rs"]
mod commands;
#[path = "suite/crashes.rs"]
mod crashes;
#[path = "suite/exploration.rs"]
mod exploration;
#[path = "suite/forks.rs"]
mod forks;
#[path = "suite/leases.rs"]
mod leases;
#[path = "suite/logs.rs"]
mod logs;
#[path = "suite/mail.rs"]
mod mail;
#[path = "suite/openings.rs"]
mod openings;
#[path = "suite/order.rs"]
mod order;
#[path = "suite/questions.rs"]
mod questions;
#[path = "suite/rewinds.rs"]
mod rewinds;
#[path = "suite/roots.rs"]
mod roots;
#[path = "suite/sessions.rs"]
mod sessions;
#[path = "suite/spending.rs"]
mod spending;
#[path = "suite/summaries.rs"]
mod summaries;
#[path = "suite/turns.rs"]
mod turns;
#[path = "suite/undos.rs"]
mod undos;
#[path = "suite/user_mail.rs"]
mod user_mail;
#[path = "suite/waits.rs"]
mod waits;
#[path = "suite/waking.rs"]
mod waking;
#[path = "suite/work.rs"]
mod work;

use ikigai_testkit::{Kind, TestStore};

fn store() -> TestStore {
    TestStore::of(Kind::Sqlite)
}

fn fast_store() -> TestStore {
    TestStore::fast(Kind::Sqlite)
}
