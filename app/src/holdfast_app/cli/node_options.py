"""What makes a server a node that others on the same PostgreSQL reach: its address, and the secret of all nodes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from holdfast.cluster import NodeSecret
    from holdfast.server.host import NodeAddress

SECRET = "HOLDFAST_NODE_SECRET"  # noqa: S105  (the name of a variable)

_ADVICE = f"set {SECRET}, or give --node-secret-file; every node has the same, as made by `openssl rand -hex 32`"


def node_address(options: Mapping[str, Any]) -> NodeAddress | None:
    """Return the node that the options of a command line make of this process; raise `click.UsageError`."""
    from holdfast.server.host import NodeAddress  # noqa: PLC0415
    from holdfast.server.remote.names import is_loopback  # noqa: PLC0415
    from holdfast.store.address import default_address, is_postgres  # noqa: PLC0415

    url: str | None = options["node_url"]
    file: Path | None = options["node_secret_file"]
    if url is None:
        if file is not None:
            raise click.UsageError("--node-secret-file goes with --node-url, where other nodes reach this one")
        os.environ.pop(SECRET, None)
        return None
    if not is_postgres(options["store"] or default_address()):
        raise click.UsageError("--node-url is for sessions in PostgreSQL; on one machine nothing has to be set up")
    scheme, host = _parsed(url)
    if scheme == "http" and not is_loopback(host) and not options["insecure"]:
        raise click.UsageError(
            f"--node-url {url}: others could listen in; use https://, or --insecure where only nodes are on the network"
        )
    secret = node_secret(file)
    if secret is None:
        raise click.UsageError(f"--node-url needs the secret of the nodes: {_ADVICE}")
    return NodeAddress(url.rstrip("/"), secret)


def _parsed(url: str) -> tuple[str, str]:
    """Return the scheme and the host of a node's address."""
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0  # a number that is none raises
    except ValueError:
        parts, has_port = urlsplit(""), False
    whole = has_port and parts.hostname and not (parts.query or parts.fragment or "@" in parts.netloc)
    if parts.scheme not in ("http", "https") or not whole:
        raise click.UsageError(f"--node-url {url}: write it as http://10.0.0.7:8180, as other nodes reach this one")
    return parts.scheme, parts.hostname or ""


def node_secret(file: Path | None = None) -> NodeSecret | None:
    """Return the secret of the nodes from a file, or else from the environment; raise `click.UsageError`.

    It is taken out of the environment, so that no program we start has it (P10).
    """
    from holdfast.cluster import NodeSecret  # noqa: PLC0415

    said = os.environ.pop(SECRET, "")
    if file is not None:
        said = file.read_text()
    if not said.strip():
        return None
    try:
        return NodeSecret(said.strip().encode())
    except ValueError as e:
        raise click.UsageError(f"{e}: {_ADVICE}") from None
