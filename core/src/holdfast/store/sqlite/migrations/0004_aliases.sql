-- Other names of sessions: the ids that a wrapped agent gives to its own (G9). The name of a session that was deleted
-- stays, so that the session stays deleted though the agent names it again.
CREATE TABLE alias (
    scope   INTEGER NOT NULL REFERENCES scope (id),
    name    TEXT NOT NULL,
    session TEXT,                            -- the id of the session; NULL once it was deleted
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;

CREATE INDEX alias_of_session ON alias (session) WHERE session IS NOT NULL;
