-- Made by a terminal when it opened. Until it is used, such an agent is not listed and does not count, and it goes
-- when the terminal closes. Cleared by the end of the terminal if it was used.
ALTER TABLE agents ADD COLUMN opened BIGINT NOT NULL DEFAULT 0;
-- There are few at a time, so what was left behind is found without a search.
CREATE INDEX agents_opened ON agents (session) WHERE opened = 1;
