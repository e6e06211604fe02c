"""Which of our environment variables the programs that we start may see (P10, E2).

A list of what is passed on, not of what is kept back: nobody knows the names of all secrets.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

BASIC = frozenset(
    {
        "APPDATA", "COLORTERM", "COMSPEC", "HOME", "HOMEDRIVE", "HOMEPATH", "LANG", "LANGUAGE", "LOCALAPPDATA",
        "LOGNAME", "NO_COLOR", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE", "SHELL", "SYSTEMDRIVE", "SYSTEMROOT",
        "TEMP", "TERM", "TMP", "TMPDIR", "TZ", "USER", "USERNAME", "USERPROFILE", "WINDIR",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
        # One by one: SSH servers take any `LC_…`, and some people send a token that way.
        "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
        "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
    }
)  # fmt: skip
"""What programs need to run at all."""

DEVELOPMENT = frozenset(
    {
        "CARGO_HOME", "CC", "CI", "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "CXX", "EDITOR", "GOPATH", "GOROOT", "JAVA_HOME",
        "LD_LIBRARY_PATH", "MAKEFLAGS", "MANPATH", "NODE_ENV", "NODE_EXTRA_CA_CERTS", "NODE_PATH", "NVM_DIR",
        "PAGER", "PKG_CONFIG_PATH", "PYENV_ROOT", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH",
        "REQUESTS_CA_BUNDLE", "RUSTUP_HOME", "SSL_CERT_DIR", "SSL_CERT_FILE", "VIRTUAL_ENV",
    }
)  # fmt: skip
"""What compilers, interpreters and package tools need besides, to work as they do in the user's own shell."""


PROXIES = frozenset({"ALL_PROXY", "FTP_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"})
"""Passed on with `DEVELOPMENT`, in capitals or not, unless there is a password in them."""


def passed_environment(*names: Iterable[str]) -> dict[str, str]:
    """Return the variables of our environment that are `BASIC`, and those with the given names."""
    wanted = BASIC.union(*names)
    return {name: value for name, value in os.environ.items() if _is_passed(name, value, wanted)}


def _is_passed(name: str, value: str, wanted: frozenset[str]) -> bool:
    if value.startswith("()"):  # a function that some shells export, which has been used to smuggle commands
        return False
    if name in wanted or name.upper() in BASIC:
        return True
    return wanted >= DEVELOPMENT and name.upper() in PROXIES and "@" not in value
