"""Our hand-written shapes against the official schemas: neither may change without the other."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from msgspec import Raw

from core.tests.support.schemas import Schema, definition, definitions
from holdfast.agent.port import AuthorAgent
from holdfast.peer import Routes
from holdfast.server import ClientConnection, Host
from holdfast.server.connection import _Initialize as Initialize  # pyright: ignore[reportPrivateUsage]
from holdfast.server.v1 import Version1
from holdfast.server.v2 import Version2
from holdfast.testing.demo_agent import agent as demo
from holdfast.transport import memory_pair

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

NOT_SERVED = {"initialize", "providers/list", "providers/set", "providers/disable", "mcp/message"}
"""Methods of the schemas that no dialect of ours answers: the connection does, the author (providers), or nobody."""

OURS = {1: {"session/set_model"}, 2: {"session/load"}}
"""Methods that a schema had once: real clients of version 1 still set models (D4), version 2 had a load (B9)."""

TOLERATED = {
    1: {"session/new": {"mcpServers"}, "session/load": {"mcpServers"}},  # B2
    2: {"session/set_config_option": {"type"}},  # D5
}
"""What a schema requires and we do without."""


class Kept(Routes):
    """Routes that remember the shapes of their parameters."""

    def __init__(self, fallback: Any = None) -> None:
        super().__init__(fallback)
        self.shapes: dict[str, type[Any]] = {}

    def request(
        self, method: str, handle: Callable[[Any], Awaitable[object]], params: type[Any] = Raw, **how: Any
    ) -> None:
        self.shapes[method] = params
        super().request(method, handle, params, **how)

    def urgent_notification(
        self, method: str, at_once: Callable[[Any], None], params: type[Any] = Raw, **how: Any
    ) -> None:
        self.shapes[method] = params
        super().urgent_notification(method, at_once, params, **how)


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return request.param


@pytest.fixture
def shapes(version: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, type[Any]]:
    """Get the shapes of what a version's methods take."""
    monkeypatch.setattr("holdfast.server.dialect.Routes", Kept)

    async def routes() -> Routes:
        connection = ClientConnection(Host(AuthorAgent(demo)), memory_pair()[0])
        return (Version1(connection) if version == 1 else Version2(connection)).routes()

    return cast("Kept", asyncio.run(routes())).shapes


def official(version: int, method: str) -> Schema | None:
    """Find what the schema says of the parameters of a method."""
    for ending in ("Request", "Notification"):
        name = definition(version, "agent", method, ending, stable=False)
        if name is not None:
            return definitions(version, stable=False)[name]
    return None


def variants(schema: Schema) -> list[Schema]:
    """Give the variants of parameters that have some, but for the one left open for later."""
    return [it for it in schema.get("anyOf", schema.get("oneOf", [])) if it.get("title") != "other"]


def properties(schema: Schema) -> dict[str, Schema]:
    members: dict[str, Schema] = dict(schema.get("properties", {}))
    for it in variants(schema):
        members |= it["properties"]
    return members


def required(schema: Schema) -> set[str]:
    base: set[str] = set(schema.get("required", ()))
    in_each = [name for name in properties(schema) if all(name in it["required"] for it in variants(schema))]
    return base | set(in_each if variants(schema) else ())


def may_be_null(schema: Schema) -> bool:
    return "null" in schema.get("type", ()) or any(it.get("type") == "null" for it in schema.get("anyOf", ()))


def fields(shape: type[Any]) -> dict[str, msgspec.inspect.Field]:
    info = msgspec.inspect.type_info(shape)
    assert isinstance(info, msgspec.inspect.StructType)
    return {it.encode_name: it for it in info.fields}


def takes_null(field: msgspec.inspect.Field) -> bool:
    kind = field.type
    return isinstance(kind, msgspec.inspect.UnionType) and kind.includes_none


def test_every_method_of_the_schema_is_served_or_known_not_to_be(version: int, shapes: dict[str, type[Any]]) -> None:
    methods = {
        it["x-method"]
        for name, it in definitions(version, stable=False).items()
        if it.get("x-side") == "agent" and name.endswith(("Request", "Notification"))
    }
    assert shapes.keys() - OURS[version] == methods - NOT_SERVED


def test_every_parameter_of_the_schema_is_read(version: int, shapes: dict[str, type[Any]]) -> None:
    for method, shape in shapes.items():
        schema = official(version, method)
        if schema is not None:
            assert fields(shape).keys() == properties(schema).keys(), method


@pytest.mark.requirement("B2", "D5")
def test_what_the_schema_requires_is_required_and_nothing_else(version: int, shapes: dict[str, type[Any]]) -> None:
    for method, shape in shapes.items():
        schema = official(version, method)
        if schema is not None:
            ours = {name for name, it in fields(shape).items() if it.required}
            spared = TOLERATED[version].get(method, set())
            assert ours == required(schema) - spared, method


def test_initialize_reads_every_parameter(version: int) -> None:
    schema = official(version, "initialize")
    assert schema is not None
    shape = fields(Initialize)
    others = {1: {"capabilities", "info"}, 2: {"clientCapabilities", "clientInfo"}}[version]  # one shape reads both
    assert shape.keys() - others == properties(schema).keys()
    assert {name for name, it in shape.items() if it.required} == required(schema) - {"info"}


def test_what_may_be_null_in_the_schema_may_be_null(version: int, shapes: dict[str, type[Any]]) -> None:
    for method, shape in shapes.items():
        for name, it in properties(official(version, method) or {}).items():
            if may_be_null(it):
                assert takes_null(fields(shape)[name]), f"{name} of {method}"
