-- What requests to models used and cost, so that sums need not read the logs.
CREATE TABLE spending (
    key           INTEGER PRIMARY KEY AUTOINCREMENT,
    agent         INTEGER NOT NULL REFERENCES agents,
    -- The user's message that the agent worked for. NULL: from before this table.
    cause         INTEGER REFERENCES causes,
    model         TEXT NOT NULL,
    -- How many requests are reported in this row, and how many were lost before their report: they may have been
    -- billed.
    requests      INTEGER NOT NULL,
    unreported    INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    -- In micro-dollars; NULL if the price is not known.
    cost          INTEGER,
    created_at    INTEGER NOT NULL
);
CREATE INDEX spending_by_agent ON spending (agent, key);
CREATE INDEX spending_by_cause ON spending (cause) WHERE cause IS NOT NULL;

-- Whether a request of the agent is on its way that is not accounted for yet.
ALTER TABLE agents ADD COLUMN asked INTEGER NOT NULL DEFAULT 0;

INSERT INTO spending (agent, model, requests, unreported, input_tokens, cached_tokens, output_tokens, created_at)
    SELECT agent, coalesce(data ->> 'model', ''), 1, 0, coalesce(data ->> 'input_tokens', 0),
        coalesce(data ->> 'cache_read_tokens', 0), coalesce(data ->> 'output_tokens', 0), created_at
    FROM messages WHERE kind = 'usage' ORDER BY id;
