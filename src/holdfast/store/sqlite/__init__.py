"""The store in a SQLite file, through `apsw`.

Sealed history is in the database, in WAL mode with full synchronisation; the events of running turns are in plain files
beside it (`turns.py`); who is alive among the processes that share it is told by locked files beside it (`owners.py`).
"""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
