-- Commands that outlive the call that started them.
CREATE TABLE commands (
    key        INTEGER PRIMARY KEY AUTOINCREMENT,
    agent      INTEGER NOT NULL REFERENCES agents,
    -- By which agents and the user know it: unique in the session, and never reused.
    number     INTEGER NOT NULL,
    -- Its first line.
    line       TEXT NOT NULL,
    -- running, ended, or lost: it was ended with the process that ran it.
    state      TEXT NOT NULL DEFAULT 'running',
    exit_code  INTEGER,
    -- The last lines of its output.
    tail       TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL,
    ended_at   INTEGER,
    -- The log messages that say that it runs, and that it has ended.
    started_by INTEGER NOT NULL,
    told_by    INTEGER
);
CREATE INDEX commands_by_agent ON commands (agent, key);
-- There are few at a time, so an end that may wake an agent is found without a search.
CREATE INDEX commands_untold ON commands (agent) WHERE told_by IS NULL;
