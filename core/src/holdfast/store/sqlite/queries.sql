-- Every query of the store, by name.

-- name: add_scope
INSERT INTO scope (principal, agent) VALUES (:principal, :agent) ON CONFLICT DO NOTHING;

-- name: get_scope
SELECT id FROM scope WHERE principal = :principal AND agent = :agent;

-- name: scopes_of_principal
SELECT id, agent FROM scope WHERE principal = :principal;

-- name: count_scopes
SELECT count(*) FROM scope;

-- name: used_scopes
SELECT principal, agent FROM scope
WHERE agent <> '' AND EXISTS (SELECT 1 FROM session WHERE listed = 1 AND session.scope = scope.id)
ORDER BY principal, agent;

-- name: agents_of_principal
SELECT agent FROM scope
WHERE principal = :principal AND agent <> ''
  AND EXISTS (SELECT 1 FROM session WHERE listed = 1 AND session.scope = scope.id)
ORDER BY agent;

-- name: get_principal
SELECT principal FROM session JOIN scope ON scope.id = session.scope WHERE n = :n;

-- name: add_session
INSERT INTO session (id, cwd, additional, created_at, updated_at, listed, archived, messages, state, owner, scope)
VALUES (:id, :cwd, :additional, :created_at, :updated_at, :listed, :archived, :messages, :state, :owner, :scope)
RETURNING n, epoch;

-- name: get_session
SELECT n, session.id, cwd, additional, title, title_doc, created_at, updated_at, archived, messages, lines, state,
    epoch, owner, turn, accepted, principal, agent
FROM session JOIN scope ON scope.id = session.scope WHERE session.id = :id;

-- name: get_session_by_number
SELECT n, session.id, cwd, additional, title, title_doc, created_at, updated_at, archived, messages, lines, state,
    epoch, owner, turn, accepted, principal, agent
FROM session JOIN scope ON scope.id = session.scope WHERE n = :n;

-- name: find_sessions
SELECT n, session.id, cwd, additional, title, title_doc, created_at, updated_at, archived, messages, lines, state,
    epoch, owner, turn, accepted, principal, agent
FROM session JOIN scope ON scope.id = session.scope
WHERE session.id >= :first AND session.id < :end AND session.id > :after ORDER BY session.id LIMIT :limit;

-- name: get_claimed
SELECT n, scope, turn, lines, tail, tail_bytes, title, title_doc FROM session WHERE id = :id AND epoch = :epoch;

-- name: list_in_scope
SELECT updated_at, n, id, cwd, additional, title, created_at, archived, messages
FROM session
WHERE listed = 1 AND scope = :scope AND archived = :archived AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: list_in_directory
SELECT updated_at, n, id, cwd, additional, title, created_at, archived, messages
FROM session
WHERE listed = 1 AND scope = :scope AND archived = :archived AND cwd = :cwd AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: take_session
UPDATE session SET epoch = epoch + 1, owner = :owner WHERE n = :n RETURNING epoch;

-- name: release_session
UPDATE session SET owner = NULL WHERE id = :id AND epoch = :epoch RETURNING n, accepted IS NOT NULL;

-- name: begin_turn
UPDATE session
SET turn = turn + 1, accepted = :accepted, state = coalesce(:state, state), listed = listed OR :activity,
    updated_at = CASE WHEN :activity THEN max(updated_at + 1, :now) ELSE updated_at END
WHERE id = :id AND epoch = :epoch AND accepted IS NULL
RETURNING n, turn, title, title_doc;

-- name: note_turn
UPDATE session
SET turn = :turn, accepted = :accepted, listed = 1, updated_at = max(updated_at + 1, :began_at)
WHERE id = :id AND epoch = :epoch;

-- name: seal_turn
UPDATE session
SET accepted = NULL, turn = :turn, listed = listed OR :began_at > 0, state = coalesce(:state, state),
    messages = messages + :messages,
    updated_at = CASE WHEN :activity THEN max(updated_at + 1, :now) ELSE max(updated_at, :began_at) END,
    lines = :lines, tail = :tail, tail_bytes = :tail_bytes
