-- Every query of the store, by name.
--
-- Each is one statement that commits by itself: a process that is stopped in the middle of its work holds no lock. A
-- write under a claim begins with `me`, which locks the row of the node, and `held`, which locks the session if the claim
-- holds; what follows depends on them. Nothing in `held` means that the claim is lost (P4). `coalesce(node, 0)` keeps the planner
-- from the index of sessions by node, whatever it believes of it: a session is looked up by its number, however many a node has.

-- name: server_version
SELECT current_setting('server_version_num')::int AS number, current_setting('server_version') AS text,
    current_setting('synchronous_commit') AS synchronous_commit, pg_is_in_recovery() AS is_standby;

-- name: get_format
SELECT convert_from(value, 'UTF8')::int FROM holdfast.setting WHERE name = 'format';

-- name: get_setting
SELECT value FROM holdfast.setting WHERE name = $1;

-- name: add_setting
INSERT INTO holdfast.setting (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: set_setting
INSERT INTO holdfast.setting (name, value) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET value = EXCLUDED.value;


-- Nodes

-- name: add_node
INSERT INTO holdfast.node (id, name, url, expires_at)
VALUES ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))
ON CONFLICT (id) DO UPDATE SET expires_at = EXCLUDED.expires_at;

-- name: beat
UPDATE holdfast.node SET expires_at = clock_timestamp() + make_interval(secs => $2) WHERE id = $1 RETURNING id;

-- name: owners
SELECT session.id, node.name AS node_name, node.url AS node_url
FROM holdfast.session JOIN holdfast.node ON node.id = session.node
WHERE node.expires_at >= clock_timestamp();

-- name: fence_node
DELETE FROM holdfast.node WHERE id = $1 AND expires_at < clock_timestamp();

-- name: fence_expired_nodes
DELETE FROM holdfast.node WHERE expires_at < clock_timestamp() - make_interval(secs => $1);

-- name: remove_node
DELETE FROM holdfast.node WHERE id = $1;

-- name: every_node
SELECT id, name, url, expires_at >= clock_timestamp() AS is_alive,
    (SELECT count(*) FROM holdfast.session WHERE session.node = node.id) AS sessions
FROM holdfast.node ORDER BY started_at;


-- Scopes

-- name: get_scope
SELECT id FROM holdfast.scope WHERE principal = $1 AND agent = $2;

-- name: add_scope
INSERT INTO holdfast.scope (principal, agent) VALUES ($1, $2) ON CONFLICT DO NOTHING;

-- name: used_scopes
SELECT principal, agent FROM holdfast.scope
WHERE agent <> '' AND EXISTS (SELECT FROM holdfast.session WHERE listed AND session.scope = scope.id)
ORDER BY principal COLLATE "C", agent COLLATE "C";

-- name: agents_of_principal
SELECT agent FROM holdfast.scope
WHERE principal = $1 AND agent <> ''
  AND EXISTS (SELECT FROM holdfast.session WHERE listed AND session.scope = scope.id)
ORDER BY agent COLLATE "C";


-- Sessions

-- name: get_session
SELECT n, session.id, cwd, additional, title, created_at, updated_at, archived, messages, lines, tail, tail_bytes, state,
    epoch, turn, unsealed, principal, agent, scope, node, node.name AS node_name, node.url AS node_url,
    node.id IS NOT NULL AS has_node, coalesce(node.expires_at >= clock_timestamp(), false) AS is_alive
FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope LEFT JOIN holdfast.node ON node.id = session.node
WHERE session.id = $1;

-- name: get_snapshot
SELECT n, session.id, cwd, additional, title, created_at, updated_at, archived, messages, lines, tail, tail_bytes, state,
    epoch, turn, unsealed, principal, agent, scope, node, node.name AS node_name, node.url AS node_url,
    node.id IS NOT NULL AS has_node, coalesce(node.expires_at >= clock_timestamp(), false) AS is_alive,
    ARRAY(
        SELECT lines FROM holdfast.turn_log WHERE turn_log.session = n AND turn_log.turn = session.turn ORDER BY seq
    ) AS log
FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope LEFT JOIN holdfast.node ON node.id = session.node
WHERE session.id = $1;

-- name: find_sessions
SELECT n, session.id, cwd, additional, title, created_at, updated_at, archived, messages, principal, agent
FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope
WHERE session.id >= $1 AND session.id < $2 AND session.id > $4 ORDER BY session.id LIMIT $3;

-- How many rows are wanted stands in a list's text, and which of two lists it is in a value that may be missing: the
-- plan for any values then is as good as one for these, and is made once. To plan takes longer than to list.

-- name: list_in_scope
SELECT found.*, principal, agent
FROM holdfast.scope CROSS JOIN (VALUES (false), (true)) AS list (put_away) CROSS JOIN LATERAL (
    SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
    FROM holdfast.session
    WHERE listed AND session.scope = scope.id AND archived = put_away AND (updated_at, n) < ($4, $5)
    ORDER BY updated_at DESC, n DESC LIMIT :rows
) AS found
WHERE principal = $1 AND ($2::text[] IS NULL OR agent = ANY($2)) AND put_away = coalesce($3::boolean, put_away)
ORDER BY updated_at DESC, n DESC LIMIT :rows;

