-- Sessions belong to a principal and an agent; private entries; checksums.

CREATE TABLE scope (
    id        INTEGER PRIMARY KEY,
    principal TEXT NOT NULL,
    agent     TEXT NOT NULL,                -- empty for sessions that belong to no agent yet
    UNIQUE (principal, agent)
);

-- What was stored before belongs to the user of this machine and to no agent yet (F6).
INSERT INTO scope (id, principal, agent) VALUES (1, 'local', '');
ALTER TABLE session ADD COLUMN scope INTEGER NOT NULL DEFAULT 1 REFERENCES scope (id);

-- Nobody knows which agent was given what for ever (F6).
UPDATE session SET state = CASE
    WHEN json_valid(CAST(state AS TEXT)) THEN CAST(json_remove(CAST(state AS TEXT), '$.permissions') AS BLOB)
    ELSE state
END
WHERE instr(CAST(state AS TEXT), '"permissions"');

-- A list is a walk along one of these for each scope, whatever the number of sessions. They hold all that a list shows:
-- to look up the row of each session would cost as many reads, all over the file.
DROP INDEX session_recent;
DROP INDEX session_recent_in;
DROP INDEX session_archived;
DROP INDEX session_archived_in;
CREATE INDEX session_in_scope ON session
    (scope, archived, updated_at DESC, n DESC, id, cwd, additional, title, created_at, messages) WHERE listed = 1;
CREATE INDEX session_in_directory ON session
    (scope, archived, cwd, updated_at DESC, n DESC, id, additional, title, created_at, messages) WHERE listed = 1;

ALTER TABLE segment ADD COLUMN checksum INTEGER;  -- CRC-32 of the body; NULL where it was written before this

-- Under its new name a process of an older version, which may still be running, cannot write segments without one.
DROP INDEX history_segment;
ALTER TABLE history RENAME TO history_segment;
CREATE INDEX history_by_segment ON history_segment (segment);

-- The largest id was kept in a table of its own, which cost a page with every turn. A later doc has a larger id all the
-- same: the next one is larger than all there are.
ALTER TABLE doc RENAME TO old_doc;
DROP INDEX doc_segment;
CREATE TABLE doc (
    id      INTEGER PRIMARY KEY,
    segment INTEGER,
    line    INTEGER,
    session INTEGER
);
INSERT INTO doc SELECT id, segment, line, session FROM old_doc ORDER BY id;
DROP TABLE old_doc;
CREATE INDEX doc_segment ON doc (segment) WHERE segment IS NOT NULL;

-- What agents keep for themselves. It is no part of the history, and is cut and deleted with it.
CREATE TABLE private (
    id       INTEGER PRIMARY KEY,            -- a later one has a larger id
    session  INTEGER NOT NULL REFERENCES session (n),
    start    INTEGER NOT NULL,               -- how many lines the history had when its turn began
    position INTEGER NOT NULL,               -- and when it was sealed
    data     BLOB NOT NULL
);

CREATE INDEX private_of_session ON private (session, position);