WHERE n = :n;

-- name: count_short_turn
-- A turn that began in its log alone, and whose lines fit into the tail of the history. Where they do not, or the claim is
-- outdated, or the database knows of the turn already, nothing is changed.
UPDATE session
SET turn = :turn, listed = 1, state = coalesce(:state, state), messages = messages + :messages,
    updated_at = CASE WHEN :activity THEN max(updated_at + 1, :now) ELSE max(updated_at, :began_at) END,
    lines = lines + :lines, tail_bytes = tail_bytes + :bytes
WHERE id = :id AND epoch = :epoch AND accepted IS NULL AND turn = :turn - 1 AND tail_bytes + :bytes <= :tail_most;

-- name: add_short_turn
-- The last table has no rowids: what was inserted is the segment. What the index writes as the second statement begins
-- does not change that: FTS5 sets `last_insert_rowid` back.
INSERT INTO segment (lines, checksum, body) VALUES (:lines, :checksum, :body);
INSERT INTO history_segment (session, position, segment)
SELECT n, lines - :lines, last_insert_rowid() FROM session WHERE id = :id;

-- name: set_state
UPDATE session SET state = :state WHERE n = :n;

-- name: set_archived
UPDATE session SET archived = :archived WHERE n = :n;

-- name: set_additional
UPDATE session SET additional = :additional WHERE n = :n;

-- name: set_scope
UPDATE session SET scope = :scope WHERE n = :n;

-- name: set_messages
UPDATE session SET messages = :messages WHERE n = :n;

-- name: set_title
UPDATE session SET title = :title, title_doc = :doc WHERE n = :n;

-- name: get_end
SELECT lines, tail, tail_bytes FROM session WHERE n = :n;

-- name: set_end
UPDATE session SET lines = :lines, tail = :tail, tail_bytes = :tail_bytes WHERE n = :n;

-- name: add_segment
INSERT INTO segment (lines, checksum, body) VALUES (:lines, :checksum, :body);

-- name: set_segment
UPDATE segment SET body = :body, checksum = :checksum, lines = :lines WHERE id = :id;

-- name: move_docs
UPDATE doc SET segment = :segment, line = doc.line + history_segment.position - :tail
FROM history_segment
WHERE history_segment.session = :n AND history_segment.position > :tail AND doc.segment = history_segment.segment;

-- name: cut_history
DELETE FROM history_segment WHERE session = :n AND position > :tail;

-- name: add_to_history
INSERT INTO history_segment (session, position, segment) VALUES (:n, :position, :segment);

-- name: read_history
-- From the segment with a line on; :passed is where the one begins that was read before, and none behind it is left out.
-- The checksum lies behind the body, over whose pages SQLite has to go to reach it: asked for first, it costs half as
-- much again as the body alone, asked for second next to nothing. Where the database is damaged a value may be of any
-- type, so each is made to have its own.
SELECT position, segment.id, CAST(segment.lines AS INTEGER), CAST(body AS BLOB), checksum
FROM history_segment JOIN segment ON segment.id = history_segment.segment
WHERE session = :n AND position >= coalesce(
    (SELECT min(position) FROM history_segment WHERE session = :n AND position > :passed AND position <= :line),
    (SELECT max(position) FROM history_segment WHERE session = :n AND position <= :line),
    0
)
ORDER BY position;

-- name: get_history_end
-- How many lines a history should have, and how many are before the end of its last segment.
SELECT CAST(lines AS INTEGER), coalesce(
    (SELECT position + CAST(segment.lines AS INTEGER)
     FROM history_segment JOIN segment ON segment.id = history_segment.segment
     WHERE history_segment.session = session.n ORDER BY position DESC LIMIT 1),
    0
)
FROM session WHERE n = :n;

-- name: copy_history
INSERT INTO history_segment (session, position, segment)
SELECT :copy, position, segment FROM history_segment WHERE session = :n AND position < :end;

