-- What a person has set going, and what it did to files: for taking it back, and for noticing that a file was
-- changed by somebody else.

-- A message of a person, or mail from the person's own hand.
CREATE TABLE causes (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    session    INTEGER NOT NULL REFERENCES sessions,
    -- The first line of it.
    title      TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX causes_by_session ON causes (session, key);

-- What the agent works for, and what the sender of a mail worked for.
ALTER TABLE agents ADD COLUMN cause INTEGER REFERENCES causes;
ALTER TABLE mail ADD COLUMN cause INTEGER REFERENCES causes;

-- A taking back, which may be taken back as well.
CREATE TABLE undos (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    cause      INTEGER NOT NULL REFERENCES causes,
    redone     INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
);
CREATE INDEX undos_by_cause ON undos (cause, key);

CREATE TABLE changes (
    key         INTEGER PRIMARY KEY AUTOINCREMENT,
    cause       INTEGER NOT NULL REFERENCES causes,
    agent       INTEGER NOT NULL REFERENCES agents,
    -- The result in the log that tells of it.
    message     INTEGER NOT NULL,
    -- Absolute, without links; bytes, since not every name is text.
    path        BLOB NOT NULL,
    -- How the file looked right after the change, and the hash of its content then.
    looks       TEXT NOT NULL,
    hash        TEXT NOT NULL,
    -- How many of the folders above it were made for it.
    new_folders INTEGER NOT NULL,
    -- made, undone, or left: it could not be taken back.
    state       TEXT NOT NULL DEFAULT 'made',
    -- Which undo took it back or left it.
    undo        INTEGER REFERENCES undos,
    created_at  INTEGER NOT NULL,
    -- absent, content or not kept.
    before_is   TEXT NOT NULL,
    before_mode INTEGER,
    -- What the undo took away: content or not kept; nothing before there was one.
    after_is    TEXT,
    after_mode  INTEGER,
    -- Last, so that the other columns are read without them.
    before      BLOB,
    after       BLOB
);
CREATE INDEX changes_by_cause ON changes (cause, state, key);
CREATE INDEX changes_by_agent ON changes (agent, path, key);
CREATE INDEX changes_by_undo ON changes (undo, state, key);

-- How a file looked when an agent has last read or written it.
CREATE TABLE sights (
    agent   INTEGER NOT NULL REFERENCES agents,
    path    BLOB NOT NULL,
    looks   TEXT NOT NULL,
    -- The result in the log that tells of it.
    message INTEGER NOT NULL,
    PRIMARY KEY (agent, path)
) WITHOUT ROWID;
