"""Why a server could not be reached, in words that say what to do."""

from __future__ import annotations

import errno

from holdfast.errors import ConnectionRefused


def unreachable(host: str, error: OSError) -> ConnectionRefused:
    """Return the error for a server that the system could not connect to, or whose certificate is not trusted."""
    why = getattr(error, "verify_message", None)  # of ssl's, which is not loaded without TLS
    if why is None and _nothing_listens(error):
        return ConnectionRefused(
            f"{host} cannot be reached: nothing listens there. Start the server (`holdfast serve`), or mend the address"
        )
    if why is None:
        return ConnectionRefused(f"{host} cannot be reached: {error.strerror or error}")
    return ConnectionRefused(
        f"{host} is not trusted: {why}. Where its certificate is one of your own, name the authority that signed it"
        " (`--ca FILE`; in Python `tls=ssl.create_default_context(cafile=…)`)",
        untrusted=True,
    )


def _nothing_listens(error: OSError) -> bool:
    """Return whether the system refused; where a name has several addresses, asyncio's error only quotes its causes."""
    refused = errno.ECONNREFUSED
    return error.errno == refused or (error.errno is None and f"[Errno {refused}]" in str(error))
