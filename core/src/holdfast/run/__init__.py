"""`holdfast run`: serve an author's agent on stdin and stdout.

`command` parses the command line, `load_agent` imports the agent, `run_agent` serves it. The products add options of
their own to the same command; nothing here knows them.
"""
