//! M7: the ids of mail and messages are in the order of commits, for all processes.

use std::collections::HashSet;

use ikigai_testkit::Raw;
use ikigai_testkit::driver::Plan;

use crate::support::{Running, check_database, driver_process, free_agents};

/// Ids that appeared after a larger one had been seen. `looks` are the ids that each look found.
fn latecomers(looks: &[Vec<i64>]) -> Vec<i64> {
    let mut newest = 0;
    let mut seen: HashSet<i64> = HashSet::new();
    let mut late = Vec::new();
    for look in looks {
        late.extend(look.iter().filter(|id| **id <= newest && !seen.contains(*id)));
        seen.extend(look);
        newest = look.iter().copied().max().unwrap_or(0).max(newest);
    }
    late
}

fn ids(raw: &Raw, table: &str) -> Vec<i64> {
    raw.rows(&format!("SELECT id FROM {table}"), |row| row.integer(0).unwrap())
}

#[tokio::test]
async fn m7_no_smaller_id_appears_after_a_larger_one_with_4_writers() {
    let store = super::store();
    let session = free_agents(&store, 4).await;
    let acknowledged = store.folder().join("acknowledged");
    let mut writers: Vec<Running> = (0..4)
        .map(|agent| {
            let mut plan = Plan::new(store.database(), session, 4, agent);
            plan.steps = 60;
            driver_process(&plan, &acknowledged)
        })
        .collect();
    let raw = store.raw();
    let (mut mail, mut messages) = (Vec::new(), Vec::new());
    let running = |writer: &mut Running| writer.0.try_wait().unwrap().is_none();
    while writers.iter_mut().any(running) {
        mail.push(ids(&raw, "mail"));
        messages.push(ids(&raw, "messages"));
    }
    for writer in writers {
        assert_eq!(writer.end().code(), Some(0));
    }
    mail.push(ids(&raw, "mail"));
    assert_eq!((latecomers(&mail), latecomers(&messages)), (Vec::new(), Vec::new()));
    let different = mail.windows(2).filter(|looks| looks[0] != looks[1]).count();
    assert!(different > 10, "only {different} looks saw something new");
    check_database(store.database(), &[acknowledged]);
}

#[test]
fn m7_a_late_smaller_id_would_be_noticed() {
    assert_eq!(latecomers(&[vec![1], vec![1, 3], vec![1, 2, 3], vec![1, 2, 3, 4]]), [2]);
}
