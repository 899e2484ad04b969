//! The folders that agents of a session can write: another folder at the same path is refused.

use std::path::PathBuf;

use ikigai_conversation::SessionId;
use ikigai_store::{Process, RootFolder, StoreError};
use ikigai_testkit::{PLENTY, TestStore};

fn here() -> Process {
    Process { boot: "first".to_owned(), ..Process::current() }
}

fn after_restart() -> Process {
    Process { boot: "second".to_owned(), ..here() }
}

fn folder(path: &str, device: u64, inode: u64) -> RootFolder {
    RootFolder { path: path.into(), device: Some(device), inode: Some(inode) }
}

async fn keep(store: &TestStore, session: SessionId, by: Process, root: RootFolder) -> bool {
    let path = root.path.clone();
    match store.keep_roots(session, by, vec![root]).await {
        Ok(()) => true,
        Err(StoreError::RootReplaced { session: of, path: named }) => {
            assert_eq!((of, named), (session, path));
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_folder_is_known_by_its_inode_and_within_one_boot_by_its_device() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    // Numbers beyond signed integers, and a path beyond the limit of an index on a server.
    let long = format!("/{}", "long/".repeat(800));
    for path in ["/w", &long] {
        let kept = |device, inode| folder(path, u64::MAX - device, u64::MAX - inode);
        assert!(keep(&store, session, here(), kept(1, 1)).await);
        assert!(keep(&store, session, here(), kept(1, 1)).await);
        assert!(!keep(&store, session, here(), kept(1, 2)).await);
        assert!(!keep(&store, session, here(), kept(2, 1)).await);
        assert!(!keep(&store, session, after_restart(), kept(1, 2)).await);
        assert!(keep(&store, session, after_restart(), kept(2, 1)).await);
        // From now on it is known by its device since that boot.
        assert!(!keep(&store, session, after_restart(), kept(1, 1)).await);
        assert!(keep(&store, session, after_restart(), kept(2, 1)).await);
    }
    assert_eq!(store.number("SELECT count(*) FROM roots"), 2);
}

#[tokio::test]
async fn without_a_boot_id_only_the_inode_counts() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let nameless = || Process { boot: String::new(), ..here() };
    assert!(keep(&store, session, nameless(), folder("/w", 1, 1)).await);
    assert!(keep(&store, session, nameless(), folder("/w", 2, 1)).await);
    assert!(!keep(&store, session, nameless(), folder("/w", 1, 2)).await);
}

#[tokio::test]
async fn unstable_numbers_are_not_recorded_and_do_not_match_a_known_folder() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let unnumbered = |path: &str| RootFolder { device: None, inode: None, ..folder(path, 0, 0) };
    assert!(keep(&store, session, here(), unnumbered("/fuse")).await);
    assert_eq!(store.number("SELECT count(*) FROM roots"), 0);
    let remounted = |inode| RootFolder { device: None, ..folder("/nfs", 0, inode) };
    assert!(keep(&store, session, here(), remounted(1)).await);
    assert!(keep(&store, session, here(), remounted(1)).await);
    assert!(!keep(&store, session, here(), remounted(2)).await);
    assert!(keep(&store, session, here(), folder("/w", 1, 1)).await);
    assert!(!keep(&store, session, here(), unnumbered("/w")).await);
}

#[tokio::test]
async fn other_machines_sessions_and_paths_are_independent() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    assert!(keep(&store, session, here(), folder("/w", 1, 1)).await);
    let elsewhere = Process { machine: "elsewhere".to_owned(), ..here() };
    // Containers made from one image may share a machine id.
    let twin = Process { host: "twin".to_owned(), ..here() };
    assert!(keep(&store, session, elsewhere.clone(), folder("/w", 2, 2)).await);
    assert!(keep(&store, session, twin.clone(), folder("/w", 3, 3)).await);
    assert!(keep(&store, session, here(), folder("/other", 4, 4)).await);
    let other = store.session_with(PLENTY).await;
    assert!(keep(&store, other, here(), folder("/w", 5, 5)).await);
    for (process, number) in [(here(), 1), (elsewhere, 2), (twin, 3)] {
        assert!(keep(&store, session, process.clone(), folder("/w", number, number)).await);
        assert!(!keep(&store, session, process, folder("/w", 9, 9)).await);
    }
    let paths = store.root_paths(session, here()).await.unwrap();
    assert_eq!(paths, ["/other", "/w"].map(PathBuf::from));
}

#[tokio::test]
async fn a_refusal_keeps_nothing_and_a_check_never_does() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    assert!(keep(&store, session, here(), folder("/w", 1, 1)).await);
    let dump = || store.raw().dump("roots");
    let before = dump();
    let roots = || vec![folder("/new", 1, 2), folder("/w", 1, 9)];
    let refused = store.keep_roots(session, here(), roots()).await.unwrap_err().to_string();
    let expected = format!(
        "/w was moved or replaced since session {session} used it: another folder is there now. \
         Put the old folder back, or start a new session with --new"
    );
    assert_eq!(refused, expected);
    assert_eq!(dump(), before);
    let refused = store.check_roots(session, here(), roots()).await.unwrap_err().to_string();
    assert_eq!(refused, expected);
    let roots = vec![folder("/new", 1, 2), folder("/w", 1, 1)];
    store.check_roots(session, here(), roots).await.unwrap();
    assert_eq!(dump(), before);
}

#[tokio::test]
async fn a_path_that_is_named_twice_is_recorded_once() {
    let store = super::store();
    let session = store.session_with(PLENTY).await;
    let roots = vec![folder("/w", 1, 1), folder("/w", 1, 1)];
    store.keep_roots(session, here(), roots).await.unwrap();
    assert_eq!(store.number("SELECT count(*) FROM roots"), 1);
}
