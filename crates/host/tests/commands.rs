//! Commands outside the conversation: undo and redo, lists, mode and model, export.

use ikigai_conversation::Mode;
use ikigai_protocol::{Command, CommandError, FileOutcome, Nothing, Reply};
use ikigai_testkit::{ModelServer, Reply as ModelReply};
use serde_json::json;

use crate::support::{Home, read};

#[tokio::test]
async fn file_changes_are_undone_and_redone() {
    let write = json!({"path": "a.txt", "content": "new"});
    let script = [ModelReply::call("c", "file_write", write), ModelReply::text("done")];
    let home = Home::new(ModelServer::start(script));
    let mut session = home.open().await;
    let nothing = Err(CommandError::NothingToDo(Nothing::Undo));
    assert_eq!(session.execute("0/", Command::Undo).await, nothing);
    session.ask("0/", "write it").await;
    let file = home.project().join("a.txt");
    assert_eq!(read(&file), "new");
    let Ok(Reply::Undone(report)) = session.execute("0/", Command::Undo).await else {
        panic!("not undone")
    };
    assert_eq!(report.title, "write it");
    assert_eq!(report.files, [("a.txt".into(), FileOutcome::Removed)]);
    assert!(!file.exists());
    assert_eq!(session.execute("0/", Command::Undo).await, nothing);
    let Ok(Reply::Redone(report)) = session.execute("0/", Command::Redo).await else {
        panic!("not redone")
    };
    assert_eq!(report.files, [("a.txt".into(), FileOutcome::Restored)]);
    assert_eq!(read(&file), "new");
    let nothing = Err(CommandError::NothingToDo(Nothing::Redo));
    assert_eq!(session.execute("0/", Command::Redo).await, nothing);
    session.leave().await;
}

#[tokio::test]
async fn mode_and_model_are_shown_and_changed() {
    let home = Home::new(ModelServer::start([]));
    let session = home.open().await;
    let mode = |mode| Command::Mode { mode };
    let shown = session.execute("0/", mode(None)).await;
    assert_eq!(shown, Ok(Reply::Mode { mode: Mode::Work, changed: false }));
    let changed = session.execute("0/", mode(Some(Mode::Read))).await;
    assert_eq!(changed, Ok(Reply::Mode { mode: Mode::Read, changed: true }));
    assert_eq!(session.session.choice().mode, Mode::Read);
    let Ok(Reply::Tools(tools)) = session.execute("0/", Command::Tools).await else {
        panic!("no tools")
    };
    assert!(tools.iter().all(|tool| tool.name != "file_write") && !tools.is_empty());
    let model = |name: Option<&str>| Command::Model { name: name.map(str::to_owned) };
    for (name, label, is_changed) in
        [(None, "openai/scripted", false), (Some("other"), "openai/other", true)]
    {
        let Ok(Reply::Model(choice)) = session.execute("0/", model(name)).await else {
            panic!("no model")
        };
        assert_eq!((choice.label.as_str(), choice.changed), (label, is_changed));
    }
    let unknown = session.execute("0/", model(Some("nobody/x"))).await;
    assert!(matches!(unknown, Err(CommandError::Refused(_))), "{unknown:?}");
    session.leave().await;
}

#[tokio::test]
async fn a_conversation_is_exported_to_a_new_file_only() {
    let home = Home::new(ModelServer::start([ModelReply::text("an answer")]));
    let mut session = home.open().await;
    let export = || Command::Export { file: "talk.md".to_owned() };
    let nothing = Err(CommandError::NothingToDo(Nothing::Conversation));
    assert_eq!(session.execute("0/", export()).await, nothing);
    session.ask("0/", "a question").await;
    let exported = session.execute("0/", export()).await;
    let path = home.project().join("talk.md");
    assert!(
        matches!(&exported, Ok(Reply::Exported { path: to, .. }) if *to == path),
        "{exported:?}"
    );
    assert!(read(&path).contains("## You\n\na question\n\n## Agent\n\nan answer"));
    let again = session.execute("0/", export()).await;
    assert!(matches!(again, Err(CommandError::Refused(_))), "{again:?}");
    session.leave().await;
}

#[tokio::test]
async fn sessions_files_and_models_are_listed() {
    let models = json!({"data": [{"id": "one"}, {"id": "two"}]});
    let server = ModelServer::choosing(move |request| match request.path.ends_with("/models") {
        true => ModelReply::json(200, &models),
        false => ModelReply::text("hello"),
    });
    let home = Home::new(server.with_lists());
    std::fs::write(home.project().join("a.rs"), "").unwrap();
    let mut session = home.open().await;
    session.ask("0/", "the first message").await;
    let Ok(Reply::Sessions { sessions, more: 0, .. }) =
        session.execute("0/", Command::Sessions).await
    else {
        panic!("no sessions")
    };
    let titles: Vec<&str> = sessions.iter().map(|session| session.title.as_str()).collect();
    assert_eq!(titles, ["the first message"]);
    let files = session.execute("0/", Command::ListFiles).await;
    assert_eq!(files, Ok(Reply::Files(vec!["a.rs".to_owned()])));
    let Ok(Reply::Models(models)) = session.execute("0/", Command::ListModels).await else {
        panic!("no models")
    };
    let labels: Vec<&str> = models.iter().map(|model| model.label.as_str()).collect();
    assert_eq!(labels, ["openai/one", "openai/two"]);
    session.leave().await;
}