-- name: list_in_directory
SELECT found.*, principal, agent
FROM holdfast.scope CROSS JOIN (VALUES (false), (true)) AS list (put_away) CROSS JOIN LATERAL (
    SELECT n, id, cwd, additional, title, created_at, updated_at, archived, messages
    FROM holdfast.session
    WHERE listed AND session.scope = scope.id AND archived = put_away
      AND hashtextextended(cwd, 0) = hashtextextended($6::text COLLATE "C", 0) AND cwd = $6 AND (updated_at, n) < ($4, $5)
    ORDER BY updated_at DESC, n DESC LIMIT :rows
) AS found
WHERE principal = $1 AND ($2::text[] IS NULL OR agent = ANY($2)) AND put_away = coalesce($3::boolean, put_away)
ORDER BY updated_at DESC, n DESC LIMIT :rows;

-- name: create_session
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
made AS (
    INSERT INTO holdfast.session
        (id, scope, cwd, additional, title, created_at, updated_at, listed, archived, messages, state, node)
    SELECT $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, me.id FROM me
    RETURNING n, epoch
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $13::tsvector FROM made WHERE $13 IS NOT NULL
)
SELECT n, epoch FROM made;

-- name: change_session
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
held AS (
    SELECT session.n, session.title FROM holdfast.session, me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id FOR UPDATE OF session
), changed AS (
    UPDATE holdfast.session
    SET state = coalesce($4, state), title = CASE WHEN $5 THEN $6 ELSE session.title END,
        archived = coalesce($8, archived), additional = coalesce($9, additional), scope = coalesce($10, scope)
    FROM held WHERE session.n = held.n
    RETURNING session.n, $5 AND held.title IS DISTINCT FROM $6 AS is_renamed
), untitled AS (
    DELETE FROM holdfast.doc USING changed WHERE is_renamed AND doc.session = changed.n
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $7::tsvector FROM changed WHERE is_renamed AND $7 IS NOT NULL
)
SELECT n FROM changed;

-- name: edit_session
WITH held AS (
    SELECT n, title FROM holdfast.session WHERE id = $1 AND state = $2 FOR UPDATE
), changed AS (
    UPDATE holdfast.session
    SET state = $3, title = CASE WHEN $4 THEN $5 ELSE session.title END, archived = coalesce($7, archived)
    FROM held WHERE session.n = held.n
    RETURNING session.n, $4 AND held.title IS DISTINCT FROM $5 AS is_renamed
), untitled AS (
    DELETE FROM holdfast.doc USING changed WHERE is_renamed AND doc.session = changed.n
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $6::tsvector FROM changed WHERE is_renamed AND $6 IS NOT NULL
)
SELECT n FROM changed;

-- name: hand_over
WITH held AS (
    SELECT n FROM holdfast.session WHERE n = $1 AND epoch = $2 AND state = $3 AND lines = $4 AND NOT unsealed FOR UPDATE
), changed AS (
    UPDATE holdfast.session
    SET scope = $5, state = $6, epoch = epoch + 1, node = NULL, lines = session.lines + 1,
        tail = session.lines + 1, tail_bytes = 0
    FROM held WHERE session.n = held.n
    RETURNING session.n
), added AS (
    INSERT INTO holdfast.segment (lines, checksum, body) SELECT 1, $7, $8 FROM changed RETURNING id
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, $4, added.id FROM changed, added
), forgotten AS (
    DELETE FROM holdfast.private USING changed WHERE private.session = changed.n
), unsaid AS (
    DELETE FROM holdfast.turn_log USING changed WHERE turn_log.session = changed.n
)
SELECT n FROM changed;

-- name: add_session
WITH made AS (
    INSERT INTO holdfast.session (id, scope, cwd, additional, title, created_at, updated_at, listed, archived, messages,
        state, lines, tail, tail_bytes)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $13, $14, $15
    WHERE $28 = 0 OR EXISTS (SELECT FROM holdfast.history_segment WHERE session = $27 AND position < $28)
    RETURNING n
), numbered AS (
    SELECT nextval('holdfast.segment_id_seq') AS id, part.*
    FROM made, unnest($16::bigint[], $17::int[], $18::bigint[], $19::bytea[])
        WITH ORDINALITY AS part (position, lines, checksum, body, number)
), added AS (
    INSERT INTO holdfast.segment (id, lines, checksum, body) SELECT id, lines, checksum, body FROM numbered
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, position, id FROM made, numbered
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $12::tsvector FROM made WHERE $12 IS NOT NULL
), found AS (
    INSERT INTO holdfast.doc (segment, at, size, words)
    SELECT numbered.id, text.at, text.size, text.words::tsvector
    FROM unnest($20::int[], $21::int[], $22::int[], $23::text[])
        WITH ORDINALITY AS text (number, at, size, words, rank) JOIN numbered USING (number)
    ORDER BY rank
), remembered AS (
    INSERT INTO holdfast.private (session, start, position, data)
    SELECT n, entry.start, entry.position, entry.data
    FROM made, unnest($24::bigint[], $25::bigint[], $26::bytea[])
        WITH ORDINALITY AS entry (start, position, data, rank) ORDER BY rank
), shared AS (
    INSERT INTO holdfast.history_segment (session, position, segment)
    SELECT made.n, position, segment FROM made, holdfast.history_segment AS theirs
    WHERE theirs.session = $27 AND position < $28
)
SELECT n FROM made;

