"""The machine: where figures were measured, and what it knows about processes."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from bench.processes import TYPESCRIPT_SDK


def machine() -> str:
    """Name the machine and what ran on it."""
    return ", ".join(
        [
            f"{os.cpu_count()} cores of {_processor()}",
            platform.system(),
            f"Python {platform.python_version()}",
            _node(),
            f"agent-client-protocol {_python_sdk()}",
            f"@agentclientprotocol/sdk {_typescript_sdk()}",
        ]
    )


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    return text.partition("model name")[2].partition(":")[2].partition("\n")[0].strip() or platform.machine()


def _node() -> str:
    if (node := shutil.which("node")) is None:
        return "no Node"
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    return f"Node {said.strip().removeprefix('v')}"


def _python_sdk() -> str:
    try:
        return version("agent-client-protocol")
    except PackageNotFoundError:
        return "absent"


def memory_of(pid: int, what: str) -> float:
    """Say how many megabytes a process has (`VmRSS`) or had at most (`VmHWM`)."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition(f"{what}:")[2].split()[0]) * 1024 / 1e6


def cpu_of(pid: int) -> float:
    """Return the seconds of processor time that a process has used so far, all its threads together."""
    return time.clock_gettime(~pid << 3 | 2)  # how Linux numbers the clock of a process


class _Package(msgspec.Struct):
    version: str


def _typescript_sdk() -> str:
    if not TYPESCRIPT_SDK.exists():
        return "absent"
    return msgspec.json.decode(TYPESCRIPT_SDK.read_bytes(), type=_Package).version
