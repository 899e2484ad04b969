-- Sessions, agents, their logs and their mail. Times are milliseconds since the Unix epoch.

CREATE TABLE sessions (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT NOT NULL UNIQUE,
    -- Where it belongs: never the path alone, since many machines may share the database.
    machine       TEXT NOT NULL,
    directory     TEXT NOT NULL,
    title         TEXT NOT NULL DEFAULT '',
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    -- The number of the next top-level agent; numbers are never used again.
    next_agent    INTEGER NOT NULL DEFAULT 0,
    -- How many notifications and requests are left until a person speaks again.
    wakes_left    INTEGER NOT NULL,
    requests_left INTEGER NOT NULL,
    -- Whether the person was told that mail is held because no wakes are left.
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
    -- The first line of what it was asked to do.
    task                 TEXT NOT NULL DEFAULT '',
    next_child           INTEGER NOT NULL DEFAULT 0,
    -- How many unread messages are in its mailbox, and of how many of these its model was not told: kept by
    -- the triggers of the mail table alone, so that a full mailbox and mail that may wake are seen without
    -- counting.
    unread               INTEGER NOT NULL DEFAULT 0,
    untold               INTEGER NOT NULL DEFAULT 0,
    -- From a notification until the agent looks into its mailbox.
    notification_pending INTEGER NOT NULL DEFAULT 0,
    -- Its turn ended by an interrupt or an error: mail does not wake it until the next turn starts.
    mail_held            INTEGER NOT NULL DEFAULT 0,
    -- A child with a prompt reports to its parent once, when it first goes idle.
    owes_report          INTEGER NOT NULL DEFAULT 0,
    -- Whose log it continues, and up to which message: a full fork copies nothing.
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
    -- The log messages that sent it, told its recipient's model of it, and read it.
    sent_by        INTEGER,
    told_by        INTEGER,
    read_by        INTEGER,
    -- A person read it, and no log says so.
    read_by_person INTEGER NOT NULL DEFAULT 0
);
-- The order of an inbox: unread first, then newest first.
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

-- Who runs a top-level agent and its descendants. The row stays when the lease is given back, so that its
-- epoch only grows: it is the fence.
CREATE TABLE leases (
    agent  INTEGER PRIMARY KEY REFERENCES agents,
    epoch  INTEGER NOT NULL,
    holder TEXT NOT NULL,
    -- 0: given back.
    until  INTEGER NOT NULL
);

-- Who waits for whom, so that a circle is seen across processes.
CREATE TABLE waits (
    waiter  INTEGER NOT NULL REFERENCES agents,
    awaited INTEGER NOT NULL REFERENCES agents,
    PRIMARY KEY (waiter, awaited)
) WITHOUT ROWID;

-- What a person typed while the agent was at work.
CREATE TABLE queued_inputs (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agents,
    content    TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX queued_inputs_by_agent ON queued_inputs (agent, id);

-- Units of work that must not happen twice, with what they gave.
CREATE TABLE units (
    key        TEXT PRIMARY KEY,
    -- The log message that it wrote.
    outcome    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX units_by_age ON units (created_at);
