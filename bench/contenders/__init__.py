"""The programs that are measured, one script a contender and part: `ours_agent.py`, `typescript_sdk_agent.mjs`.

Each is a process of its own whose stdin and stdout carry the protocol; what it measured it prints to stderr, as one
line of JSON (`meter.py`, `meter.mjs`). Each uses its library the way that library's documentation says.
"""
