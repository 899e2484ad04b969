-- What forks in the middle of a turn and waits need to know about an agent's last turn.

-- The first message of its last turn, and whether that turn is in progress.
ALTER TABLE agents ADD COLUMN turn_start BIGINT;
ALTER TABLE agents ADD COLUMN in_turn BIGINT NOT NULL DEFAULT 0;
-- Why its last turn ended without an answer.
ALTER TABLE agents ADD COLUMN last_error TEXT;

CREATE INDEX waits_by_awaited ON waits (awaited);