-- name: add_private
INSERT INTO private (session, start, position, data) VALUES (:n, :start, :position, :data);

-- name: read_private
SELECT data FROM private WHERE session = :n ORDER BY position, id;

-- name: private_entries
SELECT start, position, data FROM private WHERE session = :n ORDER BY position, id;

-- name: every_alias
SELECT principal, agent, name, session FROM alias JOIN scope ON scope.id = alias.scope ORDER BY scope.id, name;

-- name: copy_private
INSERT INTO private (session, start, position, data)
SELECT :copy, start, position, data FROM private WHERE session = :n AND position <= :end ORDER BY position, id;

-- name: cuts_private
SELECT EXISTS (SELECT 1 FROM private WHERE session = :n AND start < :end AND position > :end);

-- name: delete_private
DELETE FROM private WHERE session = :n;

-- name: add_doc
INSERT INTO doc (segment, line, session) VALUES (:segment, :line, :session);

-- name: add_words
INSERT INTO words (rowid, text) VALUES (:id, :text);

-- name: delete_words
DELETE FROM words WHERE rowid = :id;

-- name: delete_doc
DELETE FROM doc WHERE id = :id;

-- name: find_words
SELECT words.rowid, doc.segment, doc.line, doc.session
FROM words JOIN doc ON doc.id = words.rowid
WHERE words MATCH :words ORDER BY words.rowid DESC;

-- name: find_words_in_scopes
WITH mine (n, title_doc) AS (
    SELECT n, title_doc FROM session
    WHERE listed = 1 AND scope IN (SELECT value FROM json_each(:scopes))
      AND archived IN (SELECT value FROM json_each(:archived)) AND updated_at >= :since
), place (id) AS MATERIALIZED (
    SELECT doc.id FROM mine JOIN history_segment ON history_segment.session = mine.n
    JOIN doc ON doc.segment = history_segment.segment
    UNION
    SELECT title_doc FROM mine
)
SELECT words.rowid, doc.segment, doc.line, doc.session
FROM words JOIN doc ON doc.id = words.rowid
WHERE words MATCH :words AND words.rowid < :before AND +words.rowid IN place ORDER BY words.rowid DESC;

-- name: find_words_in_directory
WITH mine (n, title_doc) AS (
    SELECT n, title_doc FROM session
    WHERE listed = 1 AND scope IN (SELECT value FROM json_each(:scopes))
      AND archived IN (SELECT value FROM json_each(:archived)) AND cwd = :cwd AND updated_at >= :since
), place (id) AS MATERIALIZED (
    SELECT doc.id FROM mine JOIN history_segment ON history_segment.session = mine.n
    JOIN doc ON doc.segment = history_segment.segment
    UNION
    SELECT title_doc FROM mine
)
SELECT words.rowid, doc.segment, doc.line, doc.session
FROM words JOIN doc ON doc.id = words.rowid
WHERE words MATCH :words AND words.rowid < :before AND +words.rowid IN place ORDER BY words.rowid DESC;

-- name: sessions_with_segment
SELECT session FROM history_segment WHERE segment = :segment ORDER BY session;

-- name: get_segment
SELECT CAST(lines AS INTEGER), CAST(body AS BLOB), checksum FROM segment WHERE id = :id;

-- name: exclusive_segments
SELECT segment FROM history_segment AS mine
WHERE mine.session = :n
  AND NOT EXISTS (SELECT 1 FROM history_segment AS other WHERE other.segment = mine.segment AND other.session <> :n);

-- name: delete_words_of
DELETE FROM words WHERE rowid IN (
    SELECT doc.id FROM history_segment AS mine JOIN doc ON doc.segment = mine.segment
    WHERE mine.session = :n
      AND NOT EXISTS (SELECT 1 FROM history_segment AS other WHERE other.segment = mine.segment AND other.session <> :n)
);

-- name: delete_docs_of
DELETE FROM doc WHERE id IN (
    SELECT doc.id FROM history_segment AS mine JOIN doc ON doc.segment = mine.segment
    WHERE mine.session = :n
      AND NOT EXISTS (SELECT 1 FROM history_segment AS other WHERE other.segment = mine.segment AND other.session <> :n)
);

