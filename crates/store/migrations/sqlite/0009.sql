-- The line of output that an agent wants to be notified of, once it was printed, and the log message that reports it.
ALTER TABLE commands ADD COLUMN matched TEXT;
ALTER TABLE commands ADD COLUMN matched_told_by INTEGER;
CREATE INDEX commands_matched ON commands (agent) WHERE matched IS NOT NULL AND matched_told_by IS NULL;
