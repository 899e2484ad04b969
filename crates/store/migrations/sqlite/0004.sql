-- Deleting a row searches every column that may refer to it. Without these indexes it reads all mail or all agents
-- of all sessions.
CREATE INDEX mail_by_sender ON mail (sender);
CREATE INDEX mail_by_cause ON mail (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_cause ON agents (cause) WHERE cause IS NOT NULL;
CREATE INDEX agents_by_heritage ON agents (inherits) WHERE inherits IS NOT NULL;
