"""Real agents of others, alone and wrapped, driven by real clients of others: `make field`.

Each agent is declared in `agents.toml`, installed into a cache (`install.py`) and talks to the scripted model server.
`scenes.py` says what is tried; `__main__.py` runs it all and writes the table of docs/editors.md.
"""
