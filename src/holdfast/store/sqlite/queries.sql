-- Every query of the store, by name.

-- name: add_session
INSERT INTO session (id, cwd, additional, title, created_at, updated_at, listed, archived, messages, state, owner)
VALUES (:id, :cwd, :additional, :title, :created_at, :updated_at, :listed, :archived, :messages, :state, :owner)
RETURNING n, epoch;

-- name: get_session
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages, state, epoch, owner, turn, prompt, lines
FROM session WHERE id = :id;

-- name: get_session_by_number
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages, state, epoch, owner, turn, prompt, lines
FROM session WHERE n = :n;

-- name: list_recent
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
FROM session
WHERE listed AND NOT archived AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: list_recent_in
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
FROM session
WHERE listed AND NOT archived AND cwd = :cwd AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: list_archived
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
FROM session
WHERE listed AND archived AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: list_archived_in
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
FROM session
WHERE listed AND archived AND cwd = :cwd AND (updated_at, n) < (:updated_at, :n)
ORDER BY updated_at DESC, n DESC LIMIT :limit;

-- name: take_session
UPDATE session SET epoch = epoch + 1, owner = :owner WHERE n = :n RETURNING epoch;

-- name: release_session
UPDATE session SET owner = NULL WHERE id = :id AND epoch = :epoch;

-- name: begin_turn
UPDATE session
SET turn = turn + 1, prompt = :prompt, listed = 1, updated_at = max(updated_at + 1, :now)
WHERE id = :id AND epoch = :epoch
RETURNING n, turn;

-- name: end_turn
UPDATE session
SET prompt = NULL, messages = messages + :messages,
    updated_at = CASE WHEN :late THEN updated_at ELSE max(updated_at + 1, :now) END
WHERE id = :id AND epoch = :epoch
RETURNING n, turn;

-- name: check_claim
SELECT n FROM session WHERE id = :id AND epoch = :epoch;

-- name: set_state
UPDATE session SET state = :state WHERE n = :n;

-- name: set_archived
UPDATE session SET archived = :archived WHERE n = :n;

-- name: set_additional
UPDATE session SET additional = :additional WHERE n = :n;

-- name: set_messages
UPDATE session SET messages = :messages WHERE n = :n;

-- name: set_title
UPDATE session SET title = :title, title_doc = :doc WHERE n = :n;

-- name: get_title_doc
SELECT title_doc FROM session WHERE n = :n;

-- name: get_end
SELECT lines, tail, tail_bytes FROM session WHERE n = :n;

-- name: set_end
UPDATE session SET lines = :lines, tail = :tail, tail_bytes = :tail_bytes WHERE n = :n;

-- name: add_segment
INSERT INTO segment (lines, body) VALUES (:lines, :body) RETURNING id;

-- name: set_segment
UPDATE segment SET body = :body, lines = :lines WHERE id = :id;

-- name: move_docs
UPDATE doc SET segment = :segment, line = doc.line + history.position - :tail
FROM history
WHERE history.session = :n AND history.position > :tail AND doc.segment = history.segment;

-- name: delete_history_behind
DELETE FROM history WHERE session = :n AND position > :tail;

-- name: add_history
INSERT INTO history (session, position, segment) VALUES (:n, :position, :segment);

-- name: read_history
SELECT history.position, segment.id, segment.lines, segment.body
FROM history JOIN segment ON segment.id = history.segment
WHERE history.session = :n
  AND history.position >= (SELECT max(position) FROM history WHERE session = :n AND position <= :line)
ORDER BY history.position;

-- name: copy_history
INSERT INTO history (session, position, segment)
SELECT :copy, position, segment FROM history WHERE session = :n AND position < :end;

-- name: add_doc
INSERT INTO doc (segment, line, session) VALUES (:segment, :line, :session) RETURNING id;

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

