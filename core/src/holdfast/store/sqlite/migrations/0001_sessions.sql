-- Sessions, their histories, and the words in them.

CREATE TABLE setting (
    name  TEXT PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

CREATE TABLE session (
    n          INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    cwd        TEXT NOT NULL,
    additional TEXT NOT NULL,              -- JSON array of paths
    title      TEXT,
    title_doc  INTEGER,                    -- where the title is among the docs
    created_at INTEGER NOT NULL,           -- microseconds since 1970
    updated_at INTEGER NOT NULL,           -- only ever grows
    listed     INTEGER NOT NULL DEFAULT 0, -- has had a prompt
    archived   INTEGER NOT NULL DEFAULT 0,
    messages   INTEGER NOT NULL DEFAULT 0,
    lines      INTEGER NOT NULL DEFAULT 0, -- how many its history has
    tail       INTEGER NOT NULL DEFAULT 0, -- how many are before the small segments at its end
    tail_bytes INTEGER NOT NULL DEFAULT 0, -- how large those are together
    state      BLOB NOT NULL,              -- JSON of SessionState
    epoch      INTEGER NOT NULL DEFAULT 1, -- whoever writes must name it
    owner      TEXT,                       -- the process that may write
    turn       INTEGER NOT NULL DEFAULT 0, -- the number of the latest turn
    prompt     BLOB                        -- what its running turn began with; NULL when none runs
);

-- A list is a walk along one of these, whatever the number of sessions. They hold all that a list shows: to look up the
-- row of each session would cost as many reads, all over the file.
CREATE INDEX session_recent ON session
    (updated_at DESC, n DESC, id, cwd, additional, title, created_at, archived, messages) WHERE listed AND NOT archived;
CREATE INDEX session_recent_in ON session
    (cwd, updated_at DESC, n DESC, id, additional, title, created_at, archived, messages) WHERE listed AND NOT archived;
CREATE INDEX session_archived ON session
    (updated_at DESC, n DESC, id, cwd, additional, title, created_at, archived, messages) WHERE listed AND archived;
CREATE INDEX session_archived_in ON session
    (cwd, updated_at DESC, n DESC, id, additional, title, created_at, archived, messages) WHERE listed AND archived;

-- A segment is a run of stored lines. Forks share segments; what is shared is never changed.
CREATE TABLE segment (
    id    INTEGER PRIMARY KEY,
    lines INTEGER NOT NULL,
    body  BLOB NOT NULL
);

CREATE TABLE history (
    session  INTEGER NOT NULL REFERENCES session (n),
    position INTEGER NOT NULL,             -- how many lines come before it
    segment  INTEGER NOT NULL REFERENCES segment (id),
    PRIMARY KEY (session, position)
) WITHOUT ROWID;

CREATE INDEX history_segment ON history (segment);

-- What a search can find: a line of a segment, or the title of a session. A later doc has a larger id.
CREATE TABLE doc (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    segment INTEGER,
    line    INTEGER,
    session INTEGER
);

CREATE INDEX doc_segment ON doc (segment) WHERE segment IS NOT NULL;

CREATE VIRTUAL TABLE words USING fts5 (
    text, content = '', contentless_delete = 1, tokenize = "unicode61 remove_diacritics 2"
);
