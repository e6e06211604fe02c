"""How the database does what is asked often: by the right index, however many sessions there are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from core.tests.support.postgres import run_sql
from core.tests.support.stores import NOTHING, new, prompt

if TYPE_CHECKING:
    from core.tests.support.stores import Place


async def test_a_flush_looks_up_its_own_sessions_and_no_others(in_postgres: Place) -> None:
    from holdfast.store.postgres.database import queries

    async with in_postgres.open() as store:
        claims = [await new(store) for _ in range(300)]
        for claim in claims[:3]:
            await store.begin(claim, prompt("q"), NOTHING)
        ((node,),) = await run_sql(in_postgres.path, "SELECT id FROM holdfast.node")
        statement = queries()["flush"]
        for name, value in (
            ("$1", str(node)), ("$2::", "'{1,2,3}'::"), ("$3::", "'{1,1,1}'::"), ("$4::", "'{1,1,1}'::"),
            ("$5::", "'{1,1,1}'::"), ("$6::", "'{x,x,x}'::"),
        ):  # fmt: skip
            statement = statement.replace(name, value)
        for prepare in ("SELECT 1", "ANALYZE"):
            rows = await run_sql(in_postgres.path, prepare, f"EXPLAIN (ANALYZE, TIMING OFF) {statement}")
            plan = "\n".join(row[0] for row in rows)
            assert "session_of_node" not in plan and "Seq Scan on session" not in plan, plan
            assert "Index Scan using session_pkey" in plan, plan
            await run_sql(in_postgres.path, "DELETE FROM holdfast.turn_log WHERE seq > 0")


SOME = """
INSERT INTO holdfast.session
    (id, scope, cwd, additional, created_at, updated_at, listed, archived, messages, state, node)
SELECT 's' || n, 1, '', '[]', n, n, true, false, 1, '{}', CASE WHEN n % 100 < 4 THEN 7 END
FROM generate_series(1, 300) AS n
"""
BELIEFS = {
    "nothing": "SELECT 1",
    "that no session has a node": "UPDATE pg_class SET reltuples = 0, relpages = 2 WHERE relname = 'session_of_node'",
    "what is so": "ANALYZE",
}
"""What the database believes of its tables: that comes with time, and may have been true once."""

BY_NUMBER = (
    "change_session", "begin_turn", "begin_plain_turn", "reserve_turn", "flush", "flush_prompts", "seal_turn",
    "seal_plain_turn", "seal_unwritten_turn", "merge_tail", "fork_session", "take_session", "release_session",
    "is_held",
)  # fmt: skip


@pytest.mark.parametrize("belief", BELIEFS)
async def test_what_is_done_with_one_session_does_not_go_through_all_sessions_of_its_node(
    in_postgres: Place, belief: str
) -> None:
    from holdfast.store.postgres.database import queries

    async with in_postgres.open():
        pass  # the tables are there
    await run_sql(in_postgres.path, "TRUNCATE holdfast.session", "DELETE FROM pg_statistic", SOME, BELIEFS[belief])
    for name in BY_NUMBER:
        statement = queries()[name]
        arguments = ", ".join(["NULL"] * max(int(number) for number in re.findall(r"\$(\d+)", statement)))
        rows = await run_sql(
            in_postgres.path,
            "SET plan_cache_mode = force_generic_plan",
            f"PREPARE asked AS {statement}",
            f"EXPLAIN EXECUTE asked ({arguments})",
        )
        plan = "\n".join(row[0] for row in rows)
        assert "session_of_node" not in plan and "Seq Scan on session" not in plan, f"{name}\n{plan}"


MANY = """
INSERT INTO holdfast.session (id, scope, cwd, additional, created_at, updated_at, listed, archived, messages, state)
SELECT 's' || n, 1 + n % 2, to_jsonb('/d' || n % 100)::text, '[]', n, n, true, false, 1, '{}'
FROM generate_series(1, 20000) AS n
"""


async def test_a_page_is_a_walk_along_the_sessions_of_its_own_scope(in_postgres: Place) -> None:
    from holdfast.store.postgres.database import queries

    async with in_postgres.open() as store:
        await new(store)
    await run_sql(
        in_postgres.path,
        MANY,
        "INSERT INTO holdfast.scope (principal, agent) VALUES ('other', '')",
        "ANALYZE",
    )
    last = 1 << 62
    for name, index, more, value in (
        ("list_in_scope", "session_in_scope", "", ""),
        ("list_in_directory", "session_in_directory", ", text", ", '\"/d7\"'"),
    ):
        prepare = (
            f"PREPARE page (text, text[], boolean, bigint, bigint{more}) AS {queries()[name].replace(':rows', '51')}"
        )
        page = f"EXECUTE page ('other', NULL, false, {last}, {last}{value})"
        for mode in ("force_custom_plan", "force_generic_plan"):
            rows = await run_sql(in_postgres.path, f"SET plan_cache_mode = {mode}", prepare, f"EXPLAIN {page}")
            plan = "\n".join(row[0] for row in rows)
            assert index in plan and "Seq Scan on session" not in plan and "session_by_age" not in plan, plan
        again = "SELECT generic_plans FROM pg_prepared_statements WHERE name = 'page'"
        ((plans,),) = await run_sql(in_postgres.path, prepare, *[page] * 8, again)
        assert plans == 3, "it is planned anew for every page"
