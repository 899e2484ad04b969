-- Sessions, agents, their logs and their mail. Times are milliseconds since the Unix epoch.

CREATE TABLE sessions (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    -- Its location: never the path alone, because several machines may share the database.
    machine       TEXT NOT NULL,
    directory     TEXT NOT NULL,
    title         TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    -- The number of the next top-level agent. Numbers are never reused.
    next_agent    INTEGER NOT NULL DEFAULT 0,
    -- How many notifications and requests are left until the user sends a message.
    wakes_left    INTEGER NOT NULL,
    requests_left INTEGER NOT NULL,
    -- Whether the user was told that mail is held because no wakes are left.
    held_told     INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_place ON sessions (machine, directory);

CREATE TABLE agents (
    key                  INTEGER PRIMARY KEY AUTOINCREMENT,
    session              INTEGER NOT NULL REFERENCES sessions,
    id                   TEXT NOT NULL,
    name                 TEXT,
    state                TEXT NOT NULL,
    model                TEXT,
    machine              TEXT NOT NULL,
    directory            TEXT NOT NULL,
    -- The first line of its task.
    task                 TEXT NOT NULL DEFAULT '',
    next_child           INTEGER NOT NULL DEFAULT 0,
    -- The number of unread messages in its mailbox, and how many of them have not been announced to its model.
    -- Only the triggers of the mail table change them, so that a full mailbox and mail that may wake the agent
    -- are found without counting.
    unread               INTEGER NOT NULL DEFAULT 0,
    untold               INTEGER NOT NULL DEFAULT 0,
    -- True from a notification until the agent looks at its mailbox.
    notification_pending INTEGER NOT NULL DEFAULT 0,
    -- Its turn ended with an interrupt or an error: mail does not wake it until the next turn starts.
    mail_held            INTEGER NOT NULL DEFAULT 0,
    -- A child with a task reports to its parent once, when it first goes idle.
    owes_report          INTEGER NOT NULL DEFAULT 0,
    -- The agent whose log it continues, and the last inherited message: a full fork copies nothing.
    inherits             INTEGER REFERENCES agents,
    inherits_up_to       INTEGER,
    created_at           INTEGER NOT NULL,
    UNIQUE (session, id)
);

CREATE TABLE messages (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agents,
    kind       TEXT NOT NULL,
    content    TEXT NOT NULL,
    data       TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX messages_by_agent ON messages (agent, id);

CREATE TABLE mail (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    recipient      INTEGER NOT NULL REFERENCES agents,
    sender         INTEGER NOT NULL REFERENCES agents,
    body           TEXT NOT NULL,
    sent_at        INTEGER NOT NULL,
    unread         INTEGER NOT NULL DEFAULT 1,
    -- The log messages that sent it, announced it to its recipient's model, and read it.
    sent_by        INTEGER,
    told_by        INTEGER,
    read_by        INTEGER,
    -- The user read it, which is in no log.
    read_by_person INTEGER NOT NULL DEFAULT 0
);
-- The order of an inbox: unread first, then the latest first.
CREATE INDEX mail_by_mailbox ON mail (recipient, unread DESC, id DESC);

CREATE TRIGGER mail_arrives AFTER INSERT ON mail BEGIN
    UPDATE agents SET unread = unread + NEW.unread,
            untold = untold + (NEW.unread AND NEW.told_by IS NULL)
        WHERE key = NEW.recipient;
END;
CREATE TRIGGER mail_changes AFTER UPDATE OF unread, told_by ON mail BEGIN
    UPDATE agents SET unread = unread + NEW.unread - OLD.unread,
            untold = untold + (NEW.unread AND NEW.told_by IS NULL) - (OLD.unread AND OLD.told_by IS NULL)
        WHERE key = NEW.recipient;
END;

-- The process that runs a top-level agent and its descendants. The row stays when the lease is released,
-- so that its epoch only grows: it is the fence.
CREATE TABLE leases (
    agent  INTEGER PRIMARY KEY REFERENCES agents,
    epoch  INTEGER NOT NULL,
    holder TEXT NOT NULL,
    -- 0: released.
    until  INTEGER NOT NULL
);

-- Which agents wait for which, so that cycles are detected across processes.
CREATE TABLE waits (
    waiter  INTEGER NOT NULL REFERENCES agents,
    awaited INTEGER NOT NULL REFERENCES agents,
    PRIMARY KEY (waiter, awaited)
) WITHOUT ROWID;

-- User input while the agent was at work.
CREATE TABLE queued_inputs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agents,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX queued_inputs_by_agent ON queued_inputs (agent, id);

-- Units of work that must not happen twice, with their results.
CREATE TABLE units (
    key        TEXT PRIMARY KEY,
    -- The log message that it wrote.
    outcome    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX units_by_age ON units (created_at);
