"""`holdfast code`: a small coding agent that works in any editor and in the terminal.

It reads and changes files inside the session's directories and runs commands there, in one of three modes: `ask` (reads
only), `code` (asks before each change or command) and `auto`. It is written with `holdfast.integrations.pydantic_ai`,
which is loaded when the first prompt comes: an editor need not wait for it.
"""

from holdfast_app.code.agent import coding_agent
from holdfast_app.code.settings import NO_MODEL, CodeSettings, read_settings

__all__ = ["NO_MODEL", "CodeSettings", "coding_agent", "read_settings"]
