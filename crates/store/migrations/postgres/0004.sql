-- Mail is inserted after both agents were found under the lock of their session, and agents are only deleted with
-- their session. Checking them again took a third of the time.
ALTER TABLE mail DROP CONSTRAINT mail_sender_fkey, DROP CONSTRAINT mail_recipient_fkey;

-- A statement that inserts many counts them at once, and says so.
DROP TRIGGER mail_arrives ON mail;
CREATE TRIGGER mail_arrives AFTER INSERT ON mail FOR EACH ROW
    WHEN (current_setting('ikigai.counts_mail', true) IS DISTINCT FROM 'yes') EXECUTE FUNCTION mail_arrives();

-- Deleting a row searches every column that may refer to it. Without these indexes it reads all mail or all agents
-- of all sessions.
CREATE INDEX mail_by_cause ON mail (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_cause ON agents (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_heritage ON agents (inherits) WHERE inherits IS NOT NULL;

-- An index entry on the server has at most 2,704 bytes, and a path up to 4,095, so paths are found by a hash.
DROP INDEX sessions_by_place;
CREATE INDEX sessions_by_place ON sessions USING hash (directory);

DROP INDEX changes_by_agent;
CREATE INDEX changes_by_agent ON changes (agent, key);
CREATE INDEX changes_by_path ON changes USING hash (path);

ALTER TABLE sights DROP CONSTRAINT sights_pkey;
CREATE UNIQUE INDEX sights_by_path ON sights (agent, sha256(path));

-- The letters that a commit has sent: the number and the id of each.
ALTER TABLE units ADD COLUMN posted TEXT NOT NULL DEFAULT '';