-- name: share_tail
UPDATE holdfast.session SET tail = lines, tail_bytes = 0 WHERE id = $1 AND node IS NULL RETURNING n;

-- name: whole_segments
SELECT coalesce(max(position + segment.lines), 0)
FROM holdfast.history_segment JOIN holdfast.segment ON segment.id = history_segment.segment
WHERE session = $1 AND position + segment.lines <= $2;

-- name: lock_deleting
SELECT pg_advisory_xact_lock(1215261764, 2);

-- name: lock_session
SELECT n FROM holdfast.session WHERE id = $1 AND epoch = $2 FOR UPDATE;

-- name: delete_session
WITH gone AS (
    DELETE FROM holdfast.session
    WHERE n = $1 AND epoch = $2
      AND (NOT unsealed OR node IS NULL OR node = $3 OR NOT EXISTS (SELECT FROM holdfast.node WHERE node.id = session.node))
    RETURNING n, id
), mine AS (
    DELETE FROM holdfast.history_segment USING gone WHERE history_segment.session = gone.n RETURNING segment
), alone AS (
    SELECT mine.segment FROM mine
    WHERE NOT EXISTS (
        SELECT FROM holdfast.history_segment AS other WHERE other.segment = mine.segment AND other.session <> $1
    )
), found AS (
    DELETE FROM holdfast.doc USING alone WHERE doc.segment = alone.segment
), titled AS (
    DELETE FROM holdfast.doc USING gone WHERE doc.session = gone.n
), emptied AS (
    DELETE FROM holdfast.segment USING alone WHERE segment.id = alone.segment
), forgotten AS (
    DELETE FROM holdfast.private USING gone WHERE private.session = gone.n
), unsaid AS (
    DELETE FROM holdfast.turn_log USING gone WHERE turn_log.session = gone.n
), unnamed AS (
    UPDATE holdfast.alias SET session = NULL FROM gone WHERE alias.session = gone.id
)
SELECT n FROM gone;

-- name: set_alias
INSERT INTO holdfast.alias (scope, name, session) VALUES ($1, $2, $3)
ON CONFLICT (scope, name) DO UPDATE SET session = excluded.session;

-- name: every_alias
SELECT principal, agent, name, session FROM holdfast.alias JOIN holdfast.scope ON scope.id = alias.scope
ORDER BY scope.id, name;

-- name: find_aliases
SELECT name, session FROM holdfast.alias JOIN holdfast.scope ON scope.id = alias.scope
WHERE principal = $1 AND ($2::text[] IS NULL OR agent = ANY($2)) AND name = ANY($3::text[]);

-- name: old_sessions
SELECT session.id FROM holdfast.session LEFT JOIN holdfast.node ON node.id = session.node
WHERE updated_at + 0 < $1 AND coalesce(node.expires_at < clock_timestamp(), true) ORDER BY updated_at + 0;


-- Claims

-- name: take_session
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
taken AS (
    UPDATE holdfast.session SET epoch = epoch + 1, node = me.id FROM me
    WHERE session.n = $2 AND epoch = $3
      AND (NOT unsealed OR session.node IS NULL OR session.node = me.id
           OR NOT EXISTS (SELECT FROM holdfast.node WHERE node.id = session.node))
    RETURNING epoch
)
SELECT EXISTS (SELECT FROM me) AS is_mine, (SELECT epoch FROM taken) AS epoch;

-- name: release_session
UPDATE holdfast.session SET node = NULL WHERE id = $1 AND epoch = $2 AND coalesce(node, 0) = $3;

-- name: is_held
SELECT turn, unsealed, lines FROM holdfast.session, holdfast.node
WHERE session.id = $2 AND epoch = $3 AND coalesce(session.node, 0) = $1 AND node.id = $1;


-- Turns

-- name: begin_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
held AS (
    SELECT session.n, session.title FROM holdfast.session, me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND NOT unsealed AND session.turn = $11 - 1
    FOR UPDATE OF session
), begun AS (
    UPDATE holdfast.session
    SET turn = $11, unsealed = true, listed = listed OR $12,
        updated_at = CASE WHEN $12 THEN greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            ELSE updated_at END,
        state = coalesce($4, state), title = CASE WHEN $5 THEN $6 ELSE session.title END,
        archived = coalesce($8, archived), additional = coalesce($9, additional), scope = coalesce($10, scope)
    FROM held WHERE session.n = held.n
    RETURNING session.n, $5 AND held.title IS DISTINCT FROM $6 AS is_renamed
), accepted AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT n, $11, seq, said FROM begun, (VALUES (0, $13::bytea), (1, nullif($14::bytea, ''))) AS first (seq, said)
    WHERE said IS NOT NULL
), untitled AS (
    DELETE FROM holdfast.doc USING begun WHERE is_renamed AND doc.session = begun.n
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $7::tsvector FROM begun WHERE is_renamed AND $7 IS NOT NULL
)
SELECT n FROM begun;

