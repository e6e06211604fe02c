"""An agent port made of another process: sessions that hold, for any agent that speaks the protocol.

The store is the truth about what was shown; the agent is the truth about what its model knows. This package starts the
agent (`process`), keeps one session of it for each of ours (`session`, `remote`), brings it back when its process is
gone (`restore`), finds out what it has forgotten (`compare`) and tells it again (`seeding`). It knows nothing of
stores, clients' connections and versions of the protocol that clients speak: the engine and the server do.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast_app.wrap.launch import Launch
    from holdfast_app.wrap.port import ProxyPort

__all__ = ["Launch", "ProxyPort"]


def __getattr__(name: str) -> object:
    if name == "ProxyPort":
        from holdfast_app.wrap.port import ProxyPort  # noqa: PLC0415

        return ProxyPort
    if name == "Launch":
        from holdfast_app.wrap.launch import Launch  # noqa: PLC0415

        return Launch
    raise AttributeError(name)
