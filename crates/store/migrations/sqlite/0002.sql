-- What the user's messages caused, and what that did to files: to undo it, and to notice that another agent has
-- changed a file.

-- A message or mail from the user.
CREATE TABLE causes (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    session    INTEGER NOT NULL REFERENCES sessions,
    -- Its first line.
    title      TEXT NOT NULL,
    created_at INTEGER NOT NULL
);
CREATE INDEX causes_by_session ON causes (session, key);

-- The cause that the agent works for, and the one that the sender of a mail worked for.
ALTER TABLE agents ADD COLUMN cause INTEGER REFERENCES causes;
ALTER TABLE mail ADD COLUMN cause INTEGER REFERENCES causes;

-- An undo, which may be redone.
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
    -- The result in the log that reports it.
    message     INTEGER NOT NULL,
    -- Absolute, without links; bytes, because not every name is valid text.
    path        BLOB NOT NULL,
    -- The fingerprint of the file right after the change, and the hash of its content.
    looks       TEXT NOT NULL,
    hash        TEXT NOT NULL,
    -- How many of the folders above it were created for it.
    new_folders INTEGER NOT NULL,
    -- made, undone, or left: it could not be undone.
    state       TEXT NOT NULL DEFAULT 'made',
    -- The undo that undid it or left it.
    undo        INTEGER REFERENCES undos,
    created_at  INTEGER NOT NULL,
    -- absent, content or not kept.
    before_is   TEXT NOT NULL,
    before_mode INTEGER,
    -- What the undo removed: content or not kept. NULL before the first undo.
    after_is    TEXT,
    after_mode  INTEGER,
    -- Last, so that the other columns are read without them.
    before      BLOB,
    after       BLOB
);
CREATE INDEX changes_by_cause ON changes (cause, state, key);
CREATE INDEX changes_by_agent ON changes (agent, path, key);
CREATE INDEX changes_by_undo ON changes (undo, state, key);

-- The fingerprint of a file when an agent last read or wrote it.
CREATE TABLE sights (
    agent   INTEGER NOT NULL REFERENCES agents,
    path    BLOB NOT NULL,
    looks   TEXT NOT NULL,
    -- The result in the log that reports it.
    message INTEGER NOT NULL,
    PRIMARY KEY (agent, path)
) WITHOUT ROWID;
