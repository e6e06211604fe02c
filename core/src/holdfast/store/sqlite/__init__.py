"""The store in a SQLite file, through `apsw`.

Sealed history is in the database, in WAL mode with full synchronisation. The events of unsealed turns are in files
beside it, locked by whoever writes them (`turn_logs.py`). Locked files beside it tell which of the processes that share
it are alive (`processes.py`). All that waits to be written is committed together (`threads.py`).
"""

from holdfast.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