-- The same where the turn changes nothing else about its session: a fraction of the work for the database.
-- name: begin_plain_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
begun AS (
    UPDATE holdfast.session
    SET turn = $4, unsealed = true, listed = listed OR $5,
        updated_at = CASE WHEN $5 THEN greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            ELSE updated_at END
    FROM me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND NOT unsealed AND session.turn = $4 - 1
    RETURNING session.n
), accepted AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT n, $4, seq, said FROM begun, (VALUES (0, $6::bytea), (1, nullif($7::bytea, ''))) AS first (seq, said)
    WHERE said IS NOT NULL
)
SELECT n FROM begun;

-- That a turn runs, and nothing else: its prompt comes with the first flush, or with the seal. Whoever may not write the
-- session is refused here, and nobody takes it from here on. This need not be on the disk before it returns: nobody is
-- told of it, and what the turn begins with is committed later, after it. A database that crashes in between has
-- forgotten both. No column of an index changes, and so no index does.
-- name: reserve_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
begun AS (
    UPDATE holdfast.session SET turn = $4, unsealed = true, listed = true FROM me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND NOT unsealed AND session.turn = $4 - 1
    RETURNING session.n
)
SELECT n, set_config('synchronous_commit', 'off', true) FROM begun;

-- name: flush
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
said AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bytea[])
        AS said (session, epoch, turn, seq, lines)
), kept AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT said.session, said.turn, said.seq, said.lines
    FROM me, said CROSS JOIN LATERAL (
        SELECT FROM holdfast.session
        WHERE session.n = said.session AND session.epoch = said.epoch AND session.turn = said.turn AND session.unsealed
          AND coalesce(session.node, 0) = me.id
        LIMIT 1
    ) AS held
    ON CONFLICT (session, turn, seq) DO UPDATE SET lines = EXCLUDED.lines
    RETURNING session
)
SELECT EXISTS (SELECT FROM me) AS is_mine,
    ARRAY(SELECT session FROM said WHERE session NOT IN (SELECT kept.session FROM kept)) AS lost;

-- The same where turns begin with it, which is activity of their sessions. A session that somebody has locked is left to
-- the seal: all others would wait for it.
-- name: flush_prompts
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
said AS (
    SELECT * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::int[], $6::bytea[])
        AS said (session, epoch, turn, seq, lines)
), kept AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT said.session, said.turn, said.seq, said.lines
    FROM me, said CROSS JOIN LATERAL (
        SELECT FROM holdfast.session
        WHERE session.n = said.session AND session.epoch = said.epoch AND session.turn = said.turn AND session.unsealed
          AND coalesce(session.node, 0) = me.id
        LIMIT 1
    ) AS held
    ON CONFLICT (session, turn, seq) DO UPDATE SET lines = EXCLUDED.lines
    RETURNING session, seq
), free AS (
    SELECT n FROM holdfast.session
    WHERE n = ANY(ARRAY(SELECT kept.session FROM kept WHERE seq = 0)) FOR NO KEY UPDATE SKIP LOCKED
), active AS (
    UPDATE holdfast.session
    SET updated_at = greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
    WHERE n = ANY(ARRAY(SELECT n FROM free))
)
SELECT EXISTS (SELECT FROM me) AS is_mine,
    ARRAY(SELECT session FROM said WHERE session NOT IN (SELECT kept.session FROM kept)) AS lost;

