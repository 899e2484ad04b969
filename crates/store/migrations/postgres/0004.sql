-- A row that is deleted is looked for in every column that may refer to it: without these, by reading all mail or
-- all agents of all sessions.
CREATE INDEX mail_by_sender ON mail (sender);
CREATE INDEX mail_by_cause ON mail (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_cause ON agents (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_heritage ON agents (inherits) WHERE inherits IS NOT NULL;

-- An index of the server holds no more than 2,704 bytes of a row, and a path may have 4,095: it is found by a hash.
DROP INDEX sessions_by_place;
CREATE INDEX sessions_by_place ON sessions USING hash (directory);

DROP INDEX changes_by_agent;
CREATE INDEX changes_by_agent ON changes (agent, key);
CREATE INDEX changes_by_path ON changes USING hash (path);

ALTER TABLE sights DROP CONSTRAINT sights_pkey;
CREATE UNIQUE INDEX sights_by_path ON sights (agent, sha256(path));
