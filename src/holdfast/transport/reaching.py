"""Why a server could not be reached, in words that say what to do."""

from __future__ import annotations

from holdfast.errors import ConnectionRefused


def unreachable(host: str, error: OSError) -> ConnectionRefused:
    """Return the error for a server that the system could not connect to, or whose certificate is not trusted."""
    why = getattr(error, "verify_message", None)  # of ssl's, which is not loaded without TLS
    if why is None:
        return ConnectionRefused(f"{host} cannot be reached: {error.strerror or error}")
    return ConnectionRefused(
        f"{host} is not trusted: {why}. Where its certificate is one of your own, name the authority that signed it"
        " (`--ca FILE`; in Python `tls=ssl.create_default_context(cafile=…)`)",
        untrusted=True,
    )