-- name: seal_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
held AS (
    SELECT session.n, session.title FROM holdfast.session, me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND session.lines = $11
      AND session.turn = $30
    FOR UPDATE OF session
), sealed AS (
    UPDATE holdfast.session
    SET unsealed = false, messages = messages + $12, lines = $13, tail = $14, tail_bytes = $15,
        updated_at = CASE WHEN $16 THEN greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            ELSE updated_at END,
        state = coalesce($4, state), title = CASE WHEN $5 THEN $6 ELSE session.title END,
        archived = coalesce($8, archived), additional = coalesce($9, additional), scope = coalesce($10, scope)
    FROM held WHERE session.n = held.n
    RETURNING session.n, session.turn, $5 AND held.title IS DISTINCT FROM $6 AS is_renamed
), numbered AS (
    SELECT nextval('holdfast.segment_id_seq') AS id, part.*
    FROM sealed, unnest($17::bigint[], $18::int[], $19::bigint[], $20::bytea[])
        WITH ORDINALITY AS part (position, lines, checksum, body, number)
), added AS (
    INSERT INTO holdfast.segment (id, lines, checksum, body) SELECT id, lines, checksum, body FROM numbered
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, position, id FROM sealed, numbered
), untitled AS (
    DELETE FROM holdfast.doc USING sealed WHERE is_renamed AND doc.session = sealed.n
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $7::tsvector FROM sealed WHERE is_renamed AND $7 IS NOT NULL
), found AS (
    INSERT INTO holdfast.doc (segment, at, size, words)
    SELECT numbered.id, text.at, text.size, text.words::tsvector
    FROM unnest($21::int[], $22::int[], $23::int[], $24::text[])
        WITH ORDINALITY AS text (number, at, size, words, rank) JOIN numbered USING (number)
    ORDER BY rank
), kept AS (
    INSERT INTO holdfast.private (session, start, position, data)
    SELECT n, $11, $13, entry.data FROM sealed, unnest($25::bytea[]) WITH ORDINALITY AS entry (data, rank) ORDER BY rank
), ended AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT n, turn,
        coalesce(seq, (
            SELECT coalesce(max(seq), 0) + 1 FROM holdfast.turn_log WHERE turn_log.session = n AND turn_log.turn = sealed.turn
        )),
        last.lines
    FROM sealed, unnest($26::int[], $27::bytea[]) AS last (seq, lines)
), emptied AS (
    DELETE FROM holdfast.turn_log USING sealed
    WHERE turn_log.session = sealed.n AND turn_log.turn BETWEEN $28 AND sealed.turn AND NOT $29::boolean
)
SELECT n FROM sealed;

-- The same where nothing but the state changes, nothing is private, and one segment has all of it.
-- name: seal_plain_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
sealed AS (
    UPDATE holdfast.session
    SET unsealed = false, state = $4, messages = messages + $6, lines = $7, tail = $8, tail_bytes = $9,
        updated_at = CASE WHEN $10 THEN greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            ELSE updated_at END
    FROM me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND session.lines = $5 AND unsealed
    RETURNING session.n, session.turn
), numbered AS (
    SELECT n, nextval('holdfast.segment_id_seq') AS id FROM sealed
), added AS (
    INSERT INTO holdfast.segment (id, lines, checksum, body) SELECT id, $11, $12, $13 FROM numbered
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, $5, id FROM numbered
), found AS (
    INSERT INTO holdfast.doc (segment, at, size, words)
    SELECT numbered.id, text.at, text.size, text.words::tsvector
    FROM numbered, unnest($14::int[], $15::int[], $16::text[]) WITH ORDINALITY AS text (at, size, words, rank)
    ORDER BY rank
), ended AS (
    INSERT INTO holdfast.turn_log (session, turn, seq, lines)
    SELECT n, turn, seq, last.lines FROM sealed, unnest($17::int[], $18::bytea[]) AS last (seq, lines)
), emptied AS (
    DELETE FROM holdfast.turn_log USING sealed
    WHERE turn_log.session = sealed.n AND turn_log.turn BETWEEN $19 AND sealed.turn AND NOT $20::boolean
)
SELECT n FROM sealed;

