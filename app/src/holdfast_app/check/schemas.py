"""The official schemas, and what they say of a frame.

They are not part of Holdfast: they come from an official SDK that is installed beside it. The Python SDK, which
``holdfast[check]`` brings, has them as models; the TypeScript SDK has them as files.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from holdfast.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

Part: TypeAlias = Literal["Request", "Response", "Notification"]
Side: TypeAlias = Literal["agent", "client"]
"""Who answers a method."""

PACKAGE = "agent-client-protocol"
MODULES = {1: "acp.schema", 2: "acp.experimental.v2.schema"}


class Source(Protocol):
    """Where schemas come from."""

    @property
    def name(self) -> str:
        """The package and its version."""
        ...

    def find(self, version: int, side: Side, method: str, part: Part) -> dict[str, Any] | None:
        """Return the schema of what a method is asked with or answered with, None where there is none."""
        ...


class Schemas:
    """The schemas of one source, ready to judge."""

    def __init__(self, source: Source) -> None:
        self.name: str = source.name
        self._source = source
        self._validator = lru_cache(maxsize=None)(self._make_validator)

    def faults(self, version: int, side: Side, method: str, part: Part, body: object) -> list[str]:
        """Return what is wrong with a body; nothing where the method is not one of the protocol's."""
        validator = self._validator(version, side, method, part)
        if validator is None:
            return []
        errors = sorted(validator.iter_errors(body), key=lambda error: len(error.path))
        return [f"{method}, {part.lower()}, {_told(_innermost(error))}" for error in errors[:3]]

    def knows(self, version: int) -> bool:
        """Return whether there are schemas of a version."""
        return self._validator(version, "agent", "initialize", "Response") is not None

    def _make_validator(self, version: int, side: Side, method: str, part: Part) -> Any:
        from jsonschema import Draft202012Validator  # noqa: PLC0415  (only the check needs it)

        schema = self._source.find(version, side, method, part)
        return None if schema is None else Draft202012Validator(schema)


def _innermost(error: Any) -> Any:
    """Follow a union to the member that was meant: the first that is not meant for another kind."""
    while error.validator in ("anyOf", "oneOf"):
        members: dict[object, list[Any]] = {}
        for inner in error.context:
            members.setdefault(inner.schema_path[0], []).append(inner)
        meant = [errors for errors in members.values() if not any(map(_is_of_another_kind, errors))]
        if not meant:
            return error
        error = meant[0][0]
    return error


def _is_of_another_kind(error: Any) -> bool:
    """Return whether a member of a union does not fit because of what it is for: a constant, or another type."""
    return error.validator in ("const", "not") or (error.validator == "type" and not error.path)


def _told(error: Any) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
    return f"at ${place}: {error.message[:300]}"


def find_schemas(folder: str | Path | None = None) -> Schemas | None:
    """Return the schemas in the folder of an official TypeScript SDK, or those of the installed Python SDK.

    Returns None where no folder is given and no SDK is installed. Raises `UsageError` where the folder has none.
    """
    if folder is not None:
        return Schemas(_Files(Path(folder)))
    try:
        import_module("jsonschema")
        return Schemas(_Models(installed_version(PACKAGE)))
    except (ImportError, PackageNotFoundError):
        return None


class _Files:
    """The JSON files of the TypeScript SDK."""

    def __init__(self, folder: Path) -> None:
        self._definitions: dict[int, dict[str, Any]] = {}
        for version in (1, 2):
            for name in ("schema.unstable.json", "schema.json"):
                path = folder / "schema" / f"v{version}" / name
                if path.is_file() and version not in self._definitions:
                    self._definitions[version] = json.loads(path.read_bytes())["$defs"]
        if not self._definitions:
            raise UsageError(f"{folder} has no schema/v1/schema.json: name the folder of @agentclientprotocol/sdk")
        about: dict[str, Any] = json.loads((folder / "package.json").read_bytes())
        self.name = f"{about.get('name')} {about.get('version')}"

    def find(self, version: int, side: Side, method: str, part: Part) -> dict[str, Any] | None:
        definitions = self._definitions.get(version, {})
        for name, definition in definitions.items():
            if (definition.get("x-method"), definition.get("x-side")) == (method, side) and name.endswith(part):
                return {"$ref": f"#/$defs/{name}", "$defs": definitions}
        return None


class _Models:
    """The models of the Python SDK, by the names the schema gives to methods."""

    def __init__(self, release: str) -> None:
        self.name = f"{PACKAGE} {release}"
        self._modules: dict[int, Any] = {}
        for version, name in MODULES.items():
            try:
                self._modules[version] = import_module(name)
            except ImportError:  # a release that does not know this version
                continue

    def find(self, version: int, side: Side, method: str, part: Part) -> dict[str, Any] | None:
        module = self._modules.get(version)
        name = _NAMES[version].get((side, method, part == "Notification"))
        model = getattr(module, f"{name}{part}", None) if module is not None and name is not None else None
        return None if model is None else model.model_json_schema(by_alias=True)


