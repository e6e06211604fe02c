"""The PostgreSQL store, measured on a server of its own: `python -m bench.postgres [--help]`.

Each figure is a ratio to something that the same server does at the same time, in turns with it: a busy machine changes
it little. What the server costs is the processor time of its processes, read from the system.
"""