-- The same where besides nothing of the turn is in the log, and the log stays as it is.
-- name: seal_unwritten_turn
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
sealed AS (
    UPDATE holdfast.session
    SET unsealed = false, state = $4, messages = messages + $6, lines = $7, tail = $8, tail_bytes = $9,
        updated_at = CASE WHEN $10 THEN greatest(updated_at + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
            ELSE updated_at END
    FROM me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND session.lines = $5 AND unsealed
    RETURNING session.n, session.turn
), numbered AS (
    SELECT n, nextval('holdfast.segment_id_seq') AS id FROM sealed
), added AS (
    INSERT INTO holdfast.segment (id, lines, checksum, body) SELECT id, $11, $12, $13 FROM numbered
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, $5, id FROM numbered
), found AS (
    INSERT INTO holdfast.doc (segment, at, size, words)
    SELECT numbered.id, text.at, text.size, text.words::tsvector
    FROM numbered, unnest($14::int[], $15::int[], $16::text[]) WITH ORDINALITY AS text (at, size, words, rank)
    ORDER BY rank
)
SELECT n FROM sealed;

-- name: read_events
SELECT turn, seq, lines FROM holdfast.turn_log WHERE session = $1 ORDER BY turn, seq;

-- name: forget_large_events
WITH measured AS (
    SELECT turn, sum(octet_length(lines)) AS own, sum(sum(octet_length(lines))) OVER (ORDER BY turn DESC) AS size
    FROM holdfast.turn_log WHERE session = $1 GROUP BY turn
), too_large AS (
    SELECT max(turn) AS turn FROM measured WHERE size > $2 AND turn < $3
), forgotten AS (
    DELETE FROM holdfast.turn_log USING too_large WHERE session = $1 AND turn_log.turn <= too_large.turn
)
SELECT coalesce(sum(own), 0)::bigint FROM measured, too_large WHERE measured.turn > coalesce(too_large.turn, 0);

-- name: forget_old_events
WITH forgotten AS (
    DELETE FROM holdfast.turn_log USING (
        SELECT turn_log.session, turn FROM holdfast.turn_log GROUP BY turn_log.session, turn
        HAVING max(at) < clock_timestamp() - make_interval(secs => $1)
    ) AS old
    WHERE turn_log.session = old.session AND turn_log.turn = old.turn
      AND NOT EXISTS (SELECT FROM holdfast.session WHERE n = old.session AND unsealed AND session.turn <= old.turn)
    RETURNING octet_length(lines) AS size
)
SELECT count(*) AS rows, coalesce(sum(size), 0)::bigint AS size FROM forgotten;

-- name: read_tail
SELECT position, segment.id AS segment, segment.lines, checksum, body
FROM holdfast.history_segment JOIN holdfast.segment ON segment.id = history_segment.segment
WHERE session = $1 AND position >= $2 ORDER BY position;

-- name: merge_tail
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
held AS (
    SELECT session.n FROM holdfast.session, me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND session.lines = $4 AND session.tail = $5
    FOR UPDATE OF session
), ended AS (
    UPDATE holdfast.session SET tail = session.lines, tail_bytes = 0 FROM held WHERE session.n = held.n RETURNING session.n
), merged AS (
    UPDATE holdfast.segment SET body = $7, checksum = $8, lines = $9 FROM ended WHERE segment.id = $6
), moved AS (
    UPDATE holdfast.doc SET segment = $6, at = doc.at + small.at
    FROM ended, unnest($10::bigint[], $11::int[]) AS small (segment, at) WHERE doc.segment = small.segment
), cut AS (
    DELETE FROM holdfast.history_segment USING ended WHERE history_segment.session = ended.n AND position > $5
), emptied AS (
    DELETE FROM holdfast.segment USING ended WHERE segment.id = ANY($10)
)
SELECT n FROM ended;


-- Histories

-- name: read_history
SELECT position, segment, lines, checksum, body FROM (
    SELECT position, segment.id AS segment, segment.lines, checksum, body,
        sum(octet_length(body)) OVER (ORDER BY position) - octet_length(body) AS before
    FROM (
        SELECT position, segment FROM holdfast.history_segment
        WHERE session = $1 AND position >= coalesce(
            (SELECT max(position) FROM holdfast.history_segment WHERE session = $1 AND position <= $2), 0
        )
        ORDER BY position LIMIT 32
    ) AS part JOIN holdfast.segment ON segment.id = part.segment
) AS measured
WHERE before < $3 ORDER BY position;

-- name: fork_session
WITH me AS (SELECT id FROM holdfast.node WHERE id = $1 FOR KEY SHARE),
held AS (
    SELECT session.n FROM holdfast.session, me
    WHERE session.n = $2 AND session.epoch = $3 AND coalesce(session.node, 0) = me.id AND session.lines = $4 FOR UPDATE OF session
), source AS (
    -- From now on its tail is shared.
    UPDATE holdfast.session SET tail = session.lines, tail_bytes = 0 FROM held WHERE session.n = held.n RETURNING session.n
), made AS (
    INSERT INTO holdfast.session (id, scope, cwd, additional, title, created_at, updated_at, listed, archived, messages,
        state, node, lines, tail, tail_bytes)
    SELECT $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $1, $17, $18, $19 FROM source
    RETURNING n
), shared AS (
    INSERT INTO holdfast.history_segment (session, position, segment)
    SELECT made.n, position, segment FROM made, source, holdfast.history_segment AS theirs
    WHERE theirs.session = source.n AND position < $20
), numbered AS (
    SELECT nextval('holdfast.segment_id_seq') AS id, part.*
    FROM made, unnest($21::bigint[], $22::int[], $23::bigint[], $24::bytea[])
        WITH ORDINALITY AS part (position, lines, checksum, body, number)
), added AS (
    INSERT INTO holdfast.segment (id, lines, checksum, body) SELECT id, lines, checksum, body FROM numbered
), placed AS (
    INSERT INTO holdfast.history_segment (session, position, segment) SELECT n, position, id FROM made, numbered
), titled AS (
    INSERT INTO holdfast.doc (session, words) SELECT n, $16::tsvector FROM made WHERE $16 IS NOT NULL
), found AS (
    INSERT INTO holdfast.doc (segment, at, size, words)
    SELECT numbered.id, text.at, text.size, text.words::tsvector
    FROM unnest($25::int[], $26::int[], $27::int[], $28::text[])
        WITH ORDINALITY AS text (number, at, size, words, rank) JOIN numbered USING (number)
    ORDER BY rank
), remembered AS (
    INSERT INTO holdfast.private (session, start, position, data)
    SELECT made.n, start, position, data FROM made, source, holdfast.private AS theirs
    WHERE $29 AND theirs.session = source.n AND position <= $30 ORDER BY position, theirs.id
)
SELECT made.n,
    EXISTS (SELECT FROM holdfast.private WHERE session = $2 AND start < $30 AND position > $30) AS cuts_private
FROM made;

-- name: read_private
SELECT start, position, data FROM holdfast.private WHERE session = $1 ORDER BY position, id;


-- Search

-- name: newest_doc
SELECT coalesce(max(id), 0) FROM holdfast.doc;

-- name: walk_words
SELECT id, segment, at, size, session FROM holdfast.doc
WHERE id > $1 AND id <= $2 AND words @@ $3::tsquery ORDER BY id DESC LIMIT $4;

-- name: find_words
SELECT id, segment, at, size, session FROM holdfast.doc
WHERE id <= $1 AND words @@ $2::tsquery ORDER BY id + 0 DESC LIMIT $3;

-- name: find_few_words
WITH found AS MATERIALIZED (
    SELECT id, segment, at, size, session, words @@ $3::tsquery AS is_mine FROM holdfast.doc
    WHERE id + 0 <= $1 AND words @@ $2::tsquery LIMIT $4
)
SELECT total, hit.* FROM (SELECT count(*) AS total FROM found) AS all_of_them
LEFT JOIN LATERAL (
    SELECT id, segment, at, size, session FROM found WHERE is_mine ORDER BY id DESC LIMIT $5
) AS hit ON true
ORDER BY hit.id DESC;

-- name: find_words_of_sessions
WITH mine AS MATERIALIZED (
    SELECT n FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope
    WHERE listed AND principal = $4 AND ($5::text[] IS NULL OR agent = ANY($5)) AND ($6::text IS NULL OR cwd = $6)
      AND archived = ANY($7::boolean[]) AND updated_at >= $8
), place AS MATERIALIZED (
    SELECT DISTINCT segment FROM holdfast.history_segment WHERE session IN (SELECT n FROM mine)
)
SELECT id, segment, at, size, session FROM holdfast.doc
WHERE id <= $1 AND words @@ $2::tsquery
  AND (segment IN (SELECT segment FROM place) OR session IN (SELECT n FROM mine))
ORDER BY id + 0 DESC LIMIT $3;

-- name: sessions_of_docs
SELECT DISTINCT ON (found.doc) found.doc, n, session.id, cwd, additional, title, created_at, updated_at, archived,
    messages, principal, agent
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS found (doc, segment, session)
LEFT JOIN holdfast.history_segment ON history_segment.segment = found.segment
JOIN holdfast.session ON session.n = coalesce(found.session, history_segment.session)
JOIN holdfast.scope ON scope.id = session.scope
WHERE principal = $4 AND ($5::text[] IS NULL OR agent = ANY($5)) AND ($6::text IS NULL OR cwd = $6)
  AND archived = ANY($7::boolean[]) AND updated_at >= $8
ORDER BY found.doc, n;

-- name: excerpts
SELECT found.doc, substring(body FROM found.at + 1 FOR found.size) AS body
FROM unnest($1::bigint[], $2::bigint[], $3::int[], $4::int[]) AS found (doc, segment, at, size)
JOIN holdfast.segment ON segment.id = found.segment;


-- Counting

-- name: sum_sessions
SELECT count(*) FILTER (WHERE listed) AS sessions, count(*) FILTER (WHERE listed AND archived) AS archived,
    count(*) FILTER (WHERE NOT listed) AS blank, coalesce(sum(messages) FILTER (WHERE listed), 0)::bigint AS messages,
    min(created_at) FILTER (WHERE listed) AS oldest, max(updated_at) FILTER (WHERE listed) AS newest
FROM holdfast.session;

-- name: sum_segments
SELECT coalesce(sum(lines), 0)::bigint AS lines, coalesce(sum(octet_length(body)), 0)::bigint AS bytes
FROM holdfast.segment;

-- name: count_docs
SELECT count(*) FROM holdfast.doc;

-- name: busiest_directories
SELECT cwd, count(*) AS sessions, sum(messages)::bigint AS messages, max(updated_at) AS updated_at
FROM holdfast.session WHERE listed AND NOT archived GROUP BY cwd ORDER BY sessions DESC, cwd LIMIT $1;

-- name: some_states
SELECT n, agent, messages, state FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope
WHERE listed AND n > $1 ORDER BY n LIMIT 5000;

-- name: size
SELECT sum(pg_total_relation_size(c.oid))::bigint AS used,
    coalesce(sum(
        pg_relation_size(c.oid) * stat.n_dead_tup / greatest(stat.n_live_tup + stat.n_dead_tup, 1)
        + pg_relation_size(nullif(c.reltoastrelid, 0)) * long.n_dead_tup / greatest(long.n_live_tup + long.n_dead_tup, 1)
    ), 0)::bigint AS free
FROM pg_class AS c JOIN pg_namespace ON pg_namespace.oid = relnamespace
LEFT JOIN pg_stat_all_tables AS stat ON stat.relid = c.oid
LEFT JOIN pg_stat_all_tables AS long ON long.relid = c.reltoastrelid
WHERE nspname = 'holdfast' AND relkind = 'r';


-- Examining

-- name: server_settings
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums', 'server_version');

-- name: lost_references
SELECT (SELECT count(*) FROM holdfast.session WHERE NOT EXISTS (SELECT FROM holdfast.scope WHERE scope.id = session.scope))
    + (SELECT count(*) FROM holdfast.history_segment AS part
       WHERE NOT EXISTS (SELECT FROM holdfast.session WHERE n = part.session))
    + (SELECT count(*) FROM holdfast.history_segment AS part
       WHERE NOT EXISTS (SELECT FROM holdfast.segment WHERE segment.id = part.segment))
    + (SELECT count(*) FROM holdfast.private WHERE NOT EXISTS (SELECT FROM holdfast.session WHERE n = private.session));

-- name: miscounted_sessions
SELECT session.id FROM holdfast.session LEFT JOIN (
    SELECT session AS n, sum(segment.lines) AS lines
    FROM holdfast.history_segment JOIN holdfast.segment ON segment.id = history_segment.segment GROUP BY session
) AS counted USING (n)
WHERE session.lines <> coalesce(counted.lines, 0) LIMIT $1;

-- name: count_unused_segments
SELECT count(*) FROM holdfast.segment
WHERE NOT EXISTS (SELECT FROM holdfast.history_segment WHERE history_segment.segment = segment.id);

-- name: some_segments
SELECT id, lines, checksum, body FROM holdfast.segment WHERE id > $1 ORDER BY id LIMIT 64;

-- name: place_of_segment
SELECT session.id, position FROM holdfast.history_segment JOIN holdfast.session ON n = history_segment.session
WHERE segment = $1 ORDER BY n LIMIT 1;

-- name: lost_docs
SELECT count(*) FROM holdfast.doc
WHERE NOT EXISTS (
        SELECT FROM holdfast.segment WHERE segment.id = doc.segment AND doc.at + doc.size <= octet_length(body)
    )
  AND NOT EXISTS (SELECT FROM holdfast.session WHERE n = doc.session AND title IS NOT NULL);

-- name: untitled_docs
SELECT count(*) FROM holdfast.session
WHERE title IS NOT NULL AND title <> '""' AND NOT EXISTS (SELECT FROM holdfast.doc WHERE doc.session = session.n);

-- name: some_sessions
SELECT n, session.id, principal FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope
WHERE session.id > $1 ORDER BY session.id LIMIT 500;

-- name: segment_texts
SELECT at, words::text AS words FROM holdfast.doc WHERE segment = $1;

-- name: replace_texts
WITH text AS (
    SELECT * FROM unnest($2::int[], $3::int[], $4::text[]) WITH ORDINALITY AS text (at, size, words, rank)
), gone AS (
    DELETE FROM holdfast.doc WHERE segment = $1
      AND (NOT EXISTS (SELECT FROM text WHERE text.at = doc.at)
           OR EXISTS (SELECT FROM holdfast.doc AS twin WHERE twin.segment = $1 AND twin.at = doc.at AND twin.id < doc.id))
), known AS (
    UPDATE holdfast.doc SET size = text.size, words = text.words::tsvector
    FROM text WHERE doc.segment = $1 AND doc.at = text.at
)
INSERT INTO holdfast.doc (segment, at, size, words)
SELECT $1, text.at, text.size, text.words::tsvector FROM text
WHERE NOT EXISTS (SELECT FROM holdfast.doc WHERE doc.segment = $1 AND doc.at = text.at) ORDER BY rank;

-- name: every_title
SELECT n, title, principal FROM holdfast.session JOIN holdfast.scope ON scope.id = session.scope WHERE title IS NOT NULL;

-- name: replace_title
WITH known AS (
    UPDATE holdfast.doc SET words = $2::tsvector WHERE session = $1 AND $2 IS NOT NULL
)
INSERT INTO holdfast.doc (session, words)
SELECT $1, $2::tsvector WHERE $2 IS NOT NULL AND NOT EXISTS (SELECT FROM holdfast.doc WHERE doc.session = $1);

-- name: delete_lost_docs
DELETE FROM holdfast.doc
WHERE NOT EXISTS (
        SELECT FROM holdfast.segment WHERE segment.id = doc.segment AND doc.at + doc.size <= octet_length(body)
    )
  AND NOT EXISTS (SELECT FROM holdfast.session WHERE n = doc.session AND title IS NOT NULL);

-- name: unsealed_turns
SELECT session.id, node.name AS node_name, coalesce(node.expires_at >= clock_timestamp(), false) AS is_alive
FROM holdfast.session LEFT JOIN holdfast.node ON node.id = session.node WHERE unsealed;

-- name: count_left_over
SELECT count(*) FROM holdfast.turn_log
WHERE NOT EXISTS (SELECT FROM holdfast.session WHERE n = turn_log.session)
   OR NOT EXISTS (
        SELECT FROM holdfast.turn_log AS first
        WHERE first.session = turn_log.session AND first.turn = turn_log.turn AND first.seq = 0
    );

-- name: delete_left_over
DELETE FROM holdfast.turn_log
WHERE NOT EXISTS (SELECT FROM holdfast.session WHERE n = turn_log.session)
   OR NOT EXISTS (
        SELECT FROM holdfast.turn_log AS first
        WHERE first.session = turn_log.session AND first.turn = turn_log.turn AND first.seq = 0
    );