def _names(**by_side: Iterable[str]) -> dict[tuple[str, str, bool], str]:
    """Read rows ``method Name`` (``!`` behind the method marks a notification)."""
    table: dict[tuple[str, str, bool], str] = {}
    for side, rows in by_side.items():
        for row in rows:
            method, name = row.split()
            table[side, method.rstrip("!"), method.endswith("!")] = name
    return table


_NAMES = {
    1: _names(
        agent=(
            "initialize Initialize", "authenticate Authenticate", "logout Logout", "session/new NewSession",
            "session/load LoadSession", "session/list ListSessions", "session/delete DeleteSession",
            "session/resume ResumeSession", "session/close CloseSession", "session/fork ForkSession",
            "session/set_mode SetSessionMode", "session/set_config_option SetSessionConfigOption",
            "session/prompt Prompt", "session/cancel! Cancel",
        ),
        client=(
            "session/request_permission RequestPermission", "fs/read_text_file ReadTextFile",
            "fs/write_text_file WriteTextFile", "terminal/create CreateTerminal", "terminal/output TerminalOutput",
            "terminal/release ReleaseTerminal", "terminal/wait_for_exit WaitForTerminalExit",
            "terminal/kill KillTerminal", "session/update! Session", "elicitation/complete! CompleteElicitation",
        ),
    ),
    2: _names(
        agent=(
            "initialize Initialize", "auth/login LoginAuth", "auth/logout LogoutAuth", "session/new NewSession",
            "session/list ListSessions", "session/delete DeleteSession", "session/resume ResumeSession",
            "session/close CloseSession", "session/fork ForkSession",
            "session/set_config_option SetSessionConfigOption", "session/prompt Prompt",
            "session/cancel! CancelSession",
        ),
        client=(
            "session/request_permission RequestPermission", "session/update! UpdateSession",
            "elicitation/complete! CompleteElicitation",
        ),
    ),
}  # fmt: skip


class _Asked(NamedTuple):
    method: str
    side: Side


class MessageReader:
    """Reads one conversation frame by frame and says what is wrong with the frames of one side, `judged`."""

    def __init__(self, schemas: Schemas | None, version: int, judged: Side) -> None:
        self.version: int = version
        self._schemas = schemas
        self._judged: Side = judged
        self._asked: dict[tuple[Side, str], _Asked] = {}

    def faults(self, value: object, *, sent_by: Side) -> list[str]:
        """Return what is wrong with a frame."""
        messages = cast("list[object]", value) if isinstance(value, list) else [value]
        found: list[str] = []
        for message in messages:
            if isinstance(message, dict):
                found += self._message(cast("dict[str, Any]", message), sent_by)
            elif sent_by == self._judged:
                found.append(f"no JSON-RPC message: {str(message)[:200]}")
        return found

    def _message(self, message: dict[str, Any], sent_by: Side) -> list[str]:
        judged = sent_by == self._judged
        wrong = _envelope(message) if judged else []
        method = message.get("method")
        answers: Side = "client" if sent_by == "agent" else "agent"
        if isinstance(method, str):
            if "id" in message:
                self._asked[sent_by, json.dumps(message["id"])] = _Asked(method, answers)
            part: Part = "Request" if "id" in message else "Notification"
            return wrong + (self._check(answers, method, part, message.get("params")) if judged else [])
        asked = self._asked.get((answers, json.dumps(message.get("id"))))
        if asked is not None and asked.method == "initialize":
            self._agree(message.get("result"))
        if judged and asked is not None and "result" in message:
            wrong += self._check(asked.side, asked.method, "Response", message["result"])
        return wrong

    def _agree(self, answer: object) -> None:
        """Go on in the version that an agent answers in, which need not be the one that was asked for."""
        match answer:
            case {"protocolVersion": 1}:
                self.version = 1
            case {"protocolVersion": 2}:
                self.version = 2
            case _:
                pass

    def _check(self, side: Side, method: str, part: Part, body: object) -> list[str]:
        if self._schemas is None:
            return []
        if part == "Response" and body is None:
            return []  # both schemas and habits allow null where there is nothing to say
        return self._schemas.faults(self.version, side, method, part, body)


def _envelope(message: dict[str, Any]) -> list[str]:
    if message.get("jsonrpc") != "2.0":
        return ['"jsonrpc" is not "2.0"']
    if "method" in message:
        return [] if isinstance(message["method"], str) else ["a method that is no string"]
    if ("result" in message) == ("error" in message):
        return ["a response has either a result or an error"]
    error = message.get("error")
    if error is not None and not (isinstance(error, dict) and type(cast("Any", error).get("code")) is int):
        return ["an error has an integer code"]
    return []