-- name: find_words_in
WITH here (n, title_doc) AS (
    SELECT n, title_doc FROM session WHERE listed AND NOT archived AND cwd = :cwd
    UNION ALL
    SELECT n, title_doc FROM session WHERE listed AND archived AND cwd = :cwd
), place (id) AS MATERIALIZED (
    SELECT doc.id FROM here JOIN history ON history.session = here.n JOIN doc ON doc.segment = history.segment
    UNION
    SELECT title_doc FROM here
)
SELECT words.rowid, doc.segment, doc.line, doc.session
FROM words JOIN doc ON doc.id = words.rowid
WHERE words MATCH :words AND words.rowid < :before AND +words.rowid IN place ORDER BY words.rowid DESC;

-- name: sessions_with_segment
SELECT session FROM history WHERE segment = :segment ORDER BY session;

-- name: get_segment
SELECT body FROM segment WHERE id = :id;

-- name: exclusive_segments
SELECT segment FROM history AS mine
WHERE mine.session = :n
  AND NOT EXISTS (SELECT 1 FROM history AS other WHERE other.segment = mine.segment AND other.session <> :n);

-- name: delete_words_of
DELETE FROM words WHERE rowid IN (
    SELECT doc.id FROM history AS mine JOIN doc ON doc.segment = mine.segment
    WHERE mine.session = :n
      AND NOT EXISTS (SELECT 1 FROM history AS other WHERE other.segment = mine.segment AND other.session <> :n)
);

-- name: delete_docs_of
DELETE FROM doc WHERE id IN (
    SELECT doc.id FROM history AS mine JOIN doc ON doc.segment = mine.segment
    WHERE mine.session = :n
      AND NOT EXISTS (SELECT 1 FROM history AS other WHERE other.segment = mine.segment AND other.session <> :n)
);

-- name: delete_segment
DELETE FROM segment WHERE id = :id;

-- name: delete_history
DELETE FROM history WHERE session = :n;

-- name: delete_session
DELETE FROM session WHERE n = :n;

-- name: old_sessions
SELECT id FROM session WHERE updated_at < :before ORDER BY updated_at;

-- name: get_setting
SELECT value FROM setting WHERE name = :name;

-- name: add_setting
INSERT INTO setting (name, value) VALUES (:name, :value) ON CONFLICT DO NOTHING;

-- name: find_sessions
SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
FROM session WHERE id >= :first AND id < :end ORDER BY id LIMIT :limit;

-- name: count_sessions
SELECT count(*) FROM session;

-- name: sum_recent
SELECT count(*), coalesce(sum(messages), 0), min(created_at), max(updated_at)
FROM session WHERE listed AND NOT archived;

-- name: sum_archived
SELECT count(*), coalesce(sum(messages), 0), min(created_at), max(updated_at)
FROM session WHERE listed AND archived;

-- name: sum_segments
SELECT coalesce(sum(lines), 0), coalesce(sum(length(body)), 0) FROM segment;

-- name: count_docs
SELECT count(*) FROM doc;

-- name: busiest_directories
SELECT cwd, count(*) AS sessions, sum(messages), max(updated_at)
FROM session WHERE listed AND NOT archived GROUP BY cwd ORDER BY sessions DESC, cwd LIMIT :limit;

-- name: check_integrity
PRAGMA integrity_check(20);

-- name: check_references
PRAGMA foreign_key_check;

-- name: miscounted_sessions
SELECT id FROM session WHERE lines <> (
    SELECT coalesce(sum(segment.lines), 0) FROM history JOIN segment ON segment.id = history.segment
    WHERE history.session = session.n
) LIMIT :limit;

-- name: count_unused_segments
SELECT count(*) FROM segment WHERE NOT EXISTS (SELECT 1 FROM history WHERE history.segment = segment.id);

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

-- name: every_history
SELECT session, segment FROM history ORDER BY session, position;

-- name: every_title
SELECT n, title, title_doc FROM session WHERE title IS NOT NULL;

-- name: has_doc
SELECT 1 FROM doc WHERE id = :id AND session = :session;

-- name: unfinished_turns
SELECT n, id, turn, owner FROM session WHERE prompt IS NOT NULL;

-- name: owners_of_sessions
SELECT owner, count(*) FROM session WHERE owner IS NOT NULL GROUP BY owner;
