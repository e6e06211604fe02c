"""What an agent's author sees when something goes wrong: logs, tracebacks, a blocked event loop, the wire.

`start_logging` directs what is logged to stderr and to a log file beside the store; `read_log` reads that file again,
to find an entry by the reference that a client was shown. Tracebacks name the author's own code first, and keys are
taken out of all that is written (P10). Nothing here knows sessions, connections or terminals.
"""

from holdfast.diagnostics.logging_setup import LogFormat, LogLevel, start_logging

__all__ = ["LogFormat", "LogLevel", "start_logging"]