-- name: delete_segment
DELETE FROM segment WHERE id = :id;

-- name: delete_history
DELETE FROM history_segment WHERE session = :n;

-- name: set_alias
INSERT INTO alias (scope, name, session) VALUES (:scope, :name, :session)
ON CONFLICT (scope, name) DO UPDATE SET session = excluded.session;

-- name: find_alias
SELECT session FROM alias WHERE scope = :scope AND name = :name;

-- name: bury_aliases
UPDATE alias SET session = NULL WHERE session = :session;

-- name: delete_session
DELETE FROM session WHERE n = :n;

-- name: old_sessions
SELECT id FROM session WHERE updated_at < :before ORDER BY updated_at;

-- name: get_setting
SELECT value FROM setting WHERE name = :name;

-- name: add_setting
INSERT INTO setting (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: count_commit
INSERT INTO setting (name, value) VALUES ('commits', 1) ON CONFLICT DO UPDATE SET value = value + 1;

-- name: count_of_commits
SELECT coalesce((SELECT value FROM setting WHERE name = 'commits'), 0);

-- name: set_count_of_commits
INSERT INTO setting (name, value) VALUES ('commits', :count) ON CONFLICT DO UPDATE SET value = :count;

-- name: note_lost_commits
INSERT INTO setting (name, value) VALUES ('lost commits', :lost) ON CONFLICT DO UPDATE SET value = value + :lost;

-- name: lost_commits
SELECT coalesce((SELECT value FROM setting WHERE name = 'lost commits'), 0);

-- name: forget_lost_commits
DELETE FROM setting WHERE name = 'lost commits';

-- name: count_sessions
SELECT count(*) FROM session;

-- name: sum_sessions
SELECT count(*), coalesce(sum(messages), 0), min(created_at), max(updated_at)
FROM session WHERE listed = 1 AND scope IN (SELECT id FROM scope) AND archived = :archived;

-- name: sum_segments
SELECT coalesce(sum(lines), 0), coalesce(sum(length(body)), 0) FROM segment;

-- name: count_docs
SELECT count(*) FROM doc;

-- name: busiest_directories
SELECT cwd, count(*) AS sessions, sum(messages), max(updated_at)
FROM session WHERE listed = 1 AND scope IN (SELECT id FROM scope) AND archived = 0
GROUP BY cwd ORDER BY sessions DESC, cwd LIMIT :limit;

-- name: states
SELECT agent, messages, state FROM session JOIN scope ON scope.id = session.scope WHERE listed = 1;

-- name: check_integrity
PRAGMA integrity_check(20);

-- name: check_references
PRAGMA foreign_key_check;

-- name: miscounted_sessions
SELECT id FROM session WHERE lines <> (
    SELECT coalesce(sum(segment.lines), 0) FROM history_segment JOIN segment ON segment.id = history_segment.segment
    WHERE history_segment.session = session.n
) LIMIT :limit;

-- name: gaps_in_histories
-- Segments that do not begin where the one before them ends.
SELECT session.id, position, before + segment.lines
FROM (SELECT session, position, lag(position) OVER parts AS before, lag(segment) OVER parts AS part
      FROM history_segment WINDOW parts AS (PARTITION BY session ORDER BY position)) AS placed
JOIN segment ON segment.id = part JOIN session ON session.n = placed.session
WHERE position <> before + segment.lines LIMIT :limit;

-- name: unreadable_sessions
SELECT CAST(id AS TEXT) FROM session
WHERE typeof(id) <> 'text' OR typeof(cwd) <> 'text' OR typeof(additional) <> 'text'
    OR CASE WHEN json_valid(additional) THEN json_type(additional) <> 'array' ELSE TRUE END
    OR typeof(title) NOT IN ('text', 'null') OR typeof(created_at) <> 'integer' OR typeof(updated_at) <> 'integer'
    OR typeof(messages) <> 'integer' OR typeof(lines) <> 'integer' OR typeof(epoch) <> 'integer'
    OR typeof(turn) <> 'integer'
    OR CASE WHEN json_valid(CAST(state AS TEXT)) THEN json_type(CAST(state AS TEXT)) <> 'object' ELSE TRUE END
LIMIT :limit;

-- name: count_unused_segments
SELECT count(*) FROM segment
WHERE NOT EXISTS (SELECT 1 FROM history_segment WHERE history_segment.segment = segment.id);

-- name: check_words
INSERT INTO words (words) VALUES ('integrity-check');

-- name: count_docs_without_words
SELECT count(*) FROM doc WHERE NOT EXISTS (SELECT 1 FROM words_docsize WHERE words_docsize.id = doc.id);

-- name: delete_docs_without_words
DELETE FROM doc WHERE NOT EXISTS (SELECT 1 FROM words_docsize WHERE words_docsize.id = doc.id);

-- name: count_words_without_doc
SELECT count(*) FROM words_docsize WHERE NOT EXISTS (SELECT 1 FROM doc WHERE doc.id = words_docsize.id);

-- name: count_lost_docs
SELECT count(*) FROM doc
WHERE NOT EXISTS (SELECT 1 FROM segment WHERE segment.id = doc.segment AND doc.line < segment.lines)
  AND NOT EXISTS (SELECT 1 FROM session WHERE session.n = doc.session AND session.title_doc = doc.id);

-- name: delete_lost_docs
DELETE FROM doc
WHERE NOT EXISTS (SELECT 1 FROM segment WHERE segment.id = doc.segment AND doc.line < segment.lines)
  AND NOT EXISTS (SELECT 1 FROM session WHERE session.n = doc.session AND session.title_doc = doc.id);

-- name: count_untitled_docs
SELECT count(*) FROM session WHERE title IS NOT NULL AND NOT EXISTS (SELECT 1 FROM doc WHERE doc.id = session.title_doc);

-- name: delete_all_words
INSERT INTO words (words) VALUES ('delete-all');

-- name: docs_of_segment
SELECT line, id FROM doc WHERE segment = :segment;

-- name: has_new_segments
SELECT coalesce((SELECT max(id) FROM segment), 0) > (SELECT value FROM setting WHERE name = 'indexed segment');

-- name: new_segments
SELECT id, checksum FROM segment
WHERE id > (SELECT value FROM setting WHERE name = 'indexed segment') ORDER BY id;

-- name: new_history
SELECT min(session), segment FROM history_segment
WHERE segment > (SELECT value FROM setting WHERE name = 'indexed segment')
GROUP BY segment ORDER BY segment;

-- name: all_indexed
UPDATE setting SET value = coalesce((SELECT max(id) FROM segment), 0) WHERE name = 'indexed segment';

-- name: indexed_at_most
UPDATE setting SET value = coalesce((SELECT max(id) FROM segment), 0)
WHERE name = 'indexed segment' AND value > coalesce((SELECT max(id) FROM segment), 0);

-- name: every_history
SELECT session, segment FROM history_segment ORDER BY session, position;

-- name: every_title
SELECT n, title, title_doc FROM session WHERE title IS NOT NULL;

-- name: has_doc
SELECT 1 FROM doc WHERE id = :id AND session = :session;

-- name: unsealed_turns
SELECT n, id, turn, owner FROM session WHERE accepted IS NOT NULL;

-- name: owned_sessions
SELECT n, owner FROM session WHERE owner IS NOT NULL;

-- name: owners
SELECT id, owner FROM session WHERE owner IS NOT NULL;

-- name: count_by_owner
SELECT owner, count(*) FROM session WHERE owner IS NOT NULL GROUP BY owner;

-- name: every_segment
SELECT id, CAST(lines AS INTEGER), CAST(body AS BLOB), checksum FROM segment ORDER BY id;

-- name: place_of_segment
SELECT session.id, position FROM history_segment JOIN session ON session.n = history_segment.session
WHERE segment = :segment ORDER BY session.n LIMIT 1;
