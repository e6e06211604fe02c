"""Reading parameters into the type that a handler wants."""

from __future__ import annotations

import pytest
from msgspec import Raw, Struct

from holdfast.errors import InvalidParams
from holdfast.peer import Routes
from holdfast.peer.incoming import read_params


class Point(Struct):
    x: int
    y: int = 0


async def take(_params: object) -> None: ...


def test_parameters_are_read_into_the_type_asked_for() -> None:
    routes = Routes()
    routes.request("m", take, Point)
    assert read_params(routes.requests["m"].decode, Raw(b'{"x":1,"z":"ignored"}')) == Point(1)


def test_no_parameters_are_read_as_an_empty_object() -> None:
    routes = Routes()
    routes.request("whole", take, dict[str, int])
    routes.request("raw", take)
    routes.request("point", take, Point)
    assert read_params(routes.requests["whole"].decode, None) == {}
    assert read_params(routes.requests["raw"].decode, None) == Raw(b"{}")
    with pytest.raises(InvalidParams, match="x"):
        read_params(routes.requests["point"].decode, None)


@pytest.mark.parametrize("params", [b"[]", b'{"x":"1"}', b'{"x":1.5}', b'{"x":null}', b'{"x":1e999}'])
def test_parameters_that_do_not_fit_are_refused_with_the_reason(params: bytes) -> None:
    routes = Routes()
    routes.notification("n", take, Point)
    with pytest.raises(InvalidParams):
        read_params(routes.notifications["n"].decode, Raw(params))


def test_raw_parameters_are_handed_over_as_they_are() -> None:
    routes = Routes()
    routes.request("m", take)
    params = Raw(b'{"a":  1e999}')
    assert read_params(routes.requests["m"].decode, params) is params


def test_a_method_registered_again_has_a_new_handler() -> None:
    async def other(_params: object) -> None: ...

    routes = Routes()
    routes.request("m", take)
    routes.request("m", other, ordered=True)
    assert routes.requests["m"].handle is other
    assert routes.requests["m"].ordered
