-- Calls that wait for the user's approval. Every terminal of the session can answer; the process that asks acts on the
-- answer.
CREATE TABLE questions (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agents,
    -- The hash of the request, so that an answer counts for nothing else.
    hash       TEXT NOT NULL,
    -- What the user is shown.
    request    TEXT NOT NULL,
    -- The process that asks, and its user.
    asker      TEXT NOT NULL,
    asker_user INTEGER NOT NULL,
    -- Whether other users and machines may answer.
    remote     INTEGER NOT NULL,
    answer     TEXT,
    created_at INTEGER NOT NULL
);
CREATE INDEX questions_by_agent ON questions (agent, key);
