-- Other names of sessions: the ids that a wrapped agent gives to its own (G9). The name of a session that was deleted
-- stays, so that the session stays deleted though the agent names it again.
CREATE TABLE holdfast.alias (
    scope   INTEGER NOT NULL,
    name    TEXT COLLATE "C" NOT NULL,             -- as JSON: it may hold what a TEXT may not
    session TEXT COLLATE "C",                      -- the id of the session; NULL once it was deleted
    PRIMARY KEY (scope, name)
);
CREATE INDEX alias_of_session ON holdfast.alias (session) WHERE session IS NOT NULL;
