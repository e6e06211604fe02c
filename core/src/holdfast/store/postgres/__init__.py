"""The store in a PostgreSQL database, through `asyncpg`: many machines share it, each of them a node.

A node has a lease, kept by one heartbeat for all of its sessions (`nodes.py`). What its running turns say is flushed in
groups, one statement for all sessions that have something (`flushing.py`). Every write locks the row of its node in the
same statement, and whoever takes over deletes that row first, so a stale node is refused by the database itself (P4).
"""

from holdfast.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
